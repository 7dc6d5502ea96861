"""Pseudo-inverses, least squares, and the exponential of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.dtypes import scalar_name
from clew.op import op
from clew.ops.matrices import (
    LinAlgError,
    adjoint,
    batch_element,
    check_square,
    column_major,
)
from clew.ops.solve import is_vector_batch

# -- pseudo-inverses


def check_precision(x: Any) -> None:
    """Refuse types that have no rounding error LAPACK knows.

    Raises:
        RuntimeError: the type is neither single nor double precision.
    """
    if x.dtype.kind not in "fc" or x.dtype.itemsize == 2:
        raise RuntimeError("This function doesn't handle types other than float and double")


def cutoff(x: Any, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """The tolerances below which a singular value counts as 0.

    Without tolerances it is the rounding error of the decomposition.
    """
    if rtol is None:
        default = max(x.shape[-2:]) * np.finfo(x.dtype).eps
        rtol = default if atol is None else np.where(np.asarray(atol) > 0, 0.0, default)
    return np.asarray(0.0 if atol is None else atol), np.asarray(rtol)


@op("linalg_pinv(self; atol, rtol, hermitian)", publish=(), node="LinalgPinvBackward0")
def linalg_pinv(x: Any, *, atol: Any, rtol: Any, hermitian: bool) -> Any:
    """The Moore-Penrose inverse of each matrix."""
    if x.ndim < 2 or x.dtype.kind not in "fc" or x.dtype.itemsize == 2:
        raise RuntimeError(
            f"linalg.pinv({scalar_name(x.dtype)}{{{list(x.shape)}}}): expected a tensor with 2 or "
            "more dimensions of float, double, cfloat or cdouble types"
        )
    if x.size == 0:
        return np.zeros((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)
    atol, rtol = cutoff(x, atol, rtol)
    if hermitian:
        check_square(x, "linalg.eigh")
        s, u = np.linalg.eigh(x)
        vh = np.swapaxes(u, -1, -2).conj()
    else:
        finite = np.isfinite(x).all((-2, -1))
        if not np.all(finite):
            where, _ = batch_element(~finite)
            raise LinAlgError(
                f"linalg.svd: {where}The algorithm failed to converge because the input matrix "
                "contained non-finite values."
            )
        u, s, vh = np.linalg.svd(x, full_matrices=False)
    size = np.abs(s)
    least = np.maximum(atol[..., None], rtol[..., None] * size.max(-1, keepdims=True))
    kept = size > least
    inverse = np.where(kept, 1 / np.where(kept, s, 1), 0).astype(s.dtype)
    v = np.swapaxes(vh, -1, -2).conj()
    return np.matmul(v * inverse[..., None, :], np.swapaxes(u, -1, -2).conj())


@linalg_pinv.grad("self")
def _(F: Any, grad: Any, self: Any, result: Any) -> Any:
    return of_pinv(F, grad, result, self)


def of_pinv(F: Any, grad: Any, pinv: Any, a: Any) -> Any:
    """The gradient of a matrix, given that of its pseudo-inverse (Golub and Pereyra)."""
    product = F.matrix_product
    turned, of_turned = adjoint(F, pinv), adjoint(F, grad)
    if a.shape[-2] <= a.shape[-1]:
        k = product(of_turned, pinv)
        right = product(k, turned)
        return (
            -adjoint(F, product(pinv, k))
            + right
            - product(product(a, pinv), right)
            + product(product(turned, pinv), of_turned - product(k, a))
        )
    k = product(pinv, of_turned)
    left = product(turned, k)
    return (
        -adjoint(F, product(k, pinv))
        + product(product(of_turned - product(a, k), pinv), turned)
        + left
        - product(product(left, pinv), a)
    )


# -- least squares


@op("linalg_lstsq(self, b; rcond, driver) -> solution, residuals, rank, singular_values",
    publish=(), no_grad_outputs=(2, 3))  # fmt: skip
def linalg_lstsq(a: Any, b: Any, *, rcond: Any, driver: str) -> Any:
    """X that makes ``|A X - B|`` smallest, and then itself is."""
    check_precision(a)
    vector = is_vector_batch(a.shape, b.shape)
    right = b[..., None] if vector else b
    m, n = a.shape[-2:]
    limit = max(m, n) * np.finfo(a.dtype).eps if rcond is None else rcond
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    kept = s > limit * s[..., :1]
    rank = np.sum(kept, axis=-1)
    if driver == "gels":
        _refuse_deficient(s, n)
    inverse = np.where(kept, 1 / np.where(kept, s, 1), 0).astype(s.dtype)
    inner = np.matmul(np.swapaxes(u, -1, -2).conj(), right) * inverse[..., None]
    x = column_major(np.matmul(np.swapaxes(vh, -1, -2).conj(), inner))
    residuals = np.zeros(0, s.dtype)
    if driver != "gelsy" and m > n and np.all(rank == n):
        off = np.matmul(a, x) - right
        residuals = np.sum((off * off.conj()).real, axis=-2)
    return (
        x[..., 0] if vector else x,
        residuals,
        np.zeros(0, np.int64) if driver == "gels" else np.asarray(rank, np.int64),
        s if driver in ("gelsd", "gelss") else np.zeros(0, s.dtype),
    )


def _refuse_deficient(s: Any, n: int) -> None:
    deficient = s[..., -1] <= s[..., 0] * np.finfo(s.dtype).eps * n
    if np.any(deficient):
        where, _ = batch_element(np.asarray(deficient))
        raise LinAlgError(
            f"torch.linalg.lstsq: {where}The least squares solution could not be computed because "
            f"the input matrix does not have full rank (error code: {n})."
        )


@linalg_lstsq.grad("self", "b")
def _(F: Any, grads: Any, self: Any, b: Any, solution: Any, *, need: Any) -> Any:
    of_x, of_residuals = grads[:2]
    vector = is_vector_batch(tuple(self.shape), tuple(b.shape))
    right, x = (F.unsqueeze(v, -1) if vector else v for v in (b, solution))
    parts: list[list[Any]] = [[], []]
    if of_x is not None:
        of_x = F.unsqueeze(of_x, -1) if vector else of_x
        pinv = F.linalg_pinv(self, None, None, False)
        parts[0].append(of_pinv(F, F.matrix_product(of_x, adjoint(F, right)), pinv, self))
        parts[1].append(F.matrix_product(adjoint(F, pinv), of_x))
    if of_residuals is not None and 0 not in of_residuals.shape:
        # At the minimum the residuals do not change with X.
        off = F.matrix_product(self, x) - right
        weighted = 2 * off * F.unsqueeze(of_residuals, -2)
        parts[0].append(F.matrix_product(weighted, adjoint(F, x)))
        parts[1].append(-weighted)
    if not parts[0]:
        return [None, None]
    sums = [terms[0] if len(terms) == 1 else terms[0] + terms[1] for terms in parts]
    if vector:
        sums[1] = F.squeeze_dim(sums[1], -1)
    return [total if wanted else None for wanted, total in zip(need, sums)]


# -- the exponential

_PADE = (
    64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000,
    10559470521600, 670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
)  # fmt: skip
_PADE_REACH = 5.371920351148152


@op("linalg_matrix_exp(self)", publish=())
def linalg_matrix_exp(x: Any) -> Any:
    """The exponential of each matrix.

    By scaling and squaring with the Padé approximant of degree 13; see Higham, "The scaling and
    squaring method for the matrix exponential revisited" (2005).
    """
    n = x.shape[-1]
    if x.size == 0:
        return x.copy()
    wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    size = np.abs(wide).sum(-2).max(-1)
    usable = np.isfinite(size)
    halvings = np.zeros(size.shape, int)
    large = usable & (size > _PADE_REACH)
    halvings[large] = np.ceil(np.log2(size[large] / _PADE_REACH)).astype(int)
    a = wide / np.exp2(halvings)[..., None, None]
    eye = np.eye(n)
    a2 = a @ a
    a4 = a2 @ a2
    a6 = a4 @ a2
    b = _PADE
    odd = a6 @ (b[13] * a6 + b[11] * a4 + b[9] * a2)
    odd = a @ (odd + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * eye)
    even = a6 @ (b[12] * a6 + b[10] * a4 + b[8] * a2)
    even = even + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * eye
    result = np.linalg.solve(even - odd, even + odd)
    for step in range(int(halvings.max())):
        again = halvings > step
        result[again] = result[again] @ result[again]
    return result.astype(x.dtype)


@linalg_matrix_exp.grad("self")
def _(F: Any, grad: Any, self: Any) -> Any:
    # exp([[X, G], [0, X]]) holds the derivative at X in the direction G in its corner.
    turned = adjoint(F, self)
    n = self.shape[-1]
    top = F.cat((turned, grad), -1)
    bottom = F.cat((F.zeros_like(turned), turned), -1)
    whole = F.linalg_matrix_exp(F.cat((top, bottom), -2))
    corner = F.slice(whole, dim=-2, start=0, end=n, step=1)
    return F.slice(corner, dim=-1, start=n, end=2 * n, step=1)
