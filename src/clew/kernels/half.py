"""Half precision for kernels: compute in float32, round once. Imports NumPy only."""

import numpy as np
from numpy.typing import DTypeLike, NDArray


def is_half(dtype: np.dtype) -> bool:
    """Whether `dtype` is float16 or bfloat16 (which NumPy sees as a two-byte void kind)."""
    return dtype.itemsize == 2 and dtype.kind in "fV"


def widen(x: NDArray) -> NDArray:
    """`x` itself, or its float32 copy if it is half precision."""
    return x.astype(np.float32) if is_half(x.dtype) else x


def narrow(x: NDArray, dtype: DTypeLike) -> NDArray:
    """`x` rounded to `dtype`; `x` itself if it already has it."""
    return x.astype(dtype, copy=False)
