"""Which module runs, by a path from a variable of the program: ``generator.layers.0``.

Knows no engine: a module is whatever has ``named_modules``.
"""

from __future__ import annotations

import inspect
import sys
import weakref
from collections.abc import Callable, Mapping
from types import FrameType, MappingProxyType
from typing import Any

MARK = "clew.module"
"""Under this name a node's metadata hold the path of the module that made it."""

_OUTSIDE: Mapping[str, str] = MappingProxyType({})


class Modules:
    """The modules that run now, and what they are called.

    Args:
        types: filled with the class of the module at each path.
        own: the beginnings of the paths of files that are not the program's.
        named: called with each module that is met for the first time, and its path.
        running: has the modules that run in this thread as `modules`, outermost first.
        call: the name of the function that calls each of them; "": they are named before that.

    Attributes:
        paths: the paths of modules that have one and are alive, by their ids.
        marks: what nodes that they make share: the path under the name `MARK`.
    """

    def __init__(
        self, types: dict[str, str], own: tuple[str, ...], named: Callable[[Any, str], None],
        running: Any, call: str = "",
    ) -> None:  # fmt: skip
        self._types = types
        self._own = own
        self._named = named
        self._running = running
        self._call = call
        self.paths: dict[int, str] = {}
        self.marks: dict[int, Mapping[str, str]] = {}
        self._alive: dict[int, weakref.ref[Any]] = {}  # what tells of their deaths

    @property
    def path(self) -> str:
        """The path of the innermost module that runs, "" outside modules."""
        return self.paths[id(self._running.modules[-1])] if self.mark() else ""

    def mark(self) -> Mapping[str, str]:
        """What nodes made now share; empty outside modules."""
        modules = self._running.modules
        if not modules:
            return _OUTSIDE
        if id(modules[-1]) not in self.paths:
            self.name(modules)
        return self.marks[id(modules[-1])]

    def name(self, modules: list[Any]) -> None:
        """Name those of the modules that are met for the first time, and what is below them."""
        for i, module in enumerate(modules):
            if id(module) in self.paths:
                continue
            if i:  # made while another one runs: no part of it
                self._note(module, f"{self.paths[id(modules[i - 1])]}.{type(module).__name__}")
            else:
                self._name_outermost(module, len(modules))

    def _name_outermost(self, module: Any, calls: int) -> None:
        frame = self._users_frame(calls)
        root, name = _variable(module, frame) or (module, type(module).__name__)
        name = self._free(name)
        for below, part in root.named_modules():
            self._note(part, f"{name}.{below}" if below else name)

    def _note(self, module: Any, path: str) -> None:
        key = id(module)
        self.paths[key] = path
        self.marks[key] = MappingProxyType({MARK: path})
        self._alive[key] = weakref.ref(module, lambda _: self._forget(key))
        self._types[path] = type(module).__name__
        self._named(module, path)

    def _forget(self, key: int) -> None:
        self.paths.pop(key, None)
        self.marks.pop(key, None)
        self._alive.pop(key, None)

    def _free(self, name: str) -> str:
        """The name, with a number where another module has it already."""
        number, free = 1, name
        while free in self._types:
            number += 1
            free = f"{name}#{number}"
        return free

    def _users_frame(self, calls: int) -> FrameType | None:
        """The user's frame outside of so many calls of modules."""
        frame: FrameType | None = sys._getframe(3)
        while frame is not None and calls and self._call:
            calls -= frame.f_code.co_name == self._call
            frame = frame.f_back
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
