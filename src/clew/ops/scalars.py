"""Python numbers that are to become elements of an array.  Layer 2: imports dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.dtypes import of_numpy

_C_NAMES = {
    "uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int", "int64": "int64_t",
    "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t",
    "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double",
    "complex64": "c10::complex<float>",
}  # fmt: skip
_HALVES = frozenset({"float16", "bfloat16"})
_SAFE = 2.0**15  # every floating type holds it
_LARGEST = {
    "float16": 65504.0, "bfloat16": (2 - 2**-7) * 2.0**127, "float32": (2 - 2**-23) * 2.0**127,
    "complex64": (2 - 2**-23) * 2.0**127,
}  # fmt: skip


def checked_number(value: Any, numpy_dtype: np.dtype, *, rounds: bool = False) -> Any:
    """`value` as a number that NumPy writes into `numpy_dtype` as PyTorch would.

    An unsigned type takes negative integers modulo its range, as in C.  With `rounds` a half takes
    any double, and may become infinite: so it is where PyTorch makes a tensor of the number.

    Raises:
        RuntimeError: the type cannot hold it.
        ValueError: an integer of more than 64 bits.
    """
    kind = numpy_dtype.kind
    if value.__class__ is float and kind == "f" and -_SAFE <= value <= _SAFE:
        return value
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError("Overflow when unpacking long long")
    if kind == "b":
        return bool(value)
    if isinstance(value, complex) and kind != "c":
        if value.imag:
            raise _overflow(numpy_dtype, rounds)
        value = value.real
    if kind in "iu":
        return _checked_integer(value, numpy_dtype)
    name = of_numpy(numpy_dtype).name
    if name in _LARGEST and not (rounds and name in _HALVES) and not _fits(value, _LARGEST[name]):
        raise _overflow(numpy_dtype)
    return value


def _checked_integer(value: Any, numpy_dtype: np.dtype) -> int:
    limits = np.iinfo(numpy_dtype)
    lowest, largest = int(limits.min), int(limits.max)
    if isinstance(value, int) and numpy_dtype.kind == "u":
        lowest = -largest
    # Not "value < lowest or value > largest": NaN must fail.
    if not lowest <= value <= largest:
        raise _overflow(numpy_dtype)
    return int(value) % (largest + 1) if numpy_dtype.kind == "u" else int(value)


def _fits(value: Any, largest: float) -> bool:
    parts = (value.real, value.imag) if isinstance(value, complex) else (float(value),)
    return all(abs(p) <= largest or abs(p) == np.inf or p != p for p in parts)


def _overflow(numpy_dtype: np.dtype, rounds: bool = False) -> RuntimeError:
    kind = of_numpy(numpy_dtype).name
    name = "double" if rounds and kind in _HALVES else _C_NAMES[kind]
    return RuntimeError(f"value cannot be converted to type {name} without overflow")
