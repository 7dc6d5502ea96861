"""Functions of one number that twins call.  Layer 1; imports numba.

The C library's functions cannot become vector instructions.  Those here for float32 can: they have
no branches, only selections.  For float64 the C library's are used.  A twin calls ``exp(x)``, and
gets the one for the type of x.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from clew.kernels.compiled.kernel import inline

# Constants are float32: with one Python float everything would become float64.
_ONE = np.float32(1)
_HALF = np.float32(0.5)


def exp(x: Any) -> Any:
    """The exponential of x."""
    return math.exp(x)


_LOG2_E = np.float32(1.4426950408889634)
_LN2_HIGH = np.float32(0.693359375)
_LN2_LOW = np.float32(-2.12194440e-4)
_LOWEST = np.float32(-104)  # exp of it rounds to 0
_HIGHEST = np.float32(89)  # exp of it is infinite
# A polynomial for (exp(r) - 1 - r) / r**2 on [-ln(2)/2, ln(2)/2], from Cephes (expf).
_P0, _P1, _P2 = (
    np.float32(1.9875691500e-4),
    np.float32(1.3981999507e-3),
    np.float32(8.3334519073e-3),
)
_P3, _P4, _P5 = np.float32(4.1665795894e-2), np.float32(1.6666665459e-1), np.float32(0.5)


@inline
def _exp32(x):
    """2**n * exp(r), with n the integer nearest to x / ln(2)."""
    c = x if x > _LOWEST else _LOWEST  # also for NaN, which has no integer
    c = c if c < _HIGHEST else _HIGHEST
    n = np.floor(c * _LOG2_E + _HALF)
    r = c - n * _LN2_HIGH - n * _LN2_LOW
    p = ((((_P0 * r + _P1) * r + _P2) * r + _P3) * r + _P4) * r + _P5
    p = p * r * r + r + _ONE
    # In two steps: 2**n alone would be infinite, or 0, where the product is neither.
    whole = np.int32(n)
    half = np.int32(whole >> np.int32(1))
    result = p * _power_of_two(half) * _power_of_two(np.int32(whole - half))
    return x if x != x else result


@inline
def _power_of_two(n):
    """2**n for an int32 n from -126 to 127: a float32 of that exponent."""
    return np.int32((n + np.int32(127)) << np.int32(23)).view(np.float32)


@overload(exp)
def _exp(x):
    if x == types.float32:
        return lambda x: _exp32(x)
    return lambda x: math.exp(x)
