"""What both engines let a watcher wrap: optimizers, modules, DataParallel.

Imports nothing of either engine: it is given their `nn` and `optim`.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable
from typing import Any


class Wraps:
    """Hooks and wrapped methods that report to a stream, and their removal."""

    def __init__(
        self, stream: Any, nn: Any, optim: Any, quiet: Callable[[], Any] = contextlib.nullcontext
    ) -> None:
        self.stream = stream
        self.quiet = quiet
        self.nn = nn
        self.optim = optim
        self._undo: list[Callable[[], None]] = []
        self._parallel = 0

    def start(self) -> None:
        """Begin to report."""
        optimizers = importlib.import_module(f"{self.optim.__name__}.optimizer")
        before = optimizers.register_optimizer_step_pre_hook(self._before_step)
        after = optimizers.register_optimizer_step_post_hook(self._after_step)
        self._undo += [before.remove, after.remove]
        self.wrap(self.optim.Optimizer, "zero_grad", self._after_clear)
        self.wrap(self.nn.Module, "zero_grad", self._after_clear)
        parallel = getattr(self.nn, "DataParallel", None)
        if parallel is not None:
            self.replace(parallel, "__init__", self._note_devices)
            self.replace(parallel, "forward", self._around_parallel)
            self.replace(self.nn.Module, "parameters", self._parameters)
            self.replace(self.nn.Module, "__setattr__", self._set_attribute)

    def stop(self) -> None:
        """Put everything back."""
        while self._undo:
            self._undo.pop()()

    def wrap(self, owner: Any, name: str, after: Callable[..., None]) -> None:
        """Call ``after(self)`` when a method has run."""

        def around(original: Any, own: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(own, *args, **kwargs)
            after(own)
            return result

        self.replace(owner, name, around)

    def replace(self, owner: Any, name: str, around: Callable[..., Any]) -> None:
        """Put ``around(original, *args)`` in the place of a function."""
        original = getattr(owner, name)

        @functools.wraps(original)
        def replaced(*args: Any, **kwargs: Any) -> Any:
            return around(original, *args, **kwargs)

        had = name in vars(owner)
        setattr(owner, name, replaced)
        self._undo.append(
            (lambda: setattr(owner, name, original)) if had else (lambda: delattr(owner, name))
        )

    # -- optimizers

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        with self.quiet():
            self.stream.step_start(optimizer, self.stream.stack.path())

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        with self.quiet():
            self.stream.step_end(optimizer)

    def _after_clear(self, owner: Any) -> None:
        with self.quiet():
            self.stream.poll_all(self.stream.stack.path())

    # -- DataParallel

    def _note_devices(
        self, original: Any, wrapper: Any, module: Any, device_ids: Any = None, *args: Any,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        original(wrapper, module, device_ids, *args, **kwargs)
        # On a machine without them PyTorch forgets which devices it was asked for.
        wrapper.__dict__["_clew_asked_devices"] = tuple(device_ids or ())

    def _around_parallel(self, original: Any, wrapper: Any, *inputs: Any, **named: Any) -> Any:
        self._parallel += 1
        try:
            output = original(wrapper, *inputs, **named)
        finally:
            self._parallel -= 1
        self.stream.tell("on_parallel", wrapper, inputs, output, self.stream.stack.path())
        return output

    def _parameters(self, original: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
        if self._parallel:
            path = self.stream.stack.path()
            self.stream.tell("on_replica", "parameters", module, "parameters()", path)
        return original(module, *args, **kwargs)

    def _set_attribute(self, original: Any, module: Any, name: str, value: Any) -> None:
        original(module, name, value)
        if self._parallel:
            self.stream.tell("on_replica", "write", module, name, self.stream.stack.path())
