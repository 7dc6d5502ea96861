"""`record()`: watch a program for a while, so that its graphs know modules, lines and iterations.

One watcher for each engine tells the engine's `Recording` what happens (Note [Marks] in
``recording.py``).
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any

from clew.autograd.node import next_sequence_nr
from clew.inspect import torch_adapter
from clew.inspect.recording import OWN_FOLDER, Recording, remember
from clew.observers import Observer, observers
from clew.site import Site, here


class record:
    """Watch the program between entering and leaving a ``with``; see `clew.graph`.

    Nodes that are made meanwhile know which module's forward made them, in which iteration (rounds
    of optimizer steps), and whether a backward pass recorded them.  For real PyTorch, if it is
    imported by then, they know the line of the program as well, which clew's always know.

    What was seen stays, of the last 16 recordings.  Only this thread is watched.

    >>> model = torch.nn.Linear(3, 1)
    >>> with clew.inspect.record():
    ...     loss = model(torch.ones(2, 3)).sum()
    >>> graph = clew.graph(loss)
    >>> [(n.name, graph.module_of(n)) for n in graph if not n.leaf]
    [('SumBackward0', ''), ('AddmmBackward0', 'model'), ('TBackward0', 'model')]
    """

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> record:
        self._stack.enter_context(_ClewWatcher())
        torch = torch_adapter.loaded()
        if torch is not None:
            self._stack.enter_context(_torch_watcher(torch))
        return self

    def __exit__(self, *exception: Any) -> None:
        self._stack.close()


class _ClewWatcher(Observer):
    def __init__(self) -> None:
        self.recording = Recording("clew")

    def __enter__(self) -> _ClewWatcher:
        self.recording.first = next_sequence_nr()
        remember(self.recording)
        observers.append(self)
        return self

    def __exit__(self, *exception: Any) -> None:
        observers.remove(self)
        self.recording.last = next_sequence_nr()

    def before_module(self, module: Any) -> None:
        self.recording.enter_module(module, next_sequence_nr())

    def after_module(self, module: Any) -> None:
        self.recording.leave_module(module, next_sequence_nr())

    def on_backward_start(self, task: Any) -> None:
        self.recording.begin_backward(
            lambda: [node.seq for node in task.reached], next_sequence_nr()
        )

    def on_backward_end(self, task: Any) -> None:
        self.recording.end_backward(next_sequence_nr())

    def on_optimizer_step(self, optimizer: Any) -> None:
        self.recording.optimizer_step(optimizer, next_sequence_nr())


def _torch_watcher(torch: Any) -> Any:
    """What to enter to watch real PyTorch; its class can only be made when torch is there."""
    from torch.overrides import TorchFunctionMode

    now = torch._C._autograd._get_sequence_nr
    recording = Recording("torch")

    def call(func: Any, args: Any, kwargs: Any) -> Any:
        begin = now()
        try:
            return func(*args, **(kwargs or {}))
        finally:
            end = now()
            if end > begin:
                recording.made_by(user_site(), begin, end)

    class Lines(TorchFunctionMode):
        """Notes the user's line of each call that makes nodes."""

        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return call(func, args, kwargs)

    @contextlib.contextmanager
    def watcher() -> Any:
        recording.first = now()
        remember(recording)
        with contextlib.ExitStack() as stack:
            for handle in _torch_handles(recording, now):
                stack.callback(handle.remove)
            stack.enter_context(_watched_engine(torch, recording, now))
            stack.enter_context(_watched_functions(torch, call))
            stack.enter_context(Lines())
            yield
        recording.last = now()

    return watcher()


def _torch_handles(recording: Recording, now: Any) -> list[Any]:
    from torch.nn.modules import module
    from torch.optim.optimizer import register_optimizer_step_post_hook

    return [
        module.register_module_forward_pre_hook(lambda m, args: recording.enter_module(m, now())),
        module.register_module_forward_hook(
            lambda m, args, output: recording.leave_module(m, now()), always_call=True
        ),
        register_optimizer_step_post_hook(
            lambda optimizer, args, kwargs: recording.optimizer_step(optimizer, now())
        ),
    ]


@contextlib.contextmanager
def _watched_functions(torch: Any, call: Any) -> Any:
    """Send ``Function.apply``, which no mode sees, through `call`."""
    function = torch.autograd.Function
    plain = function.__dict__["apply"]

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        return call(plain.__get__(None, cls), args, kwargs)

    function.apply = classmethod(apply)
    try:
        yield
    finally:
        function.apply = plain


class EngineProxy:
    """PyTorch's engine, which tells `begin` of the roots before a pass and calls `end` after it.

    ``backward`` and ``grad`` in all their forms come through ``run_backward``.
    """

    def __init__(self, engine: Any, begin: Any, end: Any) -> None:
        self._engine, self._begin, self._end = engine, begin, end

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def run_backward(self, tensors: Any, *args: Any, **kwargs: Any) -> Any:
        """The engine's own, between the two calls."""
        self._begin(tensors)
        try:
            return self._engine.run_backward(tensors, *args, **kwargs)
        finally:
            self._end()


@contextlib.contextmanager
def watched_torch_engine(begin: Any, end: Any) -> Any:
    """Call ``begin(roots)`` and ``end()`` around each backward pass of real PyTorch."""
    from torch.autograd.variable import Variable

    engine = Variable._execution_engine
    Variable._execution_engine = EngineProxy(engine, begin, end)  # type: ignore[assignment]
    try:
        yield
    finally:
        Variable._execution_engine = engine


def _watched_engine(torch: Any, recording: Recording, now: Any) -> Any:
    def begin(roots: Any) -> None:
        recording.begin_backward(lambda: torch_adapter.reached(roots), now())

    return watched_torch_engine(begin, lambda: recording.end_backward(now()))


def user_site() -> Site | None:
    """The user's frame: the first outside clew and PyTorch."""
    site = here()
    folder = torch_adapter.own_folder()
    if site is None or not site[0].co_filename.startswith(folder):
        return site
    frame: Any = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((OWN_FOLDER, folder)):
            return frame.f_code, frame.f_lasti
        frame = frame.f_back
    return None
