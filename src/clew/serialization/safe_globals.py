"""The names that a file may use without being trusted, beyond PyTorch's own: the user's allow-list.

Imports the standard library only. The functions are those of `torch.serialization`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

SafeGlobal = Callable[..., Any] | tuple[Callable[..., Any], str]

# Nothing from these modules is ever allowed, whatever a list says.
BLOCKED_MODULES = frozenset(("sys", "os", "posix", "nt"))

_allowed: set[SafeGlobal] = set()


def add_safe_globals(safe_globals: Sequence[SafeGlobal]) -> None:
    """Allow `load` to use these functions and classes when a file names them.

    A function may then be called with whatever the file says, a class instantiated and its state
    set: add only what is harmless with any argument. An item is a function or class, known by its
    `__module__` and `__qualname__`, or a pair (function or class, full name in the file).
    """
    _allowed.update(safe_globals)


def get_safe_globals() -> list[SafeGlobal]:
    """The functions and classes (or pairs) that the user has allowed."""
    return list(_allowed)


def clear_safe_globals() -> None:
    """Allow nothing any more beyond PyTorch's own names."""
    _allowed.clear()


class safe_globals:
    """Context manager: `add_safe_globals` on entry, and these names are forbidden again on exit."""

    def __init__(self, safe_globals: Sequence[SafeGlobal]) -> None:
        self.safe_globals = safe_globals

    def __enter__(self) -> None:
        add_safe_globals(self.safe_globals)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _allowed.difference_update(self.safe_globals)


def allowed_names() -> dict[str, Callable[..., Any]]:
    """The user's functions and classes by the full name that a file may use for them.

    What is clew's is also known by the name that PyTorch has for it.

    Raises:
        ValueError, TypeError: an item is a tuple, but not a pair of an object and a string.
    """
    names: dict[str, Callable[..., Any]] = {}
    for item in _allowed:
        if isinstance(item, tuple):
            if len(item) != 2:
                raise ValueError(
                    "Expected tuple of length 2 (global, str of callable full path), but got "
                    f"tuple of length: {len(item)}"
                )
            if type(item[1]) is not str:
                raise TypeError(
                    "Expected second item in tuple to be str of callable full path, but got: "
                    f"{type(item[1])}"
                )
            names[item[1]] = item[0]
        else:
            path = f"{item.__module__}.{item.__qualname__}"
            names[path] = item
            if path.startswith("clew."):
                names["torch." + path.removeprefix("clew.")] = item
    return names
