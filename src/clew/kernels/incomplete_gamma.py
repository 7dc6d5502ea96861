"""The regularized incomplete gamma functions in double precision. Imports NumPy and siblings.

Below x = a + 1 the power series converges, beyond it the continued fraction: Press et al.,
"Numerical Recipes", section 6.2.
"""

import numpy as np
from numpy.typing import NDArray

from .gamma import lgamma

_MOST_STEPS = 100_000
_TINY = 1e-300


def lower(a: NDArray, x: NDArray) -> NDArray:
    """The integral of t**(a - 1) * exp(-t) from 0 to `x`, divided by gamma(a)."""
    return _both(a, x)[0].astype(a.dtype)


def upper(a: NDArray, x: NDArray) -> NDArray:
    """1 minus `lower`, without loss of digits where that is near 1."""
    return _both(a, x)[1].astype(a.dtype)


def _both(a: NDArray, x: NDArray) -> tuple[NDArray, NDArray]:
    a, x = (np.asarray(v, np.float64) for v in np.broadcast_arrays(a, x))
    below, above = np.full(a.shape, np.nan), np.full(a.shape, np.nan)
    ordinary = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    series = ordinary & (x < a + 1)
    fraction = ordinary & ~series
    below[series] = _series(a[series], x[series])
    above[series] = 1 - below[series]
    above[fraction] = _fraction(a[fraction], x[fraction])
    below[fraction] = 1 - above[fraction]
    nothing = ((x == 0) & (a > 0)) | (np.isinf(a) & (a > 0) & (x >= 0) & np.isfinite(x))
    everything = ((a == 0) & (x > 0)) | (np.isposinf(x) & (a > 0) & np.isfinite(a))
    below[nothing], above[nothing] = 0, 1
    below[everything], above[everything] = 1, 0
    return below, above


def _scale(a: NDArray, x: NDArray) -> NDArray:
    return np.exp(a * np.log(x) - x - lgamma(a))


def _series(a: NDArray, x: NDArray) -> NDArray:
    term = 1 / a
    total = term.copy()
    n = a.copy()
    for _ in range(_MOST_STEPS):
        n += 1
        term = term * x / n
        total += term
        if not np.any(term > total * 1e-17):
            break
    return total * _scale(a, x)


def _fraction(a: NDArray, x: NDArray) -> NDArray:
    """Lentz's method."""
    b = x + 1 - a
    c = np.full_like(b, 1 / _TINY)
    d = 1 / np.where(b == 0, _TINY, b)
    h = d.copy()
    for i in range(1, _MOST_STEPS):
        weight = -i * (i - a)
        b += 2
        d = weight * d + b
        d = 1 / np.where(d == 0, _TINY, d)
        c = b + weight / c
        c = np.where(c == 0, _TINY, c)
        h *= d * c
        if not np.any(np.abs(d * c - 1) > 1e-16):
            break
    return h * _scale(a, x)
