"""Twins of the casts between halves and float32.  Layer 1; imports numba.

Halves (N,) come as the 16 bits that they are: numba has no arithmetic for them.  Rounding is to
the nearest, ties to even; NaN stays some NaN.  "half" is float16, "brain" is bfloat16.
"""

from __future__ import annotations

import numpy as np

from clew.kernels.compiled.kernel import inline, kernel

# Of int32, since with other integers everything would become int64.
_INTEGER = np.int32
_SIGN, _REST = np.int32(0x8000), np.int32(0x7FFF)
_ONE, _HALF_SHIFT, _BRAIN_SHIFT = np.int32(1), np.int32(13), np.int32(16)
_HALF_SPECIAL, _SPECIAL = np.int32(0x7C00), np.int32(0x7F800000)
_HALF_NAN, _BRAIN_NAN = np.int32(0x7E00), np.int32(0x7FC0)
_HALF_TOO_LARGE, _HALF_NORMAL = np.int32(0x47800000), np.int32(0x38800000)
_BIAS = np.float32(2.0**112)  # by which a float16 read as a float32 is too small
_REBIAS = np.int32(-(112 << 23) + 0xFFF)
_TO_DENORMAL, _HALF_BITS = np.float32(0.5), np.int32(0x3F000000)


@kernel("float32[::1]", "uint16[::1]")
def widen_half(out, x):
    for i in range(out.shape[0]):
        h = _INTEGER(x[i])
        rest = _INTEGER(h & _REST)
        bits = _INTEGER(rest << _HALF_SHIFT)
        value = _INTEGER(np.float32(bits.view(np.float32) * _BIAS).view(np.int32))
        bits = _INTEGER(bits | _SPECIAL) if rest >= _HALF_SPECIAL else value
        out[i] = _INTEGER(bits | _INTEGER(_INTEGER(h & _SIGN) << _BRAIN_SHIFT)).view(np.float32)


@inline
def _rounded_half(size):
    """The bits of a float16 from those of a float32 that is not negative."""
    # Adding 1/2 puts the last digit of a denormal float16 where that of a float32 is.
    sum_ = np.float32(_INTEGER(size).view(np.float32) + _TO_DENORMAL)
    small = _INTEGER(_INTEGER(sum_.view(np.int32)) - _HALF_BITS)
    odd = _INTEGER(_INTEGER(size >> _HALF_SHIFT) & _ONE)
    usual = _INTEGER(_INTEGER(_INTEGER(size + _REBIAS) + odd) >> _HALF_SHIFT)
    large = _HALF_NAN if size > _SPECIAL else _HALF_SPECIAL
    result = small if size < _HALF_NORMAL else usual
    return large if size >= _HALF_TOO_LARGE else result


@kernel("uint16[::1]", "float32[::1]")
def narrow_half(out, x):
    for i in range(out.shape[0]):
        bits = _INTEGER(np.float32(x[i]).view(np.int32))
        sign = _INTEGER(_INTEGER(bits >> _BRAIN_SHIFT) & _SIGN)
        size = _INTEGER(bits & np.int32(0x7FFFFFFF))
        out[i] = np.uint16(_INTEGER(_rounded_half(size) | sign))


@kernel("float32[::1]", "uint16[::1]")
def widen_brain(out, x):
    for i in range(out.shape[0]):
        out[i] = _INTEGER(_INTEGER(x[i]) << _BRAIN_SHIFT).view(np.float32)


@kernel("uint16[::1]", "float32[::1]")
def narrow_brain(out, x):
    for i in range(out.shape[0]):
        bits = _INTEGER(np.float32(x[i]).view(np.int32))
        odd = _INTEGER(_INTEGER(bits >> _BRAIN_SHIFT) & _ONE)
        rounded = _INTEGER(_INTEGER(_INTEGER(bits + _REST) + odd) >> _BRAIN_SHIFT)
        nan = _INTEGER(_INTEGER(_INTEGER(bits >> _BRAIN_SHIFT) & _SIGN) | _BRAIN_NAN)
        out[i] = np.uint16(nan if x[i] != x[i] else rounded)
