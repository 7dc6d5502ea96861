"""The adapter of clew: a stream of events from its observers.

Imports the core.  See `clew.inspect.watch.stream` for what the events mean.
"""

from __future__ import annotations

import sys
import weakref
import zlib
from typing import Any

import numpy as np

from clew import nn, optim
from clew.autograd.algebra import TENSORS
from clew.autograd.node import FIRST
from clew.autograd.saved import SavedTensor
from clew.autograd.saved_small import SavedSmall
from clew.inspect.watch.stream import KEY, Stream
from clew.inspect.watch.wraps import Wraps
from clew.observers import Observer, observers
from clew.storage import root
from clew.tensor import Tensor


class ClewEngine:
    """What a stream asks about clew's tensors and nodes."""

    name = "clew"
    tensor_type = Tensor
    parameter_type = nn.Parameter
    module_type = nn.Module
    optimizer_type = optim.Optimizer

    def is_tensor(self, value: Any) -> bool:
        """Whether it is a tensor."""
        return isinstance(value, Tensor)

    def requires_grad(self, tensor: Any) -> bool:
        """Whether it requires grad."""
        try:
            return isinstance(tensor, Tensor) and tensor.requires_grad
        except RuntimeError:  # a view that was written to under no_grad has no answer
            return False

    def node(self, tensor: Any) -> Any:
        """The node that made it; None for a leaf, and where autograd refuses to say."""
        try:
            return tensor.grad_fn
        except RuntimeError:
            return None

    def name_of(self, node: Any) -> str:
        """The node's name."""
        return node.name()

    def edges(self, node: Any) -> list[Any]:
        """The nodes that its edges lead to."""
        return [following for following, _ in node.edges if following is not None]

    def leaf(self, node: Any) -> Any:
        """The leaf of an `AccumulateGrad`, None for other nodes."""
        return node.variable if node.seq == FIRST else None

    def info(self, node: Any) -> Any:
        """What was noted on a node."""
        return None if node.info is None else node.info.get(KEY)

    def set_info(self, node: Any, info: Any) -> None:
        """Note something on a node."""
        node.metadata[KEY] = info

    def storage(self, tensor: Any) -> Any:
        """A key of the memory behind it."""
        return id(root(tensor._array))

    def storage_bytes(self, tensor: Any) -> int:
        """The size of the memory behind it."""
        return root(tensor._array).nbytes

    def nbytes(self, tensor: Any) -> int:
        """Its size."""
        return tensor._array.nbytes

    def version(self, tensor: Any) -> int:
        """Its version."""
        return tensor._counter.value

    def hides(self, saved: Any, target: Any, version: int) -> bool:
        """Whether a write to `target` does not show in the version of what is kept."""
        return saved.tensor is not None and saved.tensor is not target._counter

    def checksum(self, tensor: Any) -> int:
        """A number that changes with the values."""
        return zlib.crc32(np.ascontiguousarray(tensor._array).tobytes())

    def grad(self, leaf: Any) -> Any:
        """Its gradient."""
        return leaf._grad

    def has_graph(self, tensor: Any) -> bool:
        """Whether an op made it and was recorded."""
        return tensor is not None and tensor._node is not None

    def is_zero(self, tensor: Any) -> bool:
        """Whether all elements are zero."""
        array = tensor._array
        return not array.ravel()[:16].any() and not array.any()

    def is_parameter(self, tensor: Any) -> bool:
        """Whether it is an `nn.Parameter`."""
        return isinstance(tensor, nn.Parameter)

    def shape(self, tensor: Any) -> str:
        """As ``float32 [2, 3]``."""
        return f"{tensor.dtype!r} {list(tensor.shape)}".removeprefix("torch.")

    def parameters_of(self, optimizer: Any) -> list[Any]:
        """What an optimizer updates."""
        return [p for group in optimizer.param_groups for p in group["params"]]

    def records(self) -> bool:
        """Whether operations are recorded now."""
        from clew.autograd.modes import state

        return state.now.grad_enabled

    def why_constant(self, name: str) -> str:
        """Why a result of `name` has no history although an input has."""
        return name if self.records() else "no_grad"


class ClewWatch(Observer):
    """Turns what clew's observers are told into the events of a stream."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.kept: dict[int, tuple[Any, Any, Any]] = {}
        self.packed: dict[int, list[Any]] = {}
        self.wraps = Wraps(stream, nn, optim)
        self.call: Any = None
        self._inputs: tuple[Any, ...] = ()

    def start(self) -> None:
        """Begin to watch."""
        observers.append(self)
        self.wraps.start()

    def stop(self) -> None:
        """End it."""
        observers.remove(self)
        self.wraps.stop()

    # -- ops

    def on_op(
        self, op: Any, inputs: tuple[Any, ...], outputs: tuple[Any, ...], node: Any,
        attrs: dict[str, Any],
    ) -> None:  # fmt: skip
        stream = self.stream
        if stream.current is not None:
            return
        path = stream.stack.path()
        name = getattr(op, "label", None) or op.__name__
        if node is not None:
            self._keep(name, node, path)
        flat = _tensors((inputs, attrs))
        scalars = any(isinstance(x, float) for x in inputs)
        results = [o for o in outputs if isinstance(o, Tensor)]
        try:
            stream.op(name, flat, results, path, scalars=scalars)
        except Exception as error:
            stream.trouble(error)
        if node is not None and isinstance(op, type):
            info = ENGINE.info(node)
            if info is not None:
                stream.tell("on_function", node, info, results)

    def before_inplace(
        self, op: Any, target: Any, inputs: tuple[Any, ...], attrs: dict[str, Any]
    ) -> None:
        self._inputs = tuple(_tensors((inputs, attrs)))

    def on_inplace(self, op: Any, target: Any, node: Any) -> None:
        inputs, self._inputs = self._inputs, ()
        stream = self.stream
        if stream.current is not None:
            return
        path = stream.stack.path()
        if node is not None:
            self._keep(op.label + "_", node, path)
        name = target._counter.writer_name or op.label + "_"
        try:
            stream.write(name, target, path, inputs, self.packed.get(id(target._counter), ()))
        except Exception as error:
            stream.trouble(error)

    def _keep(self, name: str, node: Any, path: Any) -> None:
        """Note what a node keeps; a `SavedTensor` tells by its death that it is let go of."""
        for _, kept in node.kept():
            if not isinstance(kept, SavedTensor) or id(kept) in self.kept:
                continue
            saved = self.stream.packed(
                name, kept.tensor, kept.version, path, is_output=kept.output_nr is not None
            )
            saved.tensor = kept.tensor._counter
            memory = None
            if isinstance(kept, SavedSmall):
                # It may give up its packed form, by whose memory the stream knows it.
                memory = kept.tensor
                self.packed.setdefault(id(saved.tensor), []).append(saved)
            self.kept[id(kept)] = (weakref.ref(kept, self._forget(id(kept))), saved, memory)

    def _forget(self, key: int) -> Any:
        def forget(_: Any) -> None:
            known = self.kept.pop(key, None)
            if known is not None:
                self.stream.dropped(known[1])
                if known[2] is not None:
                    same = self.packed[id(known[1].tensor)]
                    same.remove(known[1])
                    if not same:
                        del self.packed[id(known[1].tensor)]

        return forget

    # -- backward

    def on_backward_start(self, task: Any) -> None:
        stream = self.stream
        if stream.current is not None:  # a pass within a pass: part of it
            inner = [n for n, count in task.reached.items() if count == 0 and n.seq != FIRST]
            infos = [stream.register(n, stream.current.path) for n in inner]
            stream.current.roots += [i for i in infos if i is not None]
            return
        create = task.algebra.namespace is TENSORS
        roots = [n for n, count in task.reached.items() if count == 0]
        ends = [n.variable if n.seq == FIRST else n for n in roots]
        self.call = (task, stream.backward_start(
            stream.stack.path(), ends, keep=task.keep_graph, create=create,
            accumulates=not task.captures,
        ))  # fmt: skip

    def on_backward_end(self, task: Any) -> None:
        if self.call is None or self.call[0] is not task:
            return
        call, self.call = self.call[1], None
        error = sys.exception()
        if error is not None and task.node is not None:
            call.culprits = self._changed(task.node)
        nodes = None
        if task.wanted is not None:
            nodes = {ENGINE.info(n) for n in task.reached if n in task.wanted or n in task.captures}
        self.stream.backward_end(call, error, nodes)

    def on_node(self, node: Any) -> None:
        for _, kept in node.kept():
            known = self.kept.get(id(kept))
            if known is not None:
                self.stream.unpacked(known[1], kept.tensor if known[2] is None else None)

    def _changed(self, node: Any) -> list[Any]:
        """What a node keeps and cannot use, because it was written to."""
        found = []
        for _, kept in node.kept():
            known = self.kept.get(id(kept))
            if known is not None and kept.tensor._counter.value != kept.version:
                found.append(known[1])
        return found

    # -- cuts, gradients, hooks

    def on_cut(self, kind: str, source: Any, result: Any) -> None:
        stream = self.stream
        if stream.current is None:
            path = stream.stack.path()
            stream._note_reads((source,), path)
            stream.cut(kind, source, result, path)

    def on_dead_grad(self, tensor: Any) -> None:
        self.stream.tell("on_dead_grad", tensor, self.stream.stack.path())

    def on_tensor_hook(self, tensor: Any, hook: Any, handle: Any) -> None:
        self.stream.tell("on_hook", tensor, hook, handle, self.stream.stack.path())


def _tensors(value: Any, depth: int = 2) -> list[Any]:
    found: list[Any] = []
    for part in value.values() if isinstance(value, dict) else value:
        if isinstance(part, Tensor):
            found.append(part)
        elif depth and isinstance(part, (list, tuple, dict)):
            found += _tensors(part, depth - 1)
    return found


ENGINE = ClewEngine()
