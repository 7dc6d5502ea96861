"""From uniform numbers to normal ones, and `x * scale + shift` with a single rounding.

`blocks32` and `blocks64` transform blocks of 16 uniforms as PyTorch's vectorised `normal_` does.
The float32 one replays AVX2 code of which each multiply-add rounds once, so every step here
rounds to float32 where that code does: numbers of float32 precision are kept in float64 arrays,
in which a product of two is exact. Polynomials: S. L. Moshier, Cephes (logf.c, sinf.c).

Layer 1: imports NumPy, compiled twins and the C library's functions.
"""

import math
import sys
from typing import Any

import numpy as np

from ..kernels.compiled import twins
from . import libm

# Twins give the same numbers, so it matters to nobody when they begin to run: where numba is
# loaded, from so many numbers on; else from where its loading is made up for soon.
MANY, MANY_TO_LOAD = 1 << 6, 1 << 14


def multiply_add(x: np.ndarray, scale: float, shift: float) -> np.ndarray:
    """`x * scale + shift` in float64, rounded once, as a processor's fused multiply-add does.

    The error of the product is computed exactly (T. J. Dekker, 1971), so is that of the sum
    (D. E. Knuth, 1969); both are added back.
    """
    product = x * scale
    total = product + shift
    if scale == 1 or shift == 0:
        return total
    x_high, x_low = _halves(x)
    scale_high, scale_low = _halves(scale)
    product_error = x_high * scale_high - product
    product_error += x_high * scale_low + x_low * scale_high
    product_error += x_low * scale_low
    added = total - product
    sum_error = (product - (total - added)) + (shift - added)
    return np.where(np.isfinite(product_error), total + (sum_error + product_error), total)


def _halves(x):
    """Two numbers of 26 bits whose sum is `x`."""
    scaled = x * 134217729.0  # 2**27 + 1
    high = scaled - (scaled - x)
    return high, x - high


def blocks64(uniforms: np.ndarray, mean: float, std: float) -> np.ndarray:
    """Normal numbers, float64, from float64 uniforms in [0, 1), a multiple of 16 of them."""
    pairs = uniforms.reshape(-1, 2, 8)
    radius = np.sqrt(-2.0 * libm.log(1.0 - pairs[:, 0]))
    angle = 2.0 * math.pi * pairs[:, 1]
    normals = np.empty(pairs.shape)
    normals[:, 0] = radius * libm.cos(angle)
    normals[:, 1] = radius * libm.sin(angle)
    return multiply_add(normals.reshape(-1), std, mean)


def blocks32(uniforms: np.ndarray, mean: float, std: float) -> np.ndarray:
    """Normal numbers, float32, from float32 uniforms in [0, 1), a multiple of 16 of them."""
    pairs = uniforms.reshape(-1, 2, 8)
    scale, shift = float(np.float32(std)), float(np.float32(mean))
    normals = np.empty(pairs.shape, np.float32)
    many = MANY if "numba" in sys.modules else MANY_TO_LOAD
    fast = twins("normals", normals.dtype) if uniforms.size >= many else None
    if fast is not None:
        _compiled(fast, normals, pairs, scale, shift)
        return normals.reshape(-1)
    radius = _round(np.sqrt(-2.0 * _log(np.float32(1) - pairs[:, 0])))
    sine, cosine = _sine_and_cosine(_round(TWO_PI * pairs[:, 1]))
    normals[:, 0] = _round(radius * cosine) * scale + shift
    normals[:, 1] = _round(radius * sine) * scale + shift
    return normals.reshape(-1)


def _compiled(
    fast: Any, normals: np.ndarray, pairs: np.ndarray, scale: float, shift: float
) -> None:
    """What `blocks32` does, by twins."""
    radius, first, second = (np.empty(len(pairs) * 8, np.float32) for _ in range(3))
    fast.radii(radius, (np.float32(1) - pairs[:, 0]).reshape(-1))
    fast.normals(first, second, radius, pairs[:, 1].reshape(-1), scale, shift)
    normals[:, 0] = first.reshape(-1, 8)
    normals[:, 1] = second.reshape(-1, 8)


def _single(*numbers: float) -> tuple[float, ...]:
    return tuple(float(np.float32(number)) for number in numbers)


def _round(x: np.ndarray) -> np.ndarray:
    """`x` rounded to float32 precision, still float64."""
    return x.astype(np.float32).astype(np.float64)


def _fused(x, factor, addend):
    """`x * factor + addend` rounded once to float32 precision; the product is exact."""
    return _round(x * factor + addend)


(TWO_PI,) = _single(2.0 * math.pi)
HALF_SQRT2_BITS = np.int32(0x3F3504F3)  # sqrt(1/2) as float32
LOG_SERIES = _single(
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
)
LOG2_LOW, LOG2_HIGH = _single(-2.12194440e-4, 0.693359375)  # their sum is log(2)


def _log(u: np.ndarray) -> np.ndarray:
    """Natural logarithm of float32 numbers in (0, 1]; the result has float32 precision."""
    # u = 2**exponent * m with m in [sqrt(1/2), sqrt(2)): read both from the bits.
    offset = u.view(np.int32) - HALF_SQRT2_BITS
    exponent = (offset >> np.int32(23)).astype(np.float64)
    mantissa = ((offset & np.int32(0x7FFFFF)) + HALF_SQRT2_BITS).view(np.float32)
    x = mantissa.astype(np.float64) - 1.0
    square = _round(x * x)
    series = LOG_SERIES[0]
    for coefficient in LOG_SERIES[1:]:
        series = _fused(series, x, coefficient)
    tail = _fused(_round(series * x), square, _round(exponent * LOG2_LOW))
    tail = _fused(square, -0.5, tail)
    return _fused(exponent, LOG2_HIGH, _round(x + tail))


(FOUR_OVER_PI,) = _single(4.0 / math.pi)
QUARTER_PI_PARTS = _single(-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)
SINE_SERIES = _single(-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
COSINE_SERIES = _single(2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)


def _sine_and_cosine(angle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sine and cosine of angles in [0, 2 pi); argument and results have float32 precision."""
    octant = _round(angle * FOUR_OVER_PI).astype(np.int32)
    octant += octant & 1  # up to the next even one: the rest is then at most pi / 4
    x = angle
    for part in QUARTER_PI_PARTS:  # pi / 4 in three parts, so that the difference stays exact
        x = _fused(octant, part, x)
    square = _round(x * x)
    cosine = _polynomial(COSINE_SERIES, square)
    cosine = _round(_fused(_round(cosine * square), square, -0.5 * square) + 1.0)
    sine = _polynomial(SINE_SERIES, square)
    sine = _fused(_round(sine * square), x, x)
    # A quarter turn swaps the two; half turns change the signs.
    swapped = (octant & 2) != 0
    sine, cosine = np.where(swapped, cosine, sine), np.where(swapped, sine, cosine)
    sine *= 1.0 - 0.5 * (octant & 4)
    cosine *= 0.5 * ((octant - 2) & 4) - 1.0
    return sine, cosine


def _polynomial(coefficients: tuple[float, ...], x: np.ndarray):
    first, *others = coefficients
    total = first
    for coefficient in others:
        total = _fused(total, x, coefficient)
    return total
