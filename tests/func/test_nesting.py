"""Transforms inside one another: gradients of each example, of batches, of derivatives."""

import numpy as np
import pytest

import clew
from clew.func import grad, jacrev, vjp, vmap
from twins import assert_same

EYE = clew.eye(3, dtype=clew.float64)


def matrix(t):
    return t.tensor([[0.5, -1.0, 2.0], [3.0, 0.25, -0.5]], dtype=t.float64)


def weights(t, **options):
    return t.arange(6, dtype=t.float64).view(2, 3).div_(7).requires_grad_(bool(options))


def loss(w, x):
    return (w @ x).tanh().sum()


CALLS = {
    "per example": lambda t, F: F.vmap(F.grad(loss), (None, 0))(weights(t), matrix(t)),
    "per example, recorded": lambda t, F: F.vmap(F.grad(loss), (None, 0))(
        weights(t, leaf=True), matrix(t)
    ),
    "per example, twice": lambda t, F: t.autograd.grad(
        F.vmap(F.grad(loss), (None, 0))(*((w := weights(t, leaf=True)), matrix(t))).pow(2).sum(), w
    ),
    "of a batch": lambda t, F: F.grad(lambda x: F.vmap(lambda r: (r**3).sum())(x).sum())(matrix(t)),
    "of per example": lambda t, F: F.grad(
        lambda w: F.vmap(F.grad(loss), (None, 0))(w, matrix(t)).pow(2).sum()
    )(weights(t)),
    "grad in grad in vmap": lambda t, F: F.vmap(
        F.grad(lambda x: F.grad(lambda y: (y**3 * x).sum())(x * 2).sum())
    )(matrix(t)),
    "vmap in grad in vmap": lambda t, F: F.vmap(
        F.grad(lambda x: F.vmap(lambda y: (y * x).sin().sum())(matrix(t)).sum())
    )(matrix(t)),
    "captured batch": lambda t, F: F.vmap(
        lambda x: F.grad(lambda y: (x * y * y).sum())(t.ones(3, dtype=t.float64))
    )(matrix(t)),
    "jacrev per example": lambda t, F: F.vmap(F.jacrev(lambda x: x.sin() * x[0]))(matrix(t)),
    "hessian per example": lambda t, F: F.vmap(F.hessian(lambda x: (x**3).prod()))(matrix(t)),
    "vjp per example": lambda t, F: F.vmap(lambda x: F.vjp(t.sin, x)[1](x)[0])(matrix(t)),
    "no_grad in vmap": lambda t, F: F.grad(
        lambda x: F.vmap(lambda r: (r * r.detach()).sum())(x).sum()
    )(matrix(t)),
    "writes per example": lambda t, F: F.vmap(F.grad(with_writes))(matrix(t)),
    "writes in a batch": lambda t, F: F.grad(lambda x: F.vmap(with_writes)(x).sum())(matrix(t)),
    "autograd.grad in vmap": lambda t, F: rows_of_jacobian(t, F),
    "batched grads": lambda t, F: batched(t),
    "gelu rows": lambda t, F: F.jacrev(lambda x: t.nn.functional.gelu(x).log_softmax(0))(
        matrix(t)[0]
    ),
}


def with_writes(x):
    y = x.clone()
    y[0] = x[1] * x[2]
    y.mul_(x)
    z = y.view(3)[1:]
    z.add_(x[:2])
    return (y.softmax(0) * y).sum()


def rows_of_jacobian(t, F):
    x = matrix(t).requires_grad_()
    y = x.sin().sum(0)
    return F.vmap(lambda v: t.autograd.grad(y, x, v, retain_graph=True)[0])(
        t.eye(3, dtype=t.float64)
    )


def batched(t):
    x = matrix(t).requires_grad_()
    y = (x @ x.t()).sum(0)
    ones = t.eye(2, dtype=t.float64)
    return t.autograd.grad(y, x, ones, is_grads_batched=True, create_graph=True)


@pytest.mark.parametrize("name", CALLS)
def test_like_torch(name):
    def run(t):
        return CALLS[name](t, t.func)

    assert_same(run)


def forward_products(f, x, v):
    """``J v`` by forward mode."""
    from clew.autograd import forward_ad

    with forward_ad.dual_level():
        return forward_ad.unpack_dual(f(forward_ad.make_dual(x, v))).tangent


@pytest.mark.parametrize("f", [
    lambda x: x.sin() * x[0],
    lambda x: clew.nn.functional.gelu(x).softmax(0),
    lambda x: x.sort()[0].cumprod(0),
    lambda x: clew.outer(x, x) @ x,
    lambda x: clew.linalg.inv(clew.diag(x) + 0.1),
])  # fmt: skip
def test_columns_by_forward_mode_are_rows_by_reverse(f):
    x = matrix(clew)[0]
    columns = vmap(lambda v: forward_products(f, x, v), out_dims=-1)(
        clew.eye(3, dtype=clew.float64)
    )
    np.testing.assert_allclose(columns.numpy(), jacrev(f)(x).numpy(), 1e-9, 1e-12)


def test_forward_mode_and_writes_in_a_batch():
    def f(x):
        y = x * 2
        y[1:].mul_(x[:2])
        y[0] = x[2] * x[1]
        return y

    x = matrix(clew)[0]
    columns = vmap(lambda v: forward_products(f, x, v), out_dims=-1)(
        clew.eye(3, dtype=clew.float64)
    )
    np.testing.assert_allclose(columns.numpy(), jacrev(f)(x).numpy(), 1e-12)


def test_forward_mode_of_a_batch():
    x = matrix(clew)
    found = forward_products(vmap(lambda r: r.sin().sum()), x, x)
    np.testing.assert_allclose(found.numpy(), (x.cos() * x).sum(1).numpy(), 1e-12)


def test_forward_over_reverse():
    x = matrix(clew)[0]
    f = lambda x: (x**3).prod()  # noqa: E731
    columns = vmap(lambda v: forward_products(grad(f), x, v))(EYE)
    np.testing.assert_allclose(columns.numpy(), jacrev(jacrev(f))(x).numpy(), 1e-9, 1e-12)


def test_a_product_outlives_its_transform():
    _, product = vjp(lambda x: x.sin(), matrix(clew))
    first = product(clew.ones(2, 3, dtype=clew.float64))[0]
    np.testing.assert_allclose(first.numpy(), matrix(clew).cos().numpy(), 1e-12)
