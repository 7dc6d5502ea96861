"""Choosing elements by a mask, without branches. Imports NumPy and sibling kernels.

``np.where`` and boolean indexing branch on every element, which costs ten times a multiplication
where the mask is irregular. A product with the mask would turn an infinity or NaN that is to be
dropped into NaN; so the product here is one of the bits, read as integers.
"""

import numpy as np
from numpy.typing import NDArray

from .pointwise import in_place, pointwise

_BITS = {2: np.int16, 4: np.int32, 8: np.int64}

# Below so many elements four passes cost more than the branches (measured).
_FEW = 4096

SELECTABLE = frozenset(map(np.dtype, (np.float16, np.float32, np.float64)))
"""The types that `choose` takes."""


def keep_where(mask: NDArray, x: NDArray) -> NDArray:
    """`x` where `mask` is true, else 0; `mask` and `x` broadcast."""
    bits = _BITS.get(x.dtype.itemsize)
    if bits is None or x.dtype.kind not in "fV":
        return np.where(mask, x, np.zeros((), x.dtype))
    return np.multiply(x.view(bits), mask).view(x.dtype)


def choose(mask: NDArray, x: NDArray, y: NDArray) -> NDArray:
    """`x` where `mask` is true, else `y`; all broadcast, both of one floating type."""
    if mask.size < _FEW:
        return np.where(mask, x, y)
    bits = _BITS[x.dtype.itemsize]
    kept, other = keep_where(mask, x), keep_where(np.logical_not(mask), y)
    out = kept.view(bits) if kept.ndim and kept.shape == other.shape else None
    return np.bitwise_or(kept.view(bits), other.view(bits), out=out).view(x.dtype)


@pointwise(twin="hardtanh")
def limited(x: NDArray, *, low: float, high: float) -> NDArray:
    """`x` limited to ``[low, high]``, where `high` wins; NaN stays."""
    return np.minimum(np.maximum(x, low), high)


def relu_in_place(x: NDArray) -> None:
    """Write 0 where `x` is negative."""
    if not in_place("relu_in_place", (x,)):
        np.maximum(x, 0, out=x)
