"""R05, needless ``retain_graph=True``: nothing that it kept was asked for again."""

from __future__ import annotations

from typing import Any

from clew.inspect.doctor.finding import human, several
from clew.inspect.doctor.rules.base import Rule, short
from clew.inspect.watch import Call, NodeInfo, Path

CALLS = 3


class NeedlessRetain(Rule):
    """At a line, at least three passes kept the graph, and nothing kept of it was unpacked after.

    Judged at the end: a use may come late.
    """

    id = "R05"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.sites: dict[Path, list[Call]] = {}

    def on_backward(self, call: Call, reached: list[NodeInfo]) -> None:
        if call.keep and not call.create and call.error is None:
            self.sites.setdefault(call.path, []).append(call)

    def finish(self) -> None:
        for path, calls in self.sites.items():
            reused = any(call.reused for call in calls)
            # A graph that has kept nothing that can be seen (hooks of the program) tells nothing.
            if len(calls) >= CALLS and not reused and any(call.count for call in calls):
                self._report(path, calls)

    def _report(self, path: Path, calls: list[Call]) -> None:
        held = max(call.held for call in calls)
        kept = max(call.count for call in calls)
        until = next((call.until for call in reversed(calls) if call.until), ())
        end = f"to {short(until)}, where the last of them is let go" if until else "to the end"
        self.report(
            "warning", path,
            f"retain_graph=True is needless here: none of {len(calls)} backward passes on this "
            f"line was followed by another use of its graph. Each of the {several(kept, 'tensor')} "
            "that the graph had saved was unpacked by this pass and never again (0 unpacks after "
            f"it, in every iteration). The flag holds {human(held)} from {short(path)} {end}.",
            "Leave retain_graph=True out.",
            [("keeps the graph", path), ("held until", until or None)],
            calls=len(calls), held_bytes=held, saved_tensors=kept, later_unpacks=0,
            since_iteration=calls[0].iteration,
        )  # fmt: skip
