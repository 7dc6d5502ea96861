"""Sums, means and maxima of the rows that bags of integers name. Imports NumPy, sibling kernels.

Shapes: table (rows, D); indices (n,), bag (n,) the number of each index's bag, weights (n,) or
None; results (bags, D), sizes (bags,). Row `padding_idx` (-1: none) does not count.
"""

import numpy as np
from numpy.typing import NDArray

from .half import narrow, widen
from .rows import add_slices


def bag_sums(
    table: NDArray,
    indices: NDArray,
    bag: NDArray,
    sizes: NDArray,
    weights: NDArray | None,
    padding_idx: int,
    mean: bool,
) -> NDArray:
    """The sum of each bag's rows, times their weights, or the mean."""
    if padding_idx >= 0:
        kept = indices != padding_idx
        indices, bag = indices[kept], bag[kept]
        weights = None if weights is None else weights[kept]
    rows = widen(table.take(indices, axis=0))
    if weights is not None:
        rows = rows * widen(weights)[:, None]
    out = np.zeros((len(sizes), table.shape[1]), rows.dtype)
    add_slices(out, 0, bag, rows)
    if mean:
        out /= np.maximum(sizes, 1).astype(out.dtype)[:, None]
    return narrow(out, table.dtype)


def bag_maxima(
    table: NDArray, indices: NDArray, bag: NDArray, bags: int, padding_idx: int
) -> tuple[NDArray, NDArray]:
    """The maximum of each bag's rows and which row of the table holds it; 0 of nothing."""
    out = np.zeros((bags, table.shape[1]), table.dtype)
    place = np.zeros((bags, table.shape[1]), np.int64)
    if padding_idx >= 0:
        kept = indices != padding_idx
        indices, bag = indices[kept], bag[kept]
    starts = np.flatnonzero(np.diff(bag, prepend=-1))
    for start, end in zip(starts, [*starts[1:], len(bag)]):
        rows = table.take(indices[start:end], axis=0)
        first = rows.argmax(axis=0)
        out[bag[start]] = np.take_along_axis(rows, first[None], 0)[0]
        place[bag[start]] = indices[start:end][first]
    return out, place


def bag_numbers(offsets: NDArray, count: int) -> NDArray:
    """The number of the bag of each of `count` indices, where bag i starts at ``offsets[i]``."""
    starts = np.zeros(count + 1, np.int64)
    np.add.at(starts, offsets, 1)
    return starts[:count].cumsum() - 1
