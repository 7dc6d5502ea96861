"""Twins of what attention does between matrix products.  Layer 1; imports numba.

A tile (H, L, S) holds the logits of some heads and of some queries one after another, the first of
which is number `first`; `causal` says that query number i sees keys 0 to i only.

The numbers of a row that do not fill the vectors of the processor are computed one by one, so up
to a multiple of `LANES` those that are not seen are computed too: as -inf, of which the
exponential is 0.
"""

from __future__ import annotations

from math import inf, log

from clew.kernels.compiled.kernel import REORDERED, inline, kernel
from clew.kernels.compiled.scalar import exp
from clew.kernels.compiled.softmax import largest

LANES = 32


@inline
def _fill(row, value):
    for j in range(row.shape[0]):
        row[j] = value


@inline
def _scale_and_hide(row, seen, scale):
    """Let keys from number `seen` on have no weight; return up to where to compute."""
    shown = row[:seen]
    for j in range(shown.shape[0]):
        shown[j] *= scale
    end = min(row.shape[0], (seen + LANES - 1) // LANES * LANES)
    _fill(row[seen:end], -inf)
    _fill(row[end:], 0)
    return end


@kernel("f[:, :, ::1], f[:, ::1]", "f, int64, boolean", REORDERED)
def softmax_tile(tile, logs, scale, first, causal):
    """softmax(scale * logits), and the logarithms of its sums: +inf, and zeros, of -inf alone."""
    zero = scale - scale
    for n in range(tile.shape[0]):
        for i in range(tile.shape[1]):
            whole = tile[n, i]
            seen = min(whole.shape[0], first + i + 1) if causal else whole.shape[0]
            row = whole[: _scale_and_hide(whole, seen, scale)]
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
            end = _scale_and_hide(whole, seen, scale)
            row, slope = whole[:end], other[:end]
            sum_log, mean = logs[n, i], means[n, i]
            for j in range(row.shape[0]):
                row[j] = exp(row[j] - sum_log)
            for j in range(row.shape[0]):
                slope[j] = row[j] * (slope[j] - mean) * scale
            _fill(other[seen:], 0)
