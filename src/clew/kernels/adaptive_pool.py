"""Adaptive average and max pooling. Imports NumPy and sibling kernels.

Output o of `out` along a dimension of size n sees the inputs from floor(o * n / out) up to
ceil((o + 1) * n / out). Read the other way round, input i is seen by the outputs from
floor(i * out / n) up to ceil((i + 1) * out / n): the same windows with the sizes exchanged, which
is why the gradient of the sums is the same function.

Shapes: x (N, C, *size) or (C, *size); outputs and indices the same with *out. Half precision is
computed in float32.
"""

from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from .half import narrow, widen
from .pool import max_pool, maximum_of, places_to_indices
from .windows import Index, Ints, Windows


def adaptive_avg_pool(x: NDArray, out: Ints) -> NDArray:
    """Means of the windows of an output of size `out`.

    Raises RuntimeError, with PyTorch's text, for a size that does not fit.
    """
    _check("avg", x.shape, out)
    sums = _sum_windows(widen(x), out)
    means = sums / _counts(x.shape[x.ndim - len(out) :], out).astype(sums.dtype)
    return narrow(means, x.dtype)


def adaptive_avg_pool_backward(grad: NDArray, x_shape: Ints, dims: int) -> NDArray:
    """Gradient of the input, shape `x_shape`, of which the last `dims` dimensions are pooled."""
    size, out = x_shape[-dims:], grad.shape[grad.ndim - dims :]
    wide = widen(grad)
    spread = _sum_windows(wide / _counts(size, out).astype(wide.dtype), size)
    return narrow(spread, grad.dtype)


def adaptive_max_pool(x: NDArray, out: Ints) -> tuple[NDArray, NDArray]:
    """Maxima of the windows of an output of size `out`, and int64 indices as `pool` gives them.

    Its gradient is `pool.max_pool_backward`. Raises RuntimeError, with PyTorch's text, for a size
    that does not fit.
    """
    _check("max", x.shape, out)
    size, lead = x.shape[x.ndim - len(out) :], x.shape[: x.ndim - len(out)]
    if 0 in lead or 0 in out:
        return np.zeros((*lead, *out), x.dtype), np.zeros((*lead, *out), np.int64)
    if all(n % o == 0 for n, o in zip(size, out)):
        kernel = tuple(n // o for n, o in zip(size, out))
        windows = Windows.over(size, kernel, kernel, (0,) * len(out), (1,) * len(out))
        values, places = max_pool(x, windows)
        return values, places_to_indices(places, windows)
    edges = [_edges(n, o) for n, o in zip(size, out)]
    longest = [int((end - start).max()) for start, end in edges]
    planes = widen(x).reshape(prod(lead), *size)
    # A shorter window meets its last element more than once, which changes no maximum.
    candidates = [planes[_nth(edges, position)] for position in product(*map(range, longest))]
    values = np.empty((len(planes), *out), planes.dtype)
    place = np.empty(values.shape, np.min_scalar_type(prod(longest)))
    maximum_of(candidates, values, place)
    index = np.zeros((), np.int64)
    for dim, offset in enumerate(np.unravel_index(place, longest)):
        start, end = (edge.reshape(-1, *(1,) * (len(out) - 1 - dim)) for edge in edges[dim])
        index = index * size[dim] + np.minimum(start + offset, end - 1)
    return narrow(values.reshape(*lead, *out), x.dtype), index.reshape(*lead, *out)


def _edges(size: int, out: int) -> tuple[NDArray, NDArray]:
    """Where the window of each output starts and ends (one behind its last element)."""
    steps = np.arange(out + 1) * size
    return steps[:-1] // max(1, out), -(-steps[1:] // max(1, out))


def _nth(edges: list[tuple[NDArray, NDArray]], position: Ints) -> Index:
    """The elements at `position` in every window, as an index of (planes, *size)."""
    steps = [np.minimum(start + i, end - 1) for (start, end), i in zip(edges, position)]
    return (slice(None), *np.ix_(*steps))


def _counts(size: Ints, out: Ints) -> NDArray:
    """How many elements each window has, shape (*out)."""
    counts = np.ones((), np.int64)
    for n, o in zip(size, out):
        start, end = _edges(n, o)
        counts = counts[..., None] * (end - start)
    return counts


def _sum_windows(x: NDArray, out: Ints) -> NDArray:
    """Sums of the windows that turn the last dimensions of `x` into `out`."""
    lead, size = x.shape[: x.ndim - len(out)], x.shape[x.ndim - len(out) :]
    if all(o and n % o == 0 for n, o in zip(size, out)):
        pieces = [length for n, o in zip(size, out) for length in (o, n // o)]
        within = tuple(range(len(lead) + 1, len(lead) + len(pieces), 2))
        return x.reshape(*lead, *pieces).sum(axis=within)
    for axis, o in enumerate(out, start=len(lead)):
        x = _sum_along(x, axis, o)
    return x


def _sum_along(x: NDArray, axis: int, out: int) -> NDArray:
    start, end = _edges(x.shape[axis], out)
    sums = x.take(start, axis)
    for i in range(1, (end - start).max(initial=1)):
        inside = start + i < end
        where: Index = (*(slice(None),) * axis, inside)
        sums[where] += x.take(start[inside] + i, axis)
    return sums


def _check(kind: str, x_shape: Ints, out: Ints) -> None:
    """Raise PyTorch's errors. It averages one dimension as two, and its messages say so."""
    dims = len(out)
    if len(x_shape) not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"adaptive_{kind}_pool{dims}d(): Expected {dims + 1}D or {dims + 2}D tensor, "
            f"but got{' ' if kind == 'avg' else ': '}{list(x_shape)}"
        )
    if kind == "avg" and dims == 1:
        x_shape, out, dims = (*x_shape[:-1], 1, x_shape[-1]), (1, *out), 2
    name = f"adaptive_{kind}_pool{dims}d"
    pooled = dims if kind == "avg" else dims + 1
    for dim in range(len(x_shape) - pooled, len(x_shape)):
        if x_shape[dim] == 0:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but "
                f"input has sizes {list(x_shape)} with dimension {dim} being empty"
            )
    if any(n < 0 for n in out) and kind == "avg":
        sizes = ", ".join(map(str, out))
        raise RuntimeError(
            f"{name}: elements of output_size must be greater than or equal to 0 but received "
            f"{{{sizes}}}"
        )
    if any(n < 0 for n in out):
        shape = [*x_shape[: len(x_shape) - dims], *out]
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(out)}: {shape}")
