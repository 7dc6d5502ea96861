"""Counting in boxes of several dimensions. Imports NumPy only."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray


def counts(
    points: NDArray, weights: NDArray | None, edges: Sequence[NDArray], *, density: bool
) -> NDArray:
    """How many points ``(count, dims)``, or which sum of weights, each box between edges holds.

    A box holds its lower edges; the last along a dimension its upper edge too. With `density` the
    result is divided by its sum and the volume of each box.
    """
    shape = tuple(max(len(e) - 1, 0) for e in edges)
    inside = np.ones(len(points), bool)
    place = np.zeros(len(points), np.int64)
    for column, e, n in zip(points.T, edges, shape):
        inside &= (column >= e[0]) & (column <= e[-1])
        index = np.searchsorted(e, column, side="right") - 1
        index -= column == e[-1]
        place = place * n + np.clip(index, 0, max(n - 1, 0))
    if prod(shape) == 0:
        return np.zeros(shape, points.dtype)
    chosen = None if weights is None else weights[inside]
    found = np.bincount(place[inside], chosen, minlength=prod(shape)).reshape(shape)
    values: Any = found.astype(points.dtype)
    if density:
        values /= values.sum()
        for axis, e in enumerate(edges):
            values /= np.diff(e).reshape(-1, *(1,) * (len(shape) - 1 - axis))
    return values
