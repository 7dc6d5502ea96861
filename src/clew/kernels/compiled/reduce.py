"""Twins of reductions.  Layer 1; imports numba.

Arrays (M, N, K) are reduced along N.  Where K is 1 that is a row in memory; else K results are
computed at once, a slice of them at a time that stays in the cache.  Sums have many accumulators
for a few elements each, which are added up in float64: more exact than pairwise summation.
"""

from __future__ import annotations

import numpy as np

from clew.kernels.compiled.kernel import REORDERED, kernel

_ROW_BLOCK = 4096
"""Elements of a row that are summed up in the arrays' type: 64 to an accumulator or fewer."""

_BLOCK = 64
"""Elements along N that are, where K is not 1."""


@kernel("f[::1]", "f[:, ::1]", REORDERED)
def sum_rows(out, x):
    for i in range(x.shape[0]):
        total = np.float64(0)
        for start in range(0, x.shape[1], _ROW_BLOCK):
            part = x[i, start : start + _ROW_BLOCK]
            of_part = x.dtype.type(0)
            for j in range(part.shape[0]):
                of_part += part[j]
            total += of_part
        out[i] = total


@kernel("f[::1]", "f[:, ::1]", REORDERED)
def sum_rows_of_squares(out, x):
    for i in range(x.shape[0]):
        total = np.float64(0)
        for start in range(0, x.shape[1], _ROW_BLOCK):
            part = x[i, start : start + _ROW_BLOCK]
            of_part = x.dtype.type(0)
            for j in range(part.shape[0]):
                of_part += part[j] * part[j]
            total += of_part
        out[i] = total


@kernel("f[:, ::1], f[::1], float64[::1]", "f[:, :, ::1], int64, int64")
def sum_columns(out, part, total, x, first, last):
    """The results from `first` to `last`, of K; `part` and `total` are memory for so many."""
    zero = x.dtype.type(0)
    for i in range(x.shape[0]):
        total[:] = 0
        for start in range(0, x.shape[1], _BLOCK):
            part[:] = zero
            for j in range(start, min(start + _BLOCK, x.shape[1])):
                row = x[i, j, first:last]
                for k in range(row.shape[0]):
                    part[k] += row[k]
            for k in range(part.shape[0]):
                total[k] += part[k]
        to = out[i, first:last]
        for k in range(to.shape[0]):
            to[k] = total[k]


@kernel("f[:, ::1]", "f[:, ::1]")
def cumsum_rows(out, x):
    """In float64, as PyTorch's."""
    for i in range(x.shape[0]):
        total = np.float64(0)
        row, to = x[i], out[i]
        for j in range(row.shape[0]):
            total += row[j]
            to[j] = total


@kernel("f[:, ::1]", "f[:, ::1]")
def cumprod_rows(out, x):
    for i in range(x.shape[0]):
        total = np.float64(1)
        row, to = x[i], out[i]
        for j in range(row.shape[0]):
            total *= row[j]
            to[j] = total


@kernel("f[:, :, ::1], float64[::1]", "f[:, :, ::1]")
def cumsum_columns(out, total, x):
    """In float64, as PyTorch's; `total` is memory for K numbers."""
    for i in range(x.shape[0]):
        total[:] = 0
        for j in range(x.shape[1]):
            row, to = x[i, j], out[i, j]
            for k in range(row.shape[0]):
                total[k] += row[k]
                to[k] = total[k]


@kernel("f[:, :, ::1], float64[::1]", "f[:, :, ::1]")
def cumprod_columns(out, total, x):
    for i in range(x.shape[0]):
        total[:] = 1
        for j in range(x.shape[1]):
            row, to = x[i, j], out[i, j]
            for k in range(row.shape[0]):
                total[k] *= row[k]
                to[k] = total[k]
