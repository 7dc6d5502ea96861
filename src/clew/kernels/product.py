"""Matrix products on several threads. Imports NumPy and threads.

Note [Products]
    OpenBLAS's threads wait for one another by spinning. On a processor that is not idle a product
    of two of them waits until both have been given a turn: 64x784 by 784x128, 0.13 ms on one
    thread and 0.08 on two that are alone, was seen to take 90 ms; the threads of `split` take
    what they get to. So BLAS has one thread, and large products are split here. How depends on
    their shape alone, since BLAS sums up a product of another shape in another order.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.threads import one_blas_thread, split

# A product of so many multiplications OpenBLAS does not split.
FEW = 1 << 18

# Those of the smallest piece: handing it over takes up to 60 us, it itself some 150 (measured).
PIECE = 1 << 22

# Those of a piece, and its rows or columns, where there are more than two: each piece reads the
# whole other factor, which makes four of 256 rows in all 7 % dearer than one (measured).
LARGE_PIECE = 1 << 26
WIDE = 256


def product(
    multiply: Callable[..., Any], x: NDArray, y: NDArray, out: NDArray | None = None
) -> Any:
    """``multiply(x, y)`` of vectors, matrices or batches of them, by np.dot or np.matmul.

    Into `out`, of its shape and type, if that is given.
    """
    work = x.size * y.shape[-1]
    if work < FEW:
        return multiply(x, y, out)
    if work >= 2 * PIECE and x.dtype == y.dtype and x.dtype.kind in "fc":
        if x.ndim == y.ndim == 2:
            return _of_matrices(x, y, out)
        if x.ndim == y.ndim == 3 and len(x) == len(y) > 1:
            return _of_batches(x, y, out)
    with one_blas_thread:
        return multiply(x, y, out)


def _of_matrices(x: NDArray, y: NDArray, out: NDArray | None) -> NDArray:
    """The product, by pieces of the longer side, so that the shorter one is what all read."""
    rows, columns = len(x), y.shape[1]
    out = np.empty((rows, columns), x.dtype) if out is None else out
    longer = max(rows, columns)
    grain = max(longer // max(2, x.size * columns // LARGE_PIECE), min(longer // 2, WIDE), 1)

    def of_rows(start: int, stop: int) -> None:
        np.matmul(x[start:stop], y, out=out[start:stop])

    def of_columns(start: int, stop: int) -> None:
        np.matmul(x, y[:, start:stop], out=out[:, start:stop])

    with one_blas_thread:
        split(of_rows if rows >= columns else of_columns, longer, grain)
    return out


def _of_batches(x: NDArray, y: NDArray, out: NDArray | None) -> NDArray:
    out = np.empty((len(x), x.shape[1], y.shape[2]), x.dtype) if out is None else out

    def piece(start: int, stop: int) -> None:
        np.matmul(x[start:stop], y[start:stop], out=out[start:stop])

    with one_blas_thread:
        split(piece, len(x), -(-PIECE * len(x) // (x.size * y.shape[-1])))
    return out
