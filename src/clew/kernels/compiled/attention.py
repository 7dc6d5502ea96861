"""Twins of attention.  Layer 1; imports numba.

A tile (L, S) holds the logits of some queries of a head, one after another, the first of which is
number `first`; `causal` says that query number i sees keys 0 to i only.  `softmax_tile` and
`slopes_tile` are what is done between matrix products, to tiles of some heads (H, L, S).
`attention` and its gradient do all for the heads from `start` to before `stop`, counted through
the samples, with a `gemm` of Note [Products in twins] and scratch for a tile of one head.

The numbers of a row that do not fill the vectors of the processor are computed one by one, so up
to a multiple of `LANES` those that are not seen are computed too: as -inf, of which the
exponential is 0.
"""

from __future__ import annotations

from math import inf, log

from clew.kernels.compiled.gemm import product
from clew.kernels.compiled.kernel import REORDERED, inline, inline_reordered, kernel
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


@inline_reordered
def _softmax(row):
    """Replace logits by their softmax; the logarithm of its sum: +inf, and zeros, of -inf alone."""
    zero = row.dtype.type(0)
    top = largest(row)
    if top == -inf:
        top = zero
    total = zero
    for j in range(row.shape[0]):
        row[j] = exp(row[j] - top)
    for j in range(row.shape[0]):
        total += row[j]
    if total == 0:
        return row.dtype.type(inf)
    factor = row.dtype.type(1) / total
    for j in range(row.shape[0]):
        row[j] *= factor
    return log(total) + top


@inline
def _seen(row, i, causal):
    """How many keys of a row the query number `i` sees."""
    return min(row.shape[0], i + 1) if causal else row.shape[0]


@kernel("f[:, :, ::1], f[:, ::1]", "f, int64, boolean", REORDERED)
def softmax_tile(tile, logs, scale, first, causal):
    """softmax(scale * logits), and the logarithms of its sums: +inf, and zeros, of -inf alone."""
    for n in range(tile.shape[0]):
        for i in range(tile.shape[1]):
            row = tile[n, i]
            end = _scale_and_hide(row, _seen(row, first + i, causal), scale)
            logs[n, i] = _softmax(row[:end])


@kernel("f[:, :, ::1], f[:, :, ::1]", "f[:, ::1], f[:, ::1], f, int64, boolean", REORDERED)
def slopes_tile(tile, slopes, logs, means, scale, first, causal):
    """In `tile` the softmax again; in `slopes`, from gradients, those of the scaled logits."""
    for n in range(tile.shape[0]):
        for i in range(tile.shape[1]):
            whole, other = tile[n, i], slopes[n, i]
            seen = _seen(whole, first + i, causal)
            end = _scale_and_hide(whole, seen, scale)
            row, slope = whole[:end], other[:end]
            sum_log, mean = logs[n, i], means[n, i]
            for j in range(row.shape[0]):
                row[j] = exp(row[j] - sum_log)
            for j in range(row.shape[0]):
                slope[j] = row[j] * (slope[j] - mean) * scale
            _fill(other[seen:], 0)


@inline
def _logits(row, seen, scale, added, masked):
    """Make logits of products, `added` being what a mask adds; -inf of keys from `seen` on."""
    least = row.dtype.type(-inf)
    for j in range(row.shape[0]):
        row[j] = row[j] * scale if j < seen else least
    if masked:
        for j in range(row.shape[0]):
            row[j] += added[j]


@inline
def _shift(row, top):
    for j in range(row.shape[0]):
        row[j] -= top


@inline
def _exponentials(tile):
    """Of all rows as one: what is left over of each would be computed number by number."""
    line = tile.reshape(-1)
    for j in range(line.shape[0]):
        line[j] = exp(line[j])


@inline_reordered
def _normalise(row):
    """Divide by the sum, which is returned; zeros stay."""
    total = row.dtype.type(0)
    for j in range(row.shape[0]):
        total += row[j]
    factor = row.dtype.type(1) / total if total != 0 else total
    for j in range(row.shape[0]):
        row[j] *= factor
    return total


@inline_reordered
def _slopes(row, slope, scale):
    """From weights, and gradients of these, the gradients of the products."""
    mean = row.dtype.type(0)
    for j in range(row.shape[0]):
        mean += row[j] * slope[j]
    for j in range(row.shape[0]):
        slope[j] = row[j] * (slope[j] - mean) * scale


@inline
def _ends(first, rows, queries, keys, causal):
    """Before which query the tile ends that begins at `first`, and before which key."""
    last = min(first + rows, queries)
    return last, min(keys, last) if causal else keys


@inline
def _tile(memory, rows, keys):
    return memory[: rows * keys].reshape(rows, keys)


_HEADS = "f[:, :, :, :], f[:, :, :, :], f[:, :, :, :]"
_WHICH = "int64, f[:, :, :, :], f, boolean, boolean, int64, int64, int64"


@kernel("f[:, :, :, :], f[:, :, ::1], f[::1]", f"{_HEADS}, {_WHICH}", REORDERED)
def attention(
    out, logs, memory, q, k, v, rows, added, scale, causal, masked, start, stop, gemm
):  # fmt: skip
    """The weighted sums of `v`, and the logarithms of the weights' sums."""
    for place in range(start, stop):
        n, h = place // q.shape[1], place % q.shape[1]
        for first in range(0, q.shape[2], rows):
            last, keys = _ends(first, rows, q.shape[2], k.shape[2], causal)
            tile, sums = _tile(memory, last - first, keys), logs[n, h, first:last]
            product(gemm, q[n, h, first:last], 0, k[n, h, :keys], 1, tile, 0)
            for i in range(tile.shape[0]):
                row = tile[i]
                seen = _seen(row, first + i, causal)
                _logits(row, seen, scale, added[n, h, first + i], masked)
                top = largest(row)
                sums[i] = top if top != -inf else row.dtype.type(0)
                _shift(row, sums[i])
            _exponentials(tile)
            for i in range(tile.shape[0]):
                total = _normalise(tile[i])
                sums[i] = log(total) + sums[i] if total != 0 else row.dtype.type(inf)
            product(gemm, tile, 0, v[n, h, :keys], 0, out[n, h, first:last], 0)


@kernel(
    f"{_HEADS}, f[::1], f[::1]",
    f"{_HEADS}, f[:, :, :, :], f[:, :, ::1], boolean, boolean, boolean, {_WHICH}",
    REORDERED,
)
def attention_backward(
    of_q, of_k, of_v, memory, more_memory, q, k, v, grad, logs, need_q, need_k, need_v,
    rows, added, scale, causal, masked, start, stop, gemm,
):  # fmt: skip
    """Write the gradient of `q`, and add those of `k` and `v`, where they are needed."""
    for place in range(start, stop):
        n, h = place // q.shape[1], place % q.shape[1]
        for first in range(0, q.shape[2], rows):
            last, keys = _ends(first, rows, q.shape[2], k.shape[2], causal)
            tile, slopes = (
                _tile(memory, last - first, keys),
                _tile(more_memory, last - first, keys),
            )
            g, queries = grad[n, h, first:last], q[n, h, first:last]
            product(gemm, queries, 0, k[n, h, :keys], 1, tile, 0)
            product(gemm, g, 0, v[n, h, :keys], 1, slopes, 0)
            for i in range(tile.shape[0]):
                seen = _seen(tile[i], first + i, causal)
                _logits(tile[i], seen, scale, added[n, h, first + i], masked)
                _fill(slopes[i, seen:], 0)
                _shift(tile[i], logs[n, h, first + i])
            _exponentials(tile)
            for i in range(tile.shape[0]):
                _slopes(tile[i], slopes[i], scale)
            if need_v:
                product(gemm, tile, 1, g, 0, of_v[n, h, :keys], 1)
            if need_q:
                product(gemm, slopes, 0, k[n, h, :keys], 0, of_q[n, h, first:last], 0)
            if need_k:
                product(gemm, slopes, 1, queries, 0, of_k[n, h, :keys], 1)
