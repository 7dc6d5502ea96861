"""Fractional max pooling (Graham, 2014): windows of one size at random steps. Imports kernels.

Shapes: x (N, C, *size) or (C, *size); samples (N, C, dims), numbers in [0, 1) that say where the
windows of each plane stand; values and int64 indices (as of `pool`) the same as x with *out.
"""

from math import prod

import numpy as np
from numpy.typing import NDArray

from .half import narrow, widen
from .pool import maximum_of_rows
from .windows import Ints


def fractional_max_pool(
    x: NDArray, samples: NDArray, kernel: Ints, out: Ints
) -> tuple[NDArray, NDArray]:
    """Maxima of the windows and where they stand."""
    dims = len(kernel)
    lead, size = x.shape[:-dims], x.shape[-dims:]
    planes = prod(lead)
    draws = samples.reshape(prod(samples.shape[:-1]), dims)[:planes]
    if dims == 2:
        draws = draws[:, ::-1]  # PyTorch draws for the width first
    index: NDArray = np.zeros(planes, np.int64)
    for d, (n, k, o) in enumerate(zip(size, kernel, out)):
        seen = _starts(draws[:, d], n, k, o)[:, :, None] + np.arange(k)
        index = index[..., None, None] * n + seen.reshape(planes, *(1,) * (2 * d), o, k)
    outwards = (0, *range(1, 2 * dims, 2), *range(2, 2 * dims + 1, 2))
    index = index.transpose(outwards).reshape(planes, prod(out), prod(kernel))
    flat = widen(x).reshape(planes, prod(size))
    pixels = index.reshape(planes, prod(out) * prod(kernel))
    rows = np.take_along_axis(flat, pixels, 1).reshape(index.shape)
    values, place = maximum_of_rows(rows)
    places = np.take_along_axis(index, place[..., None], 2)
    return narrow(values.reshape(*lead, *out), x.dtype), places.reshape(*lead, *out)


def _starts(sample: NDArray, size: int, kernel: int, out: int) -> NDArray:
    """Where the windows of each plane begin along one dimension, (planes, out)."""
    starts = np.empty((len(sample), out), np.int64)
    if out > 1:
        step = sample.dtype.type((size - kernel) / (out - 1))
        moved = (np.arange(out - 1, dtype=sample.dtype) + sample[:, None]) * step
        starts[:, :-1] = moved.astype(np.int64) - (sample * step).astype(np.int64)[:, None]
    starts[:, -1:] = size - kernel
    return starts
