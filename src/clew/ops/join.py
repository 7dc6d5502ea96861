"""Joining tensors, taking them apart, and repeating or reordering their slices."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.dtypes import scalar_name
from clew.op import op
from clew.ops.layout import empty_alike
from clew.ops.rules import wrap_dim
from clew.promotion import to_common

# -- joining


def _checked(arrays: tuple[Any, ...]) -> Any:
    """The operands, all of one type.

    Raises:
        TypeError: one is no tensor.
    """
    kind = getattr(arrays[0], "dtype", None)
    if all(x.__class__ is np.ndarray and x.dtype is kind for x in arrays):
        return arrays
    arrays = tuple([np.asarray(x) if isinstance(x, np.generic) else x for x in arrays])
    for i, x in enumerate(arrays):
        if x.__class__ is not np.ndarray:
            raise TypeError(
                f"expected Tensor as element {i} in argument 0, but got {type(x).__name__}"
            )
    kind = arrays[0].dtype
    return arrays if all(x.dtype == kind for x in arrays) else to_common(list(arrays))


def _concatenated(arrays: Any, dim: int) -> np.ndarray:
    out = np.concatenate(arrays, dim)
    return out if out.flags.c_contiguous else np.ascontiguousarray(out)


@op("cat(*tensors; dim=0)", publish=("function",), aliases=("concat", "concatenate"), jvp="linear")
def cat(*arrays: Any, dim: int) -> Any:
    """Join along an existing dimension.  Tensors of shape ``(0,)`` are left out.

    Raises:
        ValueError: there is nothing to join.
        RuntimeError: the other sizes do not agree.
    """
    if not arrays:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    arrays = _checked(arrays)
    shapes = [x.shape for x in arrays]
    if () in shapes:
        raise RuntimeError(
            f"zero-dimensional tensor (at position {shapes.index(())}) cannot be concatenated"
        )
    joined = [x for x in arrays if x.shape != (0,)] if (0,) in shapes else arrays
    if not joined:
        return np.zeros((0,), arrays[0].dtype)
    dim = wrap_dim(dim, joined[0].ndim)
    try:
        return _concatenated(joined, dim)
    except ValueError:
        raise _sizes_disagree(arrays, dim) from None


def _sizes_disagree(arrays: Any, dim: int) -> RuntimeError:
    first = next(x for x in arrays if x.shape != (0,))
    for i, x in enumerate(arrays):
        if x.shape == (0,):
            continue
        if x.ndim != first.ndim:
            return RuntimeError(
                f"Tensors must have same number of dimensions: got {first.ndim} and {x.ndim}"
            )
        for d, (n, m) in enumerate(zip(first.shape, x.shape)):
            if n != m and d != dim:
                return RuntimeError(
                    f"Sizes of tensors must match except in dimension {dim}. Expected size {n} "
                    f"but got size {m} for tensor number {i} in the list."
                )
    raise AssertionError("np.concatenate refused arrays that fit")


@cat.grad("tensors")
def _(F: Any, grad: Any, tensors_shape: Any, *, dim: int, need: Any) -> Any:
    parts: list[Any] = []
    start = 0
    for wanted, shape in zip(need, tensors_shape):
        if shape == (0,):
            parts.append(F.full(grad, size=(0,), value=0) if wanted else None)
            continue
        dim = wrap_dim(dim, len(shape))
        end = start + shape[dim]
        parts.append(F.slice(grad, dim=dim, start=start, end=end, step=1) if wanted else None)
        start = end
    return parts


@op("stack(*tensors; dim=0)", publish=("function",), jvp="linear")
def stack(*arrays: Any, dim: int) -> Any:
    """Join along a new dimension.

    Raises:
        RuntimeError: there is nothing to join, or the sizes do not agree.
    """
    if not arrays:
        raise RuntimeError("stack expects a non-empty TensorList")
    arrays = _checked(arrays)
    shape = arrays[0].shape
    for i, x in enumerate(arrays):
        if x.shape != shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 "
                f"and {list(x.shape)} at entry {i}"
            )
    dim = wrap_dim(dim, len(shape) + 1)
    new = (*(slice(None),) * dim, None)
    return _concatenated([x[new] for x in arrays], dim)


@stack.grad("tensors")
def _(F: Any, grad: Any, *, dim: int, need: Any) -> Any:
    return [F.select(grad, dim, i) if wanted else None for i, wanted in enumerate(need)]


@op("block_diag(*tensors)", publish=(), jvp="linear")
def block_diag(*arrays: Any) -> Any:
    """A matrix with the given matrices along its diagonal; vectors are rows."""
    arrays = _checked(arrays)
    blocks = [np.atleast_2d(x) for x in arrays]
    size = (sum(b.shape[0] for b in blocks), sum(b.shape[1] for b in blocks))
    out = np.zeros(size, arrays[0].dtype)
    for block, rows, columns in _places([b.shape for b in blocks]):
        out[rows, columns] = blocks[block]
    return out


def _places(shapes: list[tuple[int, ...]]) -> list[tuple[int, slice, slice]]:
    """Where each block of a block diagonal matrix stands."""
    places = []
    row = column = 0
    for i, (height, width) in enumerate(shapes):
        places.append((i, slice(row, row + height), slice(column, column + width)))
        row, column = row + height, column + width
    return places


@block_diag.grad("tensors")
def _(F: Any, grad: Any, tensors_shape: Any, *, need: Any) -> Any:
    parts: list[Any] = [None] * len(need)
    shapes = [(1,) * (2 - len(s)) + s for s in tensors_shape]
    for i, rows, columns in _places(shapes):
        if need[i]:
            part = F.slice(grad, dim=0, start=rows.start, end=rows.stop, step=1)
            part = F.slice(part, dim=1, start=columns.start, end=columns.stop, step=1)
            parts[i] = F.reshape(part, tensors_shape[i])
    return parts


# -- taking apart


def _pieces(x: Any, sizes: Any, dim: int) -> tuple[Any, ...]:
    before = (slice(None),) * dim
    pieces = []
    start = 0
    for n in sizes:
        pieces.append(x[(*before, slice(start, start + n))])
        start += n
    return tuple(pieces)


def _equal_sizes(x: Any, split_size: int, dim: int) -> list[int]:
    if x.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if split_size < 0:
        raise RuntimeError(
            f"split expects split_size be non-negative, but got split_size={split_size}"
        )
    n = x.shape[dim]
    if split_size == 0:
        if n:
            raise RuntimeError(
                f"split_size can only be 0 if dimension size is 0, but got dimension size of {n}"
            )
        return [0]
    sizes = [split_size] * (n // split_size)
    if n % split_size or not n:
        sizes.append(n % split_size)
    return sizes


def _check_sizes(x: Any, sizes: Any, dim: int) -> None:
    if x.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if any(n < 0 for n in sizes):
        raise RuntimeError(
            "split_with_sizes expects split_sizes have only non-negative entries, but got "
            f"split_sizes={list(sizes)}"
        )
    n = x.shape[dim]
    if sum(sizes) != n:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size at "
            f"dimension {dim}), but got split_sizes={list(sizes)}"
        )


def _rejoined(F: Any, grads: Any, sizes: Any, shape: tuple[int, ...], dim: int) -> Any:
    """The gradient of what was split: the pieces' gradients, zeros where there is none."""
    known = next(g for g in grads if g is not None)
    pieces = [
        F.full(known, size=(*shape[:dim], n, *shape[dim + 1 :]), value=0) if g is None else g
        for g, n in zip(grads, sizes)
    ]
    return F.cat(pieces, dim)


def _declare_splits(prefix: str, view: bool) -> None:
    """`split` and `split_with_sizes`: views, or (named ``unsafe_``) not tracked as views."""

    def split(x: Any, *, split_size: int, dim: int) -> Any:
        dim = wrap_dim(dim, x.ndim)
        return _pieces(x, _equal_sizes(x, split_size, dim), dim)

    def of_split(F: Any, grads: Any, self_shape: Any, *, split_size: int, dim: int) -> Any:
        dim = wrap_dim(dim, len(self_shape))
        n = self_shape[dim]
        sizes = [min(split_size, n - i * split_size) for i in range(len(grads))]
        return _rejoined(F, grads, sizes, self_shape, dim)

    def split_with_sizes(x: Any, *, split_sizes: Any, dim: int) -> Any:
        dim = wrap_dim(dim, x.ndim)
        _check_sizes(x, split_sizes, dim)
        return _pieces(x, split_sizes, dim)

    def of_sizes(F: Any, grads: Any, self_shape: Any, *, split_sizes: Any, dim: int) -> Any:
        return _rejoined(F, grads, split_sizes, self_shape, wrap_dim(dim, len(self_shape)))

    op(
        f"{prefix}split(self; split_size, dim=0)", split, view=view, publish=(), jvp="linear",
        self=of_split, doc="Pieces of `split_size` along `dim`; the last may be smaller.",
    )  # fmt: skip
    op(
        f"{prefix}split_with_sizes(self; split_sizes, dim=0)", split_with_sizes, view=view,
        jvp="linear", self=of_sizes, doc="Pieces of the given sizes along `dim`.",
    )  # fmt: skip


_declare_splits("", view=True)
_declare_splits("unsafe_", view=False)


@op("unbind(self; dim=0)", view=True, jvp="linear")
def unbind(x: Any, *, dim: int) -> Any:
    """All slices along `dim`, without that dimension.

    Raises:
        IndexError: the tensor has no dimension, or not this one.
    """
    if x.ndim == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    before = (slice(None),) * wrap_dim(dim, x.ndim)
    return tuple([x[(*before, i, ...)] for i in range(x.shape[len(before)])])


@unbind.grad("self")
def _(F: Any, grads: Any, *, dim: int) -> Any:
    known = next(g for g in grads if g is not None)
    zero = None if all(g is not None for g in grads) else F.zeros_like(known)
    return F.stack([zero if g is None else g for g in grads], dim)


# -- reordering


@op("flip(self; *dims)", jvp="linear")
def flip(x: Any, *, dims: Any) -> Any:
    """The order of the slices along `dims` turned round (a copy).

    Raises:
        RuntimeError: a dimension is named twice.
    """
    axes = tuple(wrap_dim(d, x.ndim) for d in dims)
    for i, d in enumerate(axes):
        if d in axes[:i]:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    flipped = empty_alike(x)
    flipped[...] = np.flip(x, axes if x.ndim else ())
    return flipped


@flip.grad("self")
def _(F: Any, grad: Any, *, dims: Any) -> Any:
    return F.flip(grad, dims)


@op("roll(self; shifts, dims=())", jvp="linear")
def roll(x: Any, *, shifts: Any, dims: Any) -> Any:
    """Move the slices along `dims` by `shifts`; what falls off the end comes back at the start.

    Without `dims` the elements are rolled in one row.

    Raises:
        RuntimeError: there is not one shift for each dimension.
    """
    shifts, dims = _as_tuple(shifts), _as_tuple(dims)
    if not shifts:
        raise RuntimeError("`shifts` required")
    if len(shifts) != len(dims) and (dims or len(shifts) > 1):
        raise RuntimeError(
            f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}"
        )
    if len(dims) == 1 and not x.size:
        return x.copy()  # PyTorch does not look at the dimension then
    if dims and x.ndim == 0:
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    axes = tuple(wrap_dim(d, x.ndim) for d in dims)
    rolled = np.roll(x, shifts, axes) if axes else np.roll(x, shifts[0])
    return rolled if rolled.flags.c_contiguous else np.ascontiguousarray(rolled)


@roll.grad("self")
def _(F: Any, grad: Any, *, shifts: Any, dims: Any) -> Any:
    return F.roll(grad, tuple(-s for s in _as_tuple(shifts)), dims)


def _as_tuple(value: Any) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


@op("rot90(self; k=1, dims=(0, 1))", jvp="linear")
def rot90(x: Any, *, k: int, dims: Any) -> Any:
    """Rotate by `k` quarter turns in the plane of two dimensions, from the first to the second.

    Raises:
        RuntimeError: the tensor has fewer than two dimensions, or `dims` are not two.
    """
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if x.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {x.ndim}")
    first, second = (wrap_dim(d, x.ndim) for d in dims)
    if first == second:
        raise RuntimeError(
            f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}"
        )
    turns = k % 4
    flipped = np.flip(x, {0: (), 1: (second,), 2: (first, second), 3: (first,)}[turns])
    flipped = flipped.copy(order="K")
    return flipped.swapaxes(first, second) if turns % 2 else flipped


@rot90.grad("self")
def _(F: Any, grad: Any, *, k: int, dims: Any) -> Any:
    return F.rot90(grad, -k, dims)


# -- repeating


@op("repeat(self; *repeats)", publish=("method",), jvp="linear")
def repeat(x: Any, *, repeats: Any) -> Any:
    """The tensor, copied `repeats` times along each dimension; new dimensions come first.

    Raises:
        RuntimeError: a number of repeats is missing or negative.
    """
    if len(repeats) < x.ndim:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
            "tensor"
        )
    shape = (1,) * (len(repeats) - x.ndim) + x.shape
    size = [r * n for r, n in zip(repeats, shape)]
    for n in size:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {size}")
    return np.tile(x, repeats)


@repeat.grad("self")
def _(F: Any, grad: Any, self_shape: Any, *, repeats: Any) -> Any:
    shape = (1,) * (len(repeats) - len(self_shape)) + tuple(self_shape)
    if 0 in repeats:
        return F.full(grad, size=self_shape, value=0)
    apart = F.reshape(grad, tuple(n for pair in zip(repeats, shape) for n in pair))
    if not repeats:
        return apart
    total = F.sum(apart, tuple(range(0, 2 * len(repeats), 2)))
    return total if len(repeats) == len(self_shape) else F.reshape(total, self_shape)


def repeated_index(repeats: Any, size: int | None) -> np.ndarray:
    """Each position, as often as `repeats` says: what `repeat_interleave` selects.

    Raises:
        RuntimeError: `repeats` is no vector, negative, or does not sum to `size`.
    """
    if repeats.ndim != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if repeats.dtype not in (np.int64, np.int32):
        raise NotImplementedError(
            f"\"repeat_interleave_cpu\" not implemented for '{scalar_name(repeats.dtype)}'"
        )
    if np.any(repeats < 0):
        raise RuntimeError("repeats can not be negative")
    if size is not None and size != repeats.sum():
        raise RuntimeError("allocated size does not match required size")
    return np.repeat(np.arange(repeats.size, dtype=repeats.dtype), repeats)
