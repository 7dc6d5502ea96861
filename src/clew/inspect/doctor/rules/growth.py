"""R01, a graph that grows from one iteration to the next."""

from __future__ import annotations

import gc
from typing import Any

from clew.inspect.doctor.finding import human, several
from clew.inspect.doctor.rules.base import Rule, line_of
from clew.inspect.holders import Chain, chain_to
from clew.inspect.watch import Component, NodeInfo, Path, reach
from clew.site import SourceLine


class GrowingGraph(Rule):
    """Nodes of earlier iterations are alive, and became more in three iterations in a row.

    A count that falls back to half and rises again is a saw-tooth (truncated backpropagation
    through time, a list that is emptied), and no growth until it rises longer than ever.  Counted
    are nodes alive; what holds them is looked for while it can be found.
    """

    id = "R01"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.counts: list[int] = []
        self.streak = self.best = 0
        self.since = 0
        self.held: _Held | None = None
        self.rises = self.longest = 0
        self.teeth: list[_Held] = []
        self.repeated: dict[Path, _Repeated] = {}

    def on_clock(self) -> None:
        """Counts from before were of another kind of iteration."""
        self.counts, self.streak, self.best = [], 0, 0

    def on_iteration(self, number: int) -> None:
        self._count(number)

    def _old(self, number: int) -> int:
        return sum(n for i, n in self.stream.alive.items() if i < number)

    def _count(self, number: int) -> None:
        now = self._old(number)
        if self.counts and now > self.counts[-1]:
            if self.streak == 0:
                self.since = number
            self.streak += 1
            self.rises += 1
        else:
            self.streak = 0
        if self.best and now <= self.best / 2:  # a saw-tooth, so far
            self.longest = max(self.longest, self.rises)
            if self.held is not None:
                self.held.since, self.held.iterations = self.since, self.rises + 1
                self.teeth.append(self.held)
            self.best = self.rises = 0
            self.held = None
        self.best = max(self.best, now)
        self.counts.append(now)
        beyond = self.streak - max(self.options.growth - 1, self.longest)
        if _is_power(beyond):
            self._look(number, now)

    def _look(self, number: int, now: int) -> None:
        """Find out who holds the nodes, once those that are only garbage are gone."""
        if self.held is None:
            gc.collect()
            left = self._old(number)
            if left < now:
                self.counts[-1], self.streak = left, 0
                return
        held = self._find_holder(number)
        if held is not None:
            rate = (self.counts[-1] - self.counts[-1 - self.streak]) / self.streak
            held.nodes, held.rate = self.counts[-1], rate
            self.held = held

    def _find_holder(self, number: int) -> _Held | None:
        ends = sorted((i for i in self.stream.infos if i.tensor() is not None), key=lambda i: i.seq)
        some = [*ends[:8], *ends[-8:]]
        old = {end: sum(i.iteration < number for i in reach([end])) for end in some}
        best = max(some, key=lambda i: (old[i], -i.seq), default=None)
        if best is None or not old[best]:
            return None
        tensor = best.tensor()
        chain = chain_to(tensor, ignore=[some, ends])
        live = sum(
            s.storage.nbytes
            for storage in self.stream.storages.values()
            for s in list(storage.saved)[:1]
            if s.nbytes and s.node is not None and s.node.iteration < number
        )
        return _Held(chain, best.path, live)

    # -- without an optimizer and without a backward: the repeated line is the iteration

    def on_op(self, name: str, inputs: Any, info: NodeInfo | None, path: Path) -> None:
        if info is None or self.stream.clock is not None or self.stream.calls:
            return
        seen = self.repeated.setdefault(path, _Repeated())
        seen.count += 1
        seen.components.append(info.component)
        if len(seen.components) > 64:
            del seen.components[1:-32]
        if seen.count >= 4 and _is_power(seen.count):
            self._look_at_line(info, seen)

    def _look_at_line(self, now: NodeInfo, seen: _Repeated) -> None:
        """Who holds results of this line?  The new one does not count: no variable has it yet."""
        alive = [
            i for i in self.stream.infos
            if i.path is now.path and i is not now and i.tensor() is not None
        ]  # fmt: skip
        apart = {i.component.root() for i in alive}
        if len(apart) >= 3:
            first = min(alive, key=lambda i: i.seq)
        else:
            joined = [c for c in apart if max(c.merges.values(), default=0) >= 3]
            if not joined:
                return
            first = max(alive, key=lambda i: i.seq)
        chain = chain_to(first.tensor(), ignore=[alive])
        if chain is None or (len(apart) >= 3 and len(chain.links) < 2):
            return
        live = self.stream.live_bytes
        held = _Held(chain, first.path, live)
        held.nodes = sum(c.alive for c in apart)
        held.rate = held.nodes / max(seen.count, 1)
        seen.held = held

    # -- the verdict

    def finish(self) -> None:
        self._judge_teeth()
        self._judge_lines()
        if self.held is not None and self.rises > self.longest:
            self._say(self.held, self.since, len(self.counts))

    def _judge_teeth(self) -> None:
        """A rise that fell once, and never came again, was a leak that ended with its holder."""
        paths = [held.path for held in self.teeth]
        if self.held is not None:
            paths.append(self.held.path)
        for held in self.teeth:
            if paths.count(held.path) == 1 and held.iterations > 2 * self.options.growth:
                self._say(held, held.since, held.iterations)

    def _is_explained(self, held: _Held) -> bool:
        """Whether a carried state (R06) or a cycle (R16) is why the nodes stay."""
        if held.chain is None:
            return self.found("R06") or self.found("R16")
        states = {f.figures.get("tensor", "") for f in self.findings if f.rule == "R06"}
        words = str(held.chain).replace(".", " ").split()
        return any(state.rpartition(".")[2] in words for state in states)

    def _judge_lines(self) -> None:
        for seen in self.repeated.values():
            if seen.held is not None and not any(c.root().used for c in seen.components):
                self._say(seen.held, 1, seen.count)

    def _say(self, held: _Held, since: int, iterations: int) -> None:
        if self._is_explained(held):
            return
        where, chain = self._place(held)
        saved = (
            f"{human(held.live)} saved for backward are still held"
            if held.live
            else "what they had saved for backward is freed, their shells are not"
            if self.stream.calls
            else "nothing was seen that they keep for backward"
        )
        name = chain.variable if chain else None
        if chain is not None and chain.links[1:] and chain.links[1].startswith("."):
            name = f"{name}{chain.links[1]}"
        who = f"held by {chain}" if chain else "the holder was not found"
        self.report(
            "warning", where,
            f"The graph grows: nodes of earlier iterations stay alive, {held.rate:.0f} more in "
            f"each, since iteration {since + 1}; {several(held.nodes, 'node')} after {iterations} "
            f"iterations, {who}. Of these, {saved} (about 0.9 kB a node).",
            f"Keep a number or detached values: store .item() or .detach() instead of the tensor "
            f"in {name}." if name else "Store .item() or .detach() of what is kept.",
            [("held by", where), ("recorded", held.path)],
            holder=str(chain) if chain else None, nodes_per_iteration=round(held.rate, 1),
            nodes=held.nodes, live_saved_bytes=held.live, shell_bytes=900 * held.nodes,
            since_iteration=since + 1, iterations=iterations,
        )  # fmt: skip

    def _place(self, held: _Held) -> tuple[SourceLine | None, Chain | None]:
        chain = held.chain
        if chain is not None and chain.file and chain.line:
            import linecache

            text = linecache.getline(chain.file, chain.line).strip()
            return SourceLine(chain.file, chain.line, "", text), chain
        return line_of(held.path), chain


class _Held:
    """What was found to hold old nodes."""

    def __init__(self, chain: Chain | None, path: Path, live: int) -> None:
        self.chain = chain
        self.path = path
        self.live = live
        self.nodes = 0
        self.rate = 0.0
        self.since = self.iterations = 0


class _Repeated:
    """A line that ran repeatedly before any backward."""

    def __init__(self) -> None:
        self.count = 0
        self.components: list[Component] = []
        self.held: _Held | None = None


def _is_power(n: int) -> bool:
    return n > 0 and n & (n - 1) == 0
