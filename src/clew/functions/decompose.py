"""Inverses, determinants, solutions and decompositions of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew import dtypes
from clew.autograd.transforms import all_values
from clew.dispatch import apply
from clew.functions.linalg import matmul
from clew.functions.reduce import named_result
from clew.op import REGISTRY
from clew.ops.matrices import batch_element, check_floating, check_square
from clew.publish import composite
from clew.tensor import Tensor

# -- inverses and determinants


def inv(A: Tensor) -> Any:
    """The inverse of each matrix.

    Raises:
        LinAlgError: a matrix is singular.
        RuntimeError: the matrices are not square, or neither floating nor complex.
    """
    return apply(REGISTRY["linalg_inv_ex"], (A,), {"check_errors": True})[0]


composite(name="inverse")(lambda self: inv(self))


def inv_ex(A: Tensor, *, check_errors: bool = False) -> Any:
    """The inverse of each matrix, and the number of its first zero pivot (0: none)."""
    found = apply(REGISTRY["linalg_inv_ex"], (A,), {"check_errors": check_errors})
    return named_result("linalg_inv_ex", "inverse", "info")(*found)


@composite()
def det(self: Tensor) -> Any:
    """The determinant of each matrix.

    Raises:
        RuntimeError: the matrices are not square, or neither floating nor complex.
    """
    return apply(REGISTRY["linalg_det"], (self,))


def slogdet(A: Tensor) -> Any:
    """The sign of the determinant of each matrix, and the logarithm of its absolute value."""
    found = apply(REGISTRY["linalg_slogdet"], (A,))
    return named_result("linalg_slogdet", "sign", "logabsdet")(*found)


@composite(name="slogdet")
def _slogdet(self: Tensor) -> Any:
    """The sign of the determinant of each matrix, and the logarithm of its absolute value."""
    found = apply(REGISTRY["linalg_slogdet"], (self,))
    return named_result("slogdet", "sign", "logabsdet")(*found)


@composite()
def logdet(self: Tensor) -> Any:
    """The logarithm of the determinant of each matrix; nan where it is negative."""
    check_square(self._array, "logdet")
    check_floating(self._array, "logdet")
    sign, logabs = apply(REGISTRY["linalg_slogdet"], (self,))
    if self._array.dtype.kind == "c":
        return sign.log() + logabs
    return apply(REGISTRY["where"], (sign == -1, float("nan"), logabs))


# -- equations


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Any:
    """X of ``A X = B`` (of ``X A = B`` if not `left`).

    Args:
        A: ``(*, n, n)``.
        B: ``(*, n, k)``, or ``(*, n)`` for one right side each.
        left: on which side of X the matrices are.

    Raises:
        LinAlgError: a matrix is singular.
        RuntimeError: the shapes or types do not agree.
    """
    return apply(REGISTRY["linalg_solve_ex"], (A, B), {"left": left, "check_errors": True})[0]


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    """`solve`, and the number of the first zero pivot (0: none)."""
    attrs = {"left": left, "check_errors": check_errors}
    found = apply(REGISTRY["linalg_solve_ex"], (A, B), attrs)
    return named_result("linalg_solve_ex", "result", "info")(*found)


def solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:
    """`solve` where only one triangle of A is read.

    Args:
        A: ``(*, n, n)``.
        B: ``(*, n, k)``.
        upper: which triangle.
        left: on which side of X the matrices are.
        unitriangular: take the diagonal to be ones.
    """
    attrs = {"upper": upper, "left": left, "unitriangular": unitriangular}
    return apply(REGISTRY["linalg_solve_triangular"], (A, B), attrs)


@composite(out=True)
def triangular_solve(
    self: Tensor, A: Tensor, upper: bool = True, transpose: bool = False,
    unitriangular: bool = False,
) -> Any:  # fmt: skip
    """X of ``A X = self``, reading only one triangle of A, and A."""
    matrices = A.transpose(-2, -1) if transpose else A
    solution = solve_triangular(
        matrices, self, upper=upper != transpose, unitriangular=unitriangular
    )
    return named_result("triangular_solve", "solution", "cloned_coefficient")(
        solution,
        A.clone(),
    )


def tensorsolve(A: Any, B: Any, dims: Any = None) -> Any:
    """X of ``tensordot(A, X) = B``.

    Args:
        A: a tensor whose dimensions, beyond those of `B`, have as many elements as `B`.
        B: the right side.
        dims: dimensions of `A` to move to the end first.
    """
    if dims is not None:
        A = A.movedim(tuple(dims), tuple(range(-len(dims), 0)))
    shape = A.shape[B.ndim :]
    n = int(np.prod(shape))
    if n != int(np.prod(A.shape[: B.ndim])):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {n} != {int(np.prod(A.shape[: B.ndim]))}"
        )
    return solve(A.reshape(n, n), B.flatten()).reshape(shape)


def tensorinv(A: Any, ind: int = 2) -> Any:
    """The inverse of what `tensordot` with `A` does.

    Args:
        A: a tensor whose first `ind` dimensions have as many elements as the others.
        ind: how many dimensions belong to the result.
    """
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    first, rest = A.shape[:ind], A.shape[ind:]
    n, m = int(np.prod(first)), int(np.prod(rest))
    if n != m:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
            f"prod(self.shape[:ind]), but got {m} != {n}"
        )
    return inv(A.reshape(n, n)).reshape(*rest, *first)


def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """X that makes ``|A X - B|`` smallest.

    Args:
        A: ``(*, m, n)``.
        B: ``(*, m, k)``, or ``(*, m)``.
        rcond: singular values below this share of the largest count as 0.
        driver: which of LAPACK's routines to act like: "gelsy" (the default), "gels", "gelsd" or
            "gelss".

    Returns:
        tuple: (solution, residuals, rank, singular_values); what the driver does not compute is
        empty.
    """
    name = "torch.linalg.lstsq"
    first, second = A._array, B._array
    if first.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if second.ndim < 1:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    if first.dtype != second.dtype:
        words = [dtypes.scalar_name(x.dtype) for x in (first, second)]
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got input's dtype "
            f"{words[0]} and other's dtype {words[1]}"
        )
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(
            f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"
        )
    vector = second.ndim == 1 or (
        first.ndim - 1 == second.ndim and first.shape[:-1] == second.shape
    )
    if first.shape[-2] != second.shape[-1 if vector else -2]:
        side = "other.size(-1)" if vector else "other.size(-2)"
        raise RuntimeError(f"{name}: input.size(-2) should match {side}")
    attrs = {"rcond": rcond, "driver": driver or "gelsy"}
    found = apply(REGISTRY["linalg_lstsq"], (A, B), attrs)
    return named_result(
        "linalg_lstsq", "solution", "residuals", "rank", "singular_values"
    )(*found)  # fmt: skip


# -- factors


def cholesky(A: Tensor, *, upper: bool = False) -> Any:
    """The Cholesky factor of each positive-definite matrix, a lower triangle unless `upper`.

    Raises:
        LinAlgError: a matrix is not positive-definite.
    """
    attrs = {"upper": upper, "check_errors": True, "caller": "linalg.cholesky"}
    return apply(REGISTRY["linalg_cholesky_ex"], (A,), attrs)[0]


def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """`cholesky`, and the order of the first leading minor that is not positive (0: none)."""
    attrs = {"upper": upper, "check_errors": check_errors, "caller": "linalg.cholesky_ex"}
    found = apply(REGISTRY["linalg_cholesky_ex"], (A,), attrs)
    return named_result("linalg_cholesky_ex", "L", "info")(*found)


def _qr(name: str, A: Tensor, mode: str) -> Any:
    return named_result(name, "Q", "R")(*apply(REGISTRY["linalg_qr"], (A,), {"mode": mode}))


def qr(A: Tensor, mode: str = "reduced") -> Any:
    """``A = Q R``: columns that are orthonormal, and an upper triangle.

    Args:
        A: ``(*, m, n)``.
        mode: "reduced": Q has as many columns as A has dimensions; "complete": Q is square; "r":
            only R is computed.
    """
    return _qr("linalg_qr", A, mode)


composite(name="qr", out=True)(
    lambda self, some=True: _qr("qr", self, "reduced" if some else "complete")
)


def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> Any:
    """``A = U diag(S) Vh``, the singular values in descending order.

    Args:
        A: ``(*, m, n)``.
        full_matrices: U and Vh are square.
        driver: a choice that PyTorch has on GPUs only.

    Raises:
        LinAlgError: a matrix has elements that are not finite.
    """
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with "
            "cuSOLVER backend."
        )
    found = apply(REGISTRY["linalg_svd"], (A,), {"full_matrices": full_matrices})
    return named_result("linalg_svd", "U", "S", "Vh")(*found)


def svdvals(A: Tensor, *, driver: str | None = None) -> Any:
    """The singular values of each matrix, in descending order."""
    return svd(A, False, driver=driver)[1]


@composite(name="svd", out=True)
def _svd(self: Tensor, some: bool = True, compute_uv: bool = True) -> Any:
    """``self = U diag(S) V^H``; without `compute_uv`, U and V are zeros."""
    if self._array.ndim < 2:
        raise RuntimeError(
            "linalg.svd: input should have at least 2 dimensions, but has "
            f"{self._array.ndim} dimensions instead"
        )
    kind = named_result("svd", "U", "S", "V")
    if compute_uv:
        u, s, vh = svd(self, not some)
        return kind(u, s, vh.mH)
    *batch, n, m = self._array.shape
    u, v = (Tensor._from_array(np.zeros((*batch, k, k), self._array.dtype)) for k in (n, m))
    return kind(u, svdvals(self), v)


# -- eigenvalues


def eigh(A: Tensor, UPLO: str = "L") -> Any:
    """The eigenvalues, ascending, and eigenvectors of Hermitian matrices.

    Args:
        A: ``(*, n, n)``.
        UPLO: "L" or "U": which triangle is read.
    """
    found = apply(REGISTRY["linalg_eigh"], (A,), {"UPLO": UPLO})
    return named_result("linalg_eigh", "eigenvalues", "eigenvectors")(*found)


def eigvalsh(A: Tensor, UPLO: str = "L") -> Any:
    """The eigenvalues of Hermitian matrices, ascending."""
    return eigh(A, UPLO)[0]


def eig(A: Tensor) -> Any:
    """The eigenvalues and eigenvectors of square matrices, complex and in no order."""
    found = apply(REGISTRY["linalg_eig"], (A,), {"caller": "linalg.eig"})
    return named_result("linalg_eig", "eigenvalues", "eigenvectors")(*found)


def eigvals(A: Tensor) -> Any:
    """The eigenvalues of square matrices, complex and in no order."""
    return apply(REGISTRY["linalg_eig"], (A,), {"caller": "linalg.eigvals"})[0]


# -- LU


def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """L and U of ``A = P L U`` in one matrix, the row exchanges, and the first zero pivot."""
    _check_lu(A, pivot, "torch.lu_factor")
    found = apply(REGISTRY["linalg_lu_factor_ex"], (A,))
    if check_errors and np.any(all_values(found[2])):
        _refuse_zero_pivot(all_values(found[2]))
    return named_result("linalg_lu_factor_ex", "LU", "pivots", "info")(*found)


def _check_lu(A: Tensor, pivot: bool, name: str) -> None:
    if A._array.ndim < 2:
        raise RuntimeError(
            f"{name}: Expected tensor with 2 or more dimensions. Got size: "
            f"{list(A._array.shape)} instead"
        )
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")


def _refuse_zero_pivot(info: np.ndarray) -> None:
    where, index = batch_element(info != 0)
    k = info[index]
    raise RuntimeError(
        f"torch.linalg.lu_factor: {where}U[{k},{k}] is zero and using it on lu_solve would result "
        "in a division by zero. If you still want to perform the factorization, consider calling "
        "linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
    )


def lu_factor(A: Tensor, *, pivot: bool = True) -> Any:
    """L and U of ``A = P L U`` in one matrix, and the row exchanges.

    Raises:
        RuntimeError: a pivot is zero.
    """
    lu, pivots, _ = lu_factor_ex(A, pivot=pivot, check_errors=True)
    return named_result("linalg_lu_factor", "LU", "pivots")(lu, pivots)


def lu(A: Tensor, *, pivot: bool = True) -> Any:
    """``A = P L U``: a permutation, a lower triangle with ones, an upper triangle."""
    _check_lu(A, pivot, "linalg.lu")
    return named_result("linalg_lu", "P", "L", "U")(*apply(REGISTRY["linalg_lu"], (A,)))


def lu_solve(LU: Any, pivots: Tensor, B: Any, *, left: bool = True, adjoint: bool = False) -> Any:
    """X of ``A X = B``, where `LU` and `pivots` are what `lu_factor` gave for A.

    Args:
        LU: ``(*, n, n)``.
        pivots: ``(*, n)``.
        B: ``(*, n, k)``.
        left: on which side of X the matrices are.
        adjoint: take the conjugate transpose of A.
    """
    if not left:
        # X A = B is A^H X^H = B^H.
        return lu_solve(LU, pivots, B.mH, adjoint=not adjoint).mH
    attrs = {"size": LU.shape[-1], "like": LU.dtype}
    order = apply(REGISTRY["permutation_matrices"], (pivots,), attrs)
    if not adjoint:
        y = solve_triangular(LU, matmul(order.mT, B), upper=False, unitriangular=True)
        return solve_triangular(LU, y, upper=True)
    y = solve_triangular(LU.mH, B, upper=False)
    return matmul(order, solve_triangular(LU.mH, y, upper=True, unitriangular=True))
