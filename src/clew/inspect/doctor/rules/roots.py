"""R14b, R11's rebinding, R18's dead gradient: tensors that by mistake are leaves, or are not."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from clew.inspect.doctor.rules.base import Rule, name_of_result, short
from clew.inspect.watch import Call, Cut, NodeInfo, Path
from clew.inspect.watch.paths import reads, statement, targets, value_of


class LeafRoot(Rule):
    """R14b: backward starts from a leaf, so there is nothing to go through."""

    id = "R14"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.counts: dict[Path, int] = {}
        self.recent: Cut | None = None

    def on_cut(self, cut: Cut, source: Any, result: Any) -> None:
        if cut.leaves:
            self.recent = cut

    def on_backward(self, call: Call, reached: list[NodeInfo]) -> None:
        if call.leaf_root is None or call.roots or call.error is not None or not call.accumulates:
            return
        self.counts[call.path] = self.counts.get(call.path, 0) + 1
        if self.counts[call.path] < self.options.repetitions:
            return
        root = call.leaf_root()
        known = self.stream.provenance(root) if root is not None else None
        cut = known.cuts[-1] if known is not None and known.cuts else self.recent
        why = (
            f"what it was computed from was cut off by {cut.kind} on {short(cut.path)}"
            if cut is not None
            else "its values did not come from recorded operations"
        )
        self.report(
            "error", call.path,
            "Backward starts from a leaf, so it reaches no parameter and nothing is trained: this "
            f"loss requires grad because it was told to, not because it has a history; {why}.",
            "Do not set requires_grad on a loss. Compute it from the model's outputs without "
            f"{cut.kind if cut is not None else 'item(), .data, detach() or torch.tensor()'}.",
            [("backward", call.path), ("cut", cut.path if cut else None)],
            kind="leaf", cut=cut.kind if cut else None, passes=self.counts[call.path],
        )  # fmt: skip


class ReboundParameter(Rule):
    """R11: ``p = p - lr * p.grad`` makes another tensor and leaves the parameter as it was."""

    id = "R11"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.made: dict[int, tuple[Any, Path]] = {}

    def on_op(self, name: str, inputs: Sequence[Any], info: NodeInfo | None, path: Path) -> None:
        if info is None or not info.direct or not path:
            return
        mask = 0
        for x in inputs:
            mask |= self.stream._made_of(x)
        leaf = next((leaf for leaf in info.direct if mask >> leaf.bit & 1), None)
        if leaf is None:
            return
        tensor = leaf.ref()
        frame = self.stream.stack.frames()[0]
        step = statement(path[-1])
        rebound = [n for n in reads(step) if n in targets(step) and value_of(n, frame) is tensor]
        if rebound:
            self.say(path, rebound[0])
            return
        result = info.tensor()
        if result is not None:
            self.made[id(result)] = (weakref.ref(result), path)

    def on_dead_grad(self, tensor: Any, path: Path) -> None:
        known = self.made.get(id(tensor))
        if known is not None and known[0]() is tensor:
            self.say(known[1], name_of_result(known[1]) or "p")

    def say(self, path: Path, name: str) -> None:
        """Report the line that rebinds."""
        self.report(
            "error", path,
            f"This line does not update {name}: it binds the name to a new tensor, the result of "
            "an operation. That is no leaf, so from the next backward on its .grad is None, and "
            "whoever else holds the parameter (a model, an optimizer) keeps the old one.",
            f"Write in place, without recording: with torch.no_grad(): {name} -= ...",
            [("rebinds", path)],
            kind="rebinding", tensor=name,
        )  # fmt: skip


class DeadGrad(Rule):
    """R18: the gradient of a result was asked for, and a result keeps none."""

    id = "R18"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.asked: dict[Path, int] = {}
        self.last: tuple[Path, Path, str] | None = None

    def on_dead_grad(self, tensor: Any, path: Path) -> None:
        engine = self.stream.engine
        node = engine.node(tensor)
        info = None if node is None else engine.info(node)
        if info is None:
            return
        self.last = (path, info.path, info.name)
        self.asked[path] = self.asked.get(path, 0) + 1
        if self.asked[path] >= self.options.repetitions and not self.found("R11"):
            self.say("warning", path, info.path, info.name)

    def say(self, severity: str, path: Path, made: Path, name: str) -> None:
        """Report the read, and the op that made the tensor."""
        tensor = name_of_result(made) or "the tensor"
        self.report(
            severity, made,
            f"{tensor} is not a leaf: {name} on this line made it, so backward does not keep its "
            f"gradient, and .grad on {short(path)} is None.",
            f"If {tensor} is to be trained, make it a leaf after the last operation on it: "
            f"{tensor} = ({tensor}'s values).detach().requires_grad_(); if only its gradient is "
            f"of interest, call {tensor}.retain_grad() before backward.",
            [("made", made), ("gradient read", path)],
            op=name, tensor=tensor,
        )  # fmt: skip
