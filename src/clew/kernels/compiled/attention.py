"""Twins of what attention does between matrix products.  Layer 1; imports numba.

A tile (H, L, S) holds the logits of some heads and of some queries one after another, the first of
which is number `first`; `causal` says that query number i sees keys 0 to i only.
"""

from __future__ import annotations

from math import inf, log

from clew.kernels.compiled.kernel import REORDERED, kernel
from clew.kernels.compiled.rows import largest
from clew.kernels.compiled.scalar import exp


@kernel("f[:, :, ::1], f[:, ::1]", "f, int64, boolean", REORDERED)
def softmax_tile(tile, logs, scale, first, causal):
    """softmax(scale * logits), and the logarithms of its sums: +inf, and zeros, of -inf alone."""
    zero = scale - scale
    for n in range(tile.shape[0]):
        for i in range(tile.shape[1]):
            whole = tile[n, i]
            seen = min(whole.shape[0], first + i + 1) if causal else whole.shape[0]
            whole[seen:] = 0
            row = whole[:seen]
            for j in range(row.shape[0]):
                row[j] *= scale
            top = largest(row)
            if top == -inf:
                top = zero
            total = zero
            for j in range(row.shape[0]):
                row[j] = exp(row[j] - top)
            for j in range(row.shape[0]):
                total += row[j]
            if total == 0:
                logs[n, i] = inf
                continue
            logs[n, i] = log(total) + top
            factor = 1 / total
            for j in range(row.shape[0]):
                row[j] *= factor


@kernel("f[:, :, ::1], f[:, :, ::1]", "f[:, ::1], f[:, ::1], f, int64, boolean", REORDERED)
def slopes_tile(tile, slopes, logs, means, scale, first, causal):
    """In `tile` the softmax again; in `slopes`, from gradients, those of the scaled logits."""
    for n in range(tile.shape[0]):
        for i in range(tile.shape[1]):
            whole, other = tile[n, i], slopes[n, i]
            seen = min(whole.shape[0], first + i + 1) if causal else whole.shape[0]
            whole[seen:], other[seen:] = 0, 0
            row, slope = whole[:seen], other[:seen]
            sum_log, mean = logs[n, i], means[n, i]
            for j in range(row.shape[0]):
                row[j] = exp(row[j] * scale - sum_log)
            for j in range(row.shape[0]):
                slope[j] = row[j] * (slope[j] - mean) * scale
