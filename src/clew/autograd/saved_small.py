"""Saved tensors of which a node keeps a packed form.  Layer 3.

Note [Kept small]
    A packed value behaves as the tensor that PyTorch keeps, but for its bytes.  It shares the
    tensor's version, so the same writes in place are errors.  As long as the tensor is alive
    it is what the node shows and what rules are given; the packed form is for when it is gone.
    When another node keeps the same tensor as a whole, the packed form goes and the tensor stays:
    it costs nothing more then, and is what PyTorch keeps.  Saved-tensor hooks are given the tensor
    itself, as in PyTorch: under hooks nothing is packed.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from clew.autograd.saved import Hook, SavedTensor
from clew.autograd.transforms import running
from clew.errors import PackedValueError, recorded, shape_of
from clew.observers import observers
from clew.op import NO_ATTRS
from clew.packing import SHAPE, SMALLEST, Packed, Packing
from clew.plan import OUTPUT, Plan
from clew.quiet import quietly


class SavedSmall(SavedTensor):
    """A tensor of which only a packed form is kept; see Note [Kept small].

    `tensor` has its shape, type, version and edge, and the packed form for memory.

    Attributes:
        form: how it is packed.
        kept: what is kept; None since the tensor is kept as a whole.
        attrs: the attributes of the op.
        origin: a weak reference to the user's tensor, or to the array of an output (Note
            [Saved outputs]).
    """

    __slots__ = ("attrs", "form", "kept", "origin")

    def __init__(
        self, saved: SavedTensor, tensor: Any, form: Packing, attrs: dict[str, Any]
    ) -> None:
        is_output = saved.output_nr is not None
        self.attrs = attrs
        self.form = form
        self.kept: Packed | None = quietly(form.pack, (tensor._array, attrs), NO_ATTRS)
        self.origin = weakref.ref(tensor._array if is_output else tensor)
        stand_in = tensor._alias(None if is_output else tensor._edge)
        stand_in._array = self.kept.stand_in()
        super().__init__(stand_in, saved.version, saved.output_nr)
        tensor._ensure_meta().kept_small = weakref.ref(self)

    def whole(self) -> Any:
        """The tensor as `SavedTensor` would keep it, or None if its memory is gone."""
        found = self.origin()
        if found is None or self.output_nr is None:
            return found
        alias = self.tensor._alias()
        alias._array = found
        return alias

    def keep_whole(self) -> None:
        """Keep the tensor instead of the packed form, if it is alive and was not written to."""
        whole = self.whole()
        if self.kept is not None and whole is not None and whole._counter.value == self.version:
            self.tensor, self.kept = whole, None
            if observers:
                for on_kept_whole in observers.on_kept_whole:
                    on_kept_whole(self)

    def check(self, node: Any) -> None:
        whole = self.whole()
        if self.output_nr is not None or whole is None:
            self.check_version(node)
            return
        stand_in, self.tensor = self.tensor, whole
        try:
            super().check(node)
        finally:
            self.tensor = stand_in

    def summary(self) -> str:
        if self.kept is None or self.packed is not None:
            return super().summary()
        changed = " (changed since)" if self.tensor._counter.value != self.version else ""
        size = f"{self.kept.memory.nbytes:,} B"
        return f"{shape_of(self.tensor)} {size}, {self.form.words}{changed}"

    def array(self, node: Any) -> np.ndarray:
        if self.kept is None or self.packed is not None:
            return super().array(node)
        self.check(node)
        whole = self.whole()
        found: np.ndarray = (
            self.form.unpack(self.kept, self.attrs) if whole is None else whole._array
        )
        return found

    def unpack(self, node: Any) -> Any:
        if self.kept is None or self.packed is not None:
            return super().unpack(node)
        self.check(node)
        whole = self.whole()
        if whole is None:
            array = quietly(
                self.form.numbers or self.form.unpack, (self.kept, self.attrs), NO_ATTRS
            )
        elif self.output_nr is None:
            return whole
        else:
            array = whole._array
        alias = self.tensor._alias(self.tensor._edge if self.output_nr is None else self.edge(node))
        alias._array = array
        return alias

    def show(self, node: Any) -> Any:
        if self.kept is None or self.packed is not None:
            return super().show(node)
        self.check_version(node)
        whole = self.whole()
        if whole is None and not self.form.exact:
            raise self._gone(recorded(node))
        return self.unpack(node) if whole is None or self.output_nr is not None else whole

    def register_hooks(self, pack_hook: Hook, unpack_hook: Hook) -> None:
        self.keep_whole()
        if self.kept is not None and self.packed is None:
            raise self._gone(None)
        super().register_hooks(pack_hook, unpack_hook)

    def _gone(self, node: str | None) -> PackedValueError:
        return PackedValueError(shape_of(self.tensor), self.form.words, node)


def pack(
    plan: Plan, saved: Sequence[Any], outs: Sequence[Any], attrs: dict[str, Any]
) -> tuple[Any, ...]:
    """What a node has saved, with large values packed where the plan has packings for them."""
    values = list(saved)
    for position, form in plan.packings.items():
        value, save = values[position], plan.saves[position]
        if value.__class__ is SavedTensor:
            tensor = outs[save.index] if save.kind == OUTPUT else value.tensor
            if _worth_it(tensor, save.kind == OUTPUT):
                values[position] = SavedSmall(value, tensor, form, attrs)
    return tuple(values)


def _worth_it(tensor: Any, is_output: bool) -> bool:
    """Whether memory would be saved by it, and nothing is special about the tensor.

    Forward mode and other transforms, views that were written to, and leaves (which their
    `AccumulateGrad` keeps) are special.
    """
    array = tensor._array
    if array.__class__ is not np.ndarray or array.size < SMALLEST or running:
        return False
    meta = tensor._meta
    if meta is not None and (meta.tangents is not None or meta.inference):
        return False
    if is_output:
        return meta is None or meta.base is None
    return tensor._node is not None or not tensor._requires_grad


def keep(tensor: Any) -> SavedTensor:
    """What a node keeps of an input that it needs whole.

    Its recipe, if it has one (`compute_again`); else the tensor, and then a node that keeps it
    packed keeps the tensor as well.
    """
    meta, base = tensor._meta, tensor._meta.base
    above = None if base is None else base._meta
    recipe = meta.recipe or (None if above is None else above.recipe)
    saved = SavedTensor(tensor, tensor._counter.value)
    if recipe is not None and _can_follow(recipe, tensor) and _worth_it(tensor, False):
        return SavedSmall(saved, tensor, recipe.packing(), NO_ATTRS)
    for known in (meta, above):
        small = None if known is None or known.kept_small is None else known.kept_small()
        if small is not None:
            small.keep_whole()
    return saved


class Recipe(NamedTuple):
    """How a tensor is computed from values that the graph keeps anyway.

    Attributes:
        compute: gives the array, which is contiguous.
        size: its number of elements.
        version: that of the tensor, when this was true.
    """

    compute: Callable[[], np.ndarray]
    size: int
    version: int

    def packing(self) -> Packing:
        """The recipe in the place of a packed form, for the tensor and views of all of it."""
        return Packing(
            SHAPE.pack, lambda packed, attrs: self.compute().reshape(packed.shape),
            "computed again from what is kept", exact=True,
        )  # fmt: skip


def _can_follow(recipe: Recipe, tensor: Any) -> bool:
    array = tensor._array
    whole = array.size == recipe.size and array.flags.c_contiguous
    return whole and tensor._counter.value == recipe.version


def compute_again(tensor: Any, compute: Callable[[], np.ndarray]) -> None:
    """Let nodes that keep `tensor` (or a view of all of it) compute it again instead.

    `compute` uses what the graph keeps anyway, checked as when a node uses it, and gives the same
    to the bit.
    """
    if tensor._array.flags.c_contiguous:
        recipe = Recipe(compute, tensor._array.size, tensor._counter.value)
        tensor._ensure_meta().recipe = recipe
