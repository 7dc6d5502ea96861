"""Twins of divisions with a remainder by a number, (N,) to (N,).  Layer 1; imports numba.

float32 only: the integer part of a quotient times the divisor is exact in float64 if the quotient
is not huge.  Elements of which it is are left to the C library, in a second loop.
"""

from __future__ import annotations

import numpy as np

from clew.kernels.compiled.kernel import inline, kernel

_LARGEST = np.float64(2.0**28)


@inline
def _is_exact(x, y):
    return abs(np.float64(x) / np.float64(y)) < _LARGEST


@inline
def _rest(x, y):
    """The rest of x / y, with the sign of x."""
    a, b = np.float64(x), np.float64(y)
    rest = a - np.trunc(a / b) * b
    # The quotient may have been rounded up to the next integer.
    size = abs(b)
    more, less = rest + size, rest - size
    rest = more if a > 0 and rest < 0 else rest
    return np.float32(less if a < 0 and rest > 0 else rest)


@inline
def _modulo(rest, y):
    """The rest with the sign of y."""
    other = rest + y
    return other if rest != 0 and (rest < 0) != (y < 0) else rest


@inline
def _floored(x, rest, y):
    """The quotient without a rest, rounded down; as Python computes it."""
    whole = (x - rest) / y
    lower = whole - np.float32(1)
    whole = lower if rest != 0 and (rest < 0) != (y < 0) else whole
    floor = np.floor(whole)
    next_ = floor + np.float32(1)
    return next_ if whole - floor > np.float32(0.5) else floor


@kernel("float32[::1]", "float32[::1], float32")
def fmod(out, x, y):
    inexact = 0
    for i in range(out.shape[0]):
        out[i] = _rest(x[i], y)
        inexact += not _is_exact(x[i], y)
    if inexact:
        for i in range(out.shape[0]):
            if not _is_exact(x[i], y):
                out[i] = np.fmod(x[i], y)


@kernel("float32[::1]", "float32[::1], float32")
def remainder(out, x, y):
    inexact = 0
    for i in range(out.shape[0]):
        out[i] = _modulo(_rest(x[i], y), y)
        inexact += not _is_exact(x[i], y)
    if inexact:
        for i in range(out.shape[0]):
            if not _is_exact(x[i], y):
                out[i] = _modulo(np.fmod(x[i], y), y)


@kernel("float32[::1]", "float32[::1], float32")
def floor_divide(out, x, y):
    inexact = 0
    for i in range(out.shape[0]):
        out[i] = _floored(x[i], _rest(x[i], y), y)
        inexact += not _is_exact(x[i], y)
    if inexact:
        for i in range(out.shape[0]):
            if not _is_exact(x[i], y):
                out[i] = _floored(x[i], np.fmod(x[i], y), y)
