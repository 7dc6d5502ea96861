"""Which module runs, by a path from a variable of the program: ``generator.layers.0``.

Knows no engine: a module is whatever has ``named_modules``.
"""

from __future__ import annotations

import inspect
import sys
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any


class Running(threading.local):
    """The paths of the modules that run in this thread, outermost first."""

    def __init__(self) -> None:
        self.paths: list[str] = []


class Modules:
    """The modules that run now, outermost first.

    Args:
        types: filled with the class of the module at each path.
        own: the beginnings of the paths of files that are not the program's.
        named: called with each module that is met for the first time, and its path.
    """

    def __init__(
        self, types: dict[str, str], own: tuple[str, ...], named: Callable[[Any, str], None]
    ) -> None:
        self._types = types
        self._own = own
        self._named = named
        self.running = Running()
        # The paths of modules that are alive, by their ids; what tells of their death.
        self._paths: dict[int, str] = {}
        self._alive: dict[int, weakref.ref[Any]] = {}

    @property
    def path(self) -> str:
        """The path of the innermost module that runs, "" outside modules."""
        paths = self.running.paths
        return paths[-1] if paths else ""

    def enter(self, module: Any) -> None:
        """A module is called."""
        path = self._paths.get(id(module))
        if path is None:
            self._name(module)
            path = self._paths[id(module)]
        self.running.paths.append(path)

    def leave(self, module: Any) -> None:
        """The innermost call, which is of that module, has ended."""
        paths = self.running.paths
        if paths:
            paths.pop()

    def _name(self, module: Any) -> None:
        """Name a module that is met for the first time, and those below it."""
        if self.running.paths:  # made while another one runs: no part of it
            self._note(module, f"{self.path}.{type(module).__name__}")
            return
        root, name = _variable(module, self._users_frame()) or (module, type(module).__name__)
        name = self._free(name)
        for below, part in root.named_modules():
            self._note(part, f"{name}.{below}" if below else name)

    def _note(self, module: Any, path: str) -> None:
        key = id(module)
        self._paths[key] = path
        self._alive[key] = weakref.ref(module, lambda _: self._forget(key))
        self._types[path] = type(module).__name__
        self._named(module, path)

    def _forget(self, key: int) -> None:
        self._paths.pop(key, None)
        self._alive.pop(key, None)

    def _free(self, name: str) -> str:
        """The name, with a number where another module has it already."""
        number, free = 1, name
        while free in self._types:
            number += 1
            free = f"{name}#{number}"
        return free

    def _users_frame(self) -> FrameType | None:
        frame: FrameType | None = sys._getframe(3)
        while frame is not None and frame.f_code.co_filename.startswith(self._own):
            frame = frame.f_back
        return frame


def _variable(module: Any, frame: FrameType | None) -> tuple[Any, str] | None:
    """A module and the name of a variable that holds it, such that `module` is it or below it."""
    if frame is None:
        return None
    own = frame.f_locals
    scopes = [dict(own), frame.f_globals]
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED and isinstance(own, dict):
        # Before Python 3.13 the frame of a function keeps this copy of its variables, and with
        # it what they hold, until somebody asks again.
        own.clear()
    of_self = getattr(scopes[0].get("self"), "__dict__", None)
    if of_self is not None:
        scopes.insert(1, dict(of_self))
    for scope in scopes:
        for name, value in list(scope.items()):
            if value is module and not name.startswith("_"):
                return module, name
    for scope in scopes:
        for name, value in list(scope.items()):
            if isinstance(value, type) or not hasattr(type(value), "named_modules"):
                continue
            if any(part is module for part in value.modules()):
                return value, type(value).__name__ if name == "self" else name
    return None
