"""Orthogonal polynomials of any degree, by their recurrences, in double precision.

Imports NumPy only. Formulas: NIST Digital Library of Mathematical Functions, chapter 18 (table
18.9.1 and section 18.5).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Family(NamedTuple):
    """One family of polynomials p(0) = 1, p(1), p(2), ...

    Attributes:
        first: p(1), a function of `x`.
        after: p(k + 1), a function of `k`, `x`, p(k) and p(k - 1).
        angle: of `n` and the angle whose cosine is `x`, in (-1, 1): p(n), or None.
        shifted: the argument is 2 `x` - 1.
        limits: the highest degree in single and in double precision; beyond it is nan.
    """

    first: Callable[[Any], Any]
    after: Callable[[int, Any, Any, Any], Any]
    angle: Callable[[Any, Any], Any] | None = None
    shifted: bool = False
    limits: tuple[float, float] = (np.inf, np.inf)


_ANGLES_FROM = 7
"""From this degree on sines and cosines are as exact as a recurrence, and faster."""


def _chebyshev(k: int, x: Any, p: Any, before: Any) -> Any:
    return 2 * x * p - before


_CHEBYSHEV = {
    "t": Family(lambda x: x, _chebyshev, lambda n, a: np.cos(n * a)),
    "u": Family(lambda x: 2 * x, _chebyshev, lambda n, a: np.sin((n + 1) * a) / np.sin(a)),
    "v": Family(
        lambda x: 2 * x - 1, _chebyshev, lambda n, a: np.cos((n + 0.5) * a) / np.cos(a / 2)
    ),
    "w": Family(
        lambda x: 2 * x + 1, _chebyshev, lambda n, a: np.sin((n + 0.5) * a) / np.sin(a / 2)
    ),
}

FAMILIES = {
    **{f"chebyshev_polynomial_{kind}": family for kind, family in _CHEBYSHEV.items()},
    **{
        f"shifted_chebyshev_polynomial_{kind}": family._replace(shifted=True)
        for kind, family in _CHEBYSHEV.items()
    },
    "hermite_polynomial_h": Family(
        lambda x: 2 * x, lambda k, x, p, before: 2 * x * p - 2 * k * before, limits=(128, 512)
    ),
    "hermite_polynomial_he": Family(
        lambda x: x, lambda k, x, p, before: x * p - k * before, limits=(128, 512)
    ),
    "laguerre_polynomial_l": Family(
        lambda x: 1 - x, lambda k, x, p, before: ((2 * k + 1 - x) * p - k * before) / (k + 1)
    ),
    "legendre_polynomial_p": Family(
        lambda x: x, lambda k, x, p, before: ((2 * k + 1) * x * p - k * before) / (k + 1)
    ),
}
"""By PyTorch's names."""


def evaluate(family: Family, x: NDArray, n: NDArray) -> NDArray:
    """The polynomials of the degrees `n`, cut to integers, at `x`; 0 for negative degrees.

    `x` and `n` are of one floating type and are broadcast.
    """
    limit = family.limits[x.dtype == np.float64]
    shape = np.broadcast_shapes(x.shape, n.shape)
    points = np.broadcast_to(x, shape).astype(np.float64)
    degrees = np.trunc(np.where(np.isnan(n), -1, n))
    degrees = np.broadcast_to(degrees, shape)
    if family.shifted:
        points = 2 * points - 1
    found = np.where(degrees < 0, 0.0, np.where(degrees > limit, np.nan, 1.0))
    pending = (degrees >= 1) & (degrees <= limit)
    if family.angle is not None:
        by_angle = pending & (degrees >= _ANGLES_FROM) & (np.abs(points) < 1)
        found[by_angle] = family.angle(degrees[by_angle], np.arccos(points[by_angle]))
        pending &= ~by_angle
    found[pending] = _recur(family, points[pending], degrees[pending])
    return found.astype(x.dtype)


def _recur(family: Family, x: NDArray, n: NDArray) -> NDArray:
    """The polynomials of degrees from 1 on, one number after the other."""
    before, p = np.ones_like(x), family.first(x)
    found = p
    for k in range(1, int(n.max(initial=1))):
        before, p = p, family.after(k, x, p, before)
        found = np.where(n > k, p, found)
    return found
