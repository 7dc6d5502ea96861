"""Padding an image with its own elements: mirrored, repeated or wrapped around. Imports NumPy only.

Each output along a dimension shows one input, so a table of indices says everything. Amounts are
(before, after) for each dimension that is padded, which are the last ones; negative ones crop.
"""

import numpy as np
from numpy.typing import NDArray

Amounts = tuple[tuple[int, int], ...]


def pad_by_index(x: NDArray, amounts: Amounts, mode: str) -> NDArray:
    """`x` padded; `mode` is "reflect", "replicate" or "circular"."""
    for axis, (before, after) in zip(range(x.ndim - len(amounts), x.ndim), amounts):
        x = x.take(_source(x.shape[axis], before, after, mode), axis)
    return x


def pad_by_index_backward(
    grad: NDArray, size: tuple[int, ...], amounts: Amounts, mode: str
) -> NDArray:
    """Gradient of the input, shape `size`: each output's gradient added to what it shows."""
    for axis, (before, after) in zip(range(grad.ndim - len(amounts), grad.ndim), amounts):
        grad = _add_back(grad, axis, size[axis], before, after, mode)
    return grad


def _source(n: int, before: int, after: int, mode: str) -> NDArray:
    """The index of the input that each output shows."""
    if mode == "circular":
        # What is cropped is gone before the rest wraps around.
        first, last = max(-before, 0), n - max(-after, 0)
        kept = last - first
        return first + np.arange(-max(before, 0), kept + max(after, 0)) % max(kept, 1)
    place = np.arange(-before, n + after)
    if mode == "replicate":
        return np.clip(place, 0, n - 1)
    place = np.abs(place)
    return np.where(place < n, place, 2 * (n - 1) - place)


def _add_back(grad: NDArray, axis: int, n: int, before: int, after: int, mode: str) -> NDArray:
    lines = np.moveaxis(grad, axis, 0)
    out = np.zeros((n, *lines.shape[1:]), grad.dtype)
    start, end = max(before, 0), len(lines) - max(after, 0)
    out[start - before : end - before] = lines[start:end]
    source = _source(n, before, after, mode)
    for i in (*range(start), *range(end, len(lines))):
        out[source[i]] += lines[i]
    return np.ascontiguousarray(np.moveaxis(out, 0, axis))
