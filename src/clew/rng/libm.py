"""The C library's functions over float64 arrays: PyTorch's very digits, one element at a time.

NumPy's own loops are faster and may differ in the last bit. Layer 1: imports NumPy and `math`.
"""

import math
from collections.abc import Callable

import numpy as np


def _elementwise(function: Callable[[float], float]) -> Callable[[np.ndarray], np.ndarray]:
    def apply(x: np.ndarray) -> np.ndarray:
        values = np.fromiter(map(function, x.ravel().tolist()), np.float64, x.size)
        return values.reshape(x.shape)

    return apply


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


exp = _elementwise(_exp)
log = _elementwise(math.log)
log1p = _elementwise(math.log1p)
sin = _elementwise(math.sin)
cos = _elementwise(math.cos)
tan = _elementwise(math.tan)
