"""Where samples go: dtypes by PyTorch's names, the order of visiting, and filling in chunks.

Layer 1: imports NumPy, the dtypes' names and this package's generator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..dtypes import of_numpy, scalar_name
from .generator import Generator, default_generator

CHUNK = 2**14
"""Elements drawn at a time: enough to amortise NumPy's calls, few enough to stay in cache."""


class Range(NamedTuple):
    """What a dtype can hold, and its C++ name, which some of PyTorch's messages print."""

    c_name: str
    digits: int
    """Significand bits of a real floating-point dtype; 0 for any other."""
    largest: float


_RANGES = {
    "bool": Range("bool", 0, 1),
    "uint8": Range("unsigned char", 0, 2**8 - 1),
    "int8": Range("signed char", 0, 2**7 - 1),
    "int16": Range("short int", 0, 2**15 - 1),
    "int32": Range("int", 0, 2**31 - 1),
    "int64": Range("long int", 0, 2**63 - 1),
    "uint16": Range("short unsigned int", 0, 2**16 - 1),
    "uint32": Range("unsigned int", 0, 2**32 - 1),
    "uint64": Range("long unsigned int", 0, 2**64 - 1),
    "float16": Range("c10::Half", 11, 65504.0),
    "bfloat16": Range("c10::BFloat16", 8, (2 - 2.0**-7) * 2.0**127),
    "float32": Range("float", 24, float(np.finfo(np.float32).max)),
    "float64": Range("double", 53, float(np.finfo(np.float64).max)),
    "complex64": Range("c10::complex<float>", 0, 0),
    "complex128": Range("c10::complex<double>", 0, 0),
}
_WIDE_UNSIGNED = (np.dtype(np.uint16), np.dtype(np.uint32), np.dtype(np.uint64))


def range_of(dtype: np.dtype) -> Range:
    """The facts about a dtype (bfloat16 is the one of ml_dtypes)."""
    return _RANGES[of_numpy(dtype).name]


def is_floating(dtype: np.dtype) -> bool:
    """Whether `dtype` is float16, bfloat16, float32 or float64."""
    return range_of(dtype).digits > 0


def is_half(dtype: np.dtype) -> bool:
    """Whether `dtype` is float16 or bfloat16, which PyTorch computes with in float32."""
    return dtype.itemsize == 2 and dtype.kind in "fV"


def is_common(dtype: np.dtype) -> bool:
    """Whether `dtype` is neither complex nor an unsigned one wider than uint8.

    PyTorch has few kernels for those unsigned types.
    """
    return dtype.kind != "c" and dtype not in _WIDE_UNSIGNED


def not_implemented(kernel: str, dtype: np.dtype) -> NotImplementedError:
    """PyTorch's error for a dtype that a sampler does not take."""
    return NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(dtype)}'")


def require_floating(kernel: str, dtype: np.dtype) -> None:
    """Raise `not_implemented` unless `dtype` is a real floating-point one."""
    if not is_floating(dtype):
        raise not_implemented(kernel, dtype)


def pick(generator: Generator | None) -> Generator:
    """`generator`, or the default one for None.

    Raises TypeError if it is no generator.
    """
    if generator is None:
        return default_generator
    if not isinstance(generator, Generator):
        raise TypeError(
            "argument 'generator' must be torch.Generator, not " + type(generator).__name__
        )
    return generator


def visiting_axes(array: np.ndarray) -> tuple[int, ...]:
    """The axes of `array` from slowest to fastest, as PyTorch's elementwise loops nest them.

    They are sorted by stride. An axis that says nothing about the order (one element, or stride
    0) stays where it is; of two with the same stride the shorter is the faster.
    """
    strides = [0 if size == 1 else step for size, step in zip(array.shape, array.strides)]
    fastest_first = list(reversed(range(array.ndim)))
    for start in range(1, array.ndim):
        moving = start
        for place in range(start - 1, -1, -1):
            axis, candidate = fastest_first[place], fastest_first[moving]
            step, other = strides[axis], strides[candidate]
            if step == 0 or other == 0:
                continue
            if step < other:
                break
            if step > other or array.shape[axis] > array.shape[candidate]:
                fastest_first[place], fastest_first[moving] = candidate, axis
                moving = place
    return tuple(reversed(fastest_first))


def dense_like(array: np.ndarray, dtype: DTypeLike | None = None) -> np.ndarray:
    """An uninitialised array of the same shape and dtype, without gaps, its axes nested alike.

    This is the memory layout of `torch.empty_like`; NumPy's own differs for broadcast arrays.
    """
    dtype = array.dtype if dtype is None else dtype
    if array.flags.c_contiguous:
        return np.empty(array.shape, dtype)
    axes = visiting_axes(array)
    dense = np.empty([array.shape[axis] for axis in axes], dtype)
    return dense.transpose(np.argsort(axes))


def real_view(array: np.ndarray) -> np.ndarray:
    """A complex array as real numbers, with a last axis of length 2; shares memory."""
    return array[..., np.newaxis].view(array.real.dtype)


def in_visiting_order(out: np.ndarray) -> Any:
    """Something one-dimensional whose slices, when assigned to, write `out` in visiting order."""
    ordered = out if out.flags.c_contiguous else out.transpose(visiting_axes(out))
    return ordered.reshape(-1) if ordered.flags.c_contiguous else ordered.flat


def fill(out: np.ndarray, generator: Generator, draw: Callable[[int], np.ndarray]) -> np.ndarray:
    """Write the values of `draw(count)`, called for a chunk at a time, to `out`; returns `out`."""
    flat = in_visiting_order(out)
    through_float32 = is_half(out.dtype)
    # Infinite samples are samples, as in C.
    with generator.lock, np.errstate(all="ignore"):
        for start in range(0, out.size, CHUNK):
            values = draw(min(CHUNK, out.size - start))
            # PyTorch rounds to half precision by way of float32.
            flat[start : start + CHUNK] = values.astype(np.float32) if through_float32 else values
    return out
