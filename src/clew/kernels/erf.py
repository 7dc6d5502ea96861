"""The error function and the activation made of it. Imports NumPy and sibling kernels."""

from math import pi, sqrt

import numpy as np
from numpy.typing import NDArray

from . import special
from .pointwise import pointwise

# erf(x) = tanh(x * p(x**2)). The coefficients of p, lowest first, were fitted to float32: the
# error is below three units in the last place, and beyond the edge the result is 1.
_COEFFICIENTS = tuple(
    map(
        np.float32,
        (
            1.1283792, 0.10277216, -2.0665306e-4, -5.953091e-4, 6.9322166e-5, 1.3258984e-6,
            -1.2887816e-6, 1.5612432e-7, -8.466084e-9, 1.7864452e-10,
        ),
    )
)  # fmt: skip
_EDGE = np.float32(4.1)


@pointwise(twin="erf")
def erf(x: NDArray) -> NDArray:
    """2 / sqrt(pi) times the integral of exp(-t**2) from 0 to `x`, in float32 or float64."""
    if x.dtype != np.float32:
        return special.erf(x)
    x = np.asarray(np.minimum(np.maximum(x, -_EDGE), _EDGE))
    square = np.multiply(x, x)
    p = np.asarray(np.multiply(square, _COEFFICIENTS[-1]))
    for c in _COEFFICIENTS[-2:0:-1]:
        p += c
        p *= square
    p += _COEFFICIENTS[0]
    p *= x
    return np.tanh(p, out=p)


def normal_cdf(x: NDArray) -> NDArray:
    """The probability that a standard normal variable is below `x`."""
    out = erf(np.multiply(x, sqrt(0.5)))
    out += 1
    out *= 0.5
    return out


def normal_pdf(x: NDArray) -> NDArray:
    """The density of a standard normal variable."""
    out = np.asarray(np.multiply(x, x))
    out *= -0.5
    np.exp(out, out=out)
    out *= 1 / sqrt(2 * pi)
    return out
