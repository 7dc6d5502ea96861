"""Choosing elements by a mask, without branches. Imports NumPy and sibling kernels.

``np.where`` and boolean indexing branch on every element, which costs ten times a multiplication
where the mask is irregular. A product with the mask would turn an infinity or NaN that is to be
dropped into NaN; so the product here is one of the bits, read as integers.
"""

import numpy as np
from numpy.typing import NDArray

from ..threads import split
from .compiled import twins
from .pointwise import PIECE, in_place, pointwise

_BITS = {2: np.int16, 4: np.int32, 8: np.int64}

# Below so many elements four passes cost more than the branches (measured).
_FEW = 4096

# From so many on a twin takes less than a few passes (measured).
_MANY = 1 << 14

SELECTABLE = frozenset(map(np.dtype, (np.float16, np.float32, np.float64)))
"""The types that `choose` takes."""


def keep_where(mask: NDArray, x: NDArray) -> NDArray:
    """`x` where `mask` is true, else 0; `mask` and `x` broadcast."""
    found = _by_twin("keep_where", mask, x)
    if found is not None:
        return found
    bits = _BITS.get(x.dtype.itemsize)
    if bits is None or x.dtype.kind not in "fV":
        return np.where(mask, x, np.zeros((), x.dtype))
    return np.multiply(x.view(bits), mask).view(x.dtype)


def scale_elsewhere(mask: NDArray, x: NDArray, factor: float) -> NDArray:
    """`x` where `mask` is true, else `x` times a factor from 0 to 1."""
    found = _by_twin("scale_elsewhere", mask, x, factor)
    if found is not None:
        return found
    return np.multiply(x, np.maximum(mask, factor, dtype=x.dtype))


def _by_twin(name: str, mask: NDArray, x: NDArray, *numbers: float) -> NDArray | None:
    """What a twin makes of `x`; None where there is none, or the arrays do not lie alike."""
    if x.size < _MANY or mask.shape != x.shape or mask.dtype != np.bool_:
        return None
    fast = twins("pointwise", x.dtype)
    if fast is None or not all(a.flags.c_contiguous and a.flags.aligned for a in (mask, x)):
        return None
    function, out = getattr(fast, name), np.empty_like(x)
    to, line, which = out.reshape(-1), x.reshape(-1), mask.reshape(-1)
    split(
        lambda start, stop: function(to[start:stop], line[start:stop], which[start:stop], *numbers),
        x.size, PIECE,
    )  # fmt: skip
    return out


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
