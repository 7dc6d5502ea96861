"""The logarithm of the gamma function and its derivatives, in double precision.

Imports NumPy and sibling kernels. Formulas: NIST Digital Library of Mathematical Functions,
chapter 5 (recurrence, reflection, Stirling's series) and 25.11 (Hurwitz's zeta function).
"""

from math import factorial, inf, log, pi

import numpy as np
from numpy.typing import NDArray

from .special import in_double, polynomial

# log(gamma(2 + z)) / z as a polynomial, for z from -1/2 to 1/2: a Chebyshev interpolant computed
# with 60 digits.
_NEAR_TWO = (
    0.42278433509846713, 0.3224670334241132, -0.06735230105319814, 0.02058080842778463,
    -0.007385551028668096, 0.0028905103307343394, -0.0011927539120033873, 0.0005096695250262799,
    -0.00022315475069647703, 9.945750665169756e-05, -4.492635166770342e-05,
    2.0507292365464966e-05, -9.438454884054723e-06, 4.374221208333783e-06, -2.044935323180052e-06,
    9.584290249224467e-07, -4.303234692956732e-07, 2.0192169921430407e-07, -1.341570273460026e-07,
    6.473973449314896e-08,
)  # fmt: skip

# Bernoulli's numbers B2, B4, ...: from _FAR on, that many terms of an asymptotic series are exact.
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
_FAR = 10

_STIRLING = tuple(b / (2 * k * (2 * k - 1)) for k, b in enumerate(_BERNOULLI, start=1))
_DIGAMMA = tuple(b / (2 * k) for k, b in enumerate(_BERNOULLI, start=1))

# A sum over the steps from a negative argument to _FAR ends here.
_MOST_STEPS = 10_000


@in_double
def lgamma(x: NDArray) -> NDArray:
    """The logarithm of the size of gamma(x); infinite at 0 and the negative integers."""
    reflected = x < 0.5
    right = _lgamma_from_half(np.where(reflected, 1 - x, x))
    left = log(pi) - np.log(np.abs(np.sin(pi * (x - np.round(x))))) - right
    return np.where(np.isinf(x), np.inf, np.where(reflected, left, right))


def _lgamma_from_half(x: NDArray) -> NDArray:
    """lgamma(x) where `x` is 1/2 or more: near 2 a polynomial, from _FAR on Stirling's series."""
    near = np.clip(x, 0.5, _FAR)
    steps = np.floor(near - 1.5)
    product = np.ones_like(x)
    for i in range(1, _FAR - 1):
        product *= np.where(i <= steps, near - i, 1)
    from_two = near - (steps + 2)
    middle = from_two * polynomial(_NEAR_TWO, from_two)
    middle += np.where(steps < 0, -np.log(near), np.log(product))

    far = np.maximum(x, _FAR)
    series = polynomial(_STIRLING, 1 / (far * far)) / far
    stirling = (far - 0.5) * np.log(far) - far + log(2 * pi) / 2 + series
    return np.where(x < _FAR, middle, stirling)


@in_double
def digamma(x: NDArray) -> NDArray:
    """The derivative of `lgamma`: infinite at 0; as in PyTorch NaN at negative integers."""
    reflected = x < 0
    y = np.where(reflected, 1 - x, x)
    total = np.zeros_like(x)
    for _ in range(_FAR):
        small = y < _FAR
        total -= np.where(small, 1 / y, 0)
        y += small
    total += np.log(y) - 0.5 / y - polynomial(_DIGAMMA, 1 / (y * y)) / (y * y)
    to_integer = x - np.round(x)
    left = np.where(to_integer == 0, np.nan, total - pi / np.tan(pi * to_integer))
    return np.where(x == 0, np.copysign(np.inf, -x), np.where(reflected, left, total))


def polygamma(n: int, x: NDArray) -> NDArray:
    """The n-th derivative of `digamma`.

    Beyond some 10,000 to the left of zero it is NaN for n from 2 on. Raises RuntimeError for a
    negative `n`.
    """
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return digamma(x) if n == 0 else _polygamma(x, n)


@in_double
def _polygamma(x: NDArray, n: int) -> NDArray:
    reflected = x < 0.5 if n == 1 else np.zeros(x.shape, bool)
    right = (
        (-1) ** (n + 1)
        * _factorial(n)
        * _zeta(np.full_like(x, n + 1), np.where(reflected, 1 - x, x))
    )
    left = (pi / np.sin(pi * (x - np.round(x)))) ** 2 - right
    return np.where(reflected, left, right)


def _factorial(n: int) -> float:
    return float(factorial(n)) if n <= 170 else inf


def zeta(s: NDArray, q: NDArray) -> NDArray:
    """Hurwitz's zeta function, the sum of (q + k)**-s over all k; arrays of one type, broadcast.

    As PyTorch has it: infinite for s = 1 and at q = 0, -1, ...; nan for s below 1, and left of
    zero for other than integer s; nan beyond some 10,000 to the left of zero.
    """
    shape, kind = np.broadcast_shapes(s.shape, q.shape), s.dtype
    s, q = (np.broadcast_to(a, shape).astype(np.float64) for a in (s, q))
    found = _zeta(s, q)
    found = np.where((q <= 0) & (s != np.floor(s)), np.nan, found)
    found = np.where((q <= 0) & (q == np.floor(q)), np.inf, found)
    return np.where(s == 1, np.inf, np.where(s < 1, np.nan, found)).astype(kind)


def _zeta(s: NDArray, q: NDArray) -> NDArray:
    """The sum of (q + k)**-s, by Euler and Maclaurin, where s is above 1."""
    total = np.zeros_like(q)
    for k in range(_MOST_STEPS):
        small = (q < _FAR) | (k < _FAR)
        if not small.any():
            break
        total += np.where(small, q**-s, 0)
        q = q + small
    total += q ** (1 - s) / (s - 1) + 0.5 * q**-s
    rising, inverse = s * q ** (-s - 1), 1 / (q * q)
    for k, b in enumerate(_BERNOULLI, start=1):
        total += b / factorial(2 * k) * rising
        rising = rising * ((s + 2 * k - 1) * (s + 2 * k) * inverse)
    return np.where(q < _FAR, np.nan, total)
