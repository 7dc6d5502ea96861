"""Decompositions of matrices: QR, singular values, eigenvalues, LU; and what is built on them.

The derivatives are those of Townsend, "Differentiating the singular value decomposition", of
Walter and Lehmann, "Algorithmic differentiation of linear algebra functions", and of Giles, "An
extended collection of matrix derivative results", in the form in which PyTorch computes them.
"""

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
    check_matrices,
    check_square,
    column_major,
    diagonal_matrices,
    diagonals,
    lu_packed,
    refuse_halves_and_integers,
    row_order,
)
from clew.ops.rules import conj, is_complex

# -- QR


@op("linalg_qr(A; mode='reduced') -> Q, R", publish=())
def linalg_qr(x: Any, *, mode: str) -> Any:
    """``A = Q R``: columns that are orthonormal, and an upper triangle."""
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), "
            "'r', or 'complete'"
        )
    check_matrices(x, "linalg.qr")
    check_floating(x, "linalg.qr", "geqrf_cpu")
    if mode == "r":
        return np.zeros(0, x.dtype), column_major(np.linalg.qr(x, "r"))
    q, r = np.linalg.qr(x, "complete" if mode == "complete" else "reduced")
    return column_major(q), column_major(r)


@linalg_qr.grad("A")
def _(F: Any, grads: Any, Q: Any, R: Any, *, mode: str) -> Any:
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. "
            "Please use linalg.qr(A, mode='reduced') if you are going to differentiate through "
            "linalg.qr."
        )
    m, columns = Q.shape[-2], R.shape[-1]
    if mode == "complete" and m > columns:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols."
        )
    of_q, of_r = grads
    if m >= columns:
        return _of_tall_qr(F, of_q, of_r, Q, R)
    # A = [X | Y] with X square, R = [U | V]: X = Q U, and V = Q^H Y.
    u, v = _columns(F, R, 0, m), _columns(F, R, m, columns)
    of_u = of_v = None
    if of_r is not None:
        of_u, of_v = _columns(F, of_r, 0, m), _columns(F, of_r, m, columns)
        through_v = F.matrix_product(F.matrix_product(Q, v), adjoint(F, of_v))
        of_q = through_v if of_q is None else of_q + through_v
    of_x = _of_tall_qr(F, of_q, of_u, Q, u)
    of_y = F.zeros_like(v) if of_v is None else F.matrix_product(Q, of_v)
    return F.cat((of_x, of_y), -1)


def _columns(F: Any, x: Any, start: int, end: int) -> Any:
    return F.slice(x, dim=-1, start=start, end=end, step=1)


def _of_tall_qr(F: Any, of_q: Any, of_r: Any, q: Any, r: Any) -> Any:
    inner = F.zeros_like(r)
    if of_r is not None:
        inner = F.matrix_product(of_r, adjoint(F, r))
    if of_q is not None:
        inner = inner - F.matrix_product(adjoint(F, q), of_q)
    inner = F.triu(inner, 0)
    # The upper triangle stands for a Hermitian matrix, whose diagonal is real.
    doubled = inner + adjoint(F, inner)
    inner = doubled - diagonal_matrices(F, diagonals(F, doubled)) / 2
    of_a = F.matrix_product(q, inner)
    if of_q is not None:
        of_a = of_a + of_q
    return F.linalg_solve_triangular(adjoint(F, r), of_a, upper=False, left=False)


# -- singular values


@op("phase_checked(self; caller)", publish=(), jvp="linear", self=lambda F, grad: grad)
def phase_checked(x: Any, *, caller: str) -> Any:
    """`self`, the products of complex vectors with their gradients.

    Raises:
        RuntimeError: a diagonal is not real: the gradients belong to a function of the vectors'
            phase, which the decomposition leaves open.
    """
    if np.allclose(np.diagonal(x, 0, -2, -1).imag, 0, rtol=1e-2, atol=1e-2):
        return x
    kind, end = "eigenvectors", "this quantity, so it is ill-defined."
    if caller == "svd_backward":
        kind, end = "singular vectors", "this phase term, making it ill-defined."
    raise RuntimeError(
        f"{caller}: The {kind} in the complex case are specified up to multiplication by "
        f"e^{{i phi}}. The specified loss function depends on {end}"
    )


@op("linalg_svd(A; full_matrices=True) -> U, S, Vh", publish=())
def linalg_svd(x: Any, *, full_matrices: bool) -> Any:
    """``A = U diag(S) Vh``, the singular values in descending order."""
    check_matrices(x, "linalg.svd")
    check_floating(x, "linalg.svd", "linalg_svd_cpu")
    finite = np.isfinite(x).all((-2, -1))
    if not np.all(finite):
        where, _ = batch_element(~finite)
        raise LinAlgError(
            f"linalg.svd: {where}The algorithm failed to converge because the input matrix "
            "contained non-finite values."
        )
    u, s, vh = np.linalg.svd(x, full_matrices)
    return column_major(u), np.ascontiguousarray(s), column_major(vh)


@linalg_svd.grad("A")
def _(F: Any, grads: Any, U: Any, S: Any, Vh: Any) -> Any:
    of_u, of_s, of_vh = grads
    k = S.shape[-1]
    u, vh = _columns(F, U, 0, k), F.slice(Vh, dim=-2, start=0, end=k, step=1)
    if of_u is not None:
        of_u = _columns(F, of_u, 0, k)
    if of_vh is not None:
        of_vh = F.slice(of_vh, dim=-2, start=0, end=k, step=1)
    if of_u is None and of_vh is None:
        return F.matrix_product(u * F.unsqueeze(conj(F, of_s), -2), vh)
    return _of_svd(F, of_u, of_s, of_vh, u, S, vh)


def _of_svd(F: Any, of_u: Any, of_s: Any, of_vh: Any, u: Any, s: Any, vh: Any) -> Any:
    rows, columns = u.shape[-2], vh.shape[-1]
    k = s.shape[-1]
    squares = s * s
    gaps = F.unsqueeze(squares, -2) - F.unsqueeze(squares, -1)
    gaps = gaps + diagonal_matrices(F, F.ones_like(s))
    along_u = None if of_u is None else F.matrix_product(adjoint(F, u), of_u)
    along_v = None if of_vh is None else F.matrix_product(vh, adjoint(F, of_vh))
    if is_complex(u):
        both = [along for along in (along_u, along_v) if along is not None]
        F.phase_checked(both[0] if len(both) == 1 else both[0] + both[1], caller="svd_backward")
    inner = None
    if along_u is not None:
        inner = _skew(F, along_u) / gaps * F.unsqueeze(s, -2)
    if along_v is not None:
        part = F.unsqueeze(s, -1) * (_skew(F, along_v) / gaps)
        inner = part if inner is None else inner + part
    if of_s is not None:
        inner = inner + diagonal_matrices(F, of_s)
    if is_complex(u) and along_u is not None and along_v is not None:
        inner = inner + diagonal_matrices(F, diagonals(F, _skew(F, along_u)) / (2 * s))
    if rows > k and of_u is not None:
        scaled = of_u / F.unsqueeze(s, -2)
        outside = scaled - F.matrix_product(u, F.matrix_product(adjoint(F, u), scaled))
        return F.matrix_product(F.matrix_product(u, inner) + outside, vh)
    if columns > k and of_vh is not None:
        scaled = of_vh / F.unsqueeze(s, -1)
        outside = scaled - F.matrix_product(F.matrix_product(scaled, adjoint(F, vh)), vh)
        return F.matrix_product(u, F.matrix_product(inner, vh) + outside)
    return F.matrix_product(F.matrix_product(u, inner), vh)


def _skew(F: Any, x: Any) -> Any:
    return x - adjoint(F, x)


# -- eigenvalues


@op("linalg_eigh(A; UPLO='L') -> eigenvalues, eigenvectors", publish=())
def linalg_eigh(x: Any, *, UPLO: str) -> Any:
    """The eigenvalues, ascending, and eigenvectors of Hermitian matrices; one triangle is read."""
    check_square(x, "linalg.eigh")
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    refuse_halves_and_integers(x, "linalg_eigh_cpu")
    uplo: Any = UPLO.upper()
    values, vectors = np.linalg.eigh(x, uplo)
    return np.ascontiguousarray(values), column_major(vectors)


@linalg_eigh.grad("A")
def _(F: Any, grads: Any, eigenvalues: Any, eigenvectors: Any) -> Any:
    of_values, of_vectors = grads
    turned = adjoint(F, eigenvectors)
    if of_vectors is None:
        return F.matrix_product(eigenvectors * F.unsqueeze(of_values, -2), turned)
    gaps = F.unsqueeze(eigenvalues, -2) - F.unsqueeze(eigenvalues, -1)
    gaps = gaps + diagonal_matrices(F, F.ones_like(eigenvalues))
    inner = F.matrix_product(turned, of_vectors)
    if is_complex(eigenvectors):
        inner = F.phase_checked(inner, caller="linalg_eigh_backward")
    inner = (inner - diagonal_matrices(F, diagonals(F, inner))) / gaps
    if of_values is not None:
        inner = inner + diagonal_matrices(F, of_values)
    whole = F.matrix_product(eigenvectors, F.matrix_product(inner, turned))
    return (whole + adjoint(F, whole)) / 2


@op("linalg_eig(self; caller='linalg.eig') -> eigenvalues, eigenvectors", publish=())
def linalg_eig(x: Any, *, caller: str) -> Any:
    """The eigenvalues and eigenvectors of square matrices, complex."""
    check_square(x, caller)
    if x.dtype.kind in "biu":
        raise RuntimeError(f"Unknown Complex ScalarType for {scalar_name(x.dtype)}")
    refuse_halves_and_integers(x, "linalg_eig_out_cpu")
    if not np.all(np.isfinite(x)):
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    kind = np.complex64 if x.dtype.name in ("float32", "complex64") else np.complex128
    values, vectors = np.linalg.eig(x)
    return np.ascontiguousarray(values.astype(kind)), column_major(vectors.astype(kind))


@linalg_eig.grad("self")
def _(F: Any, grads: Any, eigenvalues: Any, eigenvectors: Any) -> Any:
    of_values, of_vectors = grads
    turned = adjoint(F, eigenvectors)
    inner: Any = 0
    if of_vectors is not None:
        inner = F.matrix_product(turned, of_vectors)
        inner = F.phase_checked(inner, caller="linalg_eig_backward")
        # The vectors are of length one and their phase is free: neither may count.
        length = F.real(diagonals(F, inner))
        inner = inner - F.matrix_product(turned, eigenvectors) * F.unsqueeze(length, -2)
        gaps = F.conj(F.unsqueeze(eigenvalues, -2) - F.unsqueeze(eigenvalues, -1))
        gaps = gaps + diagonal_matrices(F, F.ones_like(eigenvalues))
        inner = (inner - diagonal_matrices(F, diagonals(F, inner))) / gaps
    if of_values is not None:
        inner = inner + diagonal_matrices(F, of_values)
    return F.linalg_solve_ex(turned, F.matrix_product(inner, turned))[0]


# -- LU


@op("linalg_lu_factor_ex(A) -> LU, pivots, info", publish=(), no_grad_outputs=(1, 2))
def linalg_lu_factor_ex(x: Any) -> Any:
    """L and U of ``A = P L U`` in one matrix, the row exchanges, and the first zero pivot."""
    refuse_halves_and_integers(x, "lu_cpu")
    lu, pivots, info = lu_packed(x)
    return column_major(lu), pivots, info


@linalg_lu_factor_ex.grad("A")
def _(F: Any, grad: Any, LU: Any, pivots: Any) -> Any:
    lower, upper = _triangles(F, LU)
    order = F.permutation_matrices(pivots, size=LU.shape[-2], like=LU.dtype)
    of_l = F.tril(_columns(F, grad, 0, lower.shape[-1]), -1)
    of_u = F.triu(F.slice(grad, dim=-2, start=0, end=upper.shape[-2], step=1), 0)
    return _of_lu(F, of_l, of_u, order, lower, upper)


def _triangles(F: Any, lu: Any) -> tuple[Any, Any]:
    """L, with its ones, and U of the two in one matrix."""
    n, m = lu.shape[-2:]
    k = min(n, m)
    lower = F.tril(_columns(F, lu, 0, k), -1)
    ones = F.full(lu, size=(*lu.shape[:-2], k), value=1)
    eye = diagonal_matrices(F, ones)
    if n > k:
        zeros = F.full(lu, size=(*lu.shape[:-2], n - k, k), value=0)
        eye = F.cat((eye, zeros), -2)
    return lower + eye, F.triu(F.slice(lu, dim=-2, start=0, end=k, step=1), 0)


@op("permutation_matrices(pivots; size, like)", publish=())
def permutation_matrices(pivots: Any, *, size: int, like: Any) -> Any:
    """P of ``A = P L U`` from the row exchanges."""
    order = row_order(pivots, size)
    kind = like.numpy if hasattr(like, "numpy") else like
    return np.swapaxes(np.eye(size, dtype=kind)[order], -1, -2)


def _of_lu(F: Any, of_l: Any, of_u: Any, p: Any, lower: Any, upper: Any) -> Any:
    """The gradient of A, where ``A = P L U``; `of_l` and `of_u` are 0 outside their triangles."""
    n, m = lower.shape[-2], upper.shape[-1]
    k = min(n, m)
    lower_1 = F.slice(lower, dim=-2, start=0, end=k, step=1)
    upper_1 = _columns(F, upper, 0, k)
    inner_l = F.tril(F.matrix_product(adjoint(F, lower), of_l), -1)
    inner_u = F.triu(F.matrix_product(of_u, adjoint(F, upper)), 0)
    if n > k:
        # L = [L1; L2]: L2 is a plain product, which leaves its mark on U.
        of_l2 = F.slice(of_l, dim=-2, start=k, end=n, step=1)
        l2 = F.slice(lower, dim=-2, start=k, end=n, step=1)
        inner_l = F.tril(
            F.matrix_product(adjoint(F, lower_1), F.slice(of_l, dim=-2, start=0, end=k, step=1)),
            -1,
        )
        inner_u = inner_u - F.triu(F.matrix_product(adjoint(F, l2), of_l2), 0)
    if m > k:
        of_u2, u2 = _columns(F, of_u, k, m), _columns(F, upper, k, m)
        inner_u = F.triu(F.matrix_product(_columns(F, of_u, 0, k), adjoint(F, upper_1)), 0)
        inner_l = inner_l - F.tril(F.matrix_product(of_u2, adjoint(F, u2)), -1)
    inner = F.linalg_solve_triangular(
        adjoint(F, upper_1), inner_l + inner_u, upper=False, left=False
    )
    of_a = F.linalg_solve_triangular(adjoint(F, lower_1), inner, upper=True, unitriangular=True)
    if n > k:
        of_a = F.cat((of_a, F.linalg_solve_triangular(
            adjoint(F, upper_1), of_l2, upper=False, left=False)), -2)  # fmt: skip
    if m > k:
        of_a = F.cat((of_a, F.linalg_solve_triangular(
            adjoint(F, lower_1), of_u2, upper=True, unitriangular=True)), -1)  # fmt: skip
    return F.matrix_product(p, of_a)


@op("linalg_lu(A) -> P, L, U", publish=(), no_grad_outputs=(0,))
def linalg_lu(x: Any) -> Any:
    """``A = P L U``: a permutation, a lower triangle with ones, an upper triangle."""
    refuse_halves_and_integers(x, "lu_cpu")
    n, m = x.shape[-2:]
    k = min(n, m)
    lu, pivots, _ = lu_packed(x)
    lower = np.tril(lu[..., :k], -1)
    lower[..., np.arange(k), np.arange(k)] = 1
    p = permutation_matrices.forward(pivots, size=n, like=x.dtype)
    return np.ascontiguousarray(p), lower, np.triu(lu[..., :k, :])


@linalg_lu.grad("A")
def _(F: Any, grads: Any, P: Any, L: Any, U: Any) -> Any:
    of_l = F.zeros_like(L) if grads[1] is None else F.tril(grads[1], -1)
    of_u = F.zeros_like(U) if grads[2] is None else F.triu(grads[2], 0)
    return _of_lu(F, of_l, of_u, P, L, U)


@op("lu_unpack(LU_data, LU_pivots; unpack_data=True, unpack_pivots=True) -> P, L, U",
    publish=(), no_grad_outputs=(0,))  # fmt: skip
def lu_unpack(lu: Any, pivots: Any, *, unpack_data: bool, unpack_pivots: bool) -> Any:
    """P, L and U from L and U in one matrix and the row exchanges."""
    p = lower = upper = np.zeros(0, lu.dtype)
    if unpack_pivots:
        p = permutation_matrices.forward(pivots, size=lu.shape[-2], like=lu.dtype)
    if unpack_data:
        k = min(lu.shape[-2:])
        lower = np.tril(lu[..., :k], -1)
        lower[..., np.arange(k), np.arange(k)] = 1
        upper = np.triu(lu[..., :k, :])
    return np.ascontiguousarray(p), lower, upper


@lu_unpack.grad("LU_data")
def _(F: Any, grads: Any, LU_data_shape: Any) -> Any:
    n, m = LU_data_shape[-2:]
    k = min(n, m)
    parts = []
    if grads[1] is not None:
        parts.append(_padded(F, F.tril(grads[1], -1), -1, m - k))
    if grads[2] is not None:
        parts.append(_padded(F, F.triu(grads[2], 0), -2, n - k))
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


def _padded(F: Any, x: Any, dim: int, count: int) -> Any:
    """`x` with zeros behind it along `dim`."""
    if not count:
        return x
    size = list(x.shape)
    size[dim] = count
    return F.cat((x, F.full(x, size=tuple(size), value=0)), dim)
