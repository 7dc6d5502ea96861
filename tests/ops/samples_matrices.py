"""Samples of inverses, solutions and decompositions of matrices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ops.samples import Sample, Values, call, samples

Samples = Iterator[Sample]


def regular(v: Values, *shape: int) -> np.ndarray:
    """Matrices whose singular values and eigenvalues are real and far from each other and zero."""
    matrices = 0.3 * v.unit(*shape)
    n = min(shape[-2:])
    matrices[..., np.arange(n), np.arange(n)] += np.arange(1, n + 1)
    return matrices


def positive_definite(v: Values, *shape: int) -> np.ndarray:
    """Symmetric matrices with positive eigenvalues."""
    matrices = regular(v, *shape)
    return matrices @ np.swapaxes(matrices, -1, -2)


@samples("matrix_product")
def matrix_product(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), v.real(3, 4))
    yield call("broadcast", v.real(2, 1, 2, 3), v.real(4, 3, 2))
    yield call("empty", v.real(0, 2, 3), v.real(0, 3, 4))


@samples("linalg_inv_ex", "linalg_slogdet", "linalg_matrix_exp")
def square(v: Values) -> Samples:
    yield call("usual", regular(v, 3, 3))
    yield call("batch", regular(v, 2, 1, 2, 2))
    yield call("empty", v.real(0, 2, 2))


@samples("linalg_det")
def linalg_det(v: Values) -> Samples:
    yield from square(v)
    singular = v.real(3, 3)
    singular[2] = singular[0] - singular[1]
    yield call("singular", singular, once="the gradient's gradient needs the inverse")


@samples("cofactors")
def cofactors(v: Values) -> Samples:
    yield call("usual", regular(v, 3, 3))
    yield call("batch", regular(v, 2, 2, 2))
    yield call("number", v.real(1, 1))
    yield call("empty", v.real(0, 2, 2))


@samples("linalg_solve_ex")
def linalg_solve_ex(v: Values) -> Samples:
    yield call("usual", regular(v, 3, 3), v.real(3, 2))
    yield call("right", regular(v, 3, 3), v.real(2, 3), left=False)
    yield call("vector", regular(v, 3, 3), v.real(3))
    yield call("vectors", regular(v, 2, 3, 3), v.real(2, 3))
    yield call("broadcast", regular(v, 3, 3), v.real(2, 3, 1))
    yield call("empty", v.real(0, 0), v.real(0, 2))


@samples("linalg_solve_triangular")
def linalg_solve_triangular(v: Values) -> Samples:
    yield call("usual", regular(v, 3, 3), v.real(3, 2), upper=True)
    yield call("lower", regular(v, 3, 3), v.real(3, 2), upper=False)
    yield call("right", regular(v, 3, 3), v.real(2, 3), upper=True, left=False)
    yield call("ones", regular(v, 3, 3), v.real(3, 2), upper=False, unitriangular=True)
    yield call("broadcast", regular(v, 2, 3, 3), v.real(3, 1), upper=True)
    yield call("empty", v.real(0, 0), v.real(0, 2), upper=True)


@samples("linalg_cholesky_ex", "cholesky")
def cholesky(v: Values) -> Samples:
    halved = "the gradient is that of a symmetric matrix"
    yield call("usual", positive_definite(v, 3, 3), convention=halved)
    yield call("upper", positive_definite(v, 3, 3), upper=True, convention=halved)
    yield call("batch", positive_definite(v, 2, 2, 2), convention=halved)
    yield call("empty", v.real(0, 2, 2))


_READS_A_TRIANGLE = "the triangle that is not read gets a gradient too, as in PyTorch"


@samples("cholesky_solve")
def cholesky_solve(v: Values) -> Samples:
    lower = np.tril(regular(v, 3, 3))
    yield call("usual", v.real(3, 2), lower, convention=_READS_A_TRIANGLE)
    yield call("upper", v.real(3, 2), lower.T, upper=True, convention=_READS_A_TRIANGLE)
    yield call("broadcast", v.real(2, 3, 2), lower, convention=_READS_A_TRIANGLE)


@samples("cholesky_inverse")
def cholesky_inverse(v: Values) -> Samples:
    lower = np.tril(regular(v, 3, 3))
    yield call("usual", lower, convention=_READS_A_TRIANGLE)
    yield call("upper", lower.T, upper=True, convention=_READS_A_TRIANGLE)


@samples("linalg_qr")
def linalg_qr(v: Values) -> Samples:
    yield call("usual", regular(v, 3, 3))
    yield call("tall", regular(v, 4, 2))
    yield call("wide", regular(v, 2, 4))
    yield call("batch", regular(v, 2, 3, 2))
    yield call("complete wide", regular(v, 2, 3), mode="complete")
    yield call("empty", v.real(0, 2, 2))
    yield call("without Q", regular(v, 3, 2), mode="r", refuses="depends on Q")
    refuses = "not differentiable when mode='complete' and nrows > ncols"
    yield call("complete tall", regular(v, 3, 2), mode="complete", refuses=refuses)


@samples("linalg_svd")
def linalg_svd(v: Values) -> Samples:
    yield call("usual", regular(v, 3, 3), full_matrices=False)
    yield call("tall", regular(v, 4, 2), full_matrices=False)
    yield call("wide", regular(v, 2, 4), full_matrices=False)
    yield call("batch", regular(v, 2, 3, 2), full_matrices=False)
    free = "the vectors that full_matrices adds are free to turn"
    yield call("full", regular(v, 3, 2), convention=free)
    yield call("empty", v.real(0, 2, 2), full_matrices=False)


@samples("phase_checked")
def phase_checked(v: Values) -> Samples:
    yield call("usual", v.real(3, 3), caller="svd_backward")


@samples("linalg_eigh")
def linalg_eigh(v: Values) -> Samples:
    symmetric = regular(v, 3, 3)
    symmetric = symmetric + symmetric.T
    spread = "the gradient is that of a symmetric matrix"
    yield call("usual", symmetric, convention=spread)
    yield call("upper", symmetric, UPLO="U", convention=spread)
    yield call("batch", positive_definite(v, 2, 2, 2), convention=spread)
    yield call("empty", v.real(0, 2, 2))


@samples("linalg_eig")
def linalg_eig(v: Values) -> Samples:
    # Gradients drawn at random belong to no function that is free of the vectors' phase.
    refuses = "linalg_eig_backward: The eigenvectors in the complex case"
    turning = v.unit(2, 3, 3) + np.array([[0, 2, 0], [-2, 0, 0], [0, 0, 1]])
    yield call("usual", turning[0], refuses=refuses)
    yield call("batch", turning, refuses=refuses)


@samples("linalg_lu_factor_ex", "linalg_lu")
def linalg_lu(v: Values) -> Samples:
    yield call("usual", regular(v, 3, 3)[::-1].copy())
    yield call("tall", regular(v, 4, 2))
    yield call("wide", regular(v, 2, 4))
    yield call("batch", regular(v, 2, 2, 2))
    yield call("empty", v.real(0, 2, 2))


@samples("permutation_matrices")
def permutation_matrices(v: Values) -> Samples:
    yield call("usual", np.array([3, 2, 3]), size=3, like=np.dtype(np.float64))


@samples("linalg_pinv")
def linalg_pinv(v: Values) -> Samples:
    tolerances = {"atol": None, "rtol": None, "hermitian": False}
    yield call("usual", regular(v, 3, 3), **tolerances)
    yield call("tall", regular(v, 4, 2), **tolerances)
    yield call("wide", regular(v, 2, 4), **tolerances)
    yield call("batch", regular(v, 2, 2, 3), **tolerances)
    hermitian = "the gradient is that of a matrix without structure"
    yield call(
        "hermitian", positive_definite(v, 3, 3), **{**tolerances, "hermitian": True},
        convention=hermitian,
    )  # fmt: skip
    yield call("empty", v.real(2, 0), **tolerances)


@samples("linalg_lstsq")
def linalg_lstsq(v: Values) -> Samples:
    usual = {"rcond": None, "driver": "gelsd"}
    yield call("usual", regular(v, 4, 2), v.real(4, 3), **usual)
    yield call("wide", regular(v, 2, 4), v.real(2, 3), **usual)
    yield call("batch", regular(v, 2, 3, 2), v.real(2, 3, 1), **usual)
    yield call("vector", regular(v, 4, 2), v.real(4), rcond=None, driver="gelsy")


@samples("lu_unpack")
def lu_unpack(v: Values) -> Samples:
    yield call("usual", v.real(3, 3), np.array([3, 2, 3], np.int32))
    yield call("tall", v.real(3, 2), np.array([3, 2], np.int32))
    yield call("wide", v.real(2, 3), np.array([2, 2], np.int32), unpack_pivots=False)


# -- reflectors


@samples("linalg_householder_product")
def householder_product(v: Values) -> Samples:
    yield call("usual", v.real(4, 3), v.real(2))
    yield call("batch", v.real(2, 3, 3), v.real(2, 3))
    yield call("complex", v.complex(3, 2), v.complex(2))
    yield call("none", v.real(3, 2), v.real(0))


@samples("ormqr")
def ormqr(v: Values) -> Samples:
    yield call("usual", v.real(4, 3), v.real(3), v.real(4, 2))
    yield call("right", v.real(3, 3), v.real(3), v.real(2, 3), left=False)
    yield call("transposed", v.real(3, 3), v.real(3), v.real(3, 2), transpose=True)
    yield call(
        "complex", v.complex(3, 2), v.complex(2), v.complex(2, 3), left=False, transpose=True
    )
