"""Max pooling and its gradient. Imports NumPy, sibling kernels, dtype names.

Shapes: x (N, C, *size) or (C, *size); values and indices the same with *out. An index is the
place of the maximum in its plane of the input, counted in row-major order. As in PyTorch the
first of equal maxima wins, and NaN beats every number, the last one every other.
"""

from collections.abc import Iterable
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from ..dtypes import scalar_name
from .half import narrow, widen
from .pool_shapes import pool_windows
from .windows import Ints, Windows, pad_first, view_first

# From this many positions on, windows that do not overlap are copied apart and searched one by
# one; otherwise the positions are gone through, for all windows at once (measured).
MANY_POSITIONS = 32


def max_pool(
    x: NDArray, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
) -> tuple[NDArray, NDArray]:
    """Maxima of the windows and their int64 indices.

    Raises RuntimeError, with PyTorch's text, if the shapes or parameters do not fit together, and
    NotImplementedError for bool and complex input.
    """
    windows = pool_windows(x.shape, kernel, stride, padding, dilation, ceil_mode)
    lead = x.shape[: x.ndim - len(kernel)]
    planes = widen(x).reshape(1, prod(lead), *windows.size)
    padded = pad_first(planes, windows, _lowest(x.dtype))[0]
    first, corner, shift = _numbering(windows)
    if prod(kernel) >= MANY_POSITIONS and all(s >= k for s, k in zip(stride, kernel)):
        values, place = maximum_of_rows(_window_rows(padded, windows))
        place = np.where(values == _lowest(x.dtype), first, place)
    else:
        values, place = running_maximum(
            (padded[(..., *inputs)] for _, inputs in windows.positions()),
            prod(kernel),
            np.broadcast_to(first, (len(padded), *windows.out)),
        )
    shape = (*lead, *windows.out)
    indices = (corner + shift[place]).reshape(shape)
    return narrow(values.reshape(shape), x.dtype), indices


def max_pool_backward(grad: NDArray, indices: NDArray, x_shape: Ints, dims: int) -> NDArray:
    """Gradient of the input, shape `x_shape`, of which the last `dims` dimensions are pooled.

    Serves adaptive max pooling as well.
    """
    planes, plane = prod(x_shape[:-dims]), prod(x_shape[-dims:])
    flat = indices.reshape(planes, prod(indices.shape[indices.ndim - dims :]))
    flat = flat + np.arange(0, planes * plane, max(1, plane))[:, None]
    wide = widen(grad)
    out = np.zeros(planes * plane, wide.dtype)
    np.add.at(out, flat.reshape(-1), wide.reshape(-1))
    return narrow(out.reshape(x_shape), grad.dtype)


def running_maximum(
    candidates: Iterable[NDArray], count: int, place: NDArray
) -> tuple[NDArray, NDArray]:
    """Maximum over `count` arrays of one shape, and the number of the array that holds it.

    `place` is the number to begin with, kept where nothing exceeds the first array. The first of
    equal maxima wins, the last of several NaN.
    """
    number_dtype = np.min_scalar_type(count)
    place = place.astype(number_dtype, order="C")
    first, *rest = candidates
    values = first.copy()
    # Buffers are used again, as fresh memory costs more than what is computed in it.
    candidate = np.empty_like(values)
    larger, nan = np.empty(values.shape, bool), np.empty(values.shape, bool)
    numbered = np.empty_like(place)
    for number, strided in enumerate(rest, start=1):
        np.copyto(candidate, strided)
        np.greater(candidate, values, out=larger)
        if candidate.dtype.kind == "f":
            np.isnan(candidate, out=nan)
            larger |= nan
        np.maximum(values, candidate, out=values)
        # Later numbers are larger ones; a masked copy would be ten times slower.
        np.multiply(larger, number, out=numbered, dtype=number_dtype)
        np.maximum(place, numbered, out=place)
    return values, place


def maximum_of_rows(rows: NDArray) -> tuple[NDArray, NDArray]:
    """Maximum of each row of (..., K), and its place in the row: what `running_maximum` gives."""
    place = rows.argmax(axis=-1)
    values = np.take_along_axis(rows, place[..., None], axis=-1)[..., 0]
    if rows.dtype.kind == "f" and np.isnan(values).any():
        last_nan = rows.shape[-1] - 1 - np.isnan(rows[..., ::-1]).argmax(axis=-1)
        place = np.where(np.isnan(values), last_nan, place)
    return values, place


def _window_rows(padded: NDArray, windows: Windows) -> NDArray:
    """Each window of the planes (planes, *padded) as a row: (planes, *out, K)."""
    view = view_first(padded[None], windows)[0]
    dims = len(windows.kernel)
    outwards = (0, *range(dims + 1, 2 * dims + 1), *range(1, dims + 1))
    return view.transpose(outwards).reshape(len(padded), *windows.out, prod(windows.kernel))


@lru_cache(maxsize=256)
def _numbering(windows: Windows) -> tuple[NDArray, NDArray, NDArray]:
    """How the numbers of the kernel's positions relate to the plane.

    For each window the number of its first position that is not padding and the index in the
    plane of its corner, both (*out); for each number the distance from the corner in the plane.
    """
    first = corner = shift = np.zeros((), np.int64)
    for n, k, s, p, d, o in zip(*windows):
        start = np.arange(o) * s - p
        first = first[..., None] * k + np.maximum(0, -(start // d))
        corner = corner[..., None] * n + start
        shift = shift[..., None] * n + np.arange(k) * d
    return first, corner, shift.reshape(-1)


def _lowest(dtype: np.dtype) -> float:
    """What padding holds, so that it never wins."""
    if dtype.kind in "bc":
        raise NotImplementedError(f"max pooling is not implemented for '{scalar_name(dtype)}'")
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf
