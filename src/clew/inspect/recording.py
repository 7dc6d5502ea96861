"""What only somebody who watches the program knows of its nodes: module, iteration, line, order.

Note [Marks]
    Nodes are numbered as they are made.  So a recording writes nothing on nodes: it notes the next
    number whenever something begins or ends (a module's forward, a backward pass, an optimizer's
    step, for PyTorch a call that makes nodes), and looks up what was going on when a node was made
    by its number.  It costs nothing per node and nothing while no recording runs.

    clew numbers the nodes of all threads in one row, PyTorch those of each thread from zero.  So
    of a number that recordings of two threads have seen, none says anything: it would be a guess.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from clew.inspect.model import GraphNode, Scope
from clew.site import Site, resolve

OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
"""Where clew is; what runs there is not the user's program."""


class Recording:
    """What was seen of one engine's program.

    Attributes:
        engine: "clew" or "torch".
        row: what numbers the nodes that it sees: the thread, for PyTorch.
        scopes: the module calls, in the order in which they began.
    """

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.row = None if engine == "clew" else threading.current_thread()
        self.scopes: list[Scope] = []
        self._open: list[tuple[int, Any]] = []
        self._root_names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._paths: weakref.WeakKeyDictionary[Any, dict[int, str]] = weakref.WeakKeyDictionary()
        self._scope_marks = _Marks()
        self._site_marks = _Marks()
        self._order_marks = _Marks()
        self._began: list[int] = []
        self._orders = False  # whether a backward pass has recorded nodes
        self._steps: list[tuple[int, int]] = []
        self.first: int | None = None
        self.last: int | None = None

    # -- what happens; `now` is the number that the next node will have

    def enter_module(self, module: Any, now: int) -> None:
        """A module's forward begins."""
        parent = self._open[-1] if self._open else None
        name = self._root_name(module) if parent is None else self._name_in(parent[1], module)
        path = name if parent is None else f"{self.scopes[parent[0]].path}.{name}"
        around = None if parent is None else parent[0]
        scope = Scope(len(self.scopes), around, name, type(module).__name__, path)
        self.scopes.append(scope)
        self._open.append((scope.id, module))
        self._scope_marks.add(now, scope.id)

    def leave_module(self, module: Any, now: int) -> None:
        """A module's forward has ended, with or without an error."""
        while self._open:
            left = self._open.pop()[1]
            if left is module:
                break
        self._scope_marks.add(now, self._open[-1][0] if self._open else None)

    def begin_backward(self, reached: Callable[[], Iterable[int]], now: int) -> None:
        """A backward pass begins; `reached` gives the numbers of all nodes that it leads to.

        It is asked only if an earlier pass has recorded nodes, which is rare.
        """
        orders = [self._order_marks.at(seq) or 0 for seq in reached()] if self._orders else []
        self._order_marks.open(now, 1 + max(orders, default=0))
        self._began.append(now)

    def end_backward(self, now: int) -> None:
        """The backward pass that began last has ended."""
        self._order_marks.close(now)
        if self._began and now > self._began.pop():
            self._orders = True

    def made_by(self, site: Site | None, begin: int, end: int) -> None:
        """A line has made the nodes from `begin` to before `end`."""
        if end > begin:
            self._site_marks.add(begin, site)
            self._site_marks.add(end, None)

    def optimizer_step(self, optimizer: Any, now: int) -> None:
        """An optimizer has updated its parameters."""
        self._steps.append((now, id(optimizer)))

    # -- what it says of nodes

    def tell(self, nodes: list[GraphNode], scopes_before: int, rounds_before: int) -> None:
        """Tell the nodes that were made in it their scope, iteration, order and line.

        `scopes_before` and `rounds_before` are how many of each earlier recordings have.
        """
        rounds = self._round_ends()
        for node in nodes:
            if node.leaf or not self.covers(node.seq):
                continue
            scope = self._scope_marks.at(node.seq)
            node.scope = None if scope is None else scopes_before + scope
            node.iteration = rounds_before + bisect_right(rounds, node.seq)
            node.order = self._order_marks.at(node.seq) or 0
            if node.site is None:
                node.site = resolve(self._site_marks.at(node.seq))

    @property
    def rounds(self) -> int:
        """How many iterations have ended in it."""
        return len(self._round_ends())

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        """(name, parameter) of all outermost modules that were called and are still alive."""
        for module, root in list(self._root_names.items()):
            for name, parameter in module.named_parameters():
                yield f"{root}.{name}" if len(self._root_names) > 1 else name, parameter

    def covers(self, seq: int) -> bool:
        """Whether it has seen a node of that number made."""
        first, last = self.first or 0, self.last
        return first <= seq and (last is None or seq < last)

    def _round_ends(self) -> list[int]:
        """Numbers at which an iteration ends: each optimizer has then stepped at most once.

        The step that repeats an optimizer opens a round; the last step before it closed one.  So
        does the latest step, if all that stepped in the round before have stepped.
        """
        ends: list[int] = []
        seen: set[int] = set()
        before: set[int] = set()
        latest = 0
        for now, optimizer in self._steps:
            if optimizer in seen:
                ends.append(latest)
                before, seen = seen, set()
            seen.add(optimizer)
            latest = now
        if seen and seen >= before:
            ends.append(latest)
        return ends

    def _root_name(self, module: Any) -> str:
        name = self._root_names.get(module)
        if name is None:
            name = variable_of(module) or type(module).__name__
            others = sum(n.partition("#")[0] == name for n in self._root_names.values())
            name = f"{name}#{others + 1}" if others else name
            self._root_names[module] = name
        return name

    def _name_in(self, parent: Any, module: Any) -> str:
        """What `parent` calls a module in it; its class for one that is not in it."""
        paths = self._paths.get(parent)
        if paths is None or id(module) not in paths:
            paths = self._paths[parent] = {id(m): name for name, m in parent.named_modules()}
        return paths.get(id(module)) or type(module).__name__


def variable_of(value: Any) -> str | None:
    """The name by which the innermost caller that has one calls `value`: ``net``, ``self.d``."""
    frame = sys._getframe(1)
    while frame is not None:
        names = frame.f_locals
        if names.get("self") is not value and not frame.f_code.co_filename.startswith(OWN_FOLDER):
            for name, held in names.items():
                if held is value and name != "self":
                    return name
            owner = names.get("self")
            for name, held in getattr(owner, "__dict__", {}).items():
                if held is value:
                    return f"self.{name}"
            for name, held in list(frame.f_globals.items()):
                if held is value:
                    return name
        frame = frame.f_back  # type: ignore[assignment]
    return None


class _Marks:
    """Values that hold from a number on, until the next mark."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._values: list[Any] = []
        self._outer: list[Any] = []

    def add(self, start: int, value: Any) -> None:
        if self._starts and self._starts[-1] == start:
            self._values[-1] = value
        else:
            self._starts.append(start)
            self._values.append(value)

    def open(self, start: int, value: Any) -> None:
        self._outer.append(self._values[-1] if self._values else None)
        self.add(start, value)

    def close(self, start: int) -> None:
        self.add(start, self._outer.pop() if self._outer else None)

    def at(self, number: int) -> Any:
        position = bisect_right(self._starts, number) - 1
        return self._values[position] if position >= 0 else None


_KEPT = 16
"""So many recordings of an engine stay, with the running one; a recording is a few marks."""

_recordings: dict[str, deque[Recording]] = {}


def recordings(engine: str) -> list[Recording]:
    """The latest recordings of an engine, the oldest first; the last may be running."""
    return list(_recordings.get(engine, ()))


def remember(recording: Recording) -> None:
    """Make a recording the latest of its engine."""
    _recordings.setdefault(recording.engine, deque(maxlen=_KEPT)).append(recording)
