"""L3, the gradients of leaves: who added to them, who used them, who threw them away.

Imports `records`.  Clearing a gradient has many forms (``zero_grad``, ``p.grad = None``,
``p.grad.zero_()``, ``p.grad.data.zero_()``), so gradients are looked at before each pass and each
step rather than every form being watched for.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from clew.inspect.watch.paths import Path
from clew.inspect.watch.records import Call, Leaf, NodeInfo, Provenance, Step


class Gradients:
    """The leaves that were seen, by identity."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.leaves: dict[int, Leaf] = {}
        self.by_bit: dict[int, Leaf] = {}
        self.parameter_memory: set[Any] = set()
        self.gradient_bits: dict[int, int] = {}
        self.owners: dict[int, list[Any]] = {}
        self.stepping: Any = None
        self._bits = 0

    if TYPE_CHECKING:

        def tell(self, event: str, *what: Any) -> None: ...
        def provenance(self, tensor: Any) -> Provenance | None: ...

    def leaf(self, tensor: Any) -> Leaf:
        """The record of a leaf, made when it is first seen."""
        known = self.leaves.get(id(tensor))
        if known is not None and known.ref() is tensor:
            return known
        engine, key = self.engine, id(tensor)
        is_parameter = engine.is_parameter(tensor)
        memory = engine.storage(tensor)
        leaf = Leaf(weakref.ref(tensor, lambda _: self._gone(key, leaf)), self._bits, is_parameter,
                    memory, engine.shape(tensor))  # fmt: skip
        leaf.nbytes = engine.nbytes(tensor)
        self._bits += 1
        self.leaves[key] = leaf
        self.by_bit[leaf.bit] = leaf
        self.parameter_memory.add(memory)
        return leaf

    def _gone(self, key: int, leaf: Leaf) -> None:
        if self.leaves.get(key) is leaf:
            del self.leaves[key]
        self.by_bit.pop(leaf.bit, None)
        self.parameter_memory.discard(leaf.key)
        self.owners.pop(key, None)

    def leaves_in(self, mask: int) -> list[Leaf]:
        """The leaves of a mask that still exist."""
        return [leaf for bit, leaf in self.by_bit.items() if mask >> bit & 1]

    def owners_of(self, leaf: Leaf) -> list[Any]:
        """The optimizers that have stepped with a leaf among their parameters."""
        tensor = leaf.ref()
        known = self.owners.get(id(tensor), ()) if tensor is not None else ()
        return [o for o in (r() for r in known) if o is not None]

    # -- what happened to gradients since they were last looked at

    def poll_all(self, path: Path = ()) -> None:
        """Look at all gradients."""
        self.poll([leaf for leaf in self.leaves.values() if leaf.pending], path)

    def poll(self, leaves: Iterable[Leaf], path: Path = ()) -> None:
        """Look at some gradients: were they cleared, or replaced?"""
        for leaf in leaves:
            if not leaf.pending:
                continue
            tensor = leaf.ref()
            grad = None if tensor is None else self.engine.grad(tensor)
            if grad is None or self._was_zeroed(leaf, grad):
                self._cleared(leaf, path)
            elif leaf.seen is not None and leaf.seen[0] != id(grad):
                self._replaced(leaf, grad)

    def _was_zeroed(self, leaf: Leaf, grad: Any) -> bool:
        """Whether zeros were written; a pass can also have added nothing but zeros."""
        if leaf.is_zero and leaf.seen == (id(grad), self.engine.version(grad)):
            return False
        return self.engine.is_zero(grad)

    def _cleared(self, leaf: Leaf, path: Path) -> None:
        lost = leaf.pending[leaf.consumed :]
        leaf.pending, leaf.consumed, leaf.seen = [], 0, None
        self.tell("on_clear", leaf, lost, path)

    def _replaced(self, leaf: Leaf, grad: Any) -> None:
        """The user put another tensor in place of a gradient: what it holds is theirs to know."""
        for call in leaf.pending:
            call.used = True
        leaf.read = True
        leaf.pending, leaf.consumed = [], 0
        leaf.seen = (id(grad), self.engine.version(grad))

    # -- what a pass adds

    def note_contributions(self, call: Call, reached: Sequence[NodeInfo]) -> None:
        """Which leaves a pass has added to."""
        found: dict[Leaf, None] = {}
        for info in reached:
            found.update(dict.fromkeys(info.direct))
        if call.leaf_root is not None and call.leaf_root() is not None:
            found[self.leaf(call.leaf_root())] = None
        for leaf in found:
            tensor = leaf.ref()
            grad = None if tensor is None else self.engine.grad(tensor)
            if grad is None:
                continue
            now = (id(grad), self.engine.version(grad))
            if now == leaf.seen and leaf.pending:
                continue
            leaf.seen = now
            leaf.is_zero = self.engine.is_zero(grad)
            leaf.pending.append(call)
            leaf.gradients += 1
            self.gradient_bits[id(grad)] = leaf.bit
            call.leaves.append(leaf)

    def consume(self, step: Step) -> None:
        """A step has used what stood in its gradients."""
        for leaf in step.leaves:
            if leaf.pending:
                leaf.steps_with.add(id(step.optimizer))
            for call in leaf.pending[leaf.consumed :]:
                call.used = True
            leaf.consumed = len(leaf.pending)
            tensor = leaf.ref()
            grad = None if tensor is None else self.engine.grad(tensor)
            if grad is not None and leaf.seen is not None:
                leaf.seen = (leaf.seen[0], self.engine.version(grad))

    # -- what the user does with gradients

    def _note_reads(self, inputs: Sequence[Any], path: Path) -> None:
        for x in inputs:
            bit = self.gradient_bits.get(id(x))
            leaf = None if bit is None else self.by_bit.get(bit)
            if leaf is None:
                continue
            tensor = leaf.ref()
            if tensor is None or self.engine.grad(tensor) is not x:
                self.gradient_bits.pop(id(x), None)
            elif self.stepping is None and not _clips():
                self.mark_read(leaf)

    def mark_read(self, leaf: Leaf) -> None:
        """The user has looked at a gradient."""
        leaf.read = True
        for call in leaf.pending:
            call.used = True

    def _note_manual_step(self, target: Any, inputs: Sequence[Any], path: Path) -> None:
        """A write to a leaf of something made of its gradient is a step without an optimizer."""
        if self.stepping is not None:
            return
        memory = self.engine.storage(target)
        if memory not in self.parameter_memory:
            return
        for leaf in list(self.leaves.values()):
            if leaf.key != memory or not leaf.pending:
                continue
            masks = [self._made_of(x) for x in inputs]
            if any(mask >> leaf.bit & 1 for mask in masks):
                manual = Step(MANUAL, path, [leaf], 0)
                self.tell("on_step_start", manual)
                self.consume(manual)
                self.tell("on_step", manual)

    def _made_of(self, tensor: Any) -> int:
        """A mask of the leaves from whose gradients a tensor was made."""
        mask = 0
        bit = self.gradient_bits.get(id(tensor))
        if bit is not None:
            mask = 1 << bit
        known = self.provenance(tensor)
        return mask | (known.grads_of if known is not None else 0)


def _clips() -> bool:
    """Whether gradients are looked at only to be clipped: that is no use of them."""
    frame: Any = sys._getframe(2)
    for _ in range(12):
        if frame is None:
            return False
        if frame.f_code.co_name.startswith(("clip_grad", "get_total_norm", "_get_total_norm")):
            return True
        frame = frame.f_back
    return False


class _Manual:
    """Stands for updates that the program writes itself."""

    def __repr__(self) -> str:
        return "the update"


MANUAL = _Manual()
