"""How formulas of several passes run over arrays. Imports NumPy and sibling kernels.

A formula such as ``0.5 * x * (1 + tanh(...))`` makes an array for each step. On large arrays each
of them would be fresh memory, written once and read once from outside the cache. In blocks they
stay in the cache, and their memory is used again.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .half import is_half, widen

# Elements of a block: a few of these in float32 fit a second-level cache (measured).
BLOCK = 1 << 14


def pointwise(formula: Callable[..., Any]) -> Callable[..., NDArray]:
    """Decorate an elementwise formula of floating arrays whose result is like the first one.

    Halves are computed in float32 and rounded once. The arrays come first, by position.
    """

    @wraps(formula)
    def whole(*arrays: NDArray, **attributes: Any) -> NDArray:
        first = arrays[0]
        half = is_half(first.dtype)
        if first.size > BLOCK and _are_lines(arrays):
            return _in_blocks(formula, arrays, attributes)
        if half:
            result = formula(*map(widen, arrays), **attributes)
            return np.asarray(result).astype(first.dtype)
        return np.asarray(formula(*arrays, **attributes))

    return whole


def _are_lines(arrays: tuple[NDArray, ...]) -> bool:
    """Whether all arrays have the same shape and lie in order."""
    shape = arrays[0].shape
    return all(a.shape == shape and a.flags.c_contiguous for a in arrays)


def _in_blocks(
    formula: Callable[..., Any], arrays: tuple[NDArray, ...], attributes: dict[str, Any]
) -> NDArray:
    out = np.empty(arrays[0].shape, arrays[0].dtype)
    flat_out = out.reshape(-1)
    flat = [a.reshape(-1) for a in arrays]
    for start in range(0, out.size, BLOCK):
        block = slice(start, start + BLOCK)
        flat_out[block] = formula(*[widen(a[block]) for a in flat], **attributes)
    return out
