"""NumPy's elementwise functions on large arrays. Imports NumPy, threads and sibling kernels.

`Shared` gives what the function gives, whatever the operands are. Where they are large floating
arrays that lie alike, pieces go to several threads; a function with a compiled twin has its
vector instructions where NumPy has none for the processor (`expm1` takes NumPy eighty times as
long on one with AVX2); halves are computed in float32, in blocks that stay in the cache.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.threads import get_num_threads

from .compiled import twins
from .half import is_half
from .pointwise import MANY, PIECE, in_pieces

_SINGLE = np.dtype(np.float32)


class Shared:
    """An elementwise function of NumPy's.

    Args:
        function: takes one or two operands.
        twin: the name of its compiled twin in ``compiled/functions.py``, if it has one.
        dtype: the type of its results where that is not its operands'.
    """

    def __init__(self, function: Callable[..., Any], twin: str = "", dtype: Any = None) -> None:
        self.function = function
        self.twin = twin
        self.dtype = dtype

    def __call__(self, *operands: Any, out: NDArray | None = None) -> Any:
        """The function of one or two operands, the first of them an array; written to `out`."""
        x = operands[0]
        if x.size < MANY:
            return self.function(*operands, out=out)
        half = x.itemsize == 2 and is_half(x.dtype)
        fast = None
        if self.twin and (half or x.dtype.kind == "f"):
            fast = twins("functions", _SINGLE if half else x.dtype)
        shares = x.size >= 2 * PIECE and x.dtype.kind == "f" and get_num_threads() > 1
        if half or fast is not None or shares:
            result = self._in_pieces(x, operands[1:], fast, out)
            if result is not None:
                return result
        return self.function(*operands, out=out)

    def _in_pieces(self, x: NDArray, others: Any, fast: Any, out: NDArray | None) -> Any:
        arrays, numbers = (x, *others), ()
        if others and (not isinstance(others[0], np.ndarray) or others[0].ndim == 0):
            arrays, numbers = (x,), _rounded(others[0], x.dtype)
            if numbers is None:
                return None
        if fast is not None:
            return in_pieces(getattr(fast, self.twin), arrays, out=out)
        function = self.function
        return in_pieces(
            lambda out, *parts: function(*parts, *numbers, out=out),
            arrays, block=PIECE, out=out, dtype=self.dtype,
        )  # fmt: skip


def _rounded(number: Any, dtype: np.dtype) -> Any:
    """A number as NumPy's functions see it next to an array; None if it changes the type."""
    if isinstance(number, np.ndarray):
        return (number,) if number.dtype == dtype and not is_half(dtype) else None
    if number.__class__ is float and is_half(dtype):
        return (float(dtype.type(number)),)
    return (float(number),)
