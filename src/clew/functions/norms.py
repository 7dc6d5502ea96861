"""Norms of vectors and matrices: ``clew.norm`` and what ``clew.linalg`` has."""

from __future__ import annotations

from math import inf
from typing import Any

from clew.dispatch import apply
from clew.dtypes import scalar_name
from clew.op import REGISTRY
from clew.ops.rules import broadcast_shape, wrap_dim
from clew.publish import composite
from clew.tensor import Tensor


def vector_norm(
    x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """The norm of the elements over `dim` (over all without), of order `ord`.

    Raises:
        RuntimeError: the tensor is neither floating nor complex, or it is empty and `ord` has no
            value there.
    """
    if not isinstance(ord, (int, float)):
        raise TypeError(
            "linalg_vector_norm(): argument 'ord' (position 2) must be Number, not "
            f"{type(ord).__name__}"
        )
    attrs = {"ord": ord, "dim": dim, "keepdim": keepdim, "dtype": dtype}
    return apply(REGISTRY["linalg_vector_norm"], (x,), attrs)


def _matrix_dims(x: Tensor, dim: Any) -> tuple[int, int]:
    if len(dim) != 2:
        raise RuntimeError(
            f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dim))}"
        )
    if x._array.ndim < 2:
        raise RuntimeError(
            "linalg.matrix_norm: The input tensor A must have at least 2 dimensions."
        )
    first, second = (wrap_dim(d, x._array.ndim) for d in dim)
    if first == second:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    return first, second


def matrix_norm(
    A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """The norm of the matrices that two dimensions span.

    Args:
        A: ``(*, m, n)``.
        ord: "fro", "nuc" (the sum of the singular values), 2, -2 (the largest, the smallest),
            1, -1 (of the sums of columns), inf, -inf (of the sums of rows).
        dim: the two dimensions.
        keepdim: keep them, of size one.
        dtype: compute in this type.

    Raises:
        RuntimeError: there is no such norm, or the tensor has no two such dimensions.
    """
    dims = tuple(dim)
    if A._array.dtype.kind not in "fcV":
        raise RuntimeError(
            "linalg.matrix_norm: Expected a floating point or complex tensor as input. Got "
            f"{scalar_name(A._array.dtype)}"
        )
    first, second = _matrix_dims(A, dims)
    if ord == "fro":
        return vector_norm(A, 2, dims, keepdim, dtype=dtype)
    if ord == "nuc" or (not isinstance(ord, str) and abs(ord) == 2):
        return _by_singular_values(A, ord, (first, second), keepdim, dtype)
    if isinstance(ord, str) or abs(ord) not in (1, inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if abs(ord) == inf:
        first, second = second, first
    if second > first and not keepdim:
        second -= 1
    return _extremum(vector_norm(A, 1, first, keepdim, dtype=dtype), ord, second, keepdim)


def _extremum(values: Any, ord: float, dim: int, keepdim: bool) -> Any:
    """The largest value along `dim` for a positive order, else the smallest; 0 of no values."""
    if values._array.shape[dim] == 0:
        return values.sum(dim, keepdim)
    return values.amax(dim, keepdim) if ord > 0 else values.amin(dim, keepdim)


def _by_singular_values(A: Any, ord: Any, dims: tuple[int, int], keepdim: bool, dtype: Any) -> Any:
    from clew.functions.decompose import svdvals

    if dtype is not None:
        A = A.to(dtype)
    rest = [d for d in range(A.ndim) if d not in dims]
    values = svdvals(A.permute(*rest, *dims))
    summed = ord == "nuc"
    result = values.sum(-1, keepdim) if summed else _extremum(values, ord, -1, keepdim)
    if not keepdim:
        return result
    result = result.unsqueeze(-1)
    places = [*rest, *dims]
    return result.permute(*(places.index(d) for d in range(A.ndim)))


def norm_of_any(
    A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """``linalg.norm``: of a vector or a matrix, whichever `dim` and `ord` say.

    Raises:
        RuntimeError: `dim` is of another length than 1 or 2, or `ord` does not say which.
    """
    dims = (dim,) if isinstance(dim, int) else None if dim is None else tuple(dim)
    if dims is None and ord is None:
        return vector_norm(A, 2, None, keepdim, dtype=dtype)
    if dims is None:
        if A._array.ndim not in (1, 2):
            raise RuntimeError(
                "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got "
                f"{A._array.ndim}D."
            )
        dims = tuple(range(A._array.ndim)) if not isinstance(ord, str) else (0, 1)
    elif len(dims) not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dims)}"
        )
    if ord is None:
        return vector_norm(A, 2, dims, keepdim, dtype=dtype)
    if len(dims) == 2 or isinstance(ord, str):
        return matrix_norm(A, ord, dims, keepdim, dtype=dtype)
    return vector_norm(A, ord, dims, keepdim, dtype=dtype)


@composite(out=True)
def norm(
    self: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Any:
    """The norm of all elements, or over `dim`.

    Args:
        self: floating or complex.
        p: the order, a number; "fro" is 2; "nuc" is the sum of the singular values of a matrix.
        dim: an int or a tuple of them.
        keepdim: keep the dimensions, of size one.
        dtype: compute in this type.

    Raises:
        RuntimeError: the tensor is neither floating nor complex, or there is no such norm.
    """
    dims = (dim,) if isinstance(dim, int) else dim
    if isinstance(p, str):
        if p == "fro" and (dims is None or len(dims) <= 2):
            return vector_norm(self, 2, dims, keepdim, dtype=dtype)
        dims = tuple(range(self._array.ndim)) if dims is None else dims
        return matrix_norm(self, p, dims, keepdim, dtype=dtype)
    return vector_norm(self, 2 if p is None else p, dims, keepdim, dtype=dtype)


@composite(method=False)
def cdist(
    x1: Tensor,
    x2: Tensor,
    p: float = 2.0,
    compute_mode: str = "use_mm_for_euclid_dist_if_necessary",
) -> Any:
    """The distance of each row of `x1` from each row of `x2`.

    Args:
        x1: ``(*, n, k)``.
        x2: ``(*, m, k)``, the leading dimensions broadcast.
        p: the order of the norm that is the distance.
        compute_mode: whether Euclidean distances of many rows are computed by a matrix product;
            clew always does so.

    Returns:
        Tensor: ``(*, n, m)``.

    Raises:
        RuntimeError: the dimensions, sizes or types do not agree.
    """
    if compute_mode not in (
        "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist",
        "donot_use_mm_for_euclid_dist",
    ):  # fmt: skip
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    for x, name in ((x1, "X1"), (x2, "X2")):
        if x._array.dtype.kind not in "fV":
            raise RuntimeError(
                f"cdist only supports floating-point dtypes, {name} got: "
                f"{scalar_name(x._array.dtype)}"
            )
        if x._array.ndim < 2:
            raise RuntimeError(
                f"cdist only supports at least 2D tensors, {name} got: {x._array.ndim}D"
            )
    first, second = x1._array, x2._array
    if first.shape[-1] != second.shape[-1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {first.shape[-1]} X2: "
            f"{second.shape[-1]}"
        )
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if first.dtype != second.dtype:
        raise RuntimeError(
            f"expected scalar type {scalar_name(first.dtype)} but found {scalar_name(second.dtype)}"
        )
    broadcast_shape(first.shape[:-2], second.shape[:-2])
    return apply(REGISTRY["cdist"], (x1, x2), {"p": p})
