"""Adding slices that integers name: index_add and the gradient of an embedding.

Imports NumPy, sibling kernels and twins, dtype names. Repeated indices add up in their order, as in
PyTorch.
"""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..dtypes import scalar_name
from .compiled import twins
from .half import narrow, widen

# NumPy's add.at is fast in one dimension only, so slices are added element by element through the
# flat array; from this length on a loop over slices costs less than indices of elements (measured).
LONG = 512
# Indices of elements are made for about this many at a time.
BLOCK = 1 << 16
# From so many elements on a twin is faster.
SMALL = 4096


def add_slices(out: NDArray, dim: int, index: NDArray, source: NDArray) -> None:
    """``out[..., index[i], ...] += source[..., i, ...]`` along `dim` for each i, in place.

    `out` is contiguous, `index` a vector of numbers from 0 to below the size of `dim`.
    """
    size, length = out.shape[dim], prod(out.shape[dim + 1 :])
    first = (np.arange(prod(out.shape[:dim]))[:, None] * size + index).reshape(-1)
    slices, source = out.reshape(-1, max(1, length)), source.reshape(len(first), length)
    fast = twins("places", out.dtype) if source.size > SMALL else None
    if fast is not None:
        first, source = np.ascontiguousarray(first, np.int64), np.ascontiguousarray(source)
        fast.add_rows(slices, first, source)
        return
    if length >= LONG:
        for row, values in zip(first.tolist(), source):
            slices[row] += values
        return
    flat, step = out.reshape(-1), max(1, BLOCK // max(1, length))
    for start in range(0, len(first), step):
        part = slice(start, start + step)
        elements = first[part, None] * length + np.arange(length)
        np.add.at(flat, elements.reshape(-1), source[part].reshape(-1))


def take_slices(x: NDArray, dim: int, index: NDArray) -> NDArray:
    """The slices of `x` along `dim` that `index` names, a vector of numbers that are there."""
    shape = (*x.shape[:dim], len(index), *x.shape[dim + 1 :])
    # Long runs of memory NumPy copies as fast.
    fast = twins("places", x.dtype) if dim and prod(shape) > SMALL else None
    if fast is None:
        return x.take(index, axis=dim)
    before, behind = prod(x.shape[:dim]), prod(x.shape[dim + 1 :])
    out = np.empty((before, len(index), behind), x.dtype)
    lines = np.ascontiguousarray(x).reshape(before, x.shape[dim], behind)
    fast.take(out, lines, np.ascontiguousarray(index, np.int64))
    return out.reshape(shape)


def index_add(x: NDArray, dim: int, index: NDArray, source: NDArray) -> NDArray:
    """`x` with slice i of `source` added to slice ``index[i]``, along `dim`.

    Raises PyTorch's errors for shapes that do not fit and for an index outside of `dim`.
    """
    _check_index_add(x, dim, index, source)
    if not x.size:
        return x.copy()
    out = np.array(widen(x), order="C")
    lines = out.reshape(x.shape or (1,))
    add_slices(lines, dim % lines.ndim, index.reshape(-1), widen(source))
    return narrow(out, x.dtype)


def embedding_backward(
    grad: NDArray, indices: NDArray, rows: int, padding_idx: int, scale_grad_by_freq: bool
) -> NDArray:
    """Gradient of the table (rows, D) from that of the rows taken, (*indices.shape, D).

    Row `padding_idx` gets none (-1: every row gets its own). With `scale_grad_by_freq` a row's
    gradient is divided by how often the row was taken. Half precision adds up as it is, which is
    what PyTorch does here.
    """
    length = grad.shape[-1]
    index, source = indices.reshape(-1), grad.reshape(indices.size, length)
    out = np.zeros((rows, length), source.dtype)
    if padding_idx >= 0:
        kept = index != padding_idx
        index, source = index[kept], source[kept]
    add_slices(out, 0, index, source)
    if scale_grad_by_freq:
        counts = np.bincount(index, minlength=rows)
        out /= np.maximum(counts, 1).astype(out.dtype)[:, None]
    return out


def _check_index_add(x: NDArray, dim: int, index: NDArray, source: NDArray) -> None:
    if index.ndim > 1:
        raise IndexError(
            f"index_add_(): Index is supposed to be a vector, but got dim: {index.ndim} with "
            f"type: {scalar_name(index.dtype)} and size: {list(index.shape)}"
        )
    if index.dtype not in (np.int32, np.int64):
        raise RuntimeError(
            "index_add_(): Expected dtype int32/int64 for index but got: "
            f"{scalar_name(index.dtype)}"
        )
    if x.dtype != source.dtype:
        raise RuntimeError(
            f"index_add_(): self ({scalar_name(x.dtype)}) and source "
            f"({scalar_name(source.dtype)}) must have the same scalar type"
        )
    dim %= max(1, x.ndim)
    if dim and dim >= source.ndim:
        raise RuntimeError(
            f"index_add_(): Indexing dim {dim} is out of bounds of the source tensor with dim "
            f"{source.ndim}"
        )
    n = source.shape[dim] if source.ndim else 1
    if index.size != n:
        raise RuntimeError(
            f"index_add_(): Number of indices ({index.size}) should be equal to "
            f"source.size(dim): ({n}), for dim: {dim}"
        )
    others = [d for d in range(x.ndim) if d != dim]
    if x.ndim != source.ndim or any(x.shape[d] != source.shape[d] for d in others):
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified "
            f"dimension. Got self.shape = {list(x.shape)} source.shape = {list(source.shape)}"
        )
    size = x.shape[dim] if x.ndim else 1
    outside = first_outside(index, size) if x.size else None
    if outside is not None and x.ndim > 1:
        raise RuntimeError(f"index {outside} is out of bounds for dimension {dim} with size {size}")
    if outside is not None:
        raise IndexError("index out of range in self")


def first_outside(index: NDArray, size: int) -> int | None:
    """The first number of an index of int32 or int64 that is none of 0 to `size` - 1, or None."""
    # Without a sign, a negative number is larger than any size.
    unsigned: Any = index.view(np.uint32 if index.itemsize == 4 else np.uint64)
    if index.size == 0 or np.maximum.reduce(unsigned, None) < size:
        return None
    return int(index[unsigned >= size][0])
