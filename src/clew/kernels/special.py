"""The error function and its kin in double precision. Imports NumPy only.

The polynomials are Chebyshev interpolants computed with 60 digits and rounded to double. The error
is at most two units in the last place of a double for erf and erfinv, five for erfc.
"""

from collections.abc import Callable
from functools import wraps
from math import log, pi, sqrt

import numpy as np
from numpy.typing import NDArray

# Blocks of this many doubles stay in the cache from one step of a polynomial to the next.
BLOCK = 1 << 14

# Below the edge erf is a polynomial, above it erfc is the smaller part and leads.
_EDGE = 0.5

# erf(x) / x as a polynomial in x**2, for x up to _EDGE.
_ERF = (
    1.1283791670955126, -0.3761263890318375, 0.1128379167095487, -0.026866170645000076,
    0.005223977622024224, -0.0008548326511566567, 0.00012055286259121393, -1.4923005626894847e-05,
    1.6371282597755977e-06, -1.4621341491012844e-07,
)  # fmt: skip

# (1 + 2x) exp(x**2) erfc(x) as a polynomial in (x - 4) / (x + 3), for x from _EDGE to infinity.
_SCALED_ERFC = (
    1.2329951186255526, -0.12216847723549165, -0.003496013513381622, 0.04665458534669407,
    -0.04180651066447946, 0.02280179960013038, -0.00807360394672379, 0.0013920612341259378,
    0.00024740383326435356, -0.0001978874934084397, 1.747878327157835e-05, 1.886279213285264e-05,
    -4.5763193614013724e-06, -1.912494956940896e-06, 7.220757402161995e-07,
    2.3903257618067707e-07, -1.0291347397917248e-07, -3.631542892688946e-08,
    1.278876941675001e-08, 5.388015094556374e-09, -1.0084957663520975e-09, -4.995581679981226e-10,
)  # fmt: skip

# From here on erfc is less than the smallest double.
_VANISHED = 28.0


def in_double(formula: Callable[..., NDArray]) -> Callable[..., NDArray]:
    """Decorate a function of one vector of doubles: takes floating arrays of any shape and dtype.

    The result is rounded once, to the dtype of the argument, and lies in memory in the order of
    the argument. Further arguments are passed on.
    """

    @wraps(formula)
    def whole(x: NDArray, *rest: float) -> NDArray:
        if not x.flags.c_contiguous:
            x = x.copy(order="K")  # without gaps
        out = np.empty_like(x)
        flat, flat_out = x.ravel("K"), out.ravel("K")
        for start in range(0, flat.size, BLOCK):
            part = slice(start, start + BLOCK)
            flat_out[part] = formula(flat[part].astype(np.float64), *rest)
        return out

    return whole


def polynomial(coefficients: tuple[float, ...], x: NDArray) -> NDArray:
    """The polynomial with these coefficients, lowest first, at `x` (Horner's scheme)."""
    total = np.full_like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        total *= x
        total += c
    return total


@in_double
def erf(x: NDArray) -> NDArray:
    """2 / sqrt(pi) times the integral of exp(-t**2) from 0 to `x`."""
    return _erf(x)


@in_double
def erfc(x: NDArray) -> NDArray:
    """1 - erf(x), exact in relative terms as far as it reaches."""
    tail = _erfc_beyond_edge(np.abs(x))
    return np.where(np.abs(x) < _EDGE, 1 - _erf_within_edge(x), np.where(x > 0, tail, 2 - tail))


def _near_erfinv(log: NDArray) -> NDArray:
    """erfinv(y) to two digits or more, from the logarithm of 1 - y**2: Winitzki's closed form.

    S. Winitzki, "A handy approximation for the error function and its inverse", 2008.
    """
    b, c = 2 / (pi * 0.147) + log / 2, -log / 0.147
    return np.sqrt(c / (np.hypot(b, np.sqrt(c)) + b))


@in_double
def erfinv(y: NDArray) -> NDArray:
    """The `x` for which erf(x) is `y`: infinite at -1 and 1, NaN beyond."""
    return _erfinv(y)


def _erfinv(y: NDArray) -> NDArray:
    """`_near_erfinv` and Halley's steps, each of which triples the digits.

    Where erf nears 1 they are taken on erfc.
    """
    size = np.abs(y)
    x = _near_erfinv(np.log1p(-size) + np.log1p(size))
    for _ in range(3):
        excess = np.where(size < 0.75, _erf(x) - size, (1 - size) - _erfc_beyond_edge(x))
        step = excess * np.exp(x * x) * (sqrt(pi) / 2)
        x -= step / (1 + x * step)
    return np.copysign(np.where(size == 1, np.inf, x), y)


@in_double
def erfcx(x: NDArray) -> NDArray:
    """exp(x**2) times erfc(x), which does not vanish for large `x`."""
    return _erfcx(x)


@in_double
def ndtri(p: NDArray) -> NDArray:
    """The number below which a standard normal variable is with probability `p`.

    In the tails by Newton's steps on the logarithm of the probability, which does not vanish.
    """
    tail = np.minimum(p, 1 - p)
    goal = np.log(tail)
    x = -sqrt(2) * _near_erfinv(goal + np.log1p(-tail) + log(4))
    for _ in range(4):
        reached = _log_ndtr(x)
        x -= (reached - goal) * sqrt(2 * pi) * np.exp(reached + x * x / 2)
    middle = sqrt(2) * _erfinv(2 * p - 1)
    found = np.where(tail > 0.1, middle, np.where(p < 0.5, x, -x))
    return np.where(p == 0, -np.inf, np.where(p == 1, np.inf, found))


@in_double
def log_ndtr(x: NDArray) -> NDArray:
    """The logarithm of the probability that a standard normal variable is below `x`."""
    return _log_ndtr(x)


def _log_ndtr(x: NDArray) -> NDArray:
    t = x / sqrt(2)
    far = np.log(_erfcx(-np.minimum(t, 0)) / 2) - t * t
    near = np.maximum(t, -1)
    tail = np.where(near < _EDGE, 1 - _erf(near), _erfc_beyond_edge(near))
    return np.where(x < -1, far, np.log1p(-tail / 2))


def _erfcx(x: NDArray) -> NDArray:
    large = np.clip(x, _EDGE, 1e150)
    right = polynomial(_SCALED_ERFC, (large - 4) / (large + 3)) / (1 + 2 * large)
    left = np.exp(x * x) * (1 - _erf(np.minimum(x, _EDGE)))
    return np.where(x < _EDGE, left, right)


def _erf(x: NDArray) -> NDArray:
    tail = 1 - _erfc_beyond_edge(np.abs(x))
    return np.where(np.abs(x) < _EDGE, _erf_within_edge(x), np.copysign(tail, x))


def _erf_within_edge(x: NDArray) -> NDArray:
    """erf(x) where the size of `x` is at most the edge; elsewhere any finite number."""
    x = np.clip(x, -_EDGE, _EDGE)
    return x * polynomial(_ERF, x * x)


def _erfc_beyond_edge(x: NDArray) -> NDArray:
    """erfc(x) where `x` is at least the edge; elsewhere any finite number."""
    x = np.clip(x, _EDGE, _VANISHED)
    # The square of a float32 is exact, so no digit of x**2 is lost in the exponential.
    near = x.astype(np.float32).astype(np.float64)
    exponential = np.exp(-near * near) * np.exp((near - x) * (near + x))
    return exponential * polynomial(_SCALED_ERFC, (x - 4) / (x + 3)) / (1 + 2 * x)
