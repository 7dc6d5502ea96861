"""Max pooling and its gradient. Imports NumPy, sibling kernels, threads, dtype names.

Shapes: x (N, C, *size) or (C, *size); values, places and indices the same with *out. A place is
the number of the maximum's position in its window, of the smallest type that has room for it; an
index is its position in the plane of the input, int64. Both are counted in row-major order. As in
PyTorch the first of equal maxima wins, and NaN beats every number, the last one every other.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from ..dtypes import scalar_name
from ..threads import split
from .compiled import twins
from .half import narrow, widen
from .windows import Ints, Windows, pad_first, view_first

# From this many positions on, windows that do not overlap are copied apart and searched one by
# one; otherwise the positions are gone through, for all windows at once (measured).
MANY_POSITIONS = 32

# NumPy goes through so many elements of the input at once, which stay in the cache, and twins begin
# to pay with so many.
BLOCK, SMALL = 1 << 18, 1 << 10

# Elements of the input that a thread goes through at least, and of the gradient, which takes less
# for each (Note [Threads]).
GRAIN, GRAIN_BACKWARD = 1 << 16, 1 << 17


def max_pool(x: NDArray, windows: Windows) -> tuple[NDArray, NDArray]:
    """Maxima of the windows and their places; NotImplementedError for bool and complex input."""
    lowest = _lowest(x.dtype)
    shape = (*x.shape[: x.ndim - len(windows.size)], *windows.out)
    planes = widen(x).reshape(prod(x.shape[: x.ndim - len(windows.size)]), *windows.size)
    values = np.empty((len(planes), *windows.out), planes.dtype)
    places = np.empty(values.shape, np.min_scalar_type(max(0, prod(windows.kernel) - 1)))

    def run(start: int, stop: int) -> None:
        step = max(1, BLOCK // prod(windows.size))
        for i in range(start, stop, step):
            some = slice(i, min(i + step, stop))
            _max_pool_block(planes[some], windows, lowest, values[some], places[some])

    split(run, len(planes), max(1, GRAIN // prod(windows.size)))
    return narrow(values.reshape(shape), x.dtype), places.reshape(shape)


def places_to_indices(places: NDArray, windows: Windows) -> NDArray:
    """The indices for places."""
    _, corner, shift = _numbering(windows)
    indices: NDArray = shift.take(places)
    indices += corner
    return indices


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


def max_pool_places_backward(
    grad: NDArray, places: NDArray, x_shape: Ints, windows: Windows
) -> NDArray:
    """Gradient of the input, shape `x_shape`, from the places of the maxima."""
    fast = twins("pool", grad.dtype) if grad.size > SMALL and places.dtype == np.uint8 else None
    if fast is None:
        indices = places_to_indices(places, windows)
        return max_pool_backward(grad, indices, x_shape, len(windows.size))
    planes, plane = prod(x_shape[: -len(windows.size)]), prod(windows.size)
    out = np.empty((planes, plane), grad.dtype)
    grad, places = (
        np.ascontiguousarray(a).reshape(planes, prod(windows.out)) for a in (grad, places)
    )
    _, corner, shift = _numbering(windows)

    def run(start: int, stop: int) -> None:
        fast.add_at_places(
            out[start:stop], grad[start:stop], places[start:stop], corner.reshape(-1), shift
        )

    split(run, planes, max(1, GRAIN_BACKWARD // plane))
    return out.reshape(x_shape)


def _max_pool_block(
    planes: NDArray, windows: Windows, lowest: float, values: NDArray, places: NDArray
) -> None:
    """Write the maxima of some planes (planes, *size) and their places."""
    padded = pad_first(planes[None], windows, lowest)[0]
    apart = all(s >= k for s, k in zip(windows.stride, windows.kernel))
    if prod(windows.kernel) >= MANY_POSITIONS and apart:
        values[...], places[...] = maximum_of_rows(_window_rows(padded, windows))
    else:
        candidates = [padded[..., *inputs] for _, inputs in windows.positions()]
        if windows.stride[-1] > 1:
            candidates = [np.ascontiguousarray(c) for c in candidates]  # they are read twice
        maximum_of(candidates, values, places)
    if padded is not planes:
        # Where nothing is greater than padding, the place is the first that is not padding.
        np.maximum(places, _numbering(windows)[0], out=places, casting="unsafe")


def maximum_of(candidates: Sequence[NDArray], values: NDArray, places: NDArray) -> None:
    """Write the maximum over arrays of one shape, and the number of the array that holds it.

    The first of equal maxima wins, the last of several NaN.
    """
    np.copyto(values, candidates[0])
    for candidate in candidates[1:]:
        np.maximum(values, candidate, out=values)
    # One more than the number among those that follow, or 0: (p + 1) * differs, from the back.
    places[...] = 0
    differs = np.empty(values.shape, bool)
    for candidate in reversed(candidates[:-1]):
        np.not_equal(candidate, values, out=differs)
        places += 1
        np.multiply(places, differs.view(np.uint8), out=places)
    if values.dtype.kind == "f" and np.isnan(np.max(values, initial=0)):
        nan = np.isnan(values)
        for number, candidate in enumerate(candidates):
            places[nan & np.isnan(candidate)] = number


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
