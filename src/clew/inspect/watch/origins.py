"""L5, cuts: where values leave the graph, and what tensors without a history were computed from.

Imports `records`.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from clew.inspect.watch.paths import Path
from clew.inspect.watch.records import Call, Component, Cut, Leaf, Provenance, joined


class Origins:
    """Of each tensor without a history that is known to come from somewhere: from where."""

    engine: Any
    current: Call | None
    gradient_bits: dict[int, int]
    _provenance: dict[int, tuple[Any, Provenance]]

    if TYPE_CHECKING:

        def leaf(self, tensor: Any) -> Leaf: ...
        def tell(self, event: str, *what: Any) -> None: ...

    def provenance(self, tensor: Any) -> Provenance | None:
        """Where the values of a tensor without a history come from, or None."""
        known = self._provenance.get(id(tensor))
        return known[1] if known is not None and known[0]() is tensor else None

    def note(self, tensor: Any, provenance: Provenance | None) -> None:
        """Remember where a tensor's values come from."""
        if provenance is None:
            return
        key, table = id(tensor), self._provenance
        table[key] = (weakref.ref(tensor, lambda ref: _forget(table, key, ref)), provenance)

    def cut(self, kind: str, source: Any, result: Any, path: Path) -> None:
        """Values of `source` leave the graph, as `result` (a tensor, or something else)."""
        if self.current is not None:
            return
        if not self.engine.requires_grad(source):
            known = self.provenance(source)
            if known is not None and self.engine.is_tensor(result):
                self.note(result, known)
            return
        component, leaves, seq = self._origin(source)
        cut = Cut(kind, path, component, leaves, seq)
        if component is not None:
            component.cut_away[cut] = None
        if self.engine.is_tensor(result):
            grads = self._grads_of(source)
            self.note(result, Provenance(leaves, (cut,), grads, path))
        self.tell("on_cut", cut, source, result)

    def _origin(self, tensor: Any) -> tuple[Component | None, int, int]:
        """The graph that made a tensor, a mask of its leaves, and the number of its node."""
        node = self.engine.node(tensor)
        if node is None:
            return None, 1 << self.leaf(tensor).bit, -1
        info = self.engine.info(node)
        if info is None:
            return None, 0, -1
        return info.component.root(), info.leaves | info.behind, info.seq

    def _grads_of(self, tensor: Any) -> int:
        """A mask of the leaves whose gradient a tensor is."""
        bit = self.gradient_bits.get(id(tensor))
        return 1 << bit if bit is not None else 0

    def _constant(self, name: str, inputs: Sequence[Any], out: Any, path: Path) -> None:
        """A result without a history: it comes from its inputs, by a cut if one has a history."""
        parts = []
        for x in inputs:
            if self.engine.requires_grad(x):
                component, leaves, seq = self._origin(x)
                cut = Cut(self.engine.why_constant(name), path, component, leaves, seq)
                if component is not None:
                    component.cut_away[cut] = None
                parts.append(Provenance(leaves, (cut,), 0, path))
                self.tell("on_cut", cut, x, out)
            else:
                known = self.provenance(x)
                grads = self._grads_of(x)
                if known is not None:
                    parts.append(known)
                if grads:
                    parts.append(Provenance(0, (), grads, path))
        self.note(out, joined(parts, path))


def _forget(table: dict[int, Any], key: int, reference: Any) -> None:
    known = table.get(key)
    if known is not None and known[0] is reference:
        del table[key]
