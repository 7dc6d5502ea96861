"""Twins of reading and adding where integers point.  Layer 1; imports numba.

Arrays (A, N, B) are seen with the dimension that an index runs along in the middle.  The callers
have looked that each number of an index names something.
"""

from __future__ import annotations

from clew.kernels.compiled.kernel import EXACT, inline, kernel


@inline
def _line(x, a):
    """The numbers of ``x[a]``, whose last dimension is 1."""
    return x[a].reshape(-1)


@kernel("f[:, ::1]", "int64[::1], f[:, ::1]", EXACT)
def add_rows(out, index, source):
    """``out[index[i]] += source[i]``, one after another."""
    if out.shape[1] == 1:  # a loop for one number would take longer than the number
        sums, numbers = out.reshape(-1), source.reshape(-1)
        for i in range(index.shape[0]):
            sums[index[i]] += numbers[i]
        return
    for i in range(index.shape[0]):
        to, values = out[index[i]], source[i]
        for j in range(to.shape[0]):
            to[j] += values[j]


@kernel("f[:, :, ::1]", "f[:, :, ::1], int64[::1]", EXACT)
def take(out, x, index):
    """``out[a, i] = x[a, index[i]]``."""
    for a in range(out.shape[0]):
        if out.shape[2] == 1:
            to, values = _line(out, a), _line(x, a)
            for i in range(index.shape[0]):
                to[i] = values[index[i]]
            continue
        for i in range(index.shape[0]):
            for b in range(out.shape[2]):
                out[a, i, b] = x[a, index[i], b]


@kernel("f[:, :, ::1]", "f[:, :, ::1], int64[:, :, ::1]", EXACT)
def gather(out, x, index):
    """``out[a, i, b] = x[a, index[a, i, b], b]``."""
    for a in range(index.shape[0]):
        if index.shape[2] == 1:
            to, values, places = _line(out, a), _line(x, a), _line(index, a)
            for i in range(places.shape[0]):
                to[i] = values[places[i]]
            continue
        for i in range(index.shape[1]):
            for b in range(index.shape[2]):
                out[a, i, b] = x[a, index[a, i, b], b]


@kernel("f[:, :, ::1]", "int64[:, :, ::1], f[:, :, ::1]", EXACT)
def scatter(out, index, source):
    """``out[a, index[a, i, b], b] = source[a, i, b]``, one after another."""
    for a in range(index.shape[0]):
        if index.shape[2] == 1:
            to, values, places = _line(out, a), _line(source, a), _line(index, a)
            for i in range(places.shape[0]):
                to[places[i]] = values[i]
            continue
        for i in range(index.shape[1]):
            for b in range(index.shape[2]):
                out[a, index[a, i, b], b] = source[a, i, b]


@kernel("f[:, :, ::1]", "int64[:, :, ::1], f[:, :, ::1]", EXACT)
def scatter_add(out, index, source):
    """``out[a, index[a, i, b], b] += source[a, i, b]``, one after another."""
    for a in range(index.shape[0]):
        if index.shape[2] == 1:
            to, values, places = _line(out, a), _line(source, a), _line(index, a)
            for i in range(places.shape[0]):
                to[places[i]] += values[i]
            continue
        for i in range(index.shape[1]):
            for b in range(index.shape[2]):
                out[a, index[a, i, b], b] += source[a, i, b]
