"""NumPy's elementwise functions on large arrays. Imports NumPy, threads and sibling kernels.

`Shared` gives what the function gives, whatever the operands are. Where they are large floating
arrays that lie alike, pieces go to several threads; halves are computed in float32, in blocks that
stay in the cache. A function with a compiled twin has its vector instructions where NumPy has none
for the processor: on one with AVX2 `expm1` takes NumPy eighty times as long. On one with AVX-512
NumPy has them for all: `exp` and `tanh` take it half the time, others as long, but for `log` it is
less exact.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.threads import get_num_threads

from .compiled import twins
from .half import is_half
from .pointwise import MANY, PIECE, in_pieces

_SINGLE = np.dtype(np.float32)

_FASTER_WITH_AVX512 = ("exp", "tanh")
"""The functions for which NumPy is faster than a twin then."""

_AVX512 = ("X86_V4", "AVX512_SKX")
"""What NumPy calls it, from 2.4 on and before."""


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
        if self.twin and (half or x.dtype.kind == "f") and not _numpy_is_faster(self.twin):
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


@cache
def _numpy_is_faster(name: str) -> bool:
    """Whether NumPy computes the function with AVX-512 here, faster than its twin."""
    if name not in _FASTER_WITH_AVX512:
        return False
    try:
        from numpy.lib.introspect import opt_func_info  # since NumPy 2.2
    except ImportError:
        return False
    found = opt_func_info(func_name=f"^{name}$", signature="float(32|64)").get(name, {})
    return bool(found) and all(kind["current"] in _AVX512 for kind in found.values())


def _rounded(number: Any, dtype: np.dtype) -> Any:
    """A number as NumPy's functions see it next to an array; None if it changes the type."""
    if isinstance(number, np.ndarray):
        return (number,) if number.dtype == dtype and not is_half(dtype) else None
    if number.__class__ is float and is_half(dtype):
        return (float(dtype.type(number)),)
    return (float(number),)
