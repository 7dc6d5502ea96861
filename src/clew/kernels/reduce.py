"""Sums and running sums along any dimensions. Imports NumPy, threads and compiled twins.

NumPy is slow where the last dimension is short, and adds up one after another along the others.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.threads import split

from .compiled import twins
from .half import is_half, widen

# From so many elements on twins are called (measured).
MANY = 1 << 16
MANY_RUNNING = 1 << 12

# Elements of a piece, which takes longer than to hand it to another thread (measured).
PIECE = 1 << 18

# Results of a slice that are computed at once: with their sums they stay in the cache.
SLICE = 1 << 10


def sums(x: NDArray, axes: tuple[int, ...] | None, *, squares: bool = False) -> NDArray | None:
    """The sum over `axes` (all for None), or that of the squares; None where NumPy is to do it.

    Reduced dimensions are left out; halves give float32.
    """
    if x.size < MANY:
        return None
    name = "sum_rows_of_squares" if squares else "sum_rows"
    return _reduced(x, axes, name, not squares)


def running(x: NDArray, axis: int, name: str) -> NDArray | None:
    """The "cumsum" or "cumprod" along an axis; None where NumPy is to do it."""
    fast = twins("reduce", x.dtype)
    if fast is None or x.size < MANY_RUNNING or not _is_plain(x):
        return None
    out = np.empty_like(x)
    count, length, inner = prod(x.shape[:axis]), x.shape[axis], prod(x.shape[axis + 1 :])
    shape = (count, length) if inner == 1 else (count, length, inner)
    source, target = x.reshape(shape), out.reshape(shape)
    function = getattr(fast, f"{name}_rows" if inner == 1 else f"{name}_columns")

    def piece(start: int, stop: int) -> None:
        memory = () if inner == 1 else (np.empty(inner),)
        function(target[start:stop], *memory, source[start:stop])

    split(piece, count, -(-PIECE // (length * inner)))
    return out


def kept(shape: tuple[int, ...], axes: tuple[int, ...] | None) -> tuple[int, ...]:
    """The shape with the reduced dimensions kept, of size one."""
    return tuple(1 if axes is None or i in axes else n for i, n in enumerate(shape))


def _is_plain(x: NDArray) -> bool:
    return bool(x.flags.c_contiguous and x.flags.aligned)


def _reduced(x: NDArray, axes: Any, name: str, any_axes: bool) -> NDArray | None:
    """Without the reduced dimensions, in the type of `x`, or float32 of halves."""
    half = is_half(x.dtype)
    fast = twins("reduce", np.dtype(np.float32) if half else x.dtype)
    if fast is None:
        return None
    axes = tuple(range(x.ndim)) if axes is None else axes
    if x.flags.f_contiguous and not x.flags.c_contiguous:
        turned = _reduced(x.T, tuple(x.ndim - 1 - a for a in axes), name, any_axes)
        return None if turned is None else turned.T
    first, last = min(axes, default=0), max(axes, default=-1) + 1
    if not axes or last - first != len(axes) or not _is_plain(x):
        return None
    inner = prod(x.shape[last:])
    if inner != 1 and not any_axes:
        return None
    shape = x.shape[:first] + x.shape[last:]
    cube = widen(x).reshape(prod(x.shape[:first]), prod(x.shape[first:last]), inner)
    if 0 in cube.shape:
        return None
    out = np.empty((len(cube), inner), cube.dtype)
    if inner == 1:
        _of_rows(getattr(fast, name), out[:, 0], cube[:, :, 0])
    else:
        _of_columns(fast.sum_columns, out, cube)
    return out.reshape(shape)


def _of_rows(function: Callable[..., Any], out: NDArray, x: NDArray) -> None:
    count, length = x.shape
    if count > 1 or length < 2 * PIECE:  # or one piece
        grain = -(-PIECE // length)
        split(lambda start, stop: function(out[start:stop], x[start:stop]), count, grain)
        return
    found: list[tuple[int, Any]] = []

    def piece(start: int, stop: int) -> None:
        result = np.empty(1, x.dtype)
        function(result, x[:, start:stop])
        found.append((start, result[0]))

    split(piece, length, PIECE)
    out[0] = np.sum([result for _, result in sorted(found)], dtype=np.float64)


def _of_columns(function: Callable[..., Any], out: NDArray, x: NDArray) -> None:
    count, length, inner = x.shape

    def columns(start: int, stop: int, of: slice = slice(None)) -> None:
        for first in range(start, stop, SLICE):
            last = min(first + SLICE, stop)
            part, total = np.empty(last - first, x.dtype), np.empty(last - first)
            function(out[of], part, total, x[of], first, last)

    if count == 1:
        split(columns, inner, max(-(-PIECE // length), 64))
    else:
        grain = -(-PIECE // (length * inner))
        split(lambda start, stop: columns(0, inner, slice(start, stop)), count, grain)
