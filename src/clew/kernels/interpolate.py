"""Resizing images: nearest, linear and cubic interpolation, and their gradients.

Imports NumPy, sibling kernels, dtype names.

Interpolation works along one dimension after another. Along each, an output is a weighted sum of
a few inputs, its *taps*; the gradient is a sum of the same kind with the table of taps turned
round, from inputs to the outputs that they reach. Positions are computed in the precision that
PyTorch uses, as a position rounded otherwise may be another element: float32 for the nearest modes.
(PyTorch's forward of doubles in one and three dimensions goes by other roundings than its own
gradient; here both go by those of the gradient.)

Shapes: x (N, C, *size), the result (N, C, *out). `mode` is "nearest" (PyTorch's old one, which
looks at the corner of an output), "nearest-exact" (at its middle), "linear", "cubic", or one that
smooths what it makes smaller: "linear-smooth", "cubic-smooth", "lanczos-smooth". `scales` holds
for each dimension the factor to use in place of the ratio of the sizes, or None.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..dtypes import scalar_name
from .half import narrow, widen
from .windows import Index, Ints

Scales = Sequence[float | None]

# What is appended to a mode that smooths what it makes smaller (PyTorch's ``antialias``).
SMOOTH = "-smooth"

# The free parameter of cubic convolution (R. Keys, 1981); PyTorch takes this value.
_CUBIC = -0.75


class Taps(NamedTuple):
    """What each output reads along one dimension."""

    source: NDArray  # (taps, outputs)
    weight: NDArray | None  # (taps, outputs); None: one tap of weight 1
    unused: NDArray | None  # which outputs read nothing; None: every one reads something


def interpolate(x: NDArray, out: Ints, mode: str, align_corners: bool, scales: Scales) -> NDArray:
    """`x` resized to `out`.

    Raises RuntimeError for an empty image and NotImplementedError for a dtype that PyTorch does
    not resize, or resizes in fixed point (uint8 by weights).
    """
    _check(x, out, mode)
    result = widen(x)
    for axis in reversed(range(2, x.ndim)):
        n, o, scale = x.shape[axis], out[axis - 2], scales[axis - 2]
        result = _apply(result, axis, _taps(mode, n, o, align_corners, scale, _precision(result)))
    return narrow(result, x.dtype)


def interpolate_backward(
    grad: NDArray, x_shape: Ints, mode: str, align_corners: bool, scales: Scales
) -> NDArray:
    """Gradient of the input, shape `x_shape`."""
    result = widen(grad)
    for axis in range(2, grad.ndim):
        n, o, scale = x_shape[axis], grad.shape[axis], scales[axis - 2]
        taps = _turned_taps(mode, n, o, align_corners, scale, _precision(result))
        result = _apply(result, axis, taps)
    return narrow(result, grad.dtype)


def _apply(x: NDArray, axis: int, taps: Taps) -> NDArray:
    """The weighted sums of the taps along `axis`."""
    total = x.take(taps.source[0], axis)
    if taps.weight is None:
        return total
    weights = taps.weight.reshape(*taps.weight.shape, *(1,) * (x.ndim - 1 - axis))
    total *= weights[0]
    for index, weight in zip(taps.source[1:], weights[1:]):
        total += x.take(index, axis) * weight
    if taps.unused is not None:
        nothing: Index = (*(slice(None),) * axis, taps.unused)
        total[nothing] = 0
    return total


def _precision(x: NDArray) -> str:
    return "float64" if x.dtype == np.float64 else "float32"


@lru_cache(maxsize=256)
def _taps(
    mode: str, size: int, out: int, align_corners: bool, scale: float | None, precision: str
) -> Taps:
    """The taps of each of `out` outputs over `size` inputs."""
    number = np.dtype(precision).type
    if mode.startswith("nearest"):
        middle = np.float32(0.5 if mode == "nearest-exact" else 0)
        step = np.float32(1 / scale if scale else np.float32(size) / np.float32(out))
        index = np.floor((np.arange(out, dtype=np.float32) + middle) * step).astype(np.int64)
        return Taps(np.minimum(index, size - 1)[None], None, None)

    place = np.arange(out, dtype=precision)
    if align_corners:
        step = number(size - 1) / number(out - 1) if out > 1 else number(0)
    else:
        step = number(1 / scale if scale else number(size) / number(out))
    if mode.endswith(SMOOTH):
        return _smooth_taps(mode.removesuffix(SMOOTH), size, step, place)
    place = step * place if align_corners else step * (place + number(0.5)) - number(0.5)
    if mode == "linear":
        place = np.maximum(place, 0)
        base = np.minimum(np.floor(place).astype(np.int64), size - 1)
        ahead = np.clip(place - base.astype(precision), 0, 1)
        return Taps(
            np.stack([base, np.minimum(base + 1, size - 1)]), np.stack([1 - ahead, ahead]), None
        )
    base = np.floor(place).astype(np.int64)
    ahead = place - np.floor(place)
    weights = [_far(ahead + 1), _near(ahead), _near(1 - ahead), _far(2 - ahead)]
    return Taps(np.clip(base + np.arange(-1, 3)[:, None], 0, size - 1), np.stack(weights), None)


def _smooth_taps(mode: str, size: int, step: np.floating, place: NDArray) -> Taps:
    """Taps of a filter that widens with the step, so that fewer outputs still see every input.

    Weights add up to 1; those of inputs outside of the image are left out.
    """
    width = max(float(step), 1.0)
    radius = _RADIUS[mode] * width
    middle = step * (place + place.dtype.type(0.5))
    first = np.maximum((middle - radius + 0.5).astype(np.int64), 0)
    last = np.minimum((middle + radius + 0.5).astype(np.int64), size)
    source = first + np.arange((last - first).max())[:, None]
    distance = np.abs((source - middle + 0.5) / width).astype(place.dtype)
    weight = np.where(source < last, _FILTERS[mode](distance), 0)
    weight /= weight.sum(axis=0)
    return Taps(np.minimum(source, size - 1), weight, None)


def _triangle(t: NDArray) -> NDArray:
    return np.maximum(1 - t, 0)


def _keys(t: NDArray) -> NDArray:
    """Cubic convolution with the parameter -1/2, as image libraries have it."""
    near, far = (1.5 * t - 2.5) * t * t + 1, ((-0.5 * t + 2.5) * t - 4) * t + 2
    return np.where(t < 1, near, np.where(t < 2, far, 0))


def _lanczos(t: NDArray) -> NDArray:
    return np.where(t < 3, np.sinc(t) * np.sinc(t / 3), 0)


_RADIUS = {"linear": 1, "cubic": 2, "lanczos": 3}
_FILTERS = {"linear": _triangle, "cubic": _keys, "lanczos": _lanczos}


def _near(t: NDArray) -> NDArray:
    """Weight of an element at a distance `t` of at most 1 in cubic convolution."""
    return ((_CUBIC + 2) * t - (_CUBIC + 3)) * t * t + 1


def _far(t: NDArray) -> NDArray:
    """Weight of an element at a distance `t` between 1 and 2."""
    return ((_CUBIC * t - 5 * _CUBIC) * t + 8 * _CUBIC) * t - 4 * _CUBIC


@lru_cache(maxsize=256)
def _turned_taps(
    mode: str, size: int, out: int, align_corners: bool, scale: float | None, precision: str
) -> Taps:
    """For each of `size` inputs the outputs that it reaches, with the weight that it has there."""
    taps = _taps(mode, size, out, align_corners, scale, precision)
    weight = np.ones(taps.source.shape, precision) if taps.weight is None else taps.weight
    reached = np.broadcast_to(np.arange(out), taps.source.shape)
    order = np.argsort(taps.source.T, axis=None, kind="stable")
    inputs, outputs, weights = (a.T.reshape(-1)[order] for a in (taps.source, reached, weight))

    counts = np.bincount(inputs, minlength=size)
    first = np.cumsum(counts) - counts
    place = np.arange(len(inputs)) - first[inputs]
    # An input with fewer taps repeats its first one with weight 0, so that no NaN or infinity of
    # an output that it does not reach gets in.
    index = np.tile(outputs[np.minimum(first, len(outputs) - 1)], (counts.max(), 1))
    turned = np.zeros(index.shape, precision)
    index[place, inputs], turned[place, inputs] = outputs, weights
    return Taps(index, turned, counts == 0 if (counts == 0).any() else None)


def _check(x: NDArray, out: Ints, mode: str) -> None:
    size = x.shape[2:]
    if any(n <= 0 for n in (*size, *out)):
        joint = " and " if len(out) == 1 else " "
        raise RuntimeError(
            "Input and output sizes should be greater than 0, but got input "
            f"({_named(size)}){joint}output ({_named(out)})"
        )
    if x.shape[1] == 0:
        raise RuntimeError(
            f"Non-empty {x.ndim}D data tensor expected but got a tensor with sizes {list(x.shape)}"
        )
    bytes_by_nearest = x.dtype == np.uint8 and mode.startswith("nearest")
    if x.dtype.kind not in "fV" and not bytes_by_nearest:
        raise NotImplementedError(
            f"interpolation (mode {mode}) is not implemented for '{scalar_name(x.dtype)}'"
        )


def _named(size: Ints) -> str:
    """``H: 4, W: 5``."""
    return ", ".join(f"{axis}: {n}" for axis, n in zip("DHW"[-len(size) :], size))
