"""What watches each engine for `trace`."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

from clew.inspect import clew_adapter, torch_adapter
from clew.inspect.fold import short_name
from clew.inspect.recorder import user_site, watched_torch_engine
from clew.inspect.trace import trace
from clew.inspect.walk import ordered
from clew.observers import Observer, observers
from clew.site import here, resolve


def _name(op: Any) -> str:
    """What PyTorch calls an op: ``native_layer_norm`` of ``NativeLayerNormBackward0``."""
    if isinstance(op, type):  # a custom Function
        return op.__name__
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", short_name(op.node_name)).lower()


def _line(site: Any) -> str:
    resolved = resolve(site)
    return "" if resolved is None else f"{resolved.file}:{resolved.line}  {resolved.text}"


def _shapes(tensors: Any) -> str:
    shapes = [getattr(t, "shape", None) for t in tensors]
    return ", ".join("×".join(map(str, s)) or "scalar" for s in shapes if s is not None)


class ClewTracer(Observer):
    def __init__(self, trace: trace) -> None:
        self._trace = trace
        self._begun: list[tuple[Any, float]] = []  # ops that run; an op may call others
        self._modules: list[float] = []
        self._passes: list[float] = []
        self._steps: list[float] = []
        self._last = 0.0  # when the last node of a backward ended

    def __enter__(self) -> ClewTracer:
        observers.append(self)
        return self

    def __exit__(self, *exception: Any) -> None:
        observers.remove(self)

    def before_op(self, op: Any, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> None:
        self._begun.append((op, self._trace.now()))

    def before_inplace(
        self, op: Any, target: Any, inputs: tuple[Any, ...], attrs: dict[str, Any]
    ) -> None:
        self._begun.append((op, self._trace.now()))

    def on_op(
        self, op: Any, inputs: tuple[Any, ...], outputs: tuple[Any, ...], node: Any,
        attrs: dict[str, Any],
    ) -> None:  # fmt: skip
        self._forward(op, _name(op), inputs, outputs, node)

    def on_inplace(self, op: Any, target: Any, node: Any) -> None:
        self._forward(op, f"{_name(op)}_", (), (target,), node)

    def _forward(self, op: Any, name: str, inputs: Any, outputs: Any, node: Any) -> None:
        begin = self._trace.now()  # of a custom Function nobody hears before it has run
        if not isinstance(op, type):
            while self._begun:  # an op that raised is left behind
                started, at = self._begun.pop()
                if started is op:
                    begin = at
                    break
        line = "" if self._passes else _line(here())
        self._trace.ran(
            "forward", name, begin, line=line, inputs=_shapes(inputs), outputs=_shapes(outputs)
        )
        if node is not None:
            self._trace.flow(node.seq, end=False)

    def before_module(self, module: Any) -> None:
        self._modules.append(self._trace.now())

    def after_module(self, module: Any) -> None:
        if self._modules:  # the trace may have begun inside it
            self._trace.ran("modules", type(module).__name__, self._modules.pop())

    def on_backward_start(self, task: Any) -> None:
        self._last = self._trace.now()
        self._passes.append(self._last)

    def on_backward_end(self, task: Any) -> None:
        if self._passes:
            insert_pass(self._trace, self._passes.pop(), _line(task.freed.site))

    def on_node(self, node: Any) -> None:
        name = clew_adapter.kind(node)
        self._trace.ran("backward", name, self._last, line=_line(node.site))
        if name != "AccumulateGrad":
            self._trace.flow(node.seq, end=True)
        self._last = self._trace.now()

    def before_optimizer_step(self, optimizer: Any) -> None:
        self._steps.append(self._trace.now())

    def on_optimizer_step(self, optimizer: Any) -> None:
        if self._steps:
            name = f"{type(optimizer).__name__}.step"
            self._trace.ran("optimizer", name, self._steps.pop(), line=_line(here()))


def insert_pass(trace: trace, begin: float, line: str) -> None:
    """Put a backward pass that ends now before its nodes, which have ended before it."""
    trace.ran("backward", "backward", begin, line=line)
    events = trace.events
    whole = events.pop()
    first = len(events)
    while first and events[first - 1]["ts"] >= begin:
        first -= 1
    events.insert(first, whole)


@contextlib.contextmanager
def torch_tracer(torch: Any, trace: trace) -> Iterator[None]:
    """Watch real PyTorch: calls of its functions, modules, backward nodes, optimizer steps."""
    from torch.overrides import TorchFunctionMode

    steps: list[float] = []  # when the optimizers' steps that run now began

    class Calls(TorchFunctionMode):
        """Times each call from Python; what it calls inside is part of it."""

        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            begin = trace.now()
            result = func(*args, **(kwargs or {}))
            name = getattr(func, "__name__", "call")
            outputs = [t for t in _flat(result) if isinstance(t, torch.Tensor)]
            if name not in _NO_WORK and outputs and not steps:
                inputs = [t for t in _flat(args) if isinstance(t, torch.Tensor)]
                trace.ran(
                    "forward", name, begin, line=_line(user_site()), inputs=_shapes(inputs),
                    outputs=_shapes(outputs),
                )  # fmt: skip
                for node in {t.grad_fn for t in outputs if t.grad_fn is not None}:
                    trace.flow(node._sequence_nr(), end=False)
            return result

    with contextlib.ExitStack() as stack:
        for handle in _torch_handles(trace, steps):
            stack.callback(handle.remove)
        stack.enter_context(_traced_backward(trace))
        stack.enter_context(Calls())
        yield


_NO_WORK = frozenset(
    {"__get__", "__set__", "backward", "size", "dim", "stride", "is_floating_point"}
)


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from _flat(item)
    else:
        yield value


def _torch_handles(trace: trace, steps: list[float]) -> list[Any]:
    from torch.nn.modules import module
    from torch.optim.optimizer import (
        register_optimizer_step_post_hook,
        register_optimizer_step_pre_hook,
    )

    begun: list[float] = []

    def entered(m: Any, args: Any) -> None:
        begun.append(trace.now())

    def left(m: Any, args: Any, output: Any) -> None:
        if begun:  # the trace may have begun inside it
            trace.ran("modules", type(m).__name__, begun.pop())

    def stepped(optimizer: Any, args: Any, kwargs: Any) -> None:
        if steps:
            name = f"{type(optimizer).__name__}.step"
            trace.ran("optimizer", name, steps.pop(), line=_line(user_site()))

    return [
        module.register_module_forward_pre_hook(entered),
        module.register_module_forward_hook(left, always_call=True),
        register_optimizer_step_pre_hook(lambda o, args, kwargs: steps.append(trace.now())),
        register_optimizer_step_post_hook(stepped),
    ]


def _traced_backward(trace: trace) -> Any:
    """Hooks on all nodes of a backward pass, for as long as it runs."""
    passes: list[tuple[float, str, list[Any]]] = []

    def begin(roots: Any) -> None:
        handles: list[Any] = []
        edges = [torch_adapter.edge_of(getattr(r, "node", None) or r)[0] for r in roots]
        for node in ordered([e for e in edges if e is not None], torch_adapter):
            handles += _watch_node(trace, node)
        passes.append((trace.now(), _line(user_site()), handles))

    def end() -> None:
        began, line, handles = passes.pop()
        for handle in handles:
            handle.remove()
        insert_pass(trace, began, line)

    return watched_torch_engine(begin, end)


def _watch_node(trace: trace, node: Any) -> list[Any]:
    began = 0.0

    def before(grads: Any) -> None:
        nonlocal began
        began = trace.now()

    def after(*grads: Any) -> None:
        site = torch_adapter.site(node)
        line = "" if site is None else f"{site.file}:{site.line}  {site.text}"
        trace.ran("backward", torch_adapter.kind(node), began, line=line)
        if torch_adapter.leaf_of(node) is None:
            trace.flow(node._sequence_nr(), end=True)

    return [node.register_prehook(before), node.register_hook(after)]
