"""The twin of max pooling's gradient.  Layer 1; imports numba."""

from __future__ import annotations

from clew.kernels.compiled.kernel import kernel


@kernel("f[:, ::1]", "f[:, ::1], uint8[:, ::1], int64[::1], int64[::1]")
def add_at_places(out, grad, places, corner, shift):
    """Zeros, with each gradient added at its window's corner plus the shift of its place."""
    for n in range(out.shape[0]):
        to, row, place = out[n], grad[n], places[n]
        for i in range(to.shape[0]):
            to[i] = 0
        for i in range(row.shape[0]):
            to[corner[i] + shift[place[i]]] += row[i]
