"""How formulas of several passes run over arrays. Imports NumPy, threads and sibling kernels.

A formula such as ``0.5 * x * (1 + tanh(...))`` makes an array for each step. On large arrays each
of them would be fresh memory, written once and read once from outside the cache. In blocks they
stay in the cache, and their memory is used again. A compiled twin has no steps: it is one pass.
Blocks, and pieces of the work of a twin, go to several threads.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.threads import get_num_threads, split

from .compiled import twins
from .half import is_half, narrow, widen

# Elements of a block: a few of these in float32 fit a second-level cache (measured).
BLOCK = 1 << 14

# From so many elements on twins are called: with fewer the formula is as fast, or it takes long
# until the time for loading the twin has been made up for.
MANY = 1 << 11

# Elements of a piece, which takes longer than to hand it to another thread (measured).
PIECE = 3 << 16

_SINGLE = np.dtype(np.float32)

TWINS: dict[str, Callable[..., NDArray]] = {}
"""The functions that have a twin, by its name."""


def pointwise(formula: Any = None, *, twin: str = "") -> Any:
    """Decorate an elementwise formula of floating arrays whose result is like the first one.

    Halves are computed in float32 and rounded once. The arrays come first, by position; ``out=``
    is an array to write to, which lies as the first one.

    Args:
        formula: the function; its attributes are keyword-only.
        twin: the name of its compiled twin in ``compiled/pointwise.py``, which takes the output,
            the arrays, and the attributes in the order of the formula's.
    """
    if formula is None:
        return lambda formula: pointwise(formula, twin=twin)
    code = formula.__code__
    numbers = code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]

    @wraps(formula)
    def whole(*arrays: NDArray, out: NDArray | None = None, **attributes: Any) -> NDArray:
        first = arrays[0]
        if first.size >= MANY:
            fast = twins("pointwise", _computed_in(first)) if twin else None
            result = None
            if fast is not None:
                values = [attributes[name] for name in numbers]
                result = in_pieces(getattr(fast, twin), arrays, values, out=out)
            elif first.size > BLOCK:
                result = in_pieces(
                    lambda out, *parts: np.copyto(out, formula(*parts, **attributes)),
                    arrays, block=BLOCK, out=out,
                )  # fmt: skip
            if result is not None:
                return result
        if first.itemsize == 2 and is_half(first.dtype):
            result = np.asarray(formula(*map(widen, arrays), **attributes)).astype(first.dtype)
        else:
            result = formula(*arrays, **attributes)
        if out is not None:
            out[...] = result
            return out
        return result if result.__class__ is np.ndarray else np.asarray(result)

    if twin:
        TWINS[twin] = whole
    return whole


def _computed_in(x: NDArray) -> np.dtype:
    return _SINGLE if x.itemsize == 2 and is_half(x.dtype) else x.dtype


def in_pieces(
    compute: Callable[..., Any], arrays: Sequence[NDArray], values: Sequence[Any] = (),
    block: int = 0, out: NDArray | None = None, dtype: Any = None,
) -> NDArray | None:  # fmt: skip
    """A new array like the first one, or `out`, which ``compute(out, *arrays, *values)`` writes.

    It is called for pieces, or blocks of so many elements if that is not 0, of the arrays; they
    are one-dimensional then, and halves are float32.  None where the arrays are not of one shape
    and type, or do not lie in memory in one order without gaps.

    Args:
        compute: a twin, or (with a `block`) what may write where it reads.
        arrays, values: what it is called with.
        block: how many elements it is called for at a time; 0 for as many as a thread has.
        out: an array to write to; it may be one of the arrays.
        dtype: the type of the result where it is not that of the arrays.
    """
    first = arrays[0]
    whole = np.empty_like(first, dtype=dtype) if out is None else out
    lines = _flattened((whole, *arrays))
    if lines is None:
        return None
    half = first.itemsize == 2 and is_half(first.dtype)
    # A loop that LLVM has made uses vector instructions only where it does not write what it
    # reads; so a result in place is computed apart.
    apart = half or (out is not None and not block)
    if apart:
        block = 4 * BLOCK
    elif not block and (whole.size < 2 * PIECE or get_num_threads() == 1):
        compute(*lines, *values)
        return whole

    def piece(start: int, stop: int) -> None:
        step = block or stop - start
        for at in range(start, stop, step):
            to, *parts = [line[at : min(at + step, stop)] for line in lines]
            if apart and dtype is None:
                scratch = np.empty(to.shape, _SINGLE if half else to.dtype)
                compute(scratch, *map(widen, parts), *values)
                to[...] = narrow(scratch, to.dtype)
            else:
                compute(to, *map(widen, parts), *values)

    split(piece, whole.size, PIECE)
    return whole


def in_place(twin: str, arrays: Sequence[NDArray], values: Sequence[Any] = ()) -> bool:
    """Have a twin write to the first array; False, and nothing done, where it cannot.

    Its loop reads what it writes from one array, so it has vector instructions.
    """
    first = arrays[0]
    fast = twins("pointwise", first.dtype) if first.size >= MANY else None
    lines = _flattened((first, *arrays)) if fast is not None and first.flags.writeable else None
    if lines is None:
        return False
    function = getattr(fast, twin)
    split(
        lambda start, stop: function(*[line[start:stop] for line in lines[1:]], *values),
        first.size, PIECE,
    )  # fmt: skip
    return True


def _flattened(arrays: Sequence[NDArray]) -> list[NDArray] | None:
    """The arrays in one dimension, with their elements in the order in which they all lie.

    The first may have another type than the others.
    """
    first = arrays[0]
    shape, dtype = first.shape, arrays[1].dtype
    order = None
    if not first.flags.c_contiguous:
        order = sorted(range(first.ndim), key=first.strides.__getitem__, reverse=True)
    flat = []
    for array in arrays:
        if array.shape != shape or (array.dtype != dtype and array is not first):
            return None
        turned = array if order is None else array.transpose(order)
        flags = turned.flags
        if not (flags.c_contiguous and flags.aligned):
            return None
        flat.append(turned.ravel())
    return flat


@pointwise(twin="rsqrt")
def reciprocal_root(x: NDArray) -> NDArray:
    """``1 / sqrt(x)``."""
    return np.true_divide(1, np.sqrt(x))  # of complex zeros too; see `reciprocal`
