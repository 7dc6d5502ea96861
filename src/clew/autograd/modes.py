"""Grad modes: whether operations are recorded.  Layer 3.

Each mode works as a context manager, as a decorator of functions and of generator functions, and
(for `set_grad_enabled`, `inference_mode`) as a call that takes effect at once.
"""

from __future__ import annotations

import functools
import inspect
import threading
import warnings
from collections.abc import Callable, Generator
from types import TracebackType
from typing import Any

from clew import allocator
from clew.quiet import thread as quiet
from clew.site import Site, here


class Modes:
    """The modes of one thread.

    Attributes:
        grad_enabled: operations on tensors that require grad are recorded.
        inference: inference mode is on.
        multithreading: backward may go on in a thread of its own.
        view_replay: views remember the operations that made them.
        cut: what turned recording off, and on which line.
        carries_tangents: forward mode is not turned off.
        saved_hooks: the saved-tensor hooks, innermost last.
        hooks_refused: the error for who enters such hooks, where they are disabled.
        in_rules: rules of derivatives are being recorded, see Note [Numbers in rules].
        quiet: calls a function with NumPy's warnings off; see Note [Floating-point warnings].
    """

    __slots__ = (
        "carries_tangents", "cut", "grad_enabled", "hooks_refused", "in_rules", "inference",
        "multithreading", "quiet", "saved_hooks", "view_replay",
    )  # fmt: skip

    def __init__(self) -> None:
        self.grad_enabled = True
        self.inference = False
        self.multithreading = True
        self.view_replay = False
        self.cut: tuple[str, Site | None] | None = None
        self.carries_tangents = True
        self.saved_hooks: list[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = []
        self.hooks_refused: str | None = None
        self.in_rules = False
        self.quiet: Callable[..., Any] = _first


def _first(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What `Modes.quiet` is until a thread computes for the first time (Note [Freed memory])."""
    allocator.start()
    state.now.quiet = quiet.run
    return quiet.run(function, *args, **kwargs)


class _State(threading.local):
    """This thread's modes: in one object, for what is local to a thread is slow to get at."""

    def __init__(self) -> None:
        self.now = Modes()


state = _State()


def call_user(function: Callable[..., Any], *args: Any) -> Any:
    """Call a hook or a Function's backward amid rules of derivatives."""
    if not state.now.in_rules:
        return function(*args)
    state.now.in_rules = False
    try:
        return function(*args)
    finally:
        state.now.in_rules = True


def is_grad_enabled() -> bool:
    """Whether operations on tensors that require grad are recorded in this thread."""
    return state.now.grad_enabled


def is_inference_mode_enabled() -> bool:
    """Whether inference mode is on in this thread."""
    return state.now.inference


def is_multithreading_enabled() -> bool:
    """Whether a backward pass of this thread may go on in a thread of its own."""
    return state.now.multithreading


def is_view_replay_enabled() -> bool:
    """Whether views made in this thread remember the operations that made them."""
    return state.now.view_replay


class _Mode:
    """A context manager that is also a decorator."""

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        raise NotImplementedError

    def _fresh(self) -> _Mode:
        """A new mode of this kind, for one call of a decorated function."""
        return type(self)()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.isclass(function):
            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You "
                "should only decorate functions or methods. To preserve the current behavior of "
                "class decoration, you can directly decorate the `__init__` method and nothing "
                "else.",
                FutureWarning,
                stacklevel=2,
            )
        if inspect.isgeneratorfunction(function):
            return self._decorate_generator(function)

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self._fresh():
                return function(*args, **kwargs)

        return wrapped

    def _decorate_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The mode holds while the generator runs, and not between its yields."""

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            generator = function(*args, **kwargs)
            step: Callable[[], Any] = functools.partial(generator.send, None)
            while True:
                try:
                    with self._fresh():
                        produced = step()
                except StopIteration as stop:
                    return stop.value
                try:
                    sent = yield produced
                    step = functools.partial(generator.send, sent)
                except GeneratorExit:
                    with self._fresh():
                        generator.close()
                    raise
                except BaseException as error:
                    step = functools.partial(generator.throw, error)

        return wrapped


class _GradMode(_Mode):
    """Sets `grad_enabled` on entry and restores it on exit; may be entered repeatedly."""

    def __init__(self, enabled: bool) -> None:
        self.mode = enabled
        self._before: list[tuple[bool, Any]] = []

    def __enter__(self) -> None:
        self._before.append((state.now.grad_enabled, state.now.cut))
        _set_grad_mode(self.mode)

    def __exit__(self, *exception: Any) -> None:
        state.now.grad_enabled, state.now.cut = self._before.pop()


def _set_grad_mode(enabled: bool) -> None:
    state.now.grad_enabled = enabled
    if enabled:
        state.now.cut = None
    elif state.now.cut is None:
        state.now.cut = ("no_grad", here())


def _or_decorate(cls: type, function: Any) -> Any:
    """``@no_grad`` without parentheses decorates too."""
    if function is None:
        return object.__new__(cls)
    mode = cls()
    return mode(function)


class no_grad(_GradMode):
    """Nothing is recorded: results do not require grad, and nothing is saved.

    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    >>> @torch.no_grad()
    ... def double(x):
    ...     return x * 2
    >>> double(x).requires_grad
    False
    """

    def __new__(cls, orig_func: Any = None) -> Any:
        return _or_decorate(cls, orig_func)

    def __init__(self) -> None:
        super().__init__(False)


class enable_grad(_GradMode):
    """Operations are recorded again, inside `no_grad`."""

    def __new__(cls, orig_func: Any = None) -> Any:
        return _or_decorate(cls, orig_func)

    def __init__(self) -> None:
        super().__init__(True)


class set_grad_enabled(_GradMode):
    """Turn recording on or off: at once as a call, for a while in a ``with``.

    Raises:
        TypeError: `mode` is not a bool.
    """

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"enabled must be a bool (got {type(mode).__name__})")
        super().__init__(mode)
        self.prev = state.now.grad_enabled
        self._cut = state.now.cut
        _set_grad_mode(mode)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        self.__exit__()
        return super().__call__(function)

    def __enter__(self) -> None:
        _set_grad_mode(self.mode)

    def __exit__(self, *exception: Any) -> None:
        state.now.grad_enabled, state.now.cut = self.prev, self._cut

    def _fresh(self) -> _Mode:
        return type(self)(self.mode)


class inference_mode(_Mode):
    """Like `no_grad`, and results carry no version either: they can never enter a graph."""

    def __new__(cls, mode: Any = True) -> Any:
        if isinstance(mode, bool):
            return object.__new__(cls)
        return cls()(mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode
        self._before: list[tuple[bool, bool, Any]] = []

    def __enter__(self) -> None:
        self._before.append((state.now.inference, state.now.grad_enabled, state.now.cut))
        state.now.inference = self.mode
        state.now.grad_enabled = not self.mode
        state.now.cut = ("inference_mode", here()) if self.mode else None

    def __exit__(self, *exception: Any) -> None:
        state.now.inference, state.now.grad_enabled, state.now.cut = self._before.pop()

    def _fresh(self) -> _Mode:
        return type(self)(self.mode)


class _Switch(_Mode):
    """A mode that takes effect at once, and ends with the ``with`` if it is used in one."""

    _field = ""

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(
                f"{type(self).__name__}(): argument 'enabled' (position 1) must be bool, not "
                f"{type(mode).__name__}"
            )
        self.prev = getattr(state.now, self._field)
        self.mode = mode
        setattr(state.now, self._field, mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: Any) -> None:
        setattr(state.now, self._field, self.prev)

    def _fresh(self) -> _Mode:
        return type(self)(self.mode)


class set_multithreading_enabled(_Switch):
    """Whether backward may use threads of its own: at once as a call, for a while in a ``with``.

    A backward pass runs in the thread that calls it.  Only one that is called deep inside others
    goes on in a new thread, when the stack is half used up; see Note [Re-entrant backward].

    Raises:
        TypeError: `mode` is not a bool.
    """

    _field = "multithreading"


class _force_original_view_tracking(_Switch):
    """Whether views remember the operations that made them, as a call or in a ``with``.

    After a write to its base, such a view's history shows these operations anew, where others
    show `AsStridedBackward0`.

    Raises:
        TypeError: `mode` is not a bool.
    """

    _field = "view_replay"
