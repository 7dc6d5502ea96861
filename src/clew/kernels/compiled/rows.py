"""Functions of one row that twins call.  Layer 1; imports numba."""

from __future__ import annotations

import numba

from clew.kernels.compiled.kernel import EXACT

LANES = 8
"""Numbers of a row that are looked at side by side."""


@numba.njit(inline="never", fastmath=set(EXACT), error_model="numpy", nogil=True)
def largest(row):
    """The largest number of a row that is not empty; any number if there is a NaN.

    One running maximum would wait for itself at each number, and LLVM makes lanes of sums only.
    """
    a = b = c = d = e = f = g = h = row[0]
    whole = row.shape[0] // LANES
    groups = row[: whole * LANES].reshape(whole, LANES)
    for i in range(whole):
        a, b = max(a, groups[i, 0]), max(b, groups[i, 1])
        c, d = max(c, groups[i, 2]), max(d, groups[i, 3])
        e, f = max(e, groups[i, 4]), max(f, groups[i, 5])
        g, h = max(g, groups[i, 6]), max(h, groups[i, 7])
    for x in row[whole * LANES :]:
        a = max(a, x)
    return max(max(max(a, b), max(c, d)), max(max(e, f), max(g, h)))
