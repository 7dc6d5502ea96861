"""Copies of what views show, where one name covers several ops; the others follow from the ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clew import dtypes
from clew.dispatch import apply
from clew.functions.shape import narrow, sizes
from clew.op import REGISTRY
from clew.publish import composite
from clew.storage import geometry
from clew.tensor import Tensor


@composite(method=False, out=True)
def view_copy(self: Tensor, *size: Any, dtype: Any = None) -> Any:
    """A copy under another shape, or read as another type."""
    kind = dtype or (size[0] if size and isinstance(size[0], dtypes.dtype) else None)
    if kind is not None:
        return self.view(kind).clone()
    return apply(REGISTRY["view_copy"], (self,), {"size": sizes(size)})


@composite(method=False, out=True)
def squeeze_copy(self: Tensor, dim: Any = None) -> Any:
    """A copy without the dimensions of size one: all, or those named."""
    if dim is None:
        return apply(REGISTRY["squeeze_all_copy"], (self,))
    name = "squeeze_dims_copy" if isinstance(dim, Sequence) else "squeeze_dim_copy"
    return apply(REGISTRY[name], (self,), {"dim": dim})


@composite(method=False, out=True)
def as_strided_copy(self: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """A copy of the storage's elements at the given size, strides and offset."""
    base = geometry(self._array)
    attrs = {
        "size": tuple(size), "stride": tuple(stride),
        "storage_offset": base.offset if storage_offset is None else storage_offset, "base": base,
    }  # fmt: skip
    return apply(REGISTRY["as_strided_copy"], (self,), attrs)


@composite(method=False, out=True)
def split_copy(self: Tensor, split_size: int, dim: int = 0) -> Any:
    """Copies of pieces of `split_size` along a dimension."""
    return apply(REGISTRY["split_copy"], (self,), {"split_size": split_size, "dim": dim})


@composite(out=True)
def narrow_copy(self: Tensor, dim: int, start: int, length: int) -> Any:
    """A copy of ``length`` slices along `dim`, from `start`.

    Raises:
        RuntimeError: a 0-d tensor, a negative length, or more than there is.
        IndexError: `start` lies outside of the dimension.
    """
    narrow(self.detach(), dim, start, length)  # refuses what is not there
    attrs = {"dim": dim, "start": start, "length": length}
    return apply(REGISTRY["narrow_copy"], (self,), attrs)
