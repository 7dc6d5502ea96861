"""R06, a state carried into the next iteration with its graph."""

from __future__ import annotations

from typing import Any

from clew.inspect.doctor.finding import several
from clew.inspect.doctor.rules.base import Rule, name_of_result, short
from clew.inspect.watch import Call, NodeInfo, Path, reach
from clew.inspect.watch.paths import reads, statement, targets, variable_of

_SECOND = "Trying to backward through the graph a second time"


class CarriedState(Rule):
    """A backward goes into nodes that an earlier one has run.

    Explains the error of a second pass, and the error of a write where the graph that was written
    to had been walked by the same line before; otherwise three passes of a line must have walked
    more and more nodes again, or the same ones in three iterations of an optimizer.
    """

    id = "R06"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.again: dict[Path, list[int]] = {}

    def on_backward(self, call: Call, reached: list[NodeInfo]) -> None:
        if call.error is not None:
            self._explain(call, reached)
            return
        counts = self.again.setdefault(call.path, [])
        counts.append(call.again)
        if not call.again or (call.create and not call.accumulates):
            return
        grown = _rising(counts)
        if grown >= max(self.options.growth, self.options.bptt + 1):
            self._report_growth(call, reached, counts, grown)
        elif self.stream.clock is not None:
            self._look_for_revisits(call, reached)

    # -- errors

    def _explain(self, call: Call, reached: list[NodeInfo]) -> None:
        crossing = _crossing(call, reached, fresh=0)
        if str(call.error).startswith(_SECOND):
            old = crossing or next((i for i in reached if i.runs), None)
            if old is not None:
                self._report_error(call, old, reached)
        elif call.culprits:
            node = call.culprits[0].node
            if node is not None and node.runs and _same_line(node.last_call, call):
                self._report_error(call, crossing or node, reached)

    def _report_error(self, call: Call, old: NodeInfo, reached: list[NodeInfo]) -> None:
        last = next((i.last_call for i in reach([old]) if i.last_call is not None), None)
        name, made = self._name(old), old.path
        walked = sum(1 for i in reached if i.runs)
        mutated = bool(call.culprits)
        if last is not None and _same_line(last, call):
            if _is_made_anew(old, reached):
                cause = (
                    f"{name}, made on {short(made)} in iteration {old.iteration + 1}, carries its "
                    f"graph into iteration {call.iteration + 1}"
                )
            else:
                cause = f"{name}, made once on {short(made)}, is part of every loss"
            cure = self._cure(old, reached)
        else:
            cause = (
                f"{name}, made on {short(made)}, belongs to a graph that the backward on "
                f"{short(last.path if last else None)} has walked already"
            )
            cure = (
                f"Use {_bare(name)}.detach() in the loss that needs no gradient beyond it, or "
                f"compute {_bare(name)} again for the second loss; retain_graph=True in the first "
                "backward keeps the whole graph for it."
            )
        why = (
            "what that graph had saved was changed in place since (an optimizer's step, say), so "
            "retain_graph=True cannot help"
            if mutated
            else "what that graph had saved for backward was freed then"
        )
        self.report(
            "error", call.path,
            f"Backward enters a graph for a second time: {cause}; {several(walked, 'node')} of "
            f"{len(reached)} were walked before, and {why}.",
            cure,
            [("second backward", call.path), ("enters through", made),
             ("first backward", last.path if last else None)],
            tensor=name, crosses_iterations=old.iteration < call.iteration, nodes=len(reached),
            nodes_walked_before=walked,
        )  # fmt: skip

    # -- without an error

    def _report_growth(
        self, call: Call, reached: list[NodeInfo], counts: list[int], grown: int
    ) -> None:
        old = _crossing(call, reached, fresh=1)
        if old is None:
            return
        name = self._name(old)
        rate = (counts[-1] - counts[-1 - grown]) / grown
        self.report(
            "warning", call.path,
            f"Each backward walks the graphs of earlier iterations again: {name}, made on "
            f"{short(old.path)}, carries its graph along. The pass in iteration "
            f"{call.iteration + 1} ran {several(call.ran, 'node')}, {call.again} of them not for "
            f"the first time, and {rate:.0f} more with each iteration; retain_graph=True keeps "
            "them all.",
            self._cure(old, reached),
            [("backward", call.path), ("enters through", old.path)],
            tensor=name, nodes=call.ran, nodes_walked_before=call.again,
            nodes_per_iteration=round(rate, 1),
        )  # fmt: skip

    def _look_for_revisits(self, call: Call, reached: list[NodeInfo]) -> None:
        if self.options.bptt:
            return
        often = [i for i in reached if len(i.run_in) >= self.options.growth and i.runs > 1]
        old = _crossing(call, reached, fresh=1)
        if not often or old is None or len(old.run_in) < self.options.growth:
            return
        name = self._name(old)
        self.report(
            "warning", call.path,
            f"A graph that was recorded once is walked in every iteration: {name}, made on "
            f"{short(old.path)} in iteration {old.iteration + 1}, is part of each loss; "
            f"{len(often)} of {several(call.ran, 'node')} are not new.",
            self._cure(old, reached),
            [("backward", call.path), ("enters through", old.path)],
            tensor=name, nodes=call.ran, nodes_walked_before=len(often),
        )  # fmt: skip

    def _name(self, old: NodeInfo) -> str:
        tensor = old.tensor()
        found = _state_name(old.path)
        if found is None and tensor is not None:
            found = variable_of(tensor, self.stream.stack.frames())
        found = found or name_of_result(old.path)
        return found or f"the result of {old.name}"

    def _cure(self, old: NodeInfo, reached: list[NodeInfo]) -> str:
        name = self._name(old)
        if not _is_made_anew(old, reached):
            return (
                f"Compute {_bare(name)} inside the loop ({short(old.path)} runs once, before it); "
                "then no retain_graph is needed."
            )
        return (
            f"Detach it when it is carried over: {_bare(name)} = {_bare(name)}.detach(); then no "
            "retain_graph is needed."
        )


def _state_name(path: Path) -> str | None:
    """The one name that a statement on the way both reads and assigns to: ``y, h = rnn(x, h)``."""
    for place in reversed(path):
        step = statement(place)
        names = targets(step) & set(reads(step))
        if len(names) == 1:
            return names.pop()
    return None


def _is_made_anew(old: NodeInfo, reached: list[NodeInfo]) -> bool:
    """Whether the line that made a node has run in another iteration too."""
    return any(i.path is old.path and i.iteration != old.iteration for i in reached)


def _bare(name: str) -> str:
    return "it" if name.startswith("the ") else name


def _same_line(first: Call | None, second: Call) -> bool:
    if first is None or not first.path or not second.path:
        return False
    return first.path[-1].is_on_line_of(second.path[-1])


def _crossing(call: Call, reached: list[NodeInfo], fresh: int) -> NodeInfo | None:
    """The latest node of an earlier iteration that an edge of this one's leads to; if there is
    none, the latest that was run before, from one that was not."""
    now = call.iteration
    old = [
        before
        for info in reached
        if info.iteration == now
        for before in info.inputs
        if before.iteration < now
    ] or [
        before
        for info in reached
        if info.runs <= fresh
        for before in info.inputs
        if before.runs > fresh
    ]
    return max(old, key=lambda i: i.seq, default=None)


def _rising(counts: list[int]) -> int:
    """How often in a row, up to now, the count rose."""
    steps = 0
    for before, after in zip(reversed(counts[:-1]), reversed(counts[1:])):
        if after <= before:
            break
        steps += 1
    return steps
