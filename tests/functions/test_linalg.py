"""``clew.linalg``: values that do not depend on signs and phases, errors, complex matrices."""

import pytest

import clew
import clew.linalg
from functions.expressions import assert_as_torch

CALLS = """
t.linalg.inv(x(3, 3))
t.linalg.inv(c(2, 3, 3))
t.linalg.inv(x(3))
t.linalg.inv(x(2, 3))
t.linalg.inv(n(2, 2))
t.linalg.inv(x(2, 2).half())
t.linalg.inv(t.zeros(2, 2))
t.linalg.inv(t.stack([t.eye(2), t.zeros(2, 2)]))
t.linalg.inv_ex(x(3, 3))
t.linalg.det(c(3, 3))
t.linalg.det(t.ones(3, 3, requires_grad=True))
t.slogdet(x(3, 3))
t.linalg.slogdet(c(3, 3))[1]
t.logdet(x(2, 2) @ t.eye(2).double() * 2)
t.logdet(n(2, 2))
t.linalg.solve(x(3, 3), x(3, 2))
t.linalg.solve(c(3, 3), c(3))
t.linalg.solve(x(3, 3), x(2, 3), left=False)
t.linalg.solve(x(3, 3), x(2))
t.linalg.solve(t.zeros(2, 2), t.ones(2))
t.linalg.solve(x(3, 3), x(3).float())
t.linalg.solve_triangular(x(3, 3), x(3, 2), upper=True, unitriangular=True)
t.linalg.solve_triangular(x(3, 3), x(2, 3), upper=False, left=False)
t.linalg.solve_triangular(t.zeros(2, 2), t.ones(2, 2), upper=True)
t.linalg.lstsq(x(4, 3), x(4, 2))[0].clone(memory_format=t.contiguous_format)
t.linalg.lstsq(x(4, 3), x(4, 2), driver="gelsd")[1:]
t.linalg.lstsq(x(3, 4), x(3, 2), driver="gels")
t.linalg.lstsq(x(4, 3), x(3, 2))
t.linalg.cholesky(x(3, 3) @ x(3, 3).mT * 0 + t.eye(3).double() * 4)
t.linalg.cholesky(-t.eye(3))
t.cholesky(t.eye(3)[[1, 0, 2]])
t.linalg.cholesky_ex(-t.eye(2))[1]
t.cholesky_solve(x(3, 2), t.eye(3).double() + x(3, 3).tril())
t.cholesky_inverse(t.eye(3).double() * 3 + x(3, 3).tril(), upper=False)
t.linalg.qr(x(3, 2), "r")[1].detach()
t.linalg.qr(x(3, 3), "foo")
t.linalg.svdvals(x(4, 3))
t.linalg.svd(t.tensor([[nan]]))
t.linalg.eigvalsh(x(3, 3))
t.linalg.eigh(x(3, 3), "X")
t.linalg.eigvals(t.tensor([[0.0, 1.0], [-1.0, 0.0]]))
t.linalg.eig(t.tensor([[nan]]))
t.linalg.lu(x(3, 3))
t.linalg.lu(x(4, 2))
t.linalg.lu_factor(x(2, 3))
t.linalg.lu_factor(t.zeros(2, 2))
t.linalg.pinv(x(3, 2))
t.linalg.pinv(x(2, 3), atol=0.1, rtol=0.1)
t.linalg.pinv(c(3, 2))
t.linalg.pinv(x(3))
t.pinverse(x(3, 2))
t.linalg.matrix_rank(t.ones(3, 3))
t.linalg.matrix_rank(n(2, 2))
t.linalg.matrix_power(x(3, 3), -2)
t.linalg.matrix_power(x(3, 3), 5)
t.linalg.matrix_power(x(3, 3), 0)
t.matrix_exp(x(3, 3))
t.matrix_exp(c(2, 2) * 5)
t.linalg.vander(x(3), N=4)
t.diag(x(3), 1)
t.diag(x(3, 2), -1)
t.diag(x())
t.diagflat(x(2, 2), 1)
t.diag_embed(x(2, 3), 1, 0, 2)
t.trace(x(3, 2))
t.trace(x(3))
t.linalg.householder_product(x(4, 3), x(3))
t.linalg.householder_product(c(2, 3, 2), c(2, 2))
t.linalg.householder_product(x(2, 3), x(2))
t.linalg.householder_product(x(3, 2), x(3))
t.linalg.householder_product(x(3, 2), x(2).float())
t.linalg.householder_product(x(3), x(2))
t.orgqr(x(4, 3), x(2))
t.ormqr(x(4, 3), x(3), x(4, 2))
t.ormqr(c(3, 3), c(3), c(2, 3), False, True)
t.ormqr(x(4, 3), x(3), x(3, 2))
t.ormqr(x(4, 3), x(3), x(2, 2))
x(3, 2).orgqr(x(2))
t.geqrf(x(4, 3).detach())
t.geqrf(t.tensor([[[1.0, 2.0], [3.0, 1.0], [0.0, 2.0]]]))
t.geqrf(t.ones(2))
t.tril(x(2, 3, 3), -1)
t.triu(x(3))
x(2, 3).mT
x(3).mT
x(2, 3, 4).H
""".strip().splitlines()

WITHOUT_SIGNS = """
t.linalg.solve(x(2, 3, 3), x(2, 3), left=True).contiguous()
(lambda u, s, vh: t.matmul(u * s, vh))(*t.linalg.svd(x(4, 3), full_matrices=False))
(lambda u, s, vh: (t.matmul(u * s, vh)).abs())(*t.linalg.svd(c(3, 4), full_matrices=False))
(lambda u, s, v: t.matmul(u * s, v.mT))(*t.svd(x(3, 3)))
(lambda q, r: q @ q.mT + r.mT @ r)(*t.linalg.qr(x(3, 3)))
(lambda q, r: q.abs() + r.abs())(*t.linalg.qr(c(3, 3)))
(lambda e, v: (v * e**2) @ v.mT)(*t.linalg.eigh(x(3, 3)))
(lambda e, v: ((v * e**2) @ v.mH).abs())(*t.linalg.eigh(c(3, 3)))
(lambda e, v: v.abs().sum() + e.abs().sum())(*t.linalg.eig(x(4, 4)))
(lambda e, v: v.abs().sum() + e.abs().sum())(*t.linalg.eig(c(3, 3)))
t.linalg.lu_solve(*t.linalg.lu_factor(x(3, 3)), x(3, 2))
t.linalg.lu_solve(*t.linalg.lu_factor(c(3, 3)), c(3, 2), adjoint=True).contiguous()
t.linalg.cond(x(3, 3), 2)
t.linalg.cond(t.zeros(2, 2), 1)
t.linalg.tensorinv(x(4, 2, 2), 1)
t.linalg.tensorsolve(x(2, 3, 6), x(2, 3))
""".strip().splitlines()


@pytest.mark.parametrize("call", CALLS)
def test_as_torch(call):
    assert_as_torch(call)


@pytest.mark.parametrize("call", WITHOUT_SIGNS)
def test_without_signs(call):
    assert_as_torch(call, graph=False)


@pytest.mark.parametrize("vectors", ["svd(A)[0]", "svd(A)[2]", "eigh(A)[1]", "eig(A)[1]"])
def test_phases_must_not_count(vectors):
    A = clew.tensor([[1, 2j], [3, 4 + 1j]], requires_grad=True)
    found = eval(f"clew.linalg.{vectors}", {"clew": clew, "A": A})
    with pytest.raises(RuntimeError, match=r"up to multiplication by e\^\{i phi\}"):
        clew.autograd.grad(found, A, clew.ones_like(found) * 1j)


def test_linalg_error_is_a_runtime_error():
    with pytest.raises(clew.linalg.LinAlgError):
        clew.linalg.inv(clew.zeros(2, 2))
    assert issubclass(clew.linalg.LinAlgError, RuntimeError)
