"""Gathering and scattering along one dimension. Imports NumPy and sibling kernels.

An index has as many dimensions as the array and may be smaller in each but `dim`; element
(i, j, k) of the index names, for ``dim=1``, element (i, index[i, j, k], k) of the array. An empty
index may have any number of dimensions.
"""

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .compiled import twins
from .half import narrow, widen
from .rows import first_outside

Ints = tuple[int, ...]

_SMALL = 4096
"""Elements of an index from which twins are faster."""

_INDICES = (np.dtype(np.int64), np.dtype(np.int32))


def gather(x: NDArray, dim: int, index: NDArray) -> NDArray:
    """The elements of `x` that `index` names, in its shape.

    Raises RuntimeError, with PyTorch's text, for an index of another type, of a shape that does
    not fit, or that names what is not there.
    """
    _check_index("gather", index)
    if index.size == 0:
        return np.empty(index.shape, x.dtype)
    _check_dims("input", x, index)
    dim %= x.ndim or 1
    if index.shape != x.shape and not _fits(index.shape, x.shape, dim):
        d = next(d for d, (i, n) in enumerate(zip(index.shape, x.shape)) if i > n and d != dim)
        raise RuntimeError(
            f"Size does not match at dimension {d} expected index {list(index.shape)} to be no "
            f"larger than self {list(x.shape)} apart from dimension {dim}"
        )
    _check_inside(x.shape, dim, index)
    fast = _twins(x, dim, index)
    if fast is None:
        return x.reshape(-1).take(_places(x.shape, dim, index))
    out = np.empty(index.shape, x.dtype)
    places = _in_three(index.astype(np.int64, copy=False), dim)
    fast.gather(_in_three(out, dim), _in_three(x, dim), places)
    return out


def gather_backward(grad: NDArray, x_shape: Ints, dim: int, index: NDArray) -> NDArray:
    """Gradient of what was gathered from, shape `x_shape`.  The index has been checked by then."""
    source = widen(grad)
    out = np.zeros(x_shape, source.dtype)
    if index.size:
        _add(out, dim % max(1, out.ndim), index, source)
    return narrow(out, grad.dtype)


def take_along(x: NDArray, dim: int, index: NDArray) -> NDArray:
    """``np.take_along_axis``, in a third of its time for few elements: the index is right."""
    if index.size > _SMALL or not x.flags.c_contiguous:
        return np.take_along_axis(x, index, dim)
    return x.reshape(-1).take(_places(x.shape, dim, index))


def put_along(out: NDArray, dim: int, index: NDArray, values: NDArray) -> None:
    """``np.put_along_axis``, in a third of its time for few elements; `out` is contiguous."""
    if index.size > _SMALL:
        np.put_along_axis(out, index, values, dim)
    else:
        out.reshape(-1)[_places(out.shape, dim, index)] = values


def scatter(x: NDArray, dim: int, index: NDArray, src: NDArray | complex) -> NDArray:
    """`x` with `src`, an array or a number, where `index` points; the last of several stays.

    Raises RuntimeError, with PyTorch's text, for an index or source that does not fit.
    """
    out = np.array(x, order="C")
    array = src if isinstance(src, np.ndarray) else None
    dim = _check_scatter(x, dim, index, array)
    if array is None:
        out.reshape(-1)[_places(x.shape, dim, index)] = src
        return out
    fast = _twins(x, dim, index)
    if fast is None:
        out.reshape(-1)[_places(x.shape, dim, index)] = _corner(array, index)
    else:
        fast.scatter(*_in_threes(out, dim, index, array))
    return out


def scatter_add(x: NDArray, dim: int, index: NDArray, src: NDArray) -> NDArray:
    """`x` with the elements of `src` added where `index` points, in their order.

    Half precision adds up in float32. Raises RuntimeError, with PyTorch's text, for an index or
    source that does not fit.
    """
    dim = _check_scatter(x, dim, index, src)
    out = np.array(widen(x), order="C")
    _add(out, dim, index, widen(src))
    return narrow(out, x.dtype)


def _add(out: NDArray, dim: int, index: NDArray, src: NDArray) -> None:
    """Add the elements of `src` to `out`, which is contiguous, where `index` points."""
    fast = _twins(out, dim, index)
    if fast is None:
        places = _places(out.shape, dim, index)
        np.add.at(out.reshape(-1), places.reshape(-1), _corner(src, index).reshape(-1))
    else:
        fast.scatter_add(*_in_threes(out, dim, index, src))


def scatter_reduce(
    x: NDArray, dim: int, index: NDArray, src: NDArray, reduce: str, include_self: bool
) -> NDArray:
    """`x` combined with the elements of `src` where `index` points, by `reduce`.

    `reduce` is "sum", "prod", "mean", "amax" or "amin"; without `include_self` what stood in a
    place that receives something does not count. Half precision is combined in float32; an integer
    mean is rounded down. Raises PyTorch's RuntimeError for an index or source that does not fit.
    """
    places = _places(x.shape, _check_scatter(x, dim, index, src), index).reshape(-1)
    values = widen(_corner(src, index)).reshape(-1)
    out = np.array(widen(x), order="C")
    flat = out.reshape(-1)
    if not include_self:
        flat[places] = _neutral(reduce, flat.dtype)
    _COMBINE[reduce].at(flat, places, values)
    if reduce == "mean":
        counts = np.bincount(places, minlength=flat.size) + include_self
        divide = np.floor_divide if flat.dtype.kind in "iu" else np.true_divide
        flat[:] = divide(flat, np.maximum(counts, 1).astype(flat.dtype))
    return narrow(out, x.dtype)


_COMBINE = {
    "sum": np.add,
    "mean": np.add,
    "prod": np.multiply,
    "amax": np.maximum,
    "amin": np.minimum,
}


def _neutral(reduce: str, dtype: np.dtype) -> Any:
    """The value that changes nothing when combined with another."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if dtype.kind == "f":
        return -np.inf if reduce == "amax" else np.inf
    if dtype.kind == "b":
        return reduce == "amin"
    limits = np.iinfo(dtype)
    return limits.min if reduce == "amax" else limits.max


def _places(x_shape: Ints, dim: int, index: NDArray) -> NDArray:
    """Place in the flat array of each element that `index` names."""
    if index.size == 0:
        return np.empty(index.shape, np.int64)
    if index.ndim == 0:
        return index.astype(np.int64)
    stride = prod(x_shape[dim + 1 :])
    along = index if stride == 1 else index * np.int64(stride)
    if index.ndim == 1:
        return along
    others = (*index.shape[:dim], 1, *index.shape[dim + 1 :])
    starts = _starts if prod(others) <= _SMALL else _starts.__wrapped__
    return along + starts(x_shape, others)


@lru_cache(maxsize=64)
def _starts(x_shape: Ints, shape: Ints) -> NDArray:
    """Place in the flat array of each element of its first corner, of that shape.

    Small ones are kept: a training step asks for the same again and again.
    """
    places, stride = np.zeros(shape, np.int64), 1
    for d in reversed(range(len(shape))):
        places += np.arange(shape[d]).reshape(-1, *(1,) * (len(shape) - 1 - d)) * stride
        stride *= x_shape[d]
    return places


def _twins(x: NDArray, dim: int, index: NDArray) -> Any:
    """The compiled twins, for many elements of which `index` is smaller along `dim` only."""
    if index.size <= _SMALL or not index.ndim == x.ndim > 0:
        return None
    if any(i != n for d, (i, n) in enumerate(zip(index.shape, x.shape)) if d != dim):
        return None
    return twins("places", x.dtype)


def _in_threes(
    out: NDArray, dim: int, index: NDArray, src: NDArray
) -> tuple[NDArray, NDArray, NDArray]:
    """What the twins that scatter take."""
    places = _in_three(index.astype(np.int64, copy=False), dim)
    return _in_three(out, dim), places, _in_three(_corner(src, index), dim)


def _in_three(x: NDArray, dim: int) -> NDArray:
    """`x`, contiguous, with `dim` in the middle of three dimensions."""
    shape = prod(x.shape[:dim]), x.shape[dim], prod(x.shape[dim + 1 :])
    return np.ascontiguousarray(x).reshape(shape)


def _corner(src: NDArray, index: NDArray) -> NDArray:
    """The part of `src` that `index` covers."""
    if src.shape == index.shape:
        return src
    if index.size == 0:
        return np.empty(index.shape, src.dtype)
    if src.ndim != index.ndim:  # one has no dimension, the other one
        src = src.reshape(-1)[: index.size].reshape(index.shape)
    return src[tuple(slice(n) for n in index.shape)]


def _check_inside(x_shape: Ints, dim: int, index: NDArray) -> None:
    size = x_shape[dim] if x_shape else 1
    outside = first_outside(index, size)
    if outside is not None:
        raise RuntimeError(f"index {outside} is out of bounds for dimension {dim} with size {size}")


def _check_scatter(x: NDArray, dim: int, index: NDArray, src: NDArray | None) -> int:
    """Check all arguments, and return `dim` from the front."""
    _check_index("scatter", index)
    if src is not None and src.dtype != x.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    if index.size == 0:
        return 0
    _check_dims("self", x, index)
    dim %= max(1, x.ndim)
    fits = _fits(index.shape, x.shape, dim)
    if src is not None:
        fits = fits and _covers(src.shape, index.shape or (1,))
        _check_dims("src", src, index)
    if not fits:
        behind = "" if src is None else f" and to be no larger size than src {list(src.shape)}"
        raise RuntimeError(
            f"Expected index {list(index.shape)} to be no larger than self {list(x.shape)} apart "
            f"from dimension {dim}{behind}"
        )
    _check_inside(x.shape, dim, index)
    return dim


def _covers(shape: Ints, index_shape: Ints) -> bool:
    """Whether a source has an element for each of the index.

    Raises:
        IndexError: the index has more dimensions, and is not too large in those before.
    """
    if not shape:
        return all(n <= 1 for n in index_shape)
    for d, n in enumerate(index_shape):
        if d == len(shape):
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-d}, {d - 1}], but got {d})"
            )
        if n > shape[d]:
            return False
    return True


def _fits(index_shape: Ints, shape: Ints, free: int | None) -> bool:
    """Whether an index is no larger than the array in any dimension but `free`."""
    return all(i <= n or d == free for d, (i, n) in enumerate(zip(index_shape, shape)))


def _check_index(name: str, index: NDArray) -> None:
    if index.size and index.dtype not in _INDICES:
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")


def _check_dims(name: str, array: NDArray, index: NDArray) -> None:
    if (array.ndim or 1) != (index.ndim or 1):
        raise RuntimeError(f"Index tensor must have the same number of dimensions as {name} tensor")
