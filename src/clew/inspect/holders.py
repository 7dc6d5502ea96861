"""Who keeps a graph alive: the chain of variables, lists, attributes that lead to it.

Imports the standard library only; asks the garbage collector who refers to what.  Works on
anything; of PyTorch's nodes, which live in C++, the tensors that lead to them are asked about.
"""

from __future__ import annotations

import ast
import gc
import linecache
import os
import sys
from collections.abc import Iterable
from types import CellType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

from clew.inspect.watch.paths import OWN

MOST_STEPS = 10
MOST_OBJECTS = 4000


class Chain:
    """How an object is held: from a variable down to it.

    Attributes:
        links: the words of the chain, the variable first.
        variable: the name of the variable; None if none was found.
        file, line: where the variable is first assigned to, as far as the source says.
    """

    def __init__(
        self, links: list[str], variable: str | None, file: str | None, line: int | None
    ) -> None:
        self.links = links
        self.variable = variable
        self.file = file
        self.line = line

    def __str__(self) -> str:
        return " -> ".join(self.links)

    def __repr__(self) -> str:
        return f"<held by {self}>"


def chain_to(target: Any, *, ignore: Iterable[Any] = ()) -> Chain | None:
    """The shortest chain from a variable to `target`; None if no variable leads to it.

    Args:
        ignore: objects that do not count as holders.
    """
    variables = _variables()
    skipped = {id(x) for x in ignore} | {id(target), id(variables)}
    reached: dict[int, tuple[Any, int | None, str]] = {id(target): (target, None, "")}
    level = [target]
    for _ in range(MOST_STEPS):
        for thing in level:
            found = variables.get(id(thing))
            if found is not None:
                return _chain(found, thing, reached)
        level = _one_up(level, reached, skipped)
        if not level or len(reached) > MOST_OBJECTS:
            return None
    return None


def _one_up(level: list[Any], reached: dict[int, Any], skipped: set[int]) -> list[Any]:
    """The objects that refer to those of a level, and how."""
    above: list[Any] = []
    arguments = tuple(level)  # the call takes this very tuple, and so finds it too
    referrers = gc.get_referrers(*arguments)
    skipped |= {id(arguments), id(referrers), id(above), id(level), id(reached)}
    skipped |= {id(entry) for entry in reached.values()}
    while referrers:
        # Emptied on the way: it may hold this very frame, which would keep all of it alive.
        holder = referrers.pop()
        key = id(holder)
        if key in reached or key in skipped or _is_internal(holder):
            continue
        for thing in level:
            how = _how(holder, thing)
            if how is not None:
                reached[key] = (holder, id(thing), how)
                above.append(holder)
                break
    return above


def _is_internal(holder: Any) -> bool:
    """Whether an object belongs to the watcher or to the interpreter."""
    if isinstance(holder, (FrameType, ModuleType, type)):
        return True
    module = type(holder).__module__
    return module.startswith(("clew.inspect.", "weakref", "_weakref"))


def _how(holder: Any, thing: Any) -> str | None:
    """How an object holds another: ``[3]``, ``['loss']``, ``.state``."""
    if isinstance(holder, (list, tuple)) or type(holder).__name__ == "deque":
        for position, item in enumerate(holder):
            if item is thing:
                return f"[{position}]"
        return None
    if isinstance(holder, dict):
        for key, item in list(holder.items()):
            if item is thing:
                return f"[{key!r}]"
        return None
    if isinstance(holder, (set, frozenset)):
        return "an element"
    if isinstance(holder, CellType):
        return "closure"
    if isinstance(holder, FunctionType):
        return "closure" if holder.__closure__ is thing else None
    if isinstance(holder, MethodType):
        return ".__self__"
    return _attribute(holder, thing)


def _attribute(holder: Any, thing: Any) -> str | None:
    if getattr(holder, "__dict__", None) is thing:
        return ".__dict__"
    for kind in type(holder).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            try:
                if object.__getattribute__(holder, name) is thing:
                    return f".{name}"
            except AttributeError:
                continue
    return "." if gc.is_tracked(holder) else None


_TABLES = ("_buffers", "_parameters", "_modules", "__dict__")


def _chain(variable: tuple[str, Any], top: Any, reached: dict[int, Any]) -> Chain:
    """The words from the variable down to the target."""
    name, scope = variable
    file, line = _assignment(name, scope)
    place = f" in {os.path.basename(file)}" if file else ""
    if file and line:
        place += f":{line}"
    links = [f"{name} ({type(top).__name__}{place})"]
    key: int | None = id(top)
    while key is not None:
        thing, key, how = reached[key]
        following = reached[key][0] if key is not None else None
        if following is None:
            break
        _add_link(links, thing, how, following)
    return Chain(links, name, file, line)


def _add_link(links: list[str], thing: Any, how: str, following: Any) -> None:
    """Add how `thing` holds the next object; what only carries it is left out."""
    kind = type(following).__name__
    if how in (".__dict__", ".edges", "._edge", ".") and not isinstance(following, CellType):
        return
    if isinstance(thing, dict) and how.startswith("['") and links:
        name = how[2:-2]
        if name in _TABLES:
            return
        links.append(f".{name}" if _is_namespace(thing) else how)
        return
    if isinstance(thing, tuple) and hasattr(following, "next_functions"):
        links.append(kind)
        return
    links.append(how if how != "closure" else "a closure")


def _is_namespace(table: dict[Any, Any]) -> bool:
    """Whether a dict is that of an object's attributes, or a module's table of them."""
    owners = gc.get_referrers(table)
    return any(getattr(o, "__dict__", None) is table or
               (isinstance(o, dict) and any(o.get(t) is table for t in _TABLES))
               for o in owners)  # fmt: skip


def _variables() -> dict[int, tuple[str, Any]]:
    """By identity of their values: the variables of the program, with where they stand."""
    found: dict[int, tuple[str, Any]] = {}
    scopes: dict[int, dict[str, Any]] = {}
    tops: list[FrameType | None] = list(sys._current_frames().values())
    while tops:
        # No frame is left in a variable: the first is this one, and would keep itself alive.
        frame = tops.pop()
        while frame is not None:
            code = frame.f_code
            if not code.co_filename.startswith((OWN, "<frozen")):
                scopes.setdefault(id(frame.f_globals), frame.f_globals)
                if frame.f_locals is not frame.f_globals:
                    _add_scope(found, frame.f_locals, code)
            frame = frame.f_back
    main = sys.modules.get("__main__")
    if main is not None:
        scopes.setdefault(id(main.__dict__), main.__dict__)
    for scope in scopes.values():
        _add_scope(found, scope, scope.get("__file__"))
    return found


def _add_scope(found: dict[int, tuple[str, Any]], scope: dict[str, Any], where: Any) -> None:
    for name, value in list(scope.items()):
        if not name.startswith("__") and not isinstance(value, (ModuleType, type, int, str)):
            found.setdefault(id(value), (name, where))


def _assignment(name: str, where: Any) -> tuple[str | None, int | None]:
    """The file of a variable, and the first line that assigns to it."""
    if where is None:
        return None, None
    file = where if isinstance(where, str) else where.co_filename
    first = 1 if isinstance(where, str) else where.co_firstlineno
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return file, None
    lines = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name
        and node.lineno >= first
    ]  # fmt: skip
    return file, min(lines, default=None)
