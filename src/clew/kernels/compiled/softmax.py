"""Twins of softmax and its logarithm, and of their gradients.  Layer 1; imports numba.

Each has two forms: for rows (M, N), the slices along the last dimension, and for columns (A, N, B),
those along a dimension in the middle.  Columns are taken in strips that stay in the cache.

Exponentials are taken of many numbers at a time.  What does not fill the vectors of the processor
is computed one by one, which would be most of a short row: so short rows are first shifted, then
raised to the exponential many rows at once, then summed.

Which number is the largest does not matter where one is NaN: the sum is NaN then.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from clew.kernels.compiled.kernel import REORDERED, inline, inline_reordered, kernel
from clew.kernels.compiled.scalar import exp, log

SHORT = 512
BLOCK = 4096  # elements
STRIP = 512  # columns


def largest(row: Any) -> Any:
    """The largest element of a row, which is not empty."""


def _largest(number: Any, integer: Any) -> Any:
    """`largest` for one type: the search for a largest integer is made vector code."""
    sign = integer(8 * np.dtype(integer).itemsize - 1)
    others, lowest = integer(np.iinfo(integer).max), integer(np.iinfo(integer).min)

    @inline
    def found(row):
        top = lowest
        for j in range(row.shape[0]):
            # The digits of a float, those of a negative one turned over, are in order.
            digits = integer(number(row[j]).view(integer))
            digits = integer(digits ^ ((digits >> sign) & others))
            top = digits if digits > top else top
        return integer(top ^ ((top >> sign) & others)).view(number)

    return found


_largest32 = _largest(np.float32, np.int32)
_largest64 = _largest(np.float64, np.int64)


@overload(largest)
def _of_type(row):
    if row.dtype == types.float32:
        return lambda row: _largest32(row)
    return lambda row: _largest64(row)


@inline_reordered
def _total(row):
    total = row.dtype.type(0)
    for j in range(row.shape[0]):
        total += row[j]
    return total


@inline
def _below(out, x):
    """Each row of `x` with its largest element subtracted."""
    for i in range(x.shape[0]):
        row, to = x[i], out[i]
        top = largest(row)
        for j in range(row.shape[0]):
            to[j] = row[j] - top


@inline
def _powers(out, x):
    """exp(x), of all rows at once; `_raise` does it in place."""
    flat, to = x.reshape(x.size), out.reshape(out.size)
    for k in range(flat.shape[0]):
        to[k] = exp(flat[k])


@inline
def _raise(out):
    # Two names for one array would not be made vector code.
    flat = out.reshape(out.size)
    for k in range(flat.shape[0]):
        flat[k] = exp(flat[k])


@inline_reordered
def _softmax_long(out, x):
    for i in range(x.shape[0]):
        row, to = x[i], out[i]
        top = largest(row)
        total = row.dtype.type(0)
        for j in range(row.shape[0]):
            power = exp(row[j] - top)
            to[j] = power
            total += power
        scale = 1 / total
        for j in range(row.shape[0]):
            to[j] *= scale


@inline_reordered
def _softmax_short(out, x):
    _below(out, x)
    _raise(out)
    for i in range(out.shape[0]):
        to = out[i]
        scale = 1 / _total(to)
        for j in range(to.shape[0]):
            to[j] *= scale


@kernel("f[:, ::1]", "f[:, ::1]", REORDERED)
def softmax(out, x):
    """exp(x - max) / sum(exp(x - max)) of each row."""
    if x.shape[1] > SHORT:
        _softmax_long(out, x)
        return
    rows = max(1, BLOCK // x.shape[1])
    for i in range(0, x.shape[0], rows):
        _softmax_short(out[i : i + rows], x[i : i + rows])


@kernel("f[:, ::1]", "f[:, ::1]", REORDERED)
def log_softmax(out, x):
    """x - max - log(sum(exp(x - max))) of each row."""
    short = x.shape[1] <= SHORT
    rows = max(1, BLOCK // x.shape[1])
    powers = np.empty((rows, x.shape[1]) if short else (0, 0), x.dtype)
    totals = np.empty(rows, x.dtype)
    for start in range(0, x.shape[0], rows):
        some = out[start : start + rows]
        _below(some, x[start : start + rows])
        if short:
            _powers(powers[: some.shape[0]], some)
        for i in range(some.shape[0]):
            totals[i] = _total(powers[i]) if short else _total_of_powers(some[i])
        for i in range(some.shape[0]):
            totals[i] = log(totals[i])
        for i in range(some.shape[0]):
            to, less = some[i], totals[i]
            for j in range(to.shape[0]):
                to[j] -= less


@inline_reordered
def _total_of_powers(row):
    total = row.dtype.type(0)
    for j in range(row.shape[0]):
        total += exp(row[j])
    return total


@kernel("f[::1]", "f[:, ::1]", REORDERED)
def logsumexp(out, x):
    """log(sum(exp(x))) of each row."""
    rows = max(1, BLOCK // x.shape[1])
    powers, totals = np.empty((rows, x.shape[1]), x.dtype), np.empty(rows, x.dtype)
    for start in range(0, x.shape[0], rows):
        some = x[start : start + rows]
        to, shifted = out[start : start + rows], powers[: some.shape[0]]
        for i in range(some.shape[0]):
            row, below = some[i], shifted[i]
            top = largest(row)
            top = top if abs(top) < np.inf or top != top else row.dtype.type(0)
            to[i] = top
            for j in range(row.shape[0]):
                below[j] = row[j] - top
        _raise(shifted)
        for i in range(some.shape[0]):
            totals[i] = _total(shifted[i])
        for i in range(some.shape[0]):
            to[i] += log(totals[i])


@kernel("f[:, ::1]", "f[:, ::1], f[:, ::1]", REORDERED)
def softmax_backward(out, grad, result):
    """result * (grad - sum(grad * result)) of each row."""
    for i in range(grad.shape[0]):
        g, y, to = grad[i], result[i], out[i]
        total = g.dtype.type(0)
        for j in range(g.shape[0]):
            total += g[j] * y[j]
        for j in range(g.shape[0]):
            to[j] = y[j] * (g[j] - total)


@kernel("f[:, ::1]", "f[:, ::1], f[:, ::1]", REORDERED)
def log_softmax_backward(out, grad, result):
    """grad - exp(result) * sum(grad) of each row."""
    rows = max(1, BLOCK // grad.shape[1])
    for start in range(0, grad.shape[0], rows):
        gs, ys = grad[start : start + rows], result[start : start + rows]
        to_some = out[start : start + rows]
        if gs.shape[1] <= SHORT:
            _powers(to_some, ys)
            for i in range(gs.shape[0]):
                g, to = gs[i], to_some[i]
                total = _total(g)
                for j in range(g.shape[0]):
                    to[j] = g[j] - to[j] * total
        else:
            for i in range(gs.shape[0]):
                g, y, to = gs[i], ys[i], to_some[i]
                total = _total(g)
                for j in range(g.shape[0]):
                    to[j] = g[j] - exp(y[j]) * total


@inline
def _fill(row, value):
    for k in range(row.shape[0]):
        row[k] = value


@kernel("f[:, :, ::1]", "f[:, :, ::1]", REORDERED)
def softmax_columns(out, x):
    """exp(x - max) / sum(exp(x - max)) of each column."""
    top, total = np.empty(STRIP, x.dtype), np.empty(STRIP, x.dtype)
    for a in range(x.shape[0]):
        for b in range(0, x.shape[2], STRIP):
            _tops(top, x[a], b)
            _fill(total, 0)
            for n in range(x.shape[1]):
                row, to = x[a, n][b : b + STRIP], out[a, n][b : b + STRIP]
                for k in range(row.shape[0]):
                    power = exp(row[k] - top[k])
                    to[k] = power
                    total[k] += power
            for k in range(total.shape[0]):
                total[k] = 1 / total[k]
            for n in range(x.shape[1]):
                to = out[a, n][b : b + STRIP]
                for k in range(to.shape[0]):
                    to[k] *= total[k]


@inline
def _tops(top, rows, b):
    """The largest elements of the columns from `b` on."""
    _fill(top, -np.inf)
    for n in range(rows.shape[0]):
        row = rows[n][b : b + STRIP]
        for k in range(row.shape[0]):
            top[k] = row[k] if row[k] > top[k] else top[k]


@kernel("f[:, :, ::1]", "f[:, :, ::1]", REORDERED)
def log_softmax_columns(out, x):
    """x - max - log(sum(exp(x - max))) of each column."""
    top, total = np.empty(STRIP, x.dtype), np.empty(STRIP, x.dtype)
    for a in range(x.shape[0]):
        for b in range(0, x.shape[2], STRIP):
            _tops(top, x[a], b)
            _fill(total, 0)
            for n in range(x.shape[1]):
                row = x[a, n][b : b + STRIP]
                for k in range(row.shape[0]):
                    total[k] += exp(row[k] - top[k])
            for k in range(total.shape[0]):
                total[k] = log(total[k])
            for n in range(x.shape[1]):
                row, to = x[a, n][b : b + STRIP], out[a, n][b : b + STRIP]
                for k in range(row.shape[0]):
                    to[k] = (row[k] - top[k]) - total[k]


@kernel("f[:, :, ::1]", "f[:, :, ::1], f[:, :, ::1]", REORDERED)
def softmax_backward_columns(out, grad, result):
    """result * (grad - sum(grad * result)) of each column."""
    total = np.empty(STRIP, grad.dtype)
    for a in range(grad.shape[0]):
        for b in range(0, grad.shape[2], STRIP):
            _fill(total, 0)
            for n in range(grad.shape[1]):
                g, y = grad[a, n][b : b + STRIP], result[a, n][b : b + STRIP]
                for k in range(g.shape[0]):
                    total[k] += g[k] * y[k]
            for n in range(grad.shape[1]):
                g, y = grad[a, n][b : b + STRIP], result[a, n][b : b + STRIP]
                to = out[a, n][b : b + STRIP]
                for k in range(g.shape[0]):
                    to[k] = y[k] * (g[k] - total[k])


@kernel("f[:, :, ::1]", "f[:, :, ::1], f[:, :, ::1]", REORDERED)
def log_softmax_backward_columns(out, grad, result):
    """grad - exp(result) * sum(grad) of each column."""
    total = np.empty(STRIP, grad.dtype)
    for a in range(grad.shape[0]):
        for b in range(0, grad.shape[2], STRIP):
            _fill(total, 0)
            for n in range(grad.shape[1]):
                g = grad[a, n][b : b + STRIP]
                for k in range(g.shape[0]):
                    total[k] += g[k]
            for n in range(grad.shape[1]):
                g, y = grad[a, n][b : b + STRIP], result[a, n][b : b + STRIP]
                to = out[a, n][b : b + STRIP]
                for k in range(g.shape[0]):
                    to[k] = g[k] - exp(y[k]) * total[k]
