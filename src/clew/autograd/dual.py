"""Dual tensors: levels of forward mode, and where the tangents of a tensor are kept.

Layer 4.  Written as PyTorch behaves, with one thing more: levels nest, see below.

Note [Levels of tangents]
    While a level of forward mode runs (see Note [Transforms]), a tensor may have a *tangent* at
    it: its derivative along the direction that was given.  The tangent is computed with the level
    taken off the stack, by the levels outside of it.  So it may itself have tangents, at those
    levels only, and is never mistaken for what it is a derivative of.  A level is never entered
    again, so a tensor that outlives its level is not mistaken either.

Note [Tangents of views]
    The tangent of a view is a view of the tangent of its base, of the same geometry.  So a write
    to one is seen by the other, as it is in the tensors themselves.  This needs a tangent to lie
    in memory as its tensor does; a tangent that does not is copied.  `make_dual` and `unpack_dual`
    return views that share no tangent with what they are views of.

Note [Tangents and cycles]
    A tangent is kept by its tensor, and the history of the tangent may keep that tensor.  Leaving
    a level takes its tangents away, so such a cycle does not outlive it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.autograd.modes import state
from clew.autograd.transforms import note_new, stack
from clew.dispatch import TENSORS, apply, apply_inplace
from clew.errors import LevelError, describe
from clew.op import REGISTRY
from clew.storage import (
    Geometry,
    address,
    element_strides,
    geometry,
    overlaps_itself,
    root,
    strided,
)
from clew.tensor import Tensor

# -- the tangents of a tensor


def levels() -> list[Any]:
    """The levels of forward mode whose tangents this thread carries on, outermost first."""
    if not state.now.carries_tangents or state.now.inference:
        return []
    return [level for level in stack.levels if level.forward]


def forget(level: Any) -> None:
    """Take away all tangents of a level."""
    for meta in list(level.holders):
        if meta.tangents is not None:
            meta.tangents.pop(level, None)
    level.holders.clear()


def carry_over(alias: Any, tensor: Any, change: Any = None) -> None:
    """Let a new alias of a tensor have its tangents at the levels that run, changed or not."""
    for level in levels():
        tangent = tangent_of(tensor, level)
        if tangent is not None:
            _keep(alias, level, tangent if change is None else change(tangent))


def tangent_of(tensor: Any, level: Any) -> Any:
    """The tangent of a tensor at a level, or None; that of a view comes from its base's."""
    meta = tensor._meta
    if meta is None:
        return None
    tangents = meta.tangents
    if tangents is not None and level in tangents:
        return tangents[level]
    base = base_of(tensor)
    if base is None or base._meta is None or base._meta.tangents is None:
        return None
    below = base._meta.tangents.get(level)
    if below is None:
        return None
    with level.lowered():
        found = _view_like(below, tensor, base)
    _keep(tensor, level, found)
    return found


def base_of(tensor: Any) -> Any:
    """The tensor that this one shares tangents with: the base of a view, up to a `make_dual`."""
    meta = tensor._meta
    if meta is None or meta.forward_root:
        return None
    return meta.base if meta.forward_base is None else meta.forward_base


def set_tangent(tensor: Any, level: Any, tangent: Any) -> None:
    """Give a tensor that has none its tangent.

    Raises:
        RuntimeError: it has another size.
    """
    if tangent._array.shape != tensor._array.shape:
        raise LevelError(
            "Trying to set a forward gradient that has a different size than that of the original "
            f"Tensor, this is not supported. Tensor is of size {list(tensor._array.shape)} while "
            f"the given forward gradient is of size {list(tangent._array.shape)}.",
            "give a tangent of the tensor's shape; tangent.expand_as(tensor) repeats one",
            ("tensor", describe(tensor)),
            ("tangent", describe(tangent)),
        )
    with level.lowered():
        _keep(tensor, level, _laid_out_like(tangent, tensor))


def write_tangent(tensor: Any, level: Any, tangent: Any) -> None:
    """The tangent of a tensor that was written to, see Note [Tangents of views].

    One that it had is overwritten.  Else it gets one, and if it is a view its base does too: zero
    where the view does not show.
    """
    known = tangent_of(tensor, level)
    with level.lowered():
        if known is not None:
            _copy_into(known, tangent)
            return
        base = base_of(tensor)
        if base is None:
            _keep(tensor, level, _laid_out_like(tangent, tensor))
            return
        same = tensor._array.shape == base._array.shape
        if (
            same
            and _lie_alike(tensor._array, base._array)
            and _lie_alike(tangent._array, base._array)
        ):
            for holder in (base, tensor):  # the view is all of its base
                _keep(holder, level, tangent)
            return
        whole = _zeros_like(base, tangent)
        _keep(base, level, whole)
        part = _view_like(whole, tensor, base)
        _copy_into(part, tangent)
        _keep(tensor, level, part)


def inherit_root(view: Any, source: Any) -> None:
    """Note for a new view which tensor it shares tangents with, if that is not its base."""
    above = source._meta
    if above is None:
        return
    if above.forward_root:
        view._meta.forward_base = source
    elif above.forward_base is not None:
        view._meta.forward_base = above.forward_base


def dual_at(level: Any, tensor: Any, tangent: Any) -> Any:
    """A view of a tensor, with a tangent at a level, which the tensor must not have."""
    dual = _alone(apply(REGISTRY["view"], (tensor,), {"size": tensor._array.shape}))
    if not state.now.inference:
        set_tangent(dual, level, tangent)
    return dual


def parts_at(level: Any, tensor: Any) -> tuple[Any, Any]:
    """A view of a tensor without its tangent at a level, and the tangent or None."""
    tangent = tangent_of(tensor, level) if level in levels() else None
    with level.lowered():
        primal = apply(REGISTRY["fw_primal"], (tensor,))
    return _alone(primal), tangent


def _alone(view: Any) -> Any:
    """A view that shares no tangent with what it is a view of; see Note [Tangents of views]."""
    meta = view._ensure_meta()
    meta.forward_root, meta.forward_base = True, None
    return view


def _keep(tensor: Any, level: Any, tangent: Any) -> None:
    meta = tensor._ensure_meta()
    if meta.tangents is None:
        meta.tangents = {}
    meta.tangents[level] = tangent
    level.holders.add(meta)


# -- how tangents lie in memory


def _laid_out_like(tangent: Any, tensor: Any) -> Any:
    """The tangent itself, if it lies in memory as the tensor does, else a copy that does."""
    if _lie_alike(tangent._array, tensor._array):
        return tangent
    return _copy_into(_zeros_like(tensor, tangent), tangent)


def _lie_alike(a: np.ndarray, b: np.ndarray) -> bool:
    if a.size == 0:
        return True
    if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
        one, other = element_strides(_one_example(a)), element_strides(_one_example(b))
        return all(n == 1 or s == t for n, s, t in zip(a.shape, one, other))
    if a.base is None and b.base is None and a.strides == b.strides and a.itemsize == b.itemsize:
        return True
    mine, other = geometry(a), geometry(b)
    return (
        all(n == 1 or s == t for n, s, t in zip(mine.size, mine.stride, other.stride))
        and mine.offset == other.offset
        and root(a).nbytes // a.itemsize == root(b).nbytes // b.itemsize
    )


def _zeros_like(tensor: Any, tangent: Any) -> Any:
    """Zeros that lie in memory as a tensor does, in a storage as large, to hold `tangent`."""
    array = tensor._array
    if not (isinstance(array, np.ndarray) and isinstance(tangent._array, np.ndarray)):
        return tangent.new_zeros(array.shape)
    place, kind = geometry(array), tangent._array.dtype
    if array.dtype.kind == "c" and kind.kind != "c":  # of a part of it
        kind = array.dtype
    if overlaps_itself(array):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a "
            "single memory location. Please clone() the tensor before performing the operation."
        )
    storage = np.zeros(max(root(array).nbytes // array.itemsize, 1), kind)
    found = strided(storage, Geometry(place.size, place.stride, place.offset))
    made = Tensor._from_array(found if array.size else np.zeros(array.shape, kind))
    note_new(made)
    return made


def _copy_into(target: Any, source: Any) -> Any:
    return apply_inplace(REGISTRY["copy"], target, (source,), {}, "copy_")


def _view_like(whole: Any, view: Any, base: Any) -> Any:
    """The part of a base's tangent that belongs to a view of it."""
    if not isinstance(view._array, np.ndarray):
        return _examples_like(whole, view._array, base._array)
    place, below = geometry(view._array), geometry(base._array)
    if view._array.dtype == base._array.dtype:
        size, stride, offset = place
        return TENSORS.as_strided(
            whole, size=size, stride=stride, storage_offset=offset, base=below
        )
    return TENSORS.reread(whole, view=place, base=below, kind=view.dtype)


def _examples_like(whole: Any, view: Any, base: Any) -> Any:
    """`_view_like` for examples of a `vmap`, each laid out as a contiguous tensor would be."""
    first, under, over = _one_example(view), _one_example(base), _one_example(whole._array)
    alike = under.dtype == first.dtype
    if not (alike and under.flags.c_contiguous and over.flags.c_contiguous):
        raise NotImplementedError(
            "clew cannot follow a write to a view inside of vmap, whose base is not contiguous "
            "or of another type. Compute the result without writing to a view, with torch.cat or "
            "torch.stack"
        )
    offset = (address(first) - address(under)) // under.itemsize if first.size else 0
    return TENSORS.as_strided(
        whole, size=first.shape, stride=element_strides(first), storage_offset=offset,
        base=Geometry(under.shape, element_strides(under), 0),
    )  # fmt: skip


def _one_example(array: Any) -> np.ndarray:
    """The first example's elements, of a tensor that `vmap` may have made many of."""
    if isinstance(array, np.ndarray):
        return array
    example = _one_example(array.value._array)
    return example if array.bdim is None else example[(slice(None),) * array.bdim + (0,)]
