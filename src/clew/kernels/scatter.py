"""Adding into places that may be named more than once. Imports NumPy only.

NumPy's ``add.at`` is quick only in one dimension, so everything here goes through the flat array.
Elements are added in their order, each sum in the type of the result, as PyTorch's CPU loops do.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_ROW_LOOP = 4096
"""From this many elements to a row, a loop over the rows is quicker than one over elements."""


def add_at(out: NDArray, key: tuple[Any, ...], values: NDArray) -> None:
    """``out[key] += values``, where `key` may name a place several times.

    `key` is a NumPy index of slices, integer arrays and boolean arrays; `values` has the shape of
    ``out[key]`` or broadcasts to it.
    """
    if all(isinstance(k, slice) or k.dtype == np.bool_ for k in key):
        out[key] += values
        return
    if len(key) == 1 and key[0].ndim <= 1 and out.flags.c_contiguous:
        _add_rows(out, key[0], values)
        return
    places = np.arange(out.size).reshape(out.shape)[key]
    values = np.broadcast_to(values, places.shape)
    if out.flags.c_contiguous:
        np.add.at(out.reshape(-1), places.reshape(-1), values.reshape(-1))
        return
    flat = np.zeros(out.size, out.dtype)
    np.add.at(flat, places.reshape(-1), values.reshape(-1))
    out += flat.reshape(out.shape)


def _add_rows(out: NDArray, rows: NDArray, values: NDArray) -> None:
    rows = rows.reshape(-1)
    inner = out.size // out.shape[0] if out.shape[0] else 0
    values = np.broadcast_to(values, (*rows.shape, *out.shape[1:]))
    if inner >= _ROW_LOOP:
        for row, value in zip(rows, values):
            out[row] += value
        return
    # A negative row counts from the end; in the flat array it would not.
    places = np.where(rows < 0, rows + out.shape[0], rows)[:, None] * inner + np.arange(inner)
    np.add.at(out.reshape(-1), places.reshape(-1), values.reshape(-1))
