"""R04, R07, R08 and R09: gradients that nobody uses, and when they are cleared."""

from __future__ import annotations

from typing import Any

from clew.inspect.doctor.finding import human, listed
from clew.inspect.doctor.rules.base import Rule, leaf_names, name_of_optimizer, short, top_of
from clew.inspect.watch import Call, Leaf, NodeInfo, Path, Step

STEPS = 3


class UnownedGradients(Rule):
    """Parameters get gradients for at least three steps, are in no optimizer, and their gradients
    are neither read nor hooked."""

    id = "R04"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.seen: dict[Leaf, set[int]] = {}
        self.names: dict[Leaf, str] = {}
        self.uses: dict[Leaf, Path] = {}
        self.line: dict[Leaf, Path] = {}

    def on_closed(self, call: Call) -> None:
        for leaf in call.leaves if call.steppers else ():
            if not leaf.is_parameter or leaf.read or leaf.hooked:
                continue
            iterations = self.seen.setdefault(leaf, set())
            iterations.add(call.index)
            self.uses[leaf] = leaf.used_at
            self.line[leaf] = call.path
            if len(iterations) == STEPS:
                self.names[leaf] = leaf_names(self.stream, [leaf])[0]

    def on_hook(self, tensor: Any, hook: Any, handle: Any, path: Path) -> None:
        if self.stream.engine.node(tensor) is None:
            self.stream.leaf(tensor).hooked = True

    def finish(self) -> None:
        if self.stream.clock is None or self.found("R15"):
            return
        groups: dict[str, list[Leaf]] = {}
        for leaf, iterations in self.seen.items():
            if len(iterations) < STEPS or leaf.read or leaf.hooked or leaf.steps_with:
                continue
            if self.stream.owners_of(leaf):
                continue
            owner = self.names.get(leaf, "").partition(".")[0]
            groups.setdefault(owner, []).append(leaf)
        for leaves in groups.values():
            self._report(leaves)

    def _report(self, leaves: list[Leaf]) -> None:
        names = [self.names.get(leaf, leaf.shape) for leaf in leaves]
        where = top_of(self.uses[leaf] for leaf in leaves)
        nbytes = sum(leaf.nbytes for leaf in leaves)
        count = max(len(self.seen[leaf]) for leaf in leaves)
        are = "are" if len(names) > 1 else "is"
        self.report(
            "warning", where,
            f"{listed(names)} {are} in no optimizer, yet every backward computes and keeps "
            f"gradients for {'them' if len(names) > 1 else 'it'} ({human(nbytes)}, for {count} "
            "steps, never read, never used).",
            "If this part is a fixed reference or target, run it inside `with torch.no_grad():` "
            "or call requires_grad_(False) on its parameters; if it is to learn, give its "
            "parameters to an optimizer.",
            [("used here", where), ("backward", self.line[leaves[0]])],
            parameters=names, gradient_bytes=nbytes, steps=count,
        )  # fmt: skip


class MissingClear(Rule):
    """Two steps in a row used again what a step before them had used already."""

    id = "R07"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.stale: dict[Any, int] = {}

    def on_step(self, step: Step) -> None:
        again = [
            leaf
            for leaf in step.leaves
            for pending, consumed in [step.pending[leaf]]
            if consumed and len(pending) > consumed
        ]
        # An update by hand is a step for each parameter.
        key: Any = id(step.optimizer) if step.number else (step.path, *step.leaves)
        if not again:
            self.stale[key] = 0
            return
        self.stale[key] = self.stale.get(key, 0) + 1
        if self.stale[key] >= 2:
            self._report(step, again)

    def _report(self, step: Step, leaves: list[Leaf]) -> None:
        pending, _ = step.pending[leaves[0]]
        name = name_of_optimizer(self.stream, step.optimizer, step.path)
        clear = f"{name}.zero_grad()" if step.number else "p.grad = None"
        names = leaf_names(self.stream, leaves)
        self.report(
            "warning", step.path,
            f"Gradients are never cleared between steps of {name}: this step uses the gradients "
            f"of {len(pending)} backward passes, of which earlier steps have used all but the "
            f"last, so old gradients grow into each update (of {listed(names)}); since iteration "
            f"{pending[0].iteration + 2}.",
            f"Call {clear} once in each iteration, before backward.",
            [("step", step.path), ("adds to the gradients", pending[-1].path)],
            parameters=names, passes=len(pending), since_iteration=pending[0].iteration + 2,
        )  # fmt: skip


class MisplacedClear(Rule):
    """Gradients were cleared before anybody had used them, of two passes at least.

    By-products (the gradients that a generator's loss gives the discriminator) and gradients that
    the program has read do not count: their pass was useful.
    """

    id = "R08"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.lost: dict[Path, list[Call]] = {}
        self.cleared_at: dict[int, Path] = {}
        self.passes: dict[Path, int] = {}
        self.candidates: list[tuple[Call, Path]] = []

    def on_backward(self, call: Call, reached: list[NodeInfo]) -> None:
        if call.accumulates and call.leaves:
            self.passes[call.path] = self.passes.get(call.path, 0) + 1
        self._sort()

    def on_clear(self, leaf: Leaf, lost: list[Call], path: Path) -> None:
        if not self.stream.owners_of(leaf):
            return
        for call in lost:
            if not call.used and not call.lost:
                call.lost = True
                self.candidates.append((call, path))

    def _sort(self) -> None:
        """A pass is lost if nobody uses what else it has added to, until the next passes."""
        waiting = []
        for call, path in self.candidates:
            if call.used:
                continue
            if self._still_pending(call):
                waiting.append((call, path))
                continue
            self.lost.setdefault(call.path, []).append(call)
            self.cleared_at[call.index] = path
        self.candidates = waiting

    def _still_pending(self, call: Call) -> bool:
        return any(call in leaf.pending for leaf in call.leaves)

    def finish(self) -> None:
        for call, path in self.candidates:
            if not call.used:
                self.lost.setdefault(call.path, []).append(call)
                self.cleared_at[call.index] = path
        for path, calls in self.lost.items():
            calls = [call for call in calls if not call.used]
            if len(calls) >= self.options.repetitions:
                self._report(path, calls)

    def _report(self, path: Path, calls: list[Call]) -> None:
        cleared = next((p for c in calls if (p := self.cleared_at.get(c.index))), ())
        total = self.passes.get(path, len(calls))
        every = len(calls) == total
        what = "all of them" if every else f"{len(calls)} of {total}"
        cure = (
            "Clear before backward or after step, never between backward and step."
            if every or len(calls) >= total - 1
            else "Step with what is left (or carry it over) before it is cleared; clear only after "
            "a step."
        )
        self.report(
            "warning", cleared or path,
            f"Gradients are cleared before any step has used them: of the passes of the backward "
            f"on {short(path)}, {what} had no effect, since iteration {calls[0].iteration + 1}.",
            cure,
            [("cleared", cleared or None), ("the lost backward", path)],
            lost_passes=len(calls), passes=total, since_iteration=calls[0].iteration + 1,
        )  # fmt: skip


class LeakedLoss(Rule):
    """A step used gradients of several losses, one of which another optimizer stepped for.

    Decided when the passes are closed: both may come before both steps.
    """

    id = "R09"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.used_by: dict[int, dict[int, Any]] = {}
        self.mixed: dict[int, _Mixed] = {}
        self.owned: dict[int, set[Leaf]] = {}

    def on_step(self, step: Step) -> None:
        own = self.owned.setdefault(id(step.optimizer), set())
        own.update(step.leaves)
        fresh: dict[Leaf, list[Call]] = {}
        for leaf in step.leaves:
            pending, consumed = step.pending[leaf]
            for call in pending[consumed:]:
                self.used_by.setdefault(call.index, {})[id(step.optimizer)] = step.optimizer
            if len({call.path for call in pending[consumed:]}) > 1:
                fresh[leaf] = list(pending[consumed:])
        if fresh:
            self.mixed.setdefault(id(step.optimizer), _Mixed(step)).add(fresh)
        self._judge(step)

    def _judge(self, step: Step) -> None:
        for mixed in self.mixed.values():
            if mixed.step.optimizer is step.optimizer and len(self.owned) < 2:
                continue
            found = self._foreign(mixed)
            if found is None:
                continue
            call, leaves, other, iterations = found
            if len(iterations) >= self.options.repetitions:
                self._report(mixed, call, leaves, other, iterations)

    def _foreign(self, mixed: _Mixed) -> tuple[Call, list[Leaf], Any, set[int]] | None:
        mine = mixed.step.optimizer
        found: tuple[Call, list[Leaf], Any] | None = None
        iterations: set[int] = set()
        for entry in mixed.entries:
            for leaf, calls in entry.items():
                for call in calls:
                    others = [
                        o for key, o in self.used_by.get(call.index, {}).items()
                        if o is not mine and leaf not in self.owned.get(key, ())
                    ]  # fmt: skip
                    if not others or not self._own_root(leaf, calls, call, mine):
                        continue
                    iterations.add(call.iteration)
                    found = (call, [*(found[1] if found else []), leaf], others[0])
        return None if found is None else (*found, iterations)

    def _own_root(self, leaf: Leaf, calls: list[Call], foreign: Call, mine: Any) -> bool:
        """Whether another pass on other lines is this optimizer's own."""
        return any(call.path != foreign.path for call in calls)

    def _report(
        self, mixed: _Mixed, call: Call, leaves: list[Leaf], other: Any, iterations: set[int]
    ) -> None:
        step = mixed.step
        unique = list(dict.fromkeys(leaves))
        mine = name_of_optimizer(self.stream, step.optimizer, step.path)
        theirs = name_of_optimizer(self.stream, other)
        names = leaf_names(self.stream, unique)
        own = next(
            (c for e in mixed.entries for cs in e.values() for c in cs if c.path != call.path), None
        )
        self.report(
            "warning", step.path,
            f"Another loss has leaked into these gradients: when {mine} steps, {listed(names)} "
            f"hold, beside their own loss's gradient, what the backward on {short(call.path)} "
            f"added for the step of {theirs}; in {len(iterations)} iterations so far.",
            f"Call {mine}.zero_grad() directly before the backward"
            f"{f' on {short(own.path)}' if own else ''} of its own loss, or turn requires_grad of "
            "these parameters off during the other loss.",
            [("step", step.path), ("foreign backward", call.path),
             ("own backward", own.path if own else None)],
            parameters=names, iterations=len(iterations), since_iteration=min(iterations) + 1,
        )  # fmt: skip


class _Mixed:
    """The steps of one optimizer that used gradients of several lines."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self.entries: list[dict[Leaf, list[Call]]] = []

    def add(self, leaves: dict[Leaf, list[Call]]) -> None:
        self.entries.append(leaves)
        del self.entries[:-8]
