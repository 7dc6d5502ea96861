"""Half precision for kernels: compute in float32, round once. Imports NumPy and compiled twins."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .compiled import twins

# From so many elements on casts are done by twins.
MANY = 1 << 11

_SINGLE = np.dtype(np.float32)


def is_half(dtype: np.dtype) -> bool:
    """Whether `dtype` is float16 or bfloat16 (which NumPy sees as a two-byte void kind)."""
    return dtype.itemsize == 2 and dtype.kind in "fV"


def widen(x: NDArray) -> NDArray:
    """`x` itself, or its float32 copy if it is half precision."""
    return cast(x, _SINGLE) if x.itemsize == 2 and is_half(x.dtype) else x


def narrow(x: NDArray, dtype: DTypeLike) -> NDArray:
    """`x` rounded to `dtype`; `x` itself if it already has it."""
    return x if x.dtype == dtype else cast(x, np.dtype(dtype))


def cast(x: NDArray, dtype: np.dtype) -> NDArray:
    """A copy of another type; of large arrays between halves and float32 faster than NumPy's."""
    if x.size >= MANY:
        if x.dtype == _SINGLE and is_half(dtype):
            copy = _cast(x, dtype, "narrow", dtype)
        elif dtype == _SINGLE and is_half(x.dtype):
            copy = _cast(x, dtype, "widen", x.dtype)
        else:
            copy = None
        if copy is not None:
            return copy
    return x.astype(dtype)


def _cast(x: NDArray, dtype: np.dtype, way: str, half: np.dtype) -> NDArray | None:
    fast: Any = twins("halves", _SINGLE)
    if fast is None:
        return None
    turned = x.T if x.flags.f_contiguous else x
    if not (turned.flags.c_contiguous and turned.flags.aligned):
        return None
    copy = np.empty(turned.shape, dtype)
    source, target = turned.reshape(-1), copy.reshape(-1)
    if way == "narrow":
        target = target.view(np.uint16)
    else:
        source = source.view(np.uint16)
    getattr(fast, f"{way}_{'half' if half.kind == 'f' else 'brain'}")(target, source)
    return copy if turned is x else copy.T
