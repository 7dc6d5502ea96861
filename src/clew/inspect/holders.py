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
MOST_OBJECTS = 20_000
MOST_PARTS = 5_000


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
    below = _look_below(target, variables)
    if below is not None:
        return below
    skipped = {id(x) for x in ignore} | {id(target), id(variables)}
    reached: dict[int, tuple[Any, int | None, str]] = {id(target): (target, None, "")}
    level = [target]
    for _ in range(MOST_STEPS):
        for thing in level:
            found = variables.get(id(thing))
            if found is not None:
                return _chain(found[:2], thing, reached)
        level = _one_up(level, reached, skipped)
        if not level or len(reached) > MOST_OBJECTS:
            return None
    return None


def is_in_sight(target: Any) -> bool:
    """Whether a variable leads to an object through containers and attributes."""
    return _look_below(target, _variables()) is not None


def _look_below(target: Any, variables: dict[int, tuple[str, Any, Any]]) -> Chain | None:
    """The chain from a variable through containers and attributes, if that is all there is to it.

    A walk from the variables down, which does not have to ask the collector.
    """
    level: list[tuple[Any, str, Any, tuple[tuple[str, Any], ...]]] = [
        (value, name, where, ()) for name, where, value in variables.values()
    ]
    seen = set(variables)
    for _ in range(MOST_STEPS):
        following = []
        for thing, name, where, links in level:
            if thing is target:
                return _begin(name, where, variables, links)
            for link, part in _parts(thing):
                if part is target or (id(part) not in seen and _is_container(part)):
                    seen.add(id(part))
                    following.append((part, name, where, (*links, (link, thing))))
            if len(seen) > MOST_OBJECTS:
                return None
        if not following:
            return None
        level = following
    return None


def _begin(name: str, where: Any, variables: Any, links: tuple[tuple[str, Any], ...]) -> Chain:
    file, line = _assignment(name, where)
    top = links[0][1] if links else next(v for n, w, v in variables.values() if n == name)
    place = f" in {os.path.basename(file)}" if file else ""
    place += f":{line}" if file and line else ""
    words = [f"{name} ({type(top).__name__}{place})", *(link for link, _ in links)]
    return Chain(words, name, file, line)


def _parts(thing: Any) -> Iterable[tuple[str, Any]]:
    """What a container or an object holds, by the words for it."""
    if isinstance(thing, dict):
        yield from ((f"[{key!r}]", part) for key, part in list(thing.items())[:MOST_PARTS])
    elif isinstance(thing, (list, tuple, set, frozenset)) or type(thing).__name__ == "deque":
        yield from ((f"[{i}]", part) for i, part in enumerate(list(thing)[:MOST_PARTS]))
    elif isinstance(thing, FunctionType):
        for cell in thing.__closure__ or ():
            try:
                yield "a closure", cell.cell_contents
            except ValueError:  # not filled yet
                continue
    elif isinstance(thing, MethodType):
        yield ".__self__", thing.__self__
    elif not hasattr(thing, "grad_fn"):
        for name, part in list(getattr(thing, "__dict__", {}).items()):
            if name in _TABLES and isinstance(part, dict):
                yield from ((f".{key}", inner) for key, inner in list(part.items()))
            else:
                yield f".{name}", part


def _is_container(value: Any) -> bool:
    """Whether something may hold what is looked for."""
    if isinstance(value, (str, bytes, int, float, complex, type, ModuleType, type(None))):
        return False
    return not type(value).__module__.startswith(("clew.", "torch._C", "numpy"))  # a tensor


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
    if how in (".__dict__", ".next_nodes", ".") and not isinstance(following, CellType):
        return
    if isinstance(thing, dict) and how.startswith("['") and links:
        name = how[2:-2]
        if name in _TABLES:
            return
        links.append(f".{name}" if _is_namespace(thing) else how)
        return
    if (isinstance(thing, tuple) or how == "._node") and hasattr(following, "next_functions"):
        links.append(kind)
        return
    links.append(how if how != "closure" else "a closure")


def _is_namespace(table: dict[Any, Any]) -> bool:
    """Whether a dict is that of an object's attributes, or a module's table of them."""
    owners = gc.get_referrers(table)
    return any(getattr(o, "__dict__", None) is table or
               (isinstance(o, dict) and any(o.get(t) is table for t in _TABLES))
               for o in owners)  # fmt: skip


def _variables() -> dict[int, tuple[str, Any, Any]]:
    """By identity of their values: the variables of the program, where they stand, the values."""
    found: dict[int, tuple[str, Any, Any]] = {}
    scopes: dict[int, tuple[dict[str, Any], Any]] = {}
    tops: list[FrameType | None] = list(sys._current_frames().values())
    while tops:
        # No frame is left in a variable: the first is this one, and would keep itself alive.
        frame = tops.pop()
        while frame is not None:
            code = frame.f_code
            if not code.co_filename.startswith((OWN, "<frozen")):
                file = frame.f_globals.get("__file__")
                scopes.setdefault(id(frame.f_globals), (frame.f_globals, file))
                if frame.f_locals is frame.f_globals:
                    scopes[id(frame.f_globals)] = (frame.f_globals, code.co_filename)
                else:
                    _add_scope(found, frame.f_locals, code)
            frame = frame.f_back
    main = sys.modules.get("__main__")
    if main is not None:
        scopes.setdefault(id(main.__dict__), (main.__dict__, main.__dict__.get("__file__")))
    for scope, where in scopes.values():
        _add_scope(found, scope, where)
    return found


def _add_scope(found: dict[int, tuple[str, Any, Any]], scope: dict[str, Any], where: Any) -> None:
    for name, value in list(scope.items()):
        if not name.startswith("__") and not isinstance(value, (ModuleType, type, int, str)):
            found.setdefault(id(value), (name, where, value))


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
    ]  # fmt: skip
    return file, min((n for n in lines if n >= first), default=min(lines, default=None))
