"""R02 and R03, forwards and branches that are recorded although no backward uses them."""

from __future__ import annotations

from typing import Any

from clew.inspect.doctor.finding import human, several
from clew.inspect.doctor.rules.base import Rule, line_of, region, short, top_of
from clew.inspect.watch import Component, Cut, Path

DELIBERATE = frozenset({"detach()", "detach_()", ".data", "no_grad"})
"""The cuts that are there to cut."""


class _Place:
    """The graphs that one place has made: how many were used, and what is known of the others."""

    def __init__(self) -> None:
        self.used = 0
        self.unused: list[tuple[Cut, ...]] = []
        self.nbytes = 0
        self.region: Path = ()

    def add(self, nbytes: int, where: Path, cuts: list[Cut]) -> None:
        """One more that no backward has used; `cuts` lead out of it."""
        self.unused.append(tuple(cuts[-4:]))
        self.nbytes = max(self.nbytes, nbytes)
        self.region = where

    def reached(self) -> Cut | None:
        """A cut by which a backward came to use values of most of the graphs, if any."""
        found = [next((c for c in reversed(cuts) if c.reached), None) for cuts in self.unused]
        count = sum(cut is not None for cut in found)
        return next((c for c in found if c is not None), None) if 2 * count > len(found) else None


class Unused(Rule):
    """What both rules count.  Judged at the end: values may be used long after their graph."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.places: dict[Path, _Place] = {}

    def enough(self, nbytes: int) -> bool:
        """Whether so many bytes are worth a word."""
        peak = max(self.stream.peak_bytes, 1)
        return nbytes >= self.options.unused_bytes or (
            nbytes > 0 and nbytes / peak >= self.options.unused_share
        )

    def on_component_end(self, component: Component) -> None:
        place = self.places.setdefault(component.last, _Place())
        if component.used:
            place.used += 1
        elif self.enough(component.nbytes):
            place.add(component.nbytes, region(component), list(component.cut_away))

    def finish(self) -> None:
        for place in self.places.values():
            if len(place.unused) >= self.options.repetitions and not place.used:
                self.judge(place)

    def judge(self, place: _Place) -> None:
        """Report a place whose graphs were never used, if it is this rule's."""
        raise NotImplementedError


class UnusedForward(Unused):
    """R02: a graph of which no part was ever run by a backward, twice at least at one place."""

    id = "R02"

    def judge(self, place: _Place) -> None:
        if place.reached() is not None:
            return
        runs = len(place.unused)
        self.report(
            "warning", place.region,
            f"This forward is recorded, and no backward ever uses the recording: in {runs} of "
            f"{runs} runs all saved tensors ended with 0 unpacks. It keeps {human(place.nbytes)} "
            "for backward each time. model.eval() changes layers like dropout; it does not stop "
            "recording.",
            f"Run {short(place.region)} inside `with torch.no_grad():`; if values of it are kept, "
            "keep them detached.",
            [("recorded, never used", place.region)],
            saved_bytes=place.nbytes, runs=runs, unpacks=0,
        )  # fmt: skip


class DeadBranch(Unused):
    """R03: a graph whose values a backward used only through a cut, or a part of a used graph
    that no backward ran."""

    id = "R03"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.branches: dict[Path, _Place] = {}

    def on_component_end(self, component: Component) -> None:
        super().on_component_end(component)
        if not component.used:
            return
        branch: dict[Path, int] = {}
        for _, path, nbytes in component.unused:
            branch[path] = branch.get(path, 0) + nbytes
        if branch and self.enough(sum(branch.values())):
            last = max(component.unused, key=lambda part: part[0])[1]
            cuts = [cut for cut in component.cut_away if cut.seq in component.unrun]
            place = self.branches.setdefault((*component.last, *last), _Place())
            place.add(sum(branch.values()), top_of(branch), cuts)

    def finish(self) -> None:
        super().finish()
        for place in self.branches.values():
            if len(place.unused) >= self.options.repetitions:
                self._report(place, place.reached(), self._severity(place))

    def judge(self, place: _Place) -> None:
        cut = place.reached()
        if cut is not None:
            self._report(place, cut, "warning")

    def _severity(self, place: _Place) -> str:
        """A small branch that ends in a number or an index is there for a log or a sample."""
        ends = {cut.kind for cuts in place.unused for cut in cuts}
        small = place.nbytes < self.options.unused_bytes
        return "info" if small and ends and not ends & DELIBERATE else "warning"

    def _report(self, place: _Place, cut: Cut | None, severity: str) -> None:
        at = line_of(place.region)
        if any(f.rule == "R15" and at and f.line == at.line for f in self.findings):
            return  # a dead term of the loss: said by that rule
        if cut is not None:
            what = (
                f"This forward is recorded, but its values go on only through {cut.kind} on "
                f"{short(cut.path)}, which cuts them off"
            )
            cure = "Run this forward inside `with torch.no_grad():`; nothing else changes."
        else:
            what = "This branch is recorded, but the loss does not depend on it"
            cure = "Compute it inside `with torch.no_grad():`, leave it out, or add it to the loss."
        runs = len(place.unused)
        self.report(
            severity, place.region,
            f"{what}: in {several(runs, 'run')} a backward ran, and none of its saved tensors was "
            f"unpacked. It keeps {human(place.nbytes)} each time.",
            cure,
            [("recorded, never used", place.region), ("cut", cut.path if cut else None)],
            saved_bytes=place.nbytes, runs=runs, unpacks=0, cut=cut.kind if cut else None,
        )  # fmt: skip
