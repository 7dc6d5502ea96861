"""Any view at all, by its geometry, and the gradients of writes through views.

See Note [Views] in ``autograd/views.py``.  `kind` is the type of the result's elements where that
is another than the input's: a complex tensor seen as the real numbers that it is made of, or the
other way round.  A gradient lies in memory like its tensor, so it is read anew in the same way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.op import op
from clew.ops.rules import numpy_dtype
from clew.storage import Geometry, contiguous_strides, extent, flat_storage, strided


@op("as_strided(self; size, stride, storage_offset, base)", view=True, publish=(), jvp="linear")
def as_strided(x: Any, *, size: Any, stride: Any, storage_offset: int, base: Geometry) -> Any:
    """A view of the storage of `self` at a geometry; `base` is the geometry of `self`."""
    target = Geometry(tuple(size), tuple(stride), storage_offset)
    flat = flat_storage(x)
    refuse_outside(target, flat)
    return strided(flat, target)


def refuse_outside(place: Geometry, flat: np.ndarray) -> None:
    """Raise PyTorch's error if a geometry reaches beyond the elements of a storage."""
    if extent(place) > flat.size:
        raise RuntimeError(
            f"setStorage: sizes {list(place.size)}, strides {list(place.stride)}, storage offset "
            f"{place.offset}, and itemsize {flat.itemsize} requiring a storage size of "
            f"{extent(place) * flat.itemsize} are out of bounds for storage of size {flat.nbytes}"
        )


@as_strided.grad("self")
def _(F: Any, grad: Any, *, size: Any, stride: Any, storage_offset: int, base: Any) -> Any:
    if 0 in grad.shape:  # PyTorch does not record this either
        return F.full(grad, size=base.size, value=0)
    view = Geometry(tuple(size), tuple(stride), storage_offset)
    return F.add_strided(grad, view=view, base=base)


@op("reread(self; view, base, kind)", view=True, publish=(), node="AsStridedBackward0",
    jvp="linear")  # fmt: skip
def reread(x: Any, *, view: Geometry, base: Geometry, kind: Any) -> Any:
    """`as_strided` of the storage read as elements of another type."""
    return strided(flat_storage(x).view(numpy_dtype(kind)), view)


@reread.grad("self")
def _(F: Any, grad: Any, self_dtype: Any, *, view: Geometry, base: Geometry, kind: Any) -> Any:
    return F.add_strided(grad, view=view, base=base, kind=self_dtype)


def _laid_out(x: Any, like: Geometry, room: Geometry, kind: Any) -> tuple[np.ndarray, np.ndarray]:
    """A flat buffer that holds `x` at the geometry `like`, with room for another; as `kind` too."""
    kind = x.dtype if kind is None else numpy_dtype(kind)
    nbytes = max(extent(like) * x.itemsize, extent(room) * kind.itemsize)
    flat = np.zeros(-(-nbytes // x.itemsize), x.dtype)
    strided(flat, like)[...] = x
    return flat, flat.view(kind)


@op("take_strided(self; view, base, kind=None)", publish=(), jvp="linear")
def take_strided(x: Any, *, view: Geometry, base: Geometry, kind: Any = None) -> Any:
    """What a view of geometry `view` shows of `self`, were `self` laid out as `base`."""
    if kind is None and _is_dense(base) and base.offset == 0:
        return strided(np.ascontiguousarray(x).reshape(-1), view).copy()
    return strided(_laid_out(x, base, view, kind)[1], view).copy()


@take_strided.grad("self")
def _(F: Any, grad: Any, self_dtype: Any, *, view: Geometry, base: Geometry, kind: Any) -> Any:
    return F.add_strided(grad, view=view, base=base, kind=None if kind is None else self_dtype)


@op("add_strided(self; view, base, kind=None)", publish=(), jvp="linear")
def add_strided(x: Any, *, view: Geometry, base: Geometry, kind: Any = None) -> Any:
    """Zeros laid out as `base` with `self` added where `view` shows: the adjoint of the above."""
    if x.size == 0:
        return np.zeros(base.size, x.dtype if kind is None else numpy_dtype(kind))
    nothing = np.zeros(base.size, x.dtype if kind is None else numpy_dtype(kind))
    flat, seen = _laid_out(nothing, base, view, x.dtype)
    places = strided(np.arange(seen.size), view)
    np.add.at(seen, places.reshape(-1), np.asarray(x).reshape(-1))
    if not _is_dense(base):
        holders = np.bincount(strided(np.arange(flat.size), base).reshape(-1), minlength=1)
        if holders.max() > 1:  # of what several elements share, each has a part
            flat[: holders.size] /= np.maximum(holders, 1).astype(flat.dtype)
    return strided(flat, base)


@add_strided.grad("self")
def _(F: Any, grad: Any, self_dtype: Any, *, view: Geometry, base: Geometry, kind: Any) -> Any:
    return F.take_strided(grad, view=view, base=base, kind=None if kind is None else self_dtype)


@op("put_strided(self, other=None; view, base, kind=None)", publish=(), jvp="linear")
def put_strided(x: Any, y: Any, *, view: Geometry, base: Geometry, kind: Any = None) -> Any:
    """A copy of `self`, laid out as `base`, with `other` (None: zeros) where `view` shows."""
    flat, seen = _laid_out(x, base, view, kind)
    strided(seen, view)[...] = 0 if y is None else y
    return strided(flat, base)


@put_strided.grad("self")
def _(F: Any, grad: Any, *, view: Geometry, base: Geometry, kind: Any) -> Any:
    return F.put_strided(grad, None, view=view, base=base, kind=kind)


@put_strided.grad("other")
def _(F: Any, grad: Any, *, view: Geometry, base: Geometry, kind: Any) -> Any:
    return F.take_strided(grad, view=view, base=base, kind=kind)


def _is_dense(place: Geometry) -> bool:
    return place.stride == contiguous_strides(place.size)
