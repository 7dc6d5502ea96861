"""Arrays of numbers as the derivatives of Python functions count them.  Layer 4."""

from __future__ import annotations

import numpy as np


def as_real(array: np.ndarray) -> np.ndarray:
    """One dimension of real numbers; a complex one counts as its real and imaginary part."""
    if array.dtype.kind == "c":
        return np.stack([array.real, array.imag], axis=-1).reshape(-1)
    return np.asarray(array).reshape(-1)
