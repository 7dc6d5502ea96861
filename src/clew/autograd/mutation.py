"""`allow_mutation_on_saved_tensors`: keep a copy of what a write would spoil.

Layer 4.  Saving a tensor leaves a `_Kept` in the graph instead; an observer is told of every
in-place write beforehand and makes those that share the written memory copy their tensor.
"""

from __future__ import annotations

import weakref
from typing import Any

from clew.autograd.modes import no_grad, state
from clew.dispatch import TENSORS
from clew.errors import MutationContextError, SavedHookError, describe
from clew.observers import Observer, observers
from clew.site import Site, here
from clew.storage import root
from clew.tensor import Tensor


class _Kept:
    """A saved tensor, or a copy of it from before the first write.

    Attributes:
        tensor: what was saved; None once a copy was made, or the context has ended.
        version: its version when it was saved.
        copy: the values from before the write, or None.
        group: all that share the memory; it lives as long as one of them.
        entered: the line that entered the context.
    """

    __slots__ = ("__weakref__", "copy", "entered", "group", "tensor", "version")

    def __init__(self, tensor: Tensor, group: weakref.WeakSet[_Kept], entered: Site | None) -> None:
        self.group = group
        self.entered = entered
        self.tensor: Tensor | None = tensor
        self.version = tensor._counter.value
        self.copy: Any = None

    def unpack(self) -> Any:
        """The tensor as it was saved."""
        if self.copy is not None:
            return self.copy
        if self.tensor is None or not _active:
            raise MutationContextError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"
                "in which the graph was originally recorded.",
                self.entered,
            )
        if self.tensor._counter.value != self.version:
            raise SavedHookError(
                "one of the variables needed for gradient computation has been modified by "
                f"{self.tensor._counter.writer_name}, which allow_mutation_on_saved_tensors does "
                "not see",
                "write with an in-place operation of a tensor, which is seen, or to a clone()",
                ("tensor", describe(self.tensor)),
            )
        return self.tensor


_active: list[allow_mutation_on_saved_tensors] = []


class allow_mutation_on_saved_tensors(Observer):
    """While entered, tensors that were saved for backward may be written to in place.

    A write copies what is saved of the memory that it spoils.  Forward and backward must both
    run inside.

    Raises:
        RuntimeError: on entry, one is entered already.
    """

    def __init__(self) -> None:
        self.kept: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self.entered: Site | None = None

    def __enter__(self) -> allow_mutation_on_saved_tensors:
        if _active:
            raise SavedHookError(
                "allow_mutation_on_saved_tensors contexts cannot be nested",
                "enter one context around the whole forward and backward",
            )
        if state.now.hooks_refused is not None:
            raise SavedHookError(
                state.now.hooks_refused, "leave the disable_saved_tensors_hooks block first"
            )
        self.entered = here()
        _active.append(self)
        state.now.saved_hooks.append((self._pack, _Kept.unpack))
        observers.append(self)
        return self

    def __exit__(self, *exception: Any) -> None:
        observers.remove(self)
        state.now.saved_hooks.pop()
        _active.clear()
        for kept in self._all():
            kept.tensor = kept.copy = None
        self.kept.clear()

    def _all(self) -> list[_Kept]:
        return [kept for group in self.kept.values() for kept in group]

    @property
    def tid_to_weakhandle(self) -> dict[int, _Kept]:
        """What the graphs recorded inside keep now, by number."""
        return dict(enumerate(self._all()))

    @property
    def cloned(self) -> dict[_Kept, Any]:
        """The copies that writes have made necessary."""
        return {kept: kept.copy for kept in self._all() if kept.copy is not None}

    def _pack(self, tensor: Tensor) -> _Kept:
        memory = id(root(tensor._array))
        group = self.kept.get(memory)
        if group is None:
            group = self.kept[memory] = weakref.WeakSet()
        for kept in group:
            if kept.tensor is not None and _is_same(kept, tensor):
                return kept
        made = _Kept(tensor, group, self.entered)
        group.add(made)
        return made

    def before_inplace(
        self, op: Any, target: Any, inputs: tuple[Any, ...], attrs: dict[str, Any]
    ) -> None:
        """Copy what is saved of the memory that `op` is about to write to."""
        for kept in self.kept.get(id(root(target._array)), ()):
            if kept.tensor is not None:
                with no_grad():
                    kept.copy = TENSORS.clone(kept.tensor)
                kept.tensor = None


def _is_same(kept: _Kept, tensor: Tensor) -> bool:
    """Whether `kept` holds this part of memory at this version."""
    known: Any = kept.tensor
    mine, other = known._array, tensor._array
    return (
        kept.version == tensor._counter.value
        and mine.__array_interface__ == other.__array_interface__
    )
