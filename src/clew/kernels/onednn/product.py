"""Matrix products by ``dnnl_sgemm``.  Layer 1."""

from __future__ import annotations

import threading
from ctypes import c_char, c_float, c_int64, c_void_p
from functools import lru_cache
from math import inf
from typing import Any, NamedTuple

from numpy.typing import NDArray

from clew.kernels.onednn.library import Library, address
from clew.kernels.windows import Ints

_KEPT = 1024  # prepared calls of a thread
_BYTES = 4  # of a float32
_MOST_WITH_AVX2 = 1 << 24  # from there on OpenBLAS is up to a fifth faster (measured)


class Products(threading.local):
    """Products of matrices; each thread has prepared calls of its own.

    Attributes:
        most: with more multiplications than this a product is better left to OpenBLAS.
        address: where ``dnnl_sgemm`` is, for Note [Products in twins].
        one_thread: ``with one_thread():`` a block in which it has one thread.
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        self.most = inf if library.has_avx512 else _MOST_WITH_AVX2
        self._prepared = lru_cache(_KEPT)(_prepare)
        self.address = library.address_of_multiply
        self.one_thread = library.one_thread

    def multiply(self, x: NDArray, y: NDArray, out: NDArray, add: bool = False) -> bool:
        """Write ``x @ y`` into `out`, or add it if `add` is set, in the calling thread.

        For float32 matrices whose shapes fit. `x`, `y` and `out` may be transposed or parts of
        larger ones, but `out` shares no element with the factors. Returns False, and writes
        nothing, where one has fewer than two rows or columns, or no axis of adjacent elements.
        """
        call = self._prepared(x.shape, x.strides, y.shape, y.strides, out.strides, add)
        if call is None:
            return False
        call.x.value, call.y.value, call.out.value = address(x), address(y), address(out)
        self._library.multiply(call.arguments)
        return True


class _Call(NamedTuple):
    """What ``dnnl_sgemm`` is called with for arrays of some shapes and strides.

    Made once, since to convert thirteen arguments takes as long as a small product.
    """

    x: c_void_p
    y: c_void_p
    out: c_void_p
    arguments: tuple[Any, ...]


def _prepare(
    x_shape: Ints, x_strides: Ints, y_shape: Ints, y_strides: Ints, out_strides: Ints, add: bool
) -> _Call | None:
    (rows, inner), columns = x_shape, y_shape[1]
    if min(rows, inner, columns) < 2:
        return None
    lies = [
        _lie(x_shape, x_strides),
        _lie(y_shape, y_strides),
        _lie((rows, columns), out_strides),
    ]
    if None in lies:
        return None
    (of_x, x_step), (of_y, y_step), (of_out, out_step) = lies  # type: ignore[misc]
    x, y, out = c_void_p(), c_void_p(), c_void_p()
    left, right = (of_x, x, x_step), (of_y, y, y_step)
    if of_out:  # the transposed result is the product of the transposed factors
        rows, columns = columns, rows
        left, right = (not of_y, y, y_step), (not of_x, x, x_step)
    letters = [c_char(b"T" if turned else b"N") for turned, _, _ in (left, right)]
    arguments = (
        *letters, c_int64(rows), c_int64(columns), c_int64(inner), c_float(1),
        *left[1:], *right[1:], c_float(add), out, out_step,
    )  # fmt: skip
    return _Call(x, y, out, arguments)


def _lie(shape: Ints, strides: Ints) -> tuple[bool, c_int64] | None:
    """Whether a matrix lies column by column, and from one to the next; or row by row."""
    (rows, columns), (down, along) = shape, strides
    if along == _BYTES and down >= columns * _BYTES and down % _BYTES == 0:
        return False, c_int64(down // _BYTES)
    if down == _BYTES and along >= rows * _BYTES and along % _BYTES == 0:
        return True, c_int64(along // _BYTES)
    return None
