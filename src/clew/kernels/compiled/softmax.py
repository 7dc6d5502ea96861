"""Twins of softmax and its logarithm, and of their gradients.  Layer 1; imports numba.

Rows (M, N) are the slices along the last dimension.  A row is read from the cache after the first
of its passes.
"""

from __future__ import annotations

from clew.kernels.compiled.kernel import REORDERED, kernel
from clew.kernels.compiled.scalar import exp


@kernel("f[:, ::1]", "f[:, ::1]", REORDERED)
def softmax(out, x):
    """exp(x - max) / sum(exp(x - max)) of each row."""
    for i in range(x.shape[0]):
        row, to = x[i], out[i]
        top = row[0]
        for j in range(row.shape[0]):
            top = max(top, row[j])
        total = row[0] - row[0]
        for j in range(row.shape[0]):
            to[j] = exp(row[j] - top)
        for j in range(row.shape[0]):
            total += to[j]
        scale = 1 / total
        for j in range(row.shape[0]):
            to[j] *= scale
