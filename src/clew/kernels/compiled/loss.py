"""Twins of losses, of their sums, and of their gradients.  Layer 1; imports numba."""

from __future__ import annotations

from typing import Any

from clew.kernels.compiled import scalar
from clew.kernels.compiled.kernel import REORDERED, Kernel, inline, kernel

PART = 4096
"""So many losses are added up in their type, all else in float64."""


def _total_of(loss: Any) -> Kernel:
    """The twin ``<name>_total`` of a function ``_<name>(x, t, radius)``, the loss of one pair."""

    def total(totals, x, t, radius, start, stop):
        for p in range(start, stop):
            part, target = x[p * PART : (p + 1) * PART], t[p * PART : (p + 1) * PART]
            some = x.dtype.type(0)
            for i in range(part.shape[0]):
                some += loss(part[i], target[i], radius)
            totals[p] = some

    total.__name__ = loss.__name__.removeprefix("_") + "_total"
    total.__doc__ = "The sums of the losses of parts of `PART` pairs, from number start to stop."
    return kernel("f8[::1]", "f[::1], f[::1], f, int64, int64", REORDERED)(total)


@inline
def _squared(x, t, radius):
    return (x - t) * (x - t)


@inline
def _rounded(x, t, radius):
    distance = abs(x - t)
    near = radius if distance > radius else distance
    return near * (distance - near / 2)


@inline
def _logit(x, t, zero):
    # log(sigmoid(x)) is the smaller of x and 0, less log(1 + exp(-|x|)).
    low = zero if x > zero else x
    return (1 - t) * x - (low - scalar.log1p(scalar.exp(-abs(x))))


squared_total = _total_of(_squared)
rounded_total = _total_of(_rounded)
logit_total = _total_of(_logit)


@kernel("f[::1]", "f[::1], f[::1], f")
def squared_slope(out, x, t, factor):
    """factor * (x - t)."""
    for i in range(out.shape[0]):
        out[i] = factor * (x[i] - t[i])


@kernel("f[::1]", "f[::1], f[::1], f, f")
def rounded_slope(out, x, t, factor, radius):
    """factor * (x - t), limited to `radius` on both sides before it is multiplied."""
    for i in range(out.shape[0]):
        d = x[i] - t[i]
        d = radius if d > radius else d
        d = -radius if d < -radius else d
        out[i] = factor * d


@kernel("f[::1]", "f[::1], f[::1], f")
def logit_slope(out, x, t, factor):
    """factor * (sigmoid(x) - t)."""
    for i in range(out.shape[0]):
        out[i] = factor * (scalar.sigmoid(x[i]) - t[i])


# -- likelihood of classes


@kernel("f8[::1]", "f[:, ::1], int64[::1], int64")
def nll(found, x, target, ignored):
    """The sum of ``-x[i, target[i]]``, how many are not ignored, and how many are no class."""
    total, count, wrong = 0.0, 0, 0
    for i in range(x.shape[0]):
        c = target[i]
        if c == ignored:
            continue
        if c < 0 or c >= x.shape[1]:
            wrong += 1
            continue
        total -= x[i, c]
        count += 1
    found[0], found[1], found[2] = total, count, wrong


@kernel("f[:, ::1], f8[::1]", "int64[::1], int64, f")
def nll_backward(out, found, target, ignored, value):
    """`value` at each target, 0 elsewhere; and how many targets are no class."""
    wrong = 0
    for i in range(out.shape[0]):
        row, c = out[i], target[i]
        row[:] = 0
        if c == ignored:
            continue
        if c < 0 or c >= row.shape[0]:
            wrong += 1
        else:
            row[c] = value
    found[0] = wrong
