"""Choosing elements by a mask, without branches. Imports NumPy only.

``np.where`` and boolean indexing branch on every element, which costs ten times a multiplication
where the mask is irregular. A product with the mask would turn an infinity or NaN that is to be
dropped into NaN; so the product here is one of the bits, read as integers.
"""

import numpy as np
from numpy.typing import NDArray

_BITS = {2: np.int16, 4: np.int32, 8: np.int64}


def keep_where(mask: NDArray, x: NDArray) -> NDArray:
    """`x` where `mask` is true, else 0; `mask` and `x` broadcast."""
    bits = _BITS.get(x.dtype.itemsize)
    if bits is None or x.dtype.kind not in "fV":
        return np.where(mask, x, np.zeros((), x.dtype))
    return np.multiply(x.view(bits), mask).view(x.dtype)


def choose(mask: NDArray, x: NDArray, y: NDArray) -> NDArray:
    """`x` where `mask` is true, else `y`; both of one floating type."""
    out = np.asarray(keep_where(mask, x))
    bits = _BITS[x.dtype.itemsize]
    other = keep_where(np.logical_not(mask), y)
    np.bitwise_or(out.view(bits), other.view(bits), out=out.view(bits))
    return out
