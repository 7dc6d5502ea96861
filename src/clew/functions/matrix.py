"""Diagonals, and products of several dimensions at once."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from clew.dispatch import apply
from clew.dtypes import scalar_name
from clew.functions.linalg import matmul
from clew.op import REGISTRY
from clew.ops.linalg import cpp_name
from clew.ops.rules import broadcast_shape, wrap_dim
from clew.ops.view import view
from clew.publish import composite
from clew.tensor import Tensor

_MM, _DOT, _UNSAFE_VIEW = REGISTRY["mm"], REGISTRY["dot"], REGISTRY["unsafe_view"]


# -- diagonals


@composite(out=True)
def diag(self: Tensor, diagonal: int = 0) -> Any:
    """The matrix that has the vector on its diagonal, or the diagonal of a matrix (a copy).

    Raises:
        RuntimeError: the tensor is neither a vector nor a matrix.
    """
    ndim = self._array.ndim
    if ndim not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {ndim}D")
    if ndim == 1:
        return apply(REGISTRY["diag_embed"], (self,), {"offset": diagonal, "dim1": -2, "dim2": -1})
    return apply(REGISTRY["diagonal_copy"], (self,), {"offset": diagonal, "dim1": 0, "dim2": 1})


@composite()
def diagflat(self: Tensor, offset: int = 0) -> Any:
    """The matrix that has the elements of the tensor on its diagonal."""
    return diag(self.reshape(-1), offset)


# -- products


@composite(out=True)
def inner(self: Tensor, other: Tensor) -> Any:
    """The sums of products over the last dimension of both; with a number, the product.

    Raises:
        RuntimeError: the last dimensions differ.
    """
    first, second = self._array.shape, other._array.shape
    if not first or not second:
        return apply(REGISTRY["mul"], (self, other))
    if first[-1] != second[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(first)} and {list(second)}"
        )
    return tensordot(self, other, ((-1,), (-1,)))


@composite(method=False, out=True)
def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Any:
    """The sums of products over pairs of dimensions.

    Args:
        a: any tensor.
        b: a tensor of the same type.
        dims: two lists of dimensions, of `a` and of `b`, or a number n: the last n of `a` and the
            first n of `b`.

    Raises:
        RuntimeError: the dimensions do not fit together.
    """
    over_a, over_b = _paired_dims(a, b, dims)
    if a._array.dtype != b._array.dtype:
        raise RuntimeError("both inputs should have same dtype")
    left: Any = a
    right: Any = b
    for i, j in zip(over_a, over_b):
        n, m = a._array.shape[i], b._array.shape[j]
        if m == 1:  # broadcast: the sum can be taken at once
            left = left.sum(i, True) if n != 1 else left
        elif n == 1:
            right = right.sum(j, True)
        elif n != m:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {n} in dim {i} and "
                f"second has size {m} in dim {j}"
            )
    ndim_a, ndim_b = left.ndim, right.ndim
    over_a = [wrap_dim(i, ndim_a) for i in over_a]
    over_b = [wrap_dim(j, ndim_b) for j in over_b]
    rest_a = [i for i in range(ndim_a) if i not in over_a]
    rest_b = [j for j in range(ndim_b) if j not in over_b]
    shape = [left.shape[i] for i in rest_a] + [right.shape[j] for j in rest_b]
    left, right = left.permute([*rest_a, *over_a]), right.permute([*over_b, *rest_b])
    if not shape:
        return apply(_DOT, (left.flatten(), right.flatten())).reshape(shape)
    inner = prod(left.shape[len(rest_a) :])
    left = left.reshape(prod(left.shape[: len(rest_a)]), inner)
    right = right.reshape(inner, prod(right.shape[len(over_b) :]))
    return apply(_MM, (left, right)).reshape(shape)


def _paired_dims(a: Tensor, b: Tensor, dims: Any) -> tuple[list[int], list[int]]:
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a._array.ndim, b._array.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        return list(range(-dims, 0)), list(range(dims))
    over_a, over_b = dims
    for over in (over_a, over_b):
        if not isinstance(over, Sequence):
            raise TypeError(
                "tensordot(): argument 'dims_self' (position 3) must be tuple of ints, not "
                f"{type(over).__name__}"
            )
    if len(over_a) != len(over_b):
        raise RuntimeError("both dimension lists should have same length")
    return list(over_a), list(over_b)


@composite(out=True)
def kron(self: Tensor, other: Tensor) -> Any:
    """The Kronecker product: each element of `self` times the whole of `other`."""
    ndim = max(self._array.ndim, other._array.ndim)
    first = (1,) * (ndim - self._array.ndim) + self._array.shape
    second = (1,) * (ndim - other._array.ndim) + other._array.shape
    spread_first = [n for size in first for n in (size, 1)]
    spread_second = [n for size in second for n in (1, size)]
    left = _seen_as(self, tuple(spread_first))
    right = _seen_as(other, tuple(spread_second))
    size = tuple(n * m for n, m in zip(first, second))
    product = left * right
    if isinstance(product._array, np.ndarray):
        view.forward(product._array, size=size)  # refuses what PyTorch cannot view so
    return apply(_UNSAFE_VIEW, (product,), {"size": size})


def _seen_as(x: Tensor, size: tuple[int, ...]) -> Any:
    """An operand under another shape; an inference tensor as one that nothing can save either."""
    seen = apply(_UNSAFE_VIEW, (x,), {"size": size})
    if x.is_inference():
        seen._become_inference()
    return seen


@composite(out=True)
def cross(self: Tensor, other: Tensor, dim: int | None = None) -> Any:
    """The cross products of vectors of three elements along `dim`, by default the first of size 3.

    Raises:
        RuntimeError: no dimension has size 3, or the sizes or types do not agree.
    """
    if dim is None:
        if 3 not in self._array.shape:
            raise RuntimeError("no dimension of size 3 in input")
        dim = self._array.shape.index(3)
    return apply(REGISTRY["linalg_cross"], (self, other), {"dim": dim})


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Any:
    """The sums of products along `dim`, the first factor conjugated; the rest is broadcast.

    Raises:
        RuntimeError: the types or sizes do not agree.
    """
    if x._array.dtype != y._array.dtype:
        raise RuntimeError(
            "linalg.vecdot: Expected x and y to have the same dtype, but found x of type "
            f"{scalar_name(x._array.dtype)} and y of type {scalar_name(y._array.dtype)} instead"
        )
    if x._array.ndim == y._array.ndim == 1:
        return apply(REGISTRY["vdot"], (x, y))
    conjugate: Any = apply(REGISTRY["conj"], (x,)) if x._array.dtype.kind == "c" else x
    broadcast_shape(x._array.shape, y._array.shape)
    return (conjugate * y).sum(dim)


# -- chains of matrices


@composite(method=False)
def chain_matmul(*matrices: Any, out: Any = None) -> Any:
    """The product of several matrices, in the order that takes the fewest multiplications.

    Raises:
        RuntimeError: there is none, or one is no matrix.
    """
    if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)):
        matrices = tuple(matrices[0])
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for matrix in matrices:
        if matrix._array.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {matrix._array.ndim}, expected 2 instead.")
    return matrices[0].clone() if len(matrices) == 1 else multi_dot(matrices)


def multi_dot(tensors: Sequence[Any]) -> Any:
    """The product of several matrices; the first and the last may be vectors.

    The order of the multiplications is the one with the fewest of them ("Introduction to
    Algorithms" by Cormen et al., matrix-chain multiplication).

    Raises:
        RuntimeError: there are fewer than two, or they do not fit together.
    """
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    chain = list(tensors)
    first, last = chain[0]._array, chain[-1]._array
    shape: list[int] = []
    if first.ndim == 1:
        chain[0] = chain[0].unsqueeze(0)
    else:
        shape.append(first.shape[0])
    if last.ndim == 1:
        chain[-1] = chain[-1].unsqueeze(-1)
    else:
        shape.append(last.shape[-1])
    _check_chain(chain, tensors)
    best = _best_splits([x._array.shape[0] for x in chain] + [chain[-1]._array.shape[1]])
    return _multiplied(chain, best, 0, len(chain) - 1).view(shape)


def _check_chain(chain: list[Any], tensors: Sequence[Any]) -> None:
    kind = chain[0]._array.dtype
    for i, x in enumerate(chain):
        if x._array.ndim != 2:
            inside = 0 < i < len(chain) - 1
            where = f"tensor {i}" if inside else f"the {'last' if i else 'first'} tensor"
            wanted = "2D" if inside else "1D or 2D"
            raise RuntimeError(f"multi_dot(): {where} must be {wanted} but got {x._array.ndim}D")
        if x._array.dtype != kind:
            raise RuntimeError(
                "multi_dot(): all tensors must have be the same dtype but tensor 0 is "
                f"{cpp_name(kind)} and tensor {i} {cpp_name(x._array.dtype)}"
            )
    for i in range(len(chain) - 1):
        if chain[i]._array.shape[1] != chain[i + 1]._array.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes "
                f"{list(tensors[i]._array.shape)} and {list(tensors[i + 1]._array.shape)} cannot "
                "be multiplied"
            )


def _best_splits(sizes: list[int]) -> np.ndarray:
    """``best[i, j]``: after which matrix to split the product of the matrices i to j."""
    n = len(sizes) - 1
    cost = np.zeros((n, n))
    best = np.zeros((n, n), int)
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            costs = [
                cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                for k in range(i, j)
            ]
            best[i, j] = i + int(np.argmin(costs))
            cost[i, j] = min(costs)
    return best


def _multiplied(chain: list[Any], best: np.ndarray, i: int, j: int) -> Any:
    if i == j:
        return chain[i]
    k = int(best[i, j])
    return matmul(_multiplied(chain, best, i, k), _multiplied(chain, best, k + 1, j))
