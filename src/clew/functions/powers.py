"""Powers, exponentials, pseudo-inverses, ranks and condition numbers of matrices."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from clew import dtypes
from clew.dispatch import apply
from clew.functions.decompose import eigvalsh, inv, inv_ex, svdvals
from clew.functions.linalg import matmul
from clew.functions.norms import matrix_norm
from clew.functions.values import of_values
from clew.op import REGISTRY
from clew.ops.matrices import check_square
from clew.ops.pseudo import check_precision, cutoff
from clew.publish import composite
from clew.tensor import Tensor


@composite(name="matrix_power")
def matrix_power(self: Any, n: int) -> Any:
    """The `n`-th power of each matrix, of its inverse if `n` is negative."""
    check_square(self._array, "linalg.matrix_power")
    if n == 0:
        eye = np.eye(self._array.shape[-1], dtype=self._array.dtype)
        return self.clone().copy_(Tensor._from_array(eye))
    base = inv(self) if n < 0 else self
    n = abs(n)
    if n == 1:
        return base.clone()
    if n == 3:
        return matmul(matmul(base, base), base)
    result = power = None
    while n:
        power = base if power is None else matmul(power, power)
        if n % 2:
            result = power if result is None else matmul(result, power)
        n //= 2
    return result


@composite(name="matrix_exp")
def matrix_exp(self: Tensor) -> Any:
    """The exponential of each matrix.

    Raises:
        RuntimeError: the matrices are not square, or neither floating nor complex.
    """
    check_square(self._array, "linalg.matrix_exp")
    if self._array.dtype.kind not in "fcV":
        raise RuntimeError(
            "linalg.matrix_exp: Expected a floating point or complex tensor as input. Got "
            f"{dtypes.scalar_name(self._array.dtype)}"
        )
    return apply(REGISTRY["linalg_matrix_exp"], (self,))


def pinv(
    A: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Any:
    """The Moore-Penrose inverse of each matrix.

    Args:
        A: ``(*, m, n)``.
        rcond: another name of `rtol`.
        hermitian: the matrices are Hermitian, so that eigenvalues can be taken.
        atol: singular values below count as 0.
        rtol: those below this share of the largest do.
    """
    rtol = rcond if rtol is None else rtol
    limits = [x._array if isinstance(x, Tensor) else x for x in (atol, rtol)]
    attrs = {"atol": limits[0], "rtol": limits[1], "hermitian": hermitian}
    return apply(REGISTRY["linalg_pinv"], (A,), attrs)


composite(name="pinverse")(lambda self, rcond=1e-15: pinv(self, rcond))


def matrix_rank(
    A: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Any:
    """How many singular values of each matrix are not 0, with the tolerances of `pinv`."""
    array = A._array
    if array.ndim < 2:
        raise RuntimeError(
            "torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions."
        )
    check_precision(array)
    atol = tol if tol is not None else atol
    if array.size == 0:
        return Tensor._from_array(np.zeros(array.shape[:-2], np.int64))

    def rank(size: np.ndarray, *given: np.ndarray) -> np.ndarray:
        tensors = iter(given)
        limits = [next(tensors) if isinstance(x, Tensor) else x for x in (atol, rtol)]
        absolute, relative = cutoff(array, *limits)
        least = np.maximum(absolute, relative * size.max(-1))
        return np.asarray(np.sum(size > np.asarray(least)[..., None], axis=-1))

    values = eigvalsh(A).abs() if hermitian else svdvals(A)
    return of_values(rank, values, *[x for x in (atol, rtol) if isinstance(x, Tensor)])


def cond(A: Any, p: Any = None) -> Any:
    """The condition number of each matrix for a norm, by default 2.

    Args:
        A: ``(*, m, n)``; square unless `p` is None, 2 or -2.
        p: the order, as of `matrix_norm`.
    """
    if A._array.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if A._array.size == 0:
        return Tensor._from_array(np.zeros(A._array.shape[:-2], A._array.real.dtype))
    if p is None or (not isinstance(p, str) and abs(p) == 2):
        values = svdvals(A)
        largest, smallest = values.narrow(-1, 0, 1), values.narrow(-1, -1, 1)
        ratio = largest / smallest if p is None or p > 0 else smallest / largest
        return ratio.squeeze(-1)
    inverse, info = inv_ex(A)
    infinite = info != 0
    product = matrix_norm(A, p) * matrix_norm(inverse, p)
    return product.masked_fill(infinite, inf)


def vander(x: Any, *, N: int | None = None) -> Any:
    """The matrix of the powers 0 to ``N - 1`` of each element."""
    x = x if x._array.ndim else x.reshape(1)
    n = x._array.shape[-1] if N is None else N
    if n <= 1:
        raise RuntimeError("N must be greater than 1.")
    powers = x.unsqueeze(-1).expand(*x._array.shape, n - 1)
    if x._array.dtype.kind in "biu":
        powers = powers.to(dtypes.int64)
    powers = powers.cumprod(-1)
    ones = Tensor._from_array(np.ones((*x._array.shape, 1), powers._array.dtype))
    return apply(REGISTRY["cat"], (ones, powers), {"dim": -1})


@composite(method=False, name="vander")
def vander_of_vector(x: Tensor, N: int | None = None, increasing: bool = False) -> Any:
    """The matrix of the powers of each element: falling to 0, or rising from it.

    Args:
        x: a vector.
        N: how many powers; by default as many as elements.
        increasing: begin with the power 0.

    Raises:
        RuntimeError: `x` is no vector, or `N` negative.
    """
    if x._array.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    n = x._array.shape[0] if N is None else N
    if n < 0:
        raise RuntimeError("N must be non-negative.")
    kind = dtypes.promote_types(x.dtype, dtypes.int64)
    result = Tensor._from_array(np.empty((x._array.shape[0], n), kind.numpy))
    if n > 0:
        result.select(1, 0).fill_(1)
    if n > 1:
        result[:, 1:].copy_(x.unsqueeze(1))
        result[:, 1:].copy_(result[:, 1:].cumprod(1))
    return result if increasing else result.flip(1)
