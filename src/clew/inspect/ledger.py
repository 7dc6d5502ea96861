"""The ledger: bytes by kind while a program runs, their peak, and the lines that hold them.

Listens to dispatch and the engine as an observer.  It counts the memory behind tensors, each once,
from the operation that made it until NumPy lets it go; what kernels use in passing is not counted.

Note [Kinds of memory]
    A memory has one kind at a time, the first that holds of: parameter (a leaf that requires grad),
    gradient, optimizer state, saved for backward, other.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any

from clew.autograd.node import AccumulateGrad
from clew.autograd.saved import PackedTensor, SavedTensor
from clew.observers import Observer, observers
from clew.site import Site, resolve
from clew.storage import root
from clew.tensor import Tensor

PARAMETER, GRADIENT, STATE, SAVED, OTHER = range(5)
KINDS = ("parameters", "gradients", "optimizer state", "saved for backward", "other")


@dataclass
class Summary:
    """What a ledger has seen.

    Attributes:
        peak: bytes by kind at the moment when their sum was highest.
        current: bytes by kind now.
        nodes_recorded: graph nodes made.
        nodes_freed: of these, how many are gone.
        top_lines: (file, line, text, bytes) of the lines that held most saved bytes at the peak.
    """

    peak: dict[str, int]
    current: dict[str, int]
    nodes_recorded: int
    nodes_freed: int
    top_lines: list[tuple[str, int, str, int]] = field(default_factory=list)


class _Memory:
    """One memory behind tensors."""

    __slots__ = ("flags", "nbytes", "reference", "saves", "site")

    def __init__(self, nbytes: int, reference: Any) -> None:
        self.nbytes = nbytes
        self.reference = reference
        self.flags = 0  # bit k: is of kind k, for the kinds that stay
        self.saves = 0
        self.site: Site | None = None

    def kind(self) -> int:
        """See Note [Kinds of memory]."""
        for kind in (PARAMETER, GRADIENT, STATE):
            if self.flags >> kind & 1:
                return kind
        return SAVED if self.saves else OTHER


class Ledger(Observer):
    """Counts bytes by kind between entering and leaving a ``with``."""

    def __init__(self) -> None:
        self._memories: dict[int, _Memory] = {}
        self._saves: dict[int, tuple[Any, int]] = {}
        self._nodes: dict[int, Any] = {}
        self._now = [0] * len(KINDS)
        self._peak = [0] * len(KINDS)
        self._peak_total = 0
        self._peak_lines: dict[Site | None, int] = {}
        self._at_peak = False
        self.nodes_recorded = 0
        self.nodes_freed = 0

    def __enter__(self) -> Ledger:
        observers.append(self)
        return self

    def __exit__(self, *exception: Any) -> None:
        observers.remove(self)

    # -- what happens

    def on_op(
        self, op: Any, inputs: tuple[Any, ...], outputs: tuple[Any, ...], node: Any,
        attrs: dict[str, Any],
    ) -> None:  # fmt: skip
        for tensor in (*inputs, *outputs):
            if isinstance(tensor, Tensor):
                self._see(tensor)
        self._see_node(node)
        self._mark_peak()

    def on_inplace(self, op: Any, target: Any, node: Any) -> None:
        self._see(target)
        self._see_node(node)
        self._mark_peak()

    def on_node(self, node: Any) -> None:
        if isinstance(node, AccumulateGrad) and node.variable._grad is not None:
            self._flag(node.variable._grad, GRADIENT)
            self._mark_peak()

    def on_optimizer_step(self, optimizer: Any) -> None:
        for state in optimizer.state.values():
            for value in state.values() if isinstance(state, dict) else ():
                if isinstance(value, Tensor):
                    self._flag(value, STATE)
        self._mark_peak()

    # -- bookkeeping

    def _see(self, tensor: Tensor) -> _Memory:
        owner = root(tensor._array)
        memory = self._memories.get(id(owner))
        if memory is None:
            memory = _Memory(owner.nbytes, weakref.ref(owner, self._forget(id(owner))))
            self._memories[id(owner)] = memory
            self._now[OTHER] += memory.nbytes
        if tensor._requires_grad and tensor._edge is None and not memory.flags >> PARAMETER & 1:
            self._change(memory, flag=PARAMETER)
        return memory

    def _flag(self, tensor: Tensor, kind: int) -> None:
        memory = self._see(tensor)
        if not memory.flags >> kind & 1:
            self._change(memory, flag=kind)

    def _change(self, memory: _Memory, *, flag: int | None = None, saves: int = 0) -> None:
        before = memory.kind()
        if flag is not None:
            memory.flags |= 1 << flag
        memory.saves += saves
        after = memory.kind()
        if before != after:
            self._now[before] -= memory.nbytes
            self._now[after] += memory.nbytes

    def _see_node(self, node: Any) -> None:
        if node is None:
            return
        self.nodes_recorded += 1
        self._nodes[id(node)] = weakref.ref(node, self._forget_node(id(node)))
        for _, saved in node.kept():
            self._see_saved(saved, node.site)

    def _see_saved(self, saved: SavedTensor | PackedTensor, site: Site | None) -> None:
        tensor = saved.tensor if isinstance(saved, SavedTensor) else saved.packed
        if not isinstance(tensor, Tensor):
            return
        memory = self._see(tensor)
        if not memory.saves:
            memory.site = site
        self._change(memory, saves=1)
        reference = weakref.ref(saved, self._forget_saved(id(saved)))
        self._saves[id(saved)] = (reference, id(root(tensor._array)))

    def _forget(self, key: int) -> Any:
        def gone(reference: Any) -> None:
            self._before_fall()
            memory = self._memories.pop(key)
            self._now[memory.kind()] -= memory.nbytes

        return gone

    def _forget_saved(self, key: int) -> Any:
        def gone(reference: Any) -> None:
            self._before_fall()
            memory = self._memories.get(self._saves.pop(key)[1])
            if memory is not None:
                self._change(memory, saves=-1)

        return gone

    def _forget_node(self, key: int) -> Any:
        def gone(reference: Any) -> None:
            del self._nodes[key]
            self.nodes_freed += 1

        return gone

    # -- the peak

    def _mark_peak(self) -> None:
        total = sum(self._now)
        if total > self._peak_total:
            self._peak_total = total
            self._peak = list(self._now)
            self._at_peak = True

    def _before_fall(self) -> None:
        """The lines are worked out once for each peak: when the memory begins to fall."""
        if self._at_peak:
            self._at_peak = False
            self._peak_lines = self._saved_by_line()

    def _saved_by_line(self) -> dict[Site | None, int]:
        lines: dict[Site | None, int] = {}
        for memory in self._memories.values():
            if memory.kind() == SAVED:
                lines[memory.site] = lines.get(memory.site, 0) + memory.nbytes
        return lines

    def summary(self, lines: int = 5) -> Summary:
        """What was seen until now."""
        self._before_fall()
        found: dict[tuple[str, int, str], int] = {}
        for site, nbytes in self._peak_lines.items():
            line = resolve(site)
            key = (line.file, line.line, line.text) if line else ("?", 0, "")
            found[key] = found.get(key, 0) + nbytes
        top = sorted(found.items(), key=lambda item: -item[1])[:lines]
        return Summary(
            dict(zip(KINDS, self._peak)),
            dict(zip(KINDS, self._now)),
            self.nodes_recorded,
            self.nodes_freed,
            [(*key, nbytes) for key, nbytes in top],
        )
