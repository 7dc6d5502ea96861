"""Products of any dimension: which ops they are made of, as torch shows them."""

import pytest

from functions.expressions import assert_as_torch

SHAPES = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (3,)),
    ((5, 2, 3), (3, 4)), ((3,), (5, 3, 4)), ((2, 3), (5, 3, 4)), ((5, 2, 3), (5, 3, 4)),
    ((1, 2, 3), (5, 3, 4)), ((2, 2, 3), (1, 3, 4)), ((2, 5, 2, 3), (3, 4)),
    ((2, 5, 2, 3), (5, 3, 4)), ((4, 3), (2, 5, 3, 4)), ((3,), (2, 4, 3, 5)), ((2, 0), (0, 3)),
    ((2, 0, 3), (3, 2)), ((), (2, 3)), ((2, 3), (2, 3)), ((3,), (2,)), ((2, 3), (2,)),
    ((5, 2, 3), (4, 3, 2)), ((5, 2, 3), (5, 2, 3)),
]  # fmt: skip


@pytest.mark.parametrize("first, second", SHAPES, ids=str)
@pytest.mark.parametrize("detached", ["", ".detach()"], ids=["recorded", "second detached"])
def test_matmul(first, second, detached):
    assert_as_torch(f"t.matmul(x(*{first}), x(*{second}){detached})")


CALLS = """
t.matmul(n(2, 3), n(3, 2))
t.matmul(c(2, 3), c(5, 3, 2))
t.matmul(x(2, 3), 3)
t.matmul(x(2, 3), n(3, 2))
x(2, 3) @ x(3, 2)
t.mm(3, x(2, 3))
t.mm(x(2, 3), x(3))
t.mm(x(2, 3), x(4, 3).t())
t.mm(x(3, 2).t(), x(3, 4))
t.mv(x(2, 3), x(2, 3))
t.dot(x(2, 2), x(2, 2))
t.vdot(c(3), c(3))
t.bmm(x(2, 3), x(2, 3, 4))
t.bmm(n(2, 2, 2) > 3, n(2, 2, 2) > 3)
t.outer(x(3), x(2))
t.outer(x(3, 2), x(2))
t.addmm(x(4), x(2, 3), x(3, 4), beta=0.5, alpha=2)
t.addmm(x(3), x(2, 3), x(3, 4), beta=0)
t.addmm(x(4), x(2, 3), n(3, 4))
t.addmm(n(4), n(2, 3), n(3, 4), alpha=1.5)
t.nn.functional.linear(x(2, 3), x(4, 3), x(4))
t.nn.functional.linear(x(2, 3), x(4, 3))
t.nn.functional.linear(x(5, 2, 3), x(4, 3), x(4))
t.nn.functional.linear(x(5, 2, 3), x(4, 3))
t.nn.functional.linear(x(5, 3, 2).transpose(1, 2), x(4, 3), x(4))
t.nn.functional.linear(x(3), x(4, 3), x(4))
t.nn.functional.linear(x(3), x(4, 3))
t.nn.functional.linear(x(2, 3), x(3))
t.nn.functional.linear(x(5, 2, 3), x(4, 3), x(2, 4))
t.nn.functional.linear(x(2, 3), x(4, 2), x(4))
t.nn.functional.linear(x(2, 3), x(4, 3), x(3))
t.inner(x(2, 3), x(4, 3))
t.inner(x(3), x(3))
t.inner(x(2, 3), x())
t.inner(x(2, 3), x(2))
t.tensordot(x(2, 3, 4), x(3, 4, 5))
t.tensordot(x(2, 3), x(3, 4), 1)
t.tensordot(x(2, 3), x(2, 3), ([0, 1], [0, 1]))
t.tensordot(x(2, 3), x(1, 4), ([1], [0]))
t.tensordot(x(2, 3), x(4), 1)
t.tensordot(x(2, 3), x(2, 3), -1)
t.kron(x(2, 3), x(2, 2))
t.kron(x(), x(2, 2))
t.cross(x(2, 3), x(2, 3))
t.cross(x(2, 4), x(2, 4))
t.linalg.cross(x(2, 3), x(1, 3))
t.chain_matmul(x(2, 30), x(30, 3), x(3, 20), x(20, 2))
t.linalg.multi_dot([x(3), x(3, 2), x(2)])
t.linalg.multi_dot([x(2, 3), x(4, 4)])
t.linalg.vecdot(x(2, 3), x(3))
t.cdist(x(4, 3), x(5, 3))
t.cdist(x(2, 4, 3), x(5, 3), 1.0)
t.cdist(x(4, 3), x(5, 2))
""".strip().splitlines()


@pytest.mark.parametrize("call", CALLS)
def test_products(call):
    assert_as_torch(call)


EQUATIONS = """
"ij,jk->ik", x(2, 3), x(3, 4)
"ij->", x(2, 3)
"ii->i", x(3, 3)
"ii", x(3, 3)
"ij->ji", x(2, 3)
"i,j->ij", x(3), x(2)
"ij,ij->i", x(2, 3), x(2, 3)
"ij,ij->", x(2, 3), x(2, 3)
"jk,ij->ik", x(3, 2), x(4, 3)
"ij,jk", x(2, 3), x(3, 2)
"bij,bjk->bik", x(2, 3, 4), x(2, 4, 5)
"bhqd,bhkd->bhqk", x(2, 3, 4, 5), x(2, 3, 6, 5)
"...ij,...jk->...ik", x(2, 4, 3), x(3, 2)
"...i->i", x(2, 4, 3)
"ij,jk,kl->il", x(2, 3), x(3, 2), x(2, 4)
"bn,anm,bm->ba", x(2, 3), x(4, 3, 5), x(2, 5)
"ij,jk->ik", [x(2, 3), x(3, 2)]
x(2, 3), [0, 1], x(3, 2), [1, 2], [0, 2]
x(2, 3), [..., 1], x(3, 2), [1, 2], [..., 2]
x(2, 3), [0, 60]
"ij"
"ij,jk->ik", x(2, 3)
"ij->ik", x(2, 3)
"ij->ii", x(2, 3)
"ij,jk->ik", x(2, 3), x(4, 2)
"ijk->i", x(2, 3)
"i..j->i", x(2, 3)
"......->", x(2, 3)
"i->.i", x(2)
"i1->i", x(2, 3)
"ii->i", x(2, 3)
"ij,jk->ik", x(2, 3), x(3, 2), x(2)
"...i,...i->...", x(2, 3), x(4, 3)
""".strip().splitlines()


@pytest.mark.parametrize("arguments", EQUATIONS)
def test_einsum(arguments):
    assert_as_torch(f"t.einsum({arguments})")


NORMS = """
t.norm(x(2, 3))
t.norm(x(2, 3), 1, 1)
t.norm(x(2, 3), "nuc")
t.norm(x(2, 3), "foo")
t.norm(n(2, 3))
t.norm(x(2, 2, 2), "nuc")
t.norm(x(2, 3, 4), "nuc", (0, 1), True)
x(2, 3).norm(inf, 0, True)
x(2, 3).norm(dim=1, dtype=t.float64)
t.linalg.norm(x(2, 3), 2)
t.linalg.norm(x(2, 3), -1)
t.linalg.norm(x(2, 3), "fro", (0, 1), True)
t.linalg.norm(x(2, 2, 2), 2)
t.linalg.norm(x(3), 0)
t.linalg.norm(x(3), "fro")
t.linalg.matrix_norm(x(2, 3, 4), 1, (0, 2))
t.linalg.matrix_norm(x(2, 3, 4), -inf, (2, 0))
t.linalg.matrix_norm(x(2, 0, 3), 1)
t.linalg.matrix_norm(x(2, 3), 3)
t.linalg.vector_norm(x(2, 3), 0.5, 1)
t.linalg.vector_norm(x(0), inf)
t.linalg.vector_norm(x(0, 2), -1, 0)
t.linalg.vector_norm(c(2, 3), 3, 1)
t.linalg.vector_norm(x(2, 3), dtype=t.float32)
t.linalg.vector_norm(x(2, 3), "fro")
""".strip().splitlines()


@pytest.mark.parametrize("call", NORMS)
def test_norms(call):
    assert_as_torch(call)


def test_gradient_of_a_transposed_weight_is_contiguous():
    import clew

    weight = clew.ones(4, 3, requires_grad=True)
    (grad,) = clew.autograd.grad(clew.ones(2, 3).mm(weight.t()).sum(), weight)
    assert grad.is_contiguous()
    (grad,) = clew.autograd.grad(
        clew.addmm(clew.ones(4), clew.ones(2, 3), weight.t()).sum(), weight
    )
    assert grad.is_contiguous()
