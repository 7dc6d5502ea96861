"""Matrix products: whose code computes them, and on how many threads.

Imports NumPy, threads and oneDNN.

Note [Products]
    Products of two large enough float32 matrices are oneDNN's where that is installed (Note
    [oneDNN]): it multiplies 32 rows, say, in half of OpenBLAS's time. All others are NumPy's, which
    is OpenBLAS's.

    Threads of either wait for one another by spinning. On a processor that is not idle a product
    of two of them waits until both have been given a turn: 64x784 by 784x128, 0.13 ms on one
    thread and 0.08 on two that are alone, was seen to take 90 ms; the threads of `split` take
    what they get to. So both have one thread, and large products are split here. How depends on
    their shape alone, since BLAS sums up a product of another shape in another order.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.threads import one_blas_thread, split

from . import onednn
from .windows import BLOCK_BYTES

# A product of so many multiplications OpenBLAS does not split, nor one of fewer.
FEW = 1 << 18

# From so many multiplications on, products of matrices are oneDNN's; from fewer where the right
# factor lies column by column, as a layer's weight does, which OpenBLAS is slower with. It is
# faster for few such columns until there is more to do (measured).
MANY, MANY_OF_COLUMNS, MANY_OF_FEW_COLUMNS = 1 << 20, 1 << 19, 1 << 21
FEW_COLUMNS = 64

# The same, of each matrix of a batch: they are oneDNN's one by one (measured).
MANY_OF_EACH = 1 << 21

# Those of the smallest piece: handing it over takes up to 60 us, it itself some 150 (measured).
PIECE = 1 << 22

# Those of a piece, and its rows or columns, where there are more than two: each piece reads the
# whole other factor, which makes four of 256 rows in all 7 % dearer than one (measured).
LARGE_PIECE = 1 << 26
WIDE = 256

_SINGLE = np.dtype(np.float32)


def product(
    multiply: Callable[..., Any], x: NDArray, y: NDArray, out: NDArray | None = None
) -> Any:
    """``multiply(x, y)`` of vectors, matrices or batches of them, by np.dot or np.matmul.

    Into `out`, of its shape and type and any strides, if that is given; it shares no element with
    the factors.
    """
    work = x.size * y.shape[-1]
    if work <= FEW:
        return multiply(x, y, out)
    if x.dtype == y.dtype and x.dtype.kind in "fc" and x.ndim > 1 < y.ndim:
        if x.shape[-1] != y.shape[-2]:
            raise ValueError(f"matrices of shapes {x.shape} and {y.shape} cannot be multiplied")
        if x.ndim == y.ndim == 2:
            return _of_matrices(x, y, out)
        if multiply is np.matmul:
            return _of_batches(x, y, out)
    with one_blas_thread:
        return multiply(x, y, out)


def add_product(x: NDArray, y: NDArray, out: NDArray) -> None:
    """Add ``x @ y``, of matrices or batches of as many, to `out`; all three are of one type.

    `out` has the product's shape and any strides, and shares no element with the factors.
    """
    work = x.size * y.shape[-1]
    if work <= FEW:
        out += np.matmul(x, y)
    elif x.ndim == 2:
        _of_matrices(x, y, out, add=True)
    elif _fast(x.dtype, work // prod(x.shape[:-2]), MANY_OF_EACH) is None:
        with one_blas_thread:
            out += np.matmul(x, y)
    else:
        for place in np.ndindex(x.shape[:-2]):
            _of_matrices(x[place], y[place], out[place], add=True)


def affine(x: NDArray, y: NDArray, start: NDArray) -> NDArray | None:
    """``start + x @ y`` of matrices, where oneDNN multiplies them; None where it does not.

    It adds the product to `start`, as PyTorch does: one pass less over the result.  All are of one
    type; `start` is as large as the result, or a row of it.
    """
    work = x.size * y.shape[1]
    if work < MANY_OF_COLUMNS or _fast(x.dtype, work, _enough(y)) is None:
        return None
    shape = (len(x), y.shape[1])
    if x.shape[1] != len(y) or start.shape not in (shape, shape[1:]):
        return None
    out = np.empty(shape, x.dtype)
    out[...] = start
    return _of_matrices(x, y, out, add=True)


def add_products(x: NDArray, y: NDArray, out: NDArray) -> None:
    """Add ``x[i] @ y[i]`` for all i to `out`; see `add_product`."""
    rows, inner, columns = *x.shape[-2:], y.shape[-1]
    if _fast(x.dtype, rows * inner * columns, MANY_OF_EACH) is not None:
        for one, other in zip(x, y):
            add_product(one, other, out)
        return
    step = max(1, BLOCK_BYTES // max(1, out.nbytes))
    with one_blas_thread:
        for i in range(0, len(x), step):
            out += np.matmul(x[i : i + step], y[i : i + step]).sum(axis=0)


def _fast(dtype: np.dtype, work: int, enough: int) -> "onednn.Products | None":
    """oneDNN, for products of so many multiplications if that is enough."""
    if work < enough or dtype != _SINGLE:
        return None
    found = onednn.products()
    return found if found is not None and work <= found.most else None


def _enough(y: NDArray) -> int:
    """From how many multiplications on products with `y` are oneDNN's."""
    if y.strides[0] >= y.strides[1]:
        return MANY
    return MANY_OF_COLUMNS if y.shape[1] > FEW_COLUMNS else MANY_OF_FEW_COLUMNS


def _of_matrices(x: NDArray, y: NDArray, out: NDArray | None, add: bool = False) -> NDArray:
    """The product, by pieces of the longer side, so that the shorter one is what all read."""
    rows, columns = len(x), y.shape[1]
    if out is None:
        out = np.empty((rows, columns), x.dtype)
    work = x.size * columns
    fast = _fast(x.dtype, work, _enough(y))
    if work < 2 * PIECE:
        if fast is None or not fast.multiply(x, y, out, add):
            with one_blas_thread:
                _by_numpy(x, y, out, add)
        return out
    longer = max(rows, columns)
    grain = max(longer // max(2, work // LARGE_PIECE), min(longer // 2, WIDE), 1)

    def piece(start: int, stop: int) -> None:
        part = slice(start, stop)
        if rows >= columns:
            some_x, some_y, to = x[part], y, out[part]
        else:
            some_x, some_y, to = x, y[:, part], out[:, part]
        if fast is None or not fast.multiply(some_x, some_y, to, add):
            _by_numpy(some_x, some_y, to, add)

    with one_blas_thread:
        split(piece, longer, grain)
    return out


def _of_batches(x: NDArray, y: NDArray, out: NDArray | None) -> NDArray:
    """The products, whose leading dimensions broadcast; many by pieces of the batch."""
    rows, inner, columns = *x.shape[-2:], y.shape[-1]
    each = rows * inner * columns
    one_by_one = _fast(x.dtype, each, MANY_OF_EACH) is not None
    if not one_by_one and max(x.size * columns, y.size * rows) < 2 * PIECE:
        if each <= FEW:
            return np.matmul(x, y, out)
        with one_blas_thread:
            return np.matmul(x, y, out)
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    if out is None:
        out = np.empty((*batch, rows, columns), x.dtype)
    x = np.broadcast_to(x, (*batch, rows, inner))
    y = np.broadcast_to(y, (*batch, inner, columns))
    if one_by_one:
        places = list(np.ndindex(batch))
        count = len(places)

        def piece(start: int, stop: int) -> None:
            for place in places[start:stop]:
                _of_matrices(x[place], y[place], out[place])

    else:
        count = len(out)

        def piece(start: int, stop: int) -> None:
            np.matmul(x[start:stop], y[start:stop], out=out[start:stop])

    with one_blas_thread:
        split(piece, count, -(-PIECE * count // max(1, prod(batch) * each)))
    return out


def _by_numpy(x: NDArray, y: NDArray, out: NDArray, add: bool) -> None:
    if add:
        out += np.matmul(x, y)
    else:
        np.matmul(x, y, out=out)
