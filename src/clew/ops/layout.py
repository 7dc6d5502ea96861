"""How the result of an index lies in memory: as PyTorch's would.

PyTorch orders the dimensions of a result by the strides of what it is read from: here the indexed
tensor, in which the indexed dimensions say nothing (stride 0), then the index tensors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from clew.dtypes import result_type
from clew.storage import contiguous_strides

Ints = tuple[int, ...]


def contiguous(forward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a forward whose results lie in order in PyTorch, whatever the operands do."""

    @functools.wraps(forward)
    def whole(*arrays: Any, **attrs: Any) -> Any:
        results = forward(*arrays, **attrs)
        if isinstance(results, tuple):
            return tuple([np.asarray(r, order="C") for r in results])
        return np.asarray(results, order="C")

    return whole


def laid_out_like(x: np.ndarray, result: np.ndarray) -> np.ndarray:
    """`result`, of the shape of `x`, with its dimensions in memory in the order of those of `x`."""
    if x.flags.c_contiguous or 0 in x.strides:
        return np.asarray(result, order="C")
    out = np.empty_like(x, result.dtype)
    out[...] = result
    return out


def in_order_of_operands(result: np.ndarray, operands: Sequence[Any]) -> np.ndarray:
    """The result of an elementwise operation, laid out as PyTorch lays it out.

    PyTorch takes the first operand that has an opinion on the order of two dimensions; NumPy keeps
    the order of indices as soon as one of the operands has it.  An operand of another type than the
    others is copied first, after which also its expanded dimensions have an opinion.
    """
    if result.__class__ is not np.ndarray:
        return np.asarray(result)
    for x in operands:
        if x.__class__ is np.ndarray and not x.flags.c_contiguous:
            break
    else:
        return result
    places: list[tuple[Ints, Ints]] = []
    for x in operands:
        if x.__class__ is np.ndarray and (strides := x.strides):
            if 0 in strides and x.dtype != _computed_in(result, operands):
                strides = empty_alike(x).strides
            places.append((x.shape, strides))
    strides = _strides(result.shape, result.itemsize, tuple(places))
    if result.strides == strides:
        return result
    dense: np.ndarray = np.ndarray(result.shape, result.dtype, strides=strides)
    dense[...] = result
    return dense


def _computed_in(result: np.ndarray, operands: Sequence[Any]) -> Any:
    """The type that the operands are brought to."""
    if result.dtype.kind != "b":
        return result.dtype
    return result_type([x for x in operands if x.__class__ is np.ndarray and x.ndim]).numpy


@functools.lru_cache(maxsize=1024)
def _strides(shape: Ints, itemsize: int, places: tuple[tuple[Ints, Ints], ...]) -> Ints:
    """The strides of a result of the shape `shape`, from the shapes and strides of its operands:
    a program has few of either, again and again."""
    axes = slowest_first(shape, [_spread(*place, shape) for place in places])
    steps = contiguous_strides(tuple([shape[axis] for axis in axes]))
    return tuple([steps[i] * itemsize for i in _inverse(axes)])


def _spread(own: Ints, strides: Ints, shape: Ints) -> Ints:
    """The strides of an operand of the shape `own` in the axes of a result of the shape `shape`."""
    missing = len(shape) - len(own)
    there = [s if n == m else 0 for n, m, s in zip(own, shape[missing:], strides)]
    return (*(0,) * missing, *there)


def by_second(forward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate an elementwise forward of two operands of which PyTorch asks the second first."""

    @functools.wraps(forward)
    def ordered(first: Any, second: Any, **attrs: Any) -> Any:
        return in_order_of_operands(forward(first, second, **attrs), (second, first))

    return ordered


def in_axes(result: np.ndarray, axes: Ints) -> np.ndarray:
    """The array itself if it lies dense in memory with `axes` from slowest to fastest, or a copy
    that does."""
    shape = tuple([result.shape[axis] for axis in axes])
    size, steps = result.itemsize, contiguous_strides(shape)
    if all(result.strides[a] == s * size for a, s in zip(axes, steps)):
        return result
    dense = np.empty(shape, result.dtype)
    dense[...] = result.transpose(axes)
    return dense.transpose(_inverse(axes))


def _inverse(axes: Ints) -> Ints:
    """The permutation that undoes one."""
    return tuple(sorted(range(len(axes)), key=axes.__getitem__))


def in_order_of(result: np.ndarray, x: np.ndarray, key: tuple[Any, ...]) -> np.ndarray:
    """`result`, which is ``x[key]``, laid out as PyTorch lays it out."""
    axes: Ints = tuple(range(result.ndim))
    if not all(k.flags.c_contiguous for k in (x, *key) if not isinstance(k, slice)):
        axes = slowest_first(result.shape, _operands(result.shape, x, key))
    return in_axes(result, axes)


def slowest_first(shape: Ints, operands: Sequence[Ints]) -> Ints:
    """The axes of a result from slowest to fastest, from the strides of each operand in them.

    An insertion sort, as PyTorch's, because the comparison is not transitive: operands that have
    stride 0 in one of two axes have no say about them, the first of the others decides.
    """
    order = list(reversed(range(len(shape))))
    for start in range(1, len(order)):
        moving = start
        for place in range(start - 1, -1, -1):
            verdict = _faster(shape, operands, order[moving], order[place])
            if verdict < 0:
                break
            if verdict > 0:
                order[place], order[moving] = order[moving], order[place]
                moving = place
    return tuple(reversed(order))


def empty_alike(x: np.ndarray, dtype: Any = None) -> np.ndarray:
    """Uninitialised memory for a copy of `x`: dense, its dimensions in the same order."""
    if x.flags.c_contiguous or 0 not in x.strides:
        return np.empty_like(x, dtype)
    axes = slowest_first(x.shape, (x.strides,))  # NumPy would put expanded dimensions innermost
    made = np.empty([x.shape[a] for a in axes], dtype or x.dtype)
    return made.transpose(_inverse(axes))


def zeros_in_order(size: Ints, stride: Ints, dtype: Any) -> np.ndarray:
    """Zeros of `size`, the dimensions in the order of those of the strides of an operand."""
    wide = (0,) * (len(size) - len(stride)) + tuple(stride)
    return in_axes(np.zeros(size, dtype), slowest_first(size, (wide,)))


def copy_alike(x: np.ndarray) -> np.ndarray:
    """A dense copy of `x`, its dimensions in the same order."""
    if 0 not in x.strides:
        return np.array(x)
    made = empty_alike(x)
    made[...] = x
    return made


def _faster(shape: Ints, operands: Sequence[Ints], axis: int, other: int) -> int:
    """1 if `axis` should be nearer to the fast end than `other`, -1 if not, 0 if nobody cares."""
    for strides in operands:
        mine, theirs = strides[axis], strides[other]
        if mine == 0 or theirs == 0:
            continue
        if mine != theirs:
            return 1 if mine < theirs else -1
        if shape[other] > shape[axis]:
            return 1
    return 0


def _operands(shape: Ints, x: np.ndarray, key: tuple[Any, ...]) -> list[Ints]:
    """The strides of `x` and of the indices in the axes of ``x[key]``, whose shape is `shape`."""
    arrays: list[tuple[int, np.ndarray]] = []
    dim = 0
    for k in key:
        if isinstance(k, slice):
            dim += 1
            continue
        parts = np.nonzero(k) if k.dtype == np.bool_ else (k,)
        arrays += [(dim + i, np.ascontiguousarray(p) if len(parts) > 1 else p)
                   for i, p in enumerate(parts)]  # fmt: skip
        dim += len(parts)
    indexed = [d for d, _ in arrays]
    kept = [d for d in range(x.ndim) if d not in indexed]
    together = indexed == list(range(indexed[0], indexed[-1] + 1))
    before = indexed[0] if together else 0
    width = len(shape) - len(kept)
    strides = [x.strides[d] for d in kept]
    operands = [(*strides[:before], *(0,) * width, *strides[before:])]
    inside = shape[before : before + width]
    for _, array in arrays:
        own = np.broadcast_to(array, inside).strides
        # Dimensions of size one around it have the strides that a view would give them.
        first, last = (own[0] * inside[0], own[-1]) if own else (8, 8)
        around = (*(first,) * before, *own, *(last,) * (len(kept) - before))
        wide = (*(1,) * before, *inside, *(1,) * (len(kept) - before))
        operands.append(tuple(s if m == n else 0 for s, m, n in zip(around, wide, shape)))
    return operands
