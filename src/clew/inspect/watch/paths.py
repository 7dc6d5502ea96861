"""Where the program is: the user's lines on the stack, and what stands on them.

Imports the standard library and `clew.site`.  A `Path` is the user's part of the stack, outermost
frame first; the same call made again gives the same path, so a path says whether two events are
repetitions of one another.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import functools
import linecache
import os
import sys
from types import CodeType, FrameType
from typing import Any

from clew.site import SourceLine, resolve


class Place:
    """A place in the program: an instruction of a code object; one object for each place."""

    __slots__ = ("_source", "code", "offset")

    def __init__(self, code: CodeType, offset: int) -> None:
        self.code = code
        self.offset = offset
        self._source: SourceLine | None = None

    @property
    def source(self) -> SourceLine:
        """File, line, function and text."""
        if self._source is None:
            self._source = resolve((self.code, self.offset))
        assert self._source is not None
        return self._source

    def is_on_line_of(self, other: Place) -> bool:
        """Whether it is on the same line of the same function."""
        return self is other or (self.code is other.code and self.source.line == other.source.line)


Path = tuple[Place, ...]

OWN = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_GO_BETWEENS = frozenset({contextlib.__file__, copy.__file__, functools.__file__})


class Stack:
    """Takes paths.

    Args:
        base: the frame at which the user's part of the stack ends, itself included.
        engine_folder: the folder of the engine, whose frames are not the user's.
    """

    def __init__(self, base: FrameType | None, engine_folder: str = OWN) -> None:
        self.base = base
        self._folders = tuple({OWN, engine_folder})
        self._internal: dict[str, bool] = {}
        self._places: dict[tuple[int, int], Place] = {}
        self._known: dict[Path, Path] = {}

    def frames(self) -> list[FrameType]:
        """The user's frames, innermost first."""
        found = []
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if not self.is_internal(frame.f_code.co_filename):
                found.append(frame)
            if frame is self.base:
                break
            frame = frame.f_back
        return found

    def path(self) -> Path:
        """The user's lines that lead here."""
        places = self._places
        found = []
        for frame in reversed(self.frames()):
            code, offset = frame.f_code, frame.f_lasti
            place = places.get((id(code), offset))
            if place is None:
                place = places[id(code), offset] = Place(code, offset)
            found.append(place)
        path = tuple(found)
        return self._known.setdefault(path, path)

    def is_internal(self, file: str) -> bool:
        """Whether a file is the engine's, clew's or Python's own, and not the user's."""
        known = self._internal.get(file)
        if known is None:
            known = file.startswith((*self._folders, "<frozen ")) or file in _GO_BETWEENS
            self._internal[file] = known
        return known


def line_of(path: Path | None, depth: int = -1) -> SourceLine | None:
    """The source line of one frame of a path; the innermost by default."""
    return path[depth].source if path else None


def common(first: Path, second: Path) -> int:
    """How many outer lines two paths share."""
    count = 0
    for a, b in zip(first, second):
        if not a.is_on_line_of(b):
            break
        count += 1
    return count


@functools.lru_cache(maxsize=64)
def _tree(file: str, size: int) -> ast.Module | None:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return None


@functools.lru_cache(maxsize=4096)
def statement_at(file: str, line: int) -> ast.stmt | None:
    """The innermost statement of a file that covers a line, or None without the source."""
    lines = linecache.getlines(file)
    tree = _tree(file, len(lines)) if lines else None
    if tree is None:
        return None
    best: ast.stmt | None = None
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or line):
            inner = best is None or node.lineno >= best.lineno
            if inner and not (isinstance(node, _BLOCKS) and line >= node.body[0].lineno):
                best = node
    return best


_BLOCKS = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.For, ast.While, ast.With, ast.If,
    ast.Try,
)  # fmt: skip


def statement(place: Place | None) -> ast.stmt | None:
    """The statement of a place."""
    return None if place is None else statement_at(place.source.file, place.source.line)


def targets(node: ast.stmt | None) -> set[str]:
    """The names and attributes that a statement assigns to, as they are written."""
    if isinstance(node, ast.Assign):
        found = node.targets
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.For, ast.AsyncFor)):
        found = [node.target]
    else:
        return set()
    names: set[str] = set()
    for target in found:
        parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        names |= {ast.unparse(p) for p in parts if isinstance(p, (ast.Name, ast.Attribute))}
    return names


def reads(node: ast.AST | None) -> list[str]:
    """The names and attributes that a statement reads, as they are written: ``x``, ``self.h``."""
    if node is None:
        return []
    found: list[str] = []
    stack: list[ast.AST] = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, (ast.Name, ast.Attribute)) and isinstance(part.ctx, ast.Load):
            text = ast.unparse(part)
            if all(c.isalnum() or c in "_." for c in text) and text not in found:
                found.append(text)
        if isinstance(part, _BLOCKS):  # its head only
            body = {id(n) for field in ("body", "orelse", "finalbody") for n in
                    getattr(part, field, ())}  # fmt: skip
            stack += [n for n in ast.iter_child_nodes(part) if id(n) not in body]
        else:
            stack += ast.iter_child_nodes(part)
    return found


def value_of(name: str, frame: FrameType) -> Any:
    """What a dotted name means in a frame, without running code of properties; None if nothing."""
    first, *rest = name.split(".")
    value = frame.f_locals.get(first, frame.f_globals.get(first))
    for part in rest:
        if value is None:
            return None
        value = _plain_attribute(value, part)
    return value


def _plain_attribute(value: Any, name: str) -> Any:
    own = getattr(value, "__dict__", {})
    if name in own:
        return own[name]
    for table in ("_parameters", "_buffers", "_modules"):  # of a module
        if name in (own.get(table) or {}):
            return own[table][name]
    return None


def variable_of(thing: Any, frames: list[FrameType]) -> str | None:
    """The name by which a frame, innermost first, knows an object: ``h``, ``self.state``."""
    for frame in frames:
        for scope in (frame.f_locals, frame.f_globals):
            for name, value in list(scope.items()):
                if value is thing:
                    return name
        owner = frame.f_locals.get("self")
        if owner is None:
            continue
        own = getattr(owner, "__dict__", {})
        for table in (own, *(own.get(t) or {} for t in ("_parameters", "_buffers", "_modules"))):
            for name, value in list(table.items()):
                if value is thing:
                    return f"self.{name}"
    main = sys.modules.get("__main__")
    for name, value in list(vars(main).items()) if main is not None else ():
        if value is thing:
            return name
    return None
