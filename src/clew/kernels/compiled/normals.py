"""Twin of the Box-Muller transform of ``rng/box_muller.py``, to the bit.  Layer 1; imports numba.

Each step is that of `blocks32` there, which says why it rounds where it does; so no liberties.
"""

from __future__ import annotations

import numpy as np

from clew.kernels.compiled.kernel import kernel
from clew.rng import box_muller as numbers

# Of int32, since with other integers everything would become int64.
_INTEGER, _SINGLE, _DOUBLE = np.int32, np.float32, np.float64
_HALF_SQRT2_BITS, _MANTISSA, _SHIFT = numbers.HALF_SQRT2_BITS, np.int32(0x7FFFFF), np.int32(23)
_LOG_SERIES, _LOG2_LOW, _LOG2_HIGH = numbers.LOG_SERIES, numbers.LOG2_LOW, numbers.LOG2_HIGH
_TWO_PI, _FOUR_OVER_PI = numbers.TWO_PI, numbers.FOUR_OVER_PI
_PART0, _PART1, _PART2 = numbers.QUARTER_PI_PARTS
_SINE0, _SINE1, _SINE2 = numbers.SINE_SERIES
_COSINE0, _COSINE1, _COSINE2 = numbers.COSINE_SERIES
_ONE, _TWO, _FOUR = np.int32(1), np.int32(2), np.int32(4)


@kernel("float32[::1]", "float32[::1]", frozenset())
def radii(out, u):
    """``sqrt(-2 log(u))``."""
    for i in range(out.shape[0]):
        offset = _INTEGER(_INTEGER(np.float32(u[i]).view(np.int32)) - _HALF_SQRT2_BITS)
        exponent = _DOUBLE(_INTEGER(offset >> _SHIFT))
        bits = _INTEGER(_INTEGER(offset & _MANTISSA) + _HALF_SQRT2_BITS)
        x = _DOUBLE(np.int32(bits).view(np.float32)) - 1.0
        square = _DOUBLE(_SINGLE(x * x))
        series = _LOG_SERIES[0]
        for k in range(1, 9):
            series = _DOUBLE(_SINGLE(series * x + _LOG_SERIES[k]))
        low = _DOUBLE(_SINGLE(exponent * _LOG2_LOW))
        tail = _DOUBLE(_SINGLE(_DOUBLE(_SINGLE(series * x)) * square + low))
        tail = _DOUBLE(_SINGLE(square * -0.5 + tail))
        log = _DOUBLE(_SINGLE(exponent * _LOG2_HIGH + _DOUBLE(_SINGLE(x + tail))))
        out[i] = _SINGLE(np.sqrt(-2.0 * log))


@kernel("float32[::1], float32[::1]", "float32[::1], float32[::1], float64, float64", frozenset())
def normals(first, second, radius, v, scale, shift):
    """``radius * cos(2 pi v) * scale + shift`` and the same with the sine."""
    for i in range(first.shape[0]):
        x = _DOUBLE(_SINGLE(_TWO_PI * _DOUBLE(v[i])))
        octant = _INTEGER(_SINGLE(x * _FOUR_OVER_PI))
        octant = _INTEGER(octant + _INTEGER(octant & _ONE))
        turns = _DOUBLE(octant)
        x = _DOUBLE(_SINGLE(turns * _PART0 + x))
        x = _DOUBLE(_SINGLE(turns * _PART1 + x))
        x = _DOUBLE(_SINGLE(turns * _PART2 + x))
        square = _DOUBLE(_SINGLE(x * x))
        cosine = _DOUBLE(_SINGLE(_COSINE0 * square + _COSINE1))
        cosine = _DOUBLE(_SINGLE(cosine * square + _COSINE2))
        cosine = _DOUBLE(_SINGLE(_DOUBLE(_SINGLE(cosine * square)) * square + -0.5 * square))
        cosine = _DOUBLE(_SINGLE(cosine + 1.0))
        sine = _DOUBLE(_SINGLE(_SINE0 * square + _SINE1))
        sine = _DOUBLE(_SINGLE(sine * square + _SINE2))
        sine = _DOUBLE(_SINGLE(_DOUBLE(_SINGLE(sine * square)) * x + x))
        swapped = _INTEGER(octant & _TWO) != 0
        sine, cosine = (cosine, sine) if swapped else (sine, cosine)
        sine *= 1.0 - 0.5 * _DOUBLE(_INTEGER(octant & _FOUR))
        cosine *= 0.5 * _DOUBLE(_INTEGER(_INTEGER(octant - _TWO) & _FOUR)) - 1.0
        size = _DOUBLE(radius[i])
        first[i] = _SINGLE(_DOUBLE(_SINGLE(size * cosine)) * scale + shift)
        second[i] = _SINGLE(_DOUBLE(_SINGLE(size * sine)) * scale + shift)
