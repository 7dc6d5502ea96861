"""Inverses, determinants and solutions of linear equations."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.dtypes import scalar_name
from clew.op import op
from clew.ops.matrices import (
    LinAlgError,
    adjoint,
    batch_element,
    check_floating,
    check_square,
    column_major,
    lu_packed,
    refuse_halves_and_integers,
)
from clew.ops.rules import broadcast_shape, conj, is_complex

# -- inverses


@op("linalg_inv_ex(A; check_errors=False) -> inverse, info", publish=(), no_grad_outputs=(1,))
def linalg_inv_ex(x: Any, *, check_errors: bool) -> Any:
    """The inverse of each matrix, and the number of its first zero pivot (0: none)."""
    check_square(x, "linalg.inv")
    check_floating(x, "linalg.inv")
    try:
        return column_major(np.linalg.inv(x)), np.zeros(x.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        info = lu_packed(x)[2]
    if check_errors:
        where, index = batch_element(info != 0)
        raise LinAlgError(
            f"linalg.inv: {where}The diagonal element {info[index]} is zero, the inversion could "
            "not be completed because the input matrix is singular."
        )
    inverse = np.full_like(x, np.nan)
    inverse[info == 0] = np.linalg.inv(x[info == 0])
    return column_major(inverse), info


@linalg_inv_ex.grad("A")
def _(F: Any, grad: Any, inverse: Any) -> Any:
    turned = adjoint(F, inverse)
    return -F.matrix_product(turned, F.matrix_product(grad, turned))


# -- determinants


@op("linalg_det(A)", publish=())
def linalg_det(x: Any) -> Any:
    """The determinant of each matrix."""
    check_square(x, "linalg.det")
    check_floating(x, "linalg.det", "lu_cpu")
    return np.linalg.det(x)


@linalg_det.grad("A")
def _(F: Any, grad: Any, A: Any) -> Any:
    return F.unsqueeze(F.unsqueeze(grad, -1), -1) * conj(F, F.cofactors(A))


@op("cofactors(A)", publish=())
def cofactors(x: Any) -> Any:
    """The derivative of the determinant: ``det(A) * inverse(A).T``, also where A is singular."""
    check_floating(x, "linalg.det", "lu_cpu")
    if x.shape[-1] < 2:
        return np.ones_like(x)
    if not np.all(np.isfinite(x)):
        return np.full_like(x, np.nan)
    determinant = np.linalg.det(x)[..., None, None]
    u, s, vh = np.linalg.svd(x)
    if np.all(s[..., -1] > s[..., 0] * np.finfo(s.dtype).eps):
        return np.swapaxes(np.linalg.inv(x), -1, -2) * determinant
    # A = U S Vh: the product of the other singular values takes the place of det(A) / s.
    n = s.shape[-1]
    others = np.prod(np.where(np.eye(n, dtype=np.bool_), 1, s[..., None, :]), axis=-1)
    turn = np.linalg.det(u) * np.linalg.det(vh)
    return np.matmul(u.conj() * (others * turn[..., None])[..., None, :], vh.conj())


@cofactors.grad("A")
def _(F: Any, grad: Any, A: Any) -> Any:
    # d cof(A) = tr(B dA) cof(A) - B.T dA.T cof(A), with B the inverse.
    inverse = F.linalg_inv_ex(A)[0]
    cof = F.cofactors(A)
    total = F.sum(F.sum(conj(F, cof) * grad, -1, True), -2, True)
    inner = F.matrix_product(F.transpose(grad, -2, -1), conj(F, cof))
    turned = adjoint(F, inverse)
    return total * turned - F.matrix_product(turned, inner)


@op("linalg_slogdet(A) -> sign, logabsdet", publish=())
def linalg_slogdet(x: Any) -> Any:
    """The sign of the determinant of each matrix, and the logarithm of its absolute value."""
    check_square(x, "linalg.slogdet")
    check_floating(x, "linalg.slogdet")
    sign, logabs = np.linalg.slogdet(x)
    return np.where(np.isnan(logabs), x.dtype.type(0), sign), np.asarray(logabs, x.real.dtype)


@linalg_slogdet.grad("A")
def _(F: Any, grads: Any, A: Any, sign: Any) -> Any:
    of_sign, of_log = grads
    if not is_complex(A):
        # The sign is constant where it is differentiable.
        if of_log is None:
            return None
        return F.unsqueeze(F.unsqueeze(of_log, -1), -1) * adjoint(F, F.linalg_inv_ex(A)[0])
    weight = 0 if of_log is None else of_log
    if of_sign is not None:
        turn = F.conj(of_sign) * sign
        weight = weight - (turn - F.conj(turn)) / 2
    return F.unsqueeze(F.unsqueeze(weight, -1), -1) * adjoint(F, F.linalg_inv_ex(A)[0])


# -- linear equations


def is_vector_batch(a_shape: tuple[int, ...], b_shape: tuple[int, ...]) -> bool:
    """Whether the right sides of equations are vectors, not matrices."""
    return len(b_shape) == 1 or (len(a_shape) - 1 == len(b_shape) and b_shape == a_shape[:-1])


def _check_equation(a: Any, b: Any, left: bool, name: str) -> None:
    inner = b.shape[-2] if left else b.shape[-1]
    if a.shape[-1] != inner:
        form = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {form} "
            f"({a.shape[-2]}x{a.shape[-1]} and {b.shape[-2]}x{b.shape[-1]})"
        )


@op("linalg_solve_ex(A, B; left=True, check_errors=False) -> result, info", publish=(),
    no_grad_outputs=(1,))  # fmt: skip
def linalg_solve_ex(a: Any, b: Any, *, left: bool, check_errors: bool) -> Any:
    """X of ``A X = B`` (or ``X A = B``), and the number of the first zero pivot (0: none)."""
    name = "linalg.solve"
    check_square(a, name)
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"{name}: Expected A and B to have the same dtype, but found A of type "
            f"{scalar_name(a.dtype)} and B of type {scalar_name(b.dtype)} instead"
        )
    check_floating(a, name)
    vector = is_vector_batch(a.shape, b.shape)
    right = b[..., None] if vector else b
    _check_equation(a, right, left, name)
    broadcast_shape(a.shape[:-2], right.shape[:-2])
    if not left:
        a, right = np.swapaxes(a, -1, -2), np.swapaxes(right, -1, -2)
    try:
        x, info = np.linalg.solve(a, right), np.zeros(a.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        x, info = _solved_where_possible(a, right)
        if check_errors:
            where, _ = batch_element(info != 0)
            raise LinAlgError(
                f"torch.linalg.solve: {where}The solver failed because the input matrix is "
                "singular."
            ) from None
    x = np.swapaxes(column_major(x), -1, -2) if not left else column_major(x)
    return x[..., 0] if vector else x, info


def _solved_where_possible(a: Any, b: Any) -> tuple[Any, Any]:
    info = lu_packed(a)[2]
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    matrices = np.broadcast_to(a, (*batch, *a.shape[-2:]))
    rights = np.broadcast_to(b, (*batch, *b.shape[-2:]))
    regular = np.broadcast_to(info == 0, batch)
    x = np.full(rights.shape, np.nan, a.dtype)
    x[regular] = np.linalg.solve(matrices[regular], rights[regular])
    return x, info


@linalg_solve_ex.grad("A", "B")
def _(F: Any, grad: Any, A: Any, B_shape: Any, result: Any, *, left: bool, need: Any) -> Any:
    vector = is_vector_batch(tuple(A.shape), tuple(B_shape))
    of_x, x = (F.unsqueeze(v, -1) if vector else v for v in (grad, result))
    of_b = F.linalg_solve_ex(adjoint(F, A), of_x, left)[0]
    of_a = None
    if need[0]:
        turned = adjoint(F, x)
        of_a = -(F.matrix_product(of_b, turned) if left else F.matrix_product(turned, of_b))
    return [of_a, (F.squeeze_dim(of_b, -1) if vector else of_b) if need[1] else None]


def triangle(a: Any, upper: bool, unit: bool) -> np.ndarray:
    """One triangle of each matrix, with ones on the diagonal if `unit`."""
    part = np.triu(a) if upper else np.tril(a)
    if unit:
        n = a.shape[-1]
        part[..., np.arange(n), np.arange(n)] = 1
    return part


def _substituted(a: Any, b: Any, upper: bool) -> np.ndarray:
    """Solve row by row: what LAPACK gives for a zero on the diagonal, too."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    x = np.array(np.broadcast_to(b, (*batch, *b.shape[-2:])))
    n = a.shape[-1]
    for i in reversed(range(n)) if upper else range(n):
        known = slice(i + 1, n) if upper else slice(0, i)
        x[..., i, :] -= np.matmul(a[..., i, None, known], x[..., known, :])[..., 0, :]
        x[..., i, :] /= a[..., i, i, None]
    return x


@op("linalg_solve_triangular(self, B; *, upper, left=True, unitriangular=False)", publish=())
def linalg_solve_triangular(a: Any, b: Any, *, upper: bool, left: bool, unitriangular: bool) -> Any:
    """X of ``A X = B`` (or ``X A = B``), reading only one triangle of A."""
    name = "linalg.solve_triangular"
    check_square(a, name)
    if b.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor B must have at least 2 dimensions.")
    _check_equation(a, b, left, name)
    refuse_halves_and_integers(b, "triangular_solve_cpu")
    part = triangle(a, upper, unitriangular)
    right = b if left else np.swapaxes(b, -1, -2)
    if not left:
        part, upper = np.swapaxes(part, -1, -2), not upper
    broadcast_shape(part.shape[:-2], right.shape[:-2])
    try:
        x = np.linalg.solve(part, right)
    except np.linalg.LinAlgError:
        x = _substituted(part, right, upper)
    return column_major(x if left else np.swapaxes(x, -1, -2))


@linalg_solve_triangular.grad("self", "B")
def _(
    F: Any, grad: Any, self: Any, result: Any, *, upper: bool, left: bool, unitriangular: bool,
    need: Any,
) -> Any:  # fmt: skip
    of_b = F.linalg_solve_triangular(
        adjoint(F, self), grad, upper=not upper, left=left, unitriangular=unitriangular
    )
    of_a = None
    if need[0]:
        turned = adjoint(F, result)
        of_a = -(F.matrix_product(of_b, turned) if left else F.matrix_product(turned, of_b))
        shift = int(unitriangular)
        of_a = F.triu(of_a, shift) if upper else F.tril(of_a, -shift)
    return [of_a, of_b if need[1] else None]


# -- Cholesky factors


def _cholesky(x: Any, upper: bool) -> tuple[Any, Any]:
    """The factor of each matrix, and the order of the first bad minor (0: none)."""
    source = np.swapaxes(x, -1, -2).conj() if upper else x
    try:
        factor, info = np.linalg.cholesky(source), np.zeros(x.shape[:-2], np.int32)
        missing = np.isnan(np.diagonal(factor, 0, -2, -1))
        if missing.any():
            info = np.where(missing.any(-1), np.argmax(missing, -1) + 1, 0).astype(np.int32)
    except np.linalg.LinAlgError:
        flat = source.reshape(-1, *x.shape[-2:])
        found = [_first_bad_minor(matrix) for matrix in flat]
        info = np.array(found, np.int32).reshape(x.shape[:-2])
        factor = np.tril(source)
        factor[info == 0] = np.linalg.cholesky(source[info == 0])
    return column_major(np.swapaxes(factor, -1, -2).conj() if upper else factor), info


def _first_bad_minor(matrix: Any) -> int:
    for k in range(1, len(matrix) + 1):
        try:
            np.linalg.cholesky(matrix[:k, :k])
        except np.linalg.LinAlgError:
            return k
    return 0


def check_positive(info: Any, name: str) -> None:
    """Refuse what `_cholesky` found a bad minor of.

    Raises:
        LinAlgError: naming the function `name` and the minor.
    """
    if np.any(info):
        where, index = batch_element(info != 0)
        raise LinAlgError(
            f"{name}: {where}The factorization could not be completed because the input is not "
            f"positive-definite (the leading minor of order {info[index]} is not "
            "positive-definite)."
        )


def _of_cholesky(F: Any, grad: Any, factor: Any, upper: bool) -> Any:
    """The gradient of the matrix; see "Differentiation of the Cholesky decomposition", Murray."""
    if upper:
        factor, grad = adjoint(F, factor), adjoint(F, grad)
    inner = F.tril(F.matrix_product(adjoint(F, factor), grad), 0)
    inner = 0.5 * (inner + adjoint(F, F.tril(inner, -1)))
    inner = F.linalg_solve_triangular(adjoint(F, factor), inner, upper=True)
    return F.linalg_solve_triangular(factor, inner, upper=False, left=False)


def _tangent_of_cholesky(F: Any, tangent: Any, factor: Any, upper: bool) -> Any:
    """The tangent of the factor, from that of the matrix (which should be Hermitian)."""
    if upper:
        factor = adjoint(F, factor)
    inner = F.linalg_solve_triangular(factor, tangent, upper=False)
    inner = F.linalg_solve_triangular(adjoint(F, factor), inner, upper=True, left=False)
    inner = 0.5 * (F.tril(inner, 0) + F.tril(inner, -1))
    found = F.matrix_product(factor, inner)
    return adjoint(F, found) if upper else found


@op("linalg_cholesky_ex(A; upper=False, check_errors=False, caller='linalg.cholesky') -> L, info",
    publish=(), no_grad_outputs=(1,), jvp=lambda F, A_t, L, *, upper: (
        _tangent_of_cholesky(F, A_t, L, upper), None))  # fmt: skip
def linalg_cholesky_ex(x: Any, *, upper: bool, check_errors: bool, caller: str) -> Any:
    """The Cholesky factor of each positive-definite matrix, and the order of a bad minor."""
    check_square(x, "linalg.cholesky")
    check_floating(x, "linalg.cholesky", "cholesky_cpu")
    factor, info = _cholesky(x, upper)
    if check_errors:
        check_positive(info, caller)
    return factor, info


@linalg_cholesky_ex.grad("A")
def _(F: Any, grad: Any, L: Any, *, upper: bool) -> Any:
    return _of_cholesky(F, grad, L, upper)


@op("cholesky(self; upper=False)", jvp=lambda F, self_t, result, *, upper: (
    _tangent_of_cholesky(F, self_t, result, upper)))  # fmt: skip
def cholesky(x: Any, *, upper: bool) -> Any:
    """The Cholesky factor of each positive-definite matrix.

    Raises:
        RuntimeError: the matrices are not square, or one is not positive-definite.
    """
    check_square(x, "cholesky")
    refuse_halves_and_integers(x, "cholesky_cpu")
    factor, info = _cholesky(x, upper)
    check_positive(info, "cholesky")
    return factor


@cholesky.grad("self")
def _(F: Any, grad: Any, result: Any, *, upper: bool) -> Any:
    return _of_cholesky(F, grad, result, upper)


@op("cholesky_solve(self, input2; upper=False)")
def cholesky_solve(b: Any, factor: Any, *, upper: bool) -> Any:
    """X of ``A X = self``, where `input2` is the Cholesky factor of A.

    Raises:
        RuntimeError: an operand is no matrix, or the sizes do not agree.
    """
    for x, name in ((b, "b"), (factor, "u")):
        if x.ndim < 2:
            raise RuntimeError(
                f"{name} should have at least 2 dimensions, but has {x.ndim} dimensions instead"
            )
    if b.dtype != factor.dtype:
        raise RuntimeError(
            "Expected b and A to have the same dtype, but found b of type "
            f"{scalar_name(b.dtype)} and A of type {scalar_name(factor.dtype)} instead."
        )
    refuse_halves_and_integers(b, "cholesky_solve_cpu")
    broadcast_shape(factor.shape[:-2], b.shape[:-2])
    part = triangle(factor, upper, False)
    turned = np.swapaxes(part, -1, -2).conj()
    low, high = (turned, part) if upper else (part, turned)
    return column_major(np.linalg.solve(high, np.linalg.solve(low, b)))


@cholesky_solve.grad("self", "input2")
def _(F: Any, grad: Any, self: Any, input2: Any, result: Any, *, upper: bool, need: Any) -> Any:
    of_b = F.cholesky_solve(grad, input2, upper)
    of_factor = None
    if need[1]:
        common = F.matrix_product(of_b, adjoint(F, result))
        common = common + adjoint(F, common)
        # As in PyTorch, also for the triangle that is not read.
        left, right = (input2, common) if upper else (common, input2)
        of_factor = -F.matrix_product(left, right)
    return [of_b if need[0] else None, of_factor]


@op("cholesky_inverse(self; upper=False)")
def cholesky_inverse(factor: Any, *, upper: bool) -> Any:
    """The inverse of the matrix whose Cholesky factor is given.

    Raises:
        RuntimeError: the tensor is no batch of square matrices.
    """
    check_square(factor, "cholesky_inverse")
    refuse_halves_and_integers(factor, "cholesky_inverse_out_cpu")
    part = triangle(factor, upper, False)
    turned = np.swapaxes(part, -1, -2).conj()
    return column_major(
        np.linalg.inv(np.matmul(turned, part) if upper else np.matmul(part, turned))
    )


@cholesky_inverse.grad("self")
def _(F: Any, grad: Any, self: Any, result: Any, *, upper: bool) -> Any:
    common = F.matrix_product(F.matrix_product(result, grad + adjoint(F, grad)), result)
    # As in PyTorch, also for the triangle that is not read.
    return -(F.matrix_product(self, common) if upper else F.matrix_product(common, self))
