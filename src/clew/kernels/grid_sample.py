"""Reading images between their pixels, at the places that a grid names. Imports NumPy, kernels.

Along each dimension a place reads a few pixels, its *taps*; an output sums over all combinations.

Shapes: x (N, C, *size), grid (N, *out, dims), whose last dimension names the last spatial
dimension first, in units that make -1 and 1 the ends of the image; the result (N, C, *out).
`mode` is "bilinear", "nearest" or "bicubic"; `padding` says what is outside: "zeros", "border"
(the nearest pixel) or "reflection". Half precision is computed in float32.
"""

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .half import narrow, widen
from .select import keep_where
from .windows import Ints

# The free parameter of cubic convolution (R. Keys, 1981); PyTorch takes this value.
_CUBIC = -0.75


class Taps(NamedTuple):
    """What the places read along one dimension; all arrays (taps, N, places)."""

    pixel: NDArray
    inside: NDArray
    weights: tuple[NDArray, NDArray, NDArray]  # and their two derivatives, in the grid's units


class Corner(NamedTuple):
    """One combination of taps: pixels (N, places) of the plane, and the taps chosen."""

    pixel: NDArray
    inside: NDArray
    chosen: Ints


def grid_sample(x: NDArray, grid: NDArray, mode: str, padding: str, align_corners: bool) -> NDArray:
    """`x` read at the places of `grid`."""
    planes, taps = _prepare(x, grid, mode, padding, align_corners)
    out = np.zeros((*planes.shape[:2], prod(grid.shape[1:-1])), planes.dtype)
    for corner in _corners(taps, x.shape[2:]):
        out += _read(planes, corner) * _weight(taps, corner)[:, None]
    return narrow(out.reshape(*x.shape[:2], *grid.shape[1:-1]), x.dtype)


def grid_sample_backward(
    grad: NDArray,
    x: NDArray,
    grid: NDArray,
    mode: str,
    padding: str,
    align_corners: bool,
    need: tuple[bool, bool] = (True, True),
) -> tuple[NDArray | None, NDArray | None]:
    """Gradients of `x` and `grid`; None for one that `need` does not ask for."""
    planes, taps = _prepare(x, grid, mode, padding, align_corners)
    g = _as_lines(grad)
    of_x, of_places = np.zeros_like(planes), _no_places(planes, grid)
    for corner in _corners(taps, x.shape[2:]):
        if need[0]:
            _spread(of_x, corner, g * _weight(taps, corner)[:, None])
        if need[1]:
            along = _over_channels(g, _read(planes, corner))
            for d, places in enumerate(of_places):
                places += along * _weight(taps, corner, d)
    return (
        narrow(of_x.reshape(x.shape), x.dtype) if need[0] else None,
        _as_grid(of_places, grid) if need[1] else None,
    )


def grid_sample_double_backward(
    of_x: NDArray,
    of_grid: NDArray,
    grad: NDArray,
    x: NDArray,
    grid: NDArray,
    mode: str,
    padding: str,
    align_corners: bool,
) -> tuple[NDArray, NDArray, NDArray]:
    """Gradients of `grad`, `x` and `grid` from those of what `grid_sample_backward` returned."""
    planes, taps = _prepare(x, grid, mode, padding, align_corners)
    dims = range(len(taps))
    g, u = _as_lines(grad), widen(of_x).reshape(planes.shape)
    w = [widen(of_grid).reshape(len(grid), g.shape[2], len(taps))[..., -1 - d] for d in dims]
    to_g, to_x, to_places = np.zeros_like(g), np.zeros_like(planes), _no_places(planes, grid)
    for corner in _corners(taps, x.shape[2:]):
        pixels, moved = _read(planes, corner), _read(u, corner)
        turned = sum((w[k] * _weight(taps, corner, k) for k in dims), start=np.zeros_like(w[0]))
        to_g += moved * _weight(taps, corner)[:, None] + pixels * turned[:, None]
        _spread(to_x, corner, g * turned[:, None])
        by_pixels, by_moved = _over_channels(g, pixels), _over_channels(g, moved)
        for d in dims:
            to_places[d] += by_moved * _weight(taps, corner, d)
            for k in dims:
                to_places[d] += by_pixels * w[k] * _weight(taps, corner, d, k)
    return (
        narrow(to_g.reshape(grad.shape), grad.dtype),
        narrow(to_x.reshape(x.shape), x.dtype),
        _as_grid(to_places, grid),
    )


def _as_lines(grad: NDArray) -> NDArray:
    """(N, C, *out) as (N, C, places)."""
    return widen(grad).reshape(*grad.shape[:2], prod(grad.shape[2:]))


def _no_places(planes: NDArray, grid: NDArray) -> NDArray:
    """Zeros (dims, N, places), in which the gradient of the grid is added up."""
    return np.zeros((grid.shape[-1], len(grid), prod(grid.shape[1:-1])), planes.dtype)


def _as_grid(of_places: NDArray, grid: NDArray) -> NDArray:
    """(dims, N, places) in the shape of the grid, whose coordinates begin with the last one."""
    return narrow(np.moveaxis(of_places[::-1], 0, -1).reshape(grid.shape), grid.dtype)


def _over_channels(a: NDArray, b: NDArray) -> NDArray:
    return np.asarray(np.einsum("ncl,ncl->nl", a, b))


def _prepare(
    x: NDArray, grid: NDArray, mode: str, padding: str, align_corners: bool
) -> tuple[NDArray, list[Taps]]:
    """The image as (N, C, pixels), and the taps along each of its dimensions."""
    wide = widen(grid)
    places = wide.reshape(len(grid), prod(grid.shape[1:-1]), grid.shape[-1])
    taps = [
        _taps(places[..., -1 - d], n, mode, padding, align_corners)
        for d, n in enumerate(x.shape[2:])
    ]
    return widen(x).reshape(*x.shape[:2], prod(x.shape[2:])), taps


# -- along one dimension


def _taps(place: NDArray, n: int, mode: str, padding: str, align_corners: bool) -> Taps:
    unit = (n - 1) / 2 if align_corners else n / 2
    place = (place + 1) * unit if align_corners else ((place + 1) * n - 1) / 2
    if mode == "bicubic":
        return _cubic_taps(place, n, unit, padding, align_corners)
    place, turned = _bring_inside(place, n, padding, align_corners)
    if mode == "nearest":
        index, inside = _pixels(np.rint(place)[None], n)
        constant = np.zeros_like(place)[None]
        return Taps(index, inside, (constant + 1, constant, constant))
    base = np.floor(place)
    ahead = place - base
    index, inside = _pixels(np.stack([base, base + 1]), n)
    slope = turned * unit
    weight = np.stack([1 - ahead, ahead])
    return Taps(index, inside, (weight, np.stack([-slope, slope]), np.zeros_like(weight)))


def _cubic_taps(place: NDArray, n: int, unit: float, padding: str, align_corners: bool) -> Taps:
    base = np.floor(place)
    t = place - base
    pixels = [_bring_inside(base + k, n, padding, align_corners)[0] for k in range(-1, 3)]
    index, inside = _pixels(np.stack(pixels), n)
    # The distances of the taps; the last two fall as t grows.
    far, near, near_after, far_after = _far(t + 1), _near(t), _near(1 - t), _far(2 - t)
    weight = np.stack([far[0], near[0], near_after[0], far_after[0]])
    slope = np.stack([far[1], near[1], -near_after[1], -far_after[1]])
    bend = np.stack([far[2], near[2], near_after[2], far_after[2]])
    return Taps(index, inside, (weight, slope * unit, bend * unit**2))


def _near(t: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Weight, slope and bend of cubic convolution at a distance `t` of at most 1."""
    a = _CUBIC
    return (
        ((a + 2) * t - (a + 3)) * t * t + 1,
        (3 * (a + 2) * t - 2 * (a + 3)) * t,
        6 * (a + 2) * t - 2 * (a + 3),
    )


def _far(t: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """The same at a distance `t` between 1 and 2."""
    a = _CUBIC
    return (
        ((a * t - 5 * a) * t + 8 * a) * t - 4 * a,
        (3 * a * t - 10 * a) * t + 8 * a,
        6 * a * t - 10 * a,
    )


def _bring_inside(
    place: NDArray, n: int, padding: str, align_corners: bool
) -> tuple[NDArray, NDArray]:
    """Places as the padding maps them into the image, and the derivative of that map."""
    turned = np.ones_like(place)
    if padding == "zeros":
        return place, turned
    if padding == "reflection":
        place, turned = _reflected(place, n, align_corners)
    turned = np.where(np.logical_or(place <= 0, place >= n - 1), 0, turned)
    return np.minimum(np.maximum(place, 0), n - 1), turned


def _reflected(place: NDArray, n: int, align_corners: bool) -> tuple[NDArray, NDArray]:
    """Places reflected at the middles of the outermost pixels, or at their outer edges."""
    low, span = (0.0, n - 1) if align_corners else (-0.5, n)
    if span == 0:
        return np.zeros_like(place), np.zeros_like(place)
    distance = place - low
    turned = np.where(distance < 0, -1.0, 1.0).astype(place.dtype)
    distance = np.abs(distance)
    odd = np.floor(distance / span) % 2 == 1
    rest = np.fmod(distance, span)
    return np.where(odd, span - rest, rest) + low, np.where(odd, -turned, turned)


def _pixels(place: NDArray, n: int) -> tuple[NDArray, NDArray]:
    """Whole places as indices within the image, and whether they were there."""
    inside = np.logical_and(place >= 0, place <= n - 1)
    return np.where(inside, place, 0).astype(np.int64), inside


# -- over all dimensions


def _corners(taps: list[Taps], size: Ints) -> Iterator[Corner]:
    for chosen in product(*(range(len(t.pixel)) for t in taps)):
        index = np.zeros((), np.int64)
        inside = np.ones((), np.bool_)
        for t, k, n in zip(taps, chosen, size):
            index = index * n + t.pixel[k]
            inside = inside & t.inside[k]
        yield Corner(index, inside, chosen)


def _weight(taps: list[Taps], corner: Corner, *along: int) -> NDArray:
    """The weight of a corner, differentiated along the dimensions named."""
    weight = np.ones((), taps[0].weights[0].dtype)
    for d, (t, k) in enumerate(zip(taps, corner.chosen)):
        weight = weight * t.weights[along.count(d)][k]
    return keep_where(corner.inside, weight)


def _read(planes: NDArray, corner: Corner) -> NDArray:
    """The pixels of a corner, 0 outside of the image."""
    batch, channels = planes.shape[:2]
    index = np.broadcast_to(corner.pixel[:, None], (batch, channels, corner.pixel.shape[1]))
    return keep_where(corner.inside[:, None], np.take_along_axis(planes, index, 2))


def _spread(out: NDArray, corner: Corner, values: NDArray) -> None:
    """Add `values` to the pixels of a corner (those outside are 0)."""
    batch, channels, pixels = out.shape
    first = np.arange(batch * channels).reshape(batch, channels, 1) * pixels
    flat = (first + corner.pixel[:, None]).reshape(-1)
    np.add.at(out.reshape(-1), flat, values.reshape(-1))
