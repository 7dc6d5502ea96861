"""Adding into places that may be named more than once. Imports NumPy and sibling kernels.

NumPy's ``add.at`` is quick only in one dimension, so this goes through the flat array. Elements
are added in their order, each sum in the type of the result, as PyTorch's CPU loops do.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .rows import add_slices


def add_at(out: NDArray, key: tuple[Any, ...], values: NDArray) -> None:
    """``out[key] += values``, where `key` may name a place several times.

    `key` is a NumPy index of slices, integer arrays and boolean arrays; `values` has the shape of
    ``out[key]`` or broadcasts to it. Raises IndexError for a place that does not exist.
    """
    if out.size == 0:
        return
    if all(isinstance(k, slice) or k.dtype == np.bool_ for k in key):
        out[key] += values
        return
    if not out.flags.c_contiguous:
        total = np.zeros(out.shape, out.dtype)
        add_at(total, key, values)
        out += total
    elif len(key) == 1:
        # Looking the rows up, rather than wrapping negative ones, checks them too.
        rows = np.arange(out.shape[0])[key]
        values = np.broadcast_to(values, rows.shape + out.shape[1:])
        add_slices(out, 0, rows.reshape(-1), values.reshape(-1, *out.shape[1:]))
    else:
        places = np.arange(out.size).reshape(out.shape)[key]
        values = np.broadcast_to(values, places.shape)
        np.add.at(out.reshape(-1), places.reshape(-1), values.reshape(-1))
