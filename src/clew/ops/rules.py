"""Small functions that rules and forwards share.  Layer 2: arrays and namespaces only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from clew import dtypes
from clew.config import warn_once
from clew.errors import NoDerivativeError
from clew.kernels.pointwise import MANY
from clew.kernels.shared import Shared

_COMPLEX = frozenset(
    [np.dtype(np.complex64), np.dtype(np.complex128), dtypes.complex64, dtypes.complex128]
)


def is_complex(x: Any) -> bool:
    """Whether an array or Tensor is complex."""
    return getattr(x, "dtype", None) in _COMPLEX


def both(F: Any, mask: Any, condition: Any) -> Any:
    """`mask` where also `condition`, which is a bool where numbers were compared."""
    if isinstance(condition, bool):
        return mask if condition else F.zeros_like(mask)
    return F.logical_and(mask, condition)


def conj(F: Any, x: Any) -> Any:
    """The conjugate of a complex value; a real one as it is."""
    array = getattr(x, "_array", x)
    if array.__class__ is np.ndarray:
        return F.conj(x) if array.dtype.kind == "c" else x
    if is_complex(x):
        return F.conj(x)
    return x.conjugate() if isinstance(x, complex) else x


_multiply, _divide = Shared(np.multiply), Shared(np.true_divide)


def times(F: Any, grad: Any, factor: Any) -> Any:
    """``grad * conj(factor)``; the operators know no threads."""
    kind = factor.__class__
    if kind is not float and (kind is not np.ndarray or factor.dtype.kind == "c"):
        factor = conj(F, factor)
    if grad.__class__ is np.ndarray and grad.size >= MANY:
        return _multiply(grad, factor)
    return grad * factor


def over(F: Any, grad: Any, divisor: Any) -> Any:
    """``grad / conj(divisor)``."""
    if grad.__class__ is np.ndarray and grad.size >= MANY:
        return _divide(grad, conj(F, divisor))
    return grad / conj(F, divisor)


NO_GRADIENT = (
    "detach() its input if no gradient is to flow there, or compute it from other operations"
)
"""What to do about an operation without a derivative."""


def not_implemented(name: str) -> Any:
    """The rule of what PyTorch has no derivative of: it says so when a backward needs it."""

    def rule(F: Any, grad: Any) -> Any:
        raise NoDerivativeError(f"the derivative for '{name}' is not implemented.", NO_GRADIENT)

    return rule


def wrap_dim(dim: int, ndim: int) -> int:
    """A dimension counted from the front.

    Raises:
        IndexError: there is no such dimension.
        TypeError: `dim` is no integer.
    """
    if dim.__class__ is int and 0 <= dim < ndim:
        return dim
    try:
        dim = dim.__index__()
    except AttributeError:
        raise TypeError(f"argument 'dim' must be int, not {type(dim).__name__}") from None
    n = max(ndim, 1)
    if not -n <= dim < n:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})"
        )
    return dim % n


def wrap_dims(dim: Any, ndim: int) -> tuple[int, ...]:
    """The dimensions that a reduction runs over: all for None and for an empty sequence.

    Raises:
        IndexError: there is no such dimension.
        RuntimeError: a dimension is named twice.
    """
    if dim is None:
        return tuple(range(ndim))
    if dim.__class__ is not int and isinstance(dim, (tuple, list, Sequence)):
        if not dim:
            return tuple(range(ndim))
        dims = tuple([wrap_dim(d, ndim) for d in dim])
        if len(dims) > 1:
            for i, d in enumerate(dims):
                if d in dims[:i]:
                    raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    else:
        dims = (wrap_dim(dim, ndim),)
    return dims if ndim else ()


def keep_dims(F: Any, grad: Any, shape: tuple[int, ...], dim: Any, keepdim: bool) -> Any:
    """`grad` of a reduction with the reduced dimensions put back, of size one."""
    if keepdim or not shape:
        return grad
    for d in sorted(wrap_dims(dim, len(shape))):
        grad = F.unsqueeze(grad, d)
    return grad


def count(shape: tuple[int, ...], dim: Any) -> int:
    """The number of elements that one result of a reduction is made of."""
    total = 1
    for d in wrap_dims(dim, len(shape)):
        total *= shape[d]
    return total


def numpy_dtype(dtype: Any) -> np.dtype:
    """The NumPy dtype of an attribute ``dtype=`` (a clew or NumPy dtype)."""
    found: np.dtype = dtype.numpy if isinstance(dtype, dtypes.dtype) else np.dtype(dtype)
    return found


def broadcast_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that all `shapes` broadcast to.

    Raises:
        RuntimeError: there is none.
    """
    result: tuple[int, ...] = ()
    for shape in shapes:
        ndim = max(len(result), len(shape))
        known, new = (1,) * (ndim - len(result)) + result, (1,) * (ndim - len(shape)) + shape
        for d in reversed(range(ndim)):
            if known[d] != new[d] and 1 not in (known[d], new[d]):
                raise RuntimeError(
                    f"The size of tensor a ({known[d]}) must match the size of tensor b "
                    f"({new[d]}) at non-singleton dimension {d}"
                )
        result = tuple(m if n == 1 else n for m, n in zip(known, new))
    return result


def real_part(x: Any, kind: np.dtype) -> Any:
    """What a cast to the type `kind` takes of an array: of a complex one that is to be real the
    real part, with a warning."""
    if x.dtype.kind != "c" or kind.kind in "cb":
        return x
    if x.size:
        warn_once("cast", "Casting complex values to real discards the imaginary part", 5)
    return x.real
