"""`torch.func.jvp`, `jacfwd`, `hessian`, `linearize`, nested in each other and in the rest."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import clew
from clew.func import grad, jacfwd, jvp, linearize, vmap

X, T, U = [0.3, 0.7, 1.1], [1.0, 2.0, -1.0], [0.5, -1.0, 2.0]


def of_all(t, x):
    return x.exp() * x.sum()


def to_one(t, x):
    return (x.sin() * x**2).sum()


def written(t, x):
    y = t.zeros(3, dtype=t.float64)
    y[1:] = x[:2]
    y[0] = x[1] * x[2]
    return y * y


def to_views(t, x):
    y = t.zeros_like(x)
    early = y[1:]
    y[1:] = x[:2] * 2
    y[0] = x[1] * x[2]
    return t.cat((y * y, early))


PROGRAMS = {
    "jvp": lambda t, f, x, d, u: f.jvp(lambda a: of_all(t, a), (x,), (d,)),
    "jvp of jvp": lambda t, f, x, d, u: f.jvp(
        lambda a: f.jvp(lambda b: of_all(t, b), (a,), (u,))[1], (x,), (d,)
    ),
    "jvp of grad": lambda t, f, x, d, u: f.jvp(f.grad(lambda a: to_one(t, a)), (x,), (d,)),
    "grad of jvp": lambda t, f, x, d, u: f.grad(
        lambda a: f.jvp(lambda b: to_one(t, b), (a,), (d,))[1]
    )(x),
    "vjp of jvp": lambda t, f, x, d, u: f.vjp(
        lambda a: f.jvp(lambda b: of_all(t, b), (a,), (d,))[1], x
    )[1](u),
    "vmap of jvp": lambda t, f, x, d, u: f.vmap(
        lambda v: f.jvp(lambda a: of_all(t, a), (x,), (v,))[1]
    )(t.stack([d, u])),
    "jvp of vmap": lambda t, f, x, d, u: f.jvp(
        f.vmap(lambda a: to_one(t, a)), (t.stack([x, u]),), (t.stack([d, d]),)
    ),
    "jvp of vmap of grad": lambda t, f, x, d, u: f.jvp(
        f.vmap(f.grad(lambda a: to_one(t, a))), (t.stack([x, u]),), (t.stack([d, d]),)
    ),
    "writes": lambda t, f, x, d, u: f.jvp(lambda a: written(t, a), (x,), (d,)),
    "writes, of grad": lambda t, f, x, d, u: f.jvp(
        f.grad(lambda a: written(t, a).sum()), (x,), (d,)
    ),
    "writes, in vmap": lambda t, f, x, d, u: f.vmap(f.jacfwd(lambda a: to_views(t, a)))(
        t.stack([x, u])
    ),
    "writes, hessians in vmap": lambda t, f, x, d, u: f.vmap(
        f.hessian(lambda a: (to_views(t, a) ** 2).sum())
    )(t.stack([x, u])),
    "jacfwd": lambda t, f, x, d, u: f.jacfwd(lambda a, b: a * b.sum(), argnums=(0, 1))(x, d),
    "jacfwd of a dict": lambda t, f, x, d, u: list(
        f.jacfwd(lambda a: {"p": a**2, "q": a.sum()})(x).values()
    ),
    "jacfwd, aux": lambda t, f, x, d, u: f.jacfwd(lambda a: (a**2, a), has_aux=True)(x),
    "hessian": lambda t, f, x, d, u: f.hessian(lambda a: to_one(t, a))(x),
    "hessians in vmap": lambda t, f, x, d, u: f.vmap(f.hessian(lambda a: to_one(t, a)))(
        t.stack([x, u])
    ),
    "jacfwd of jacfwd": lambda t, f, x, d, u: f.jacfwd(f.jacfwd(lambda a: of_all(t, a)))(x),
    "jacrev of jacfwd": lambda t, f, x, d, u: f.jacrev(f.jacfwd(lambda a: of_all(t, a)))(x),
    "jacfwd of jacrev": lambda t, f, x, d, u: f.jacfwd(f.jacrev(lambda a: of_all(t, a)))(x),
    "layer_norm": lambda t, f, x, d, u: f.jvp(
        lambda a: t.nn.functional.layer_norm(a, (3,)), (x,), (d,)
    ),
    "softmax": lambda t, f, x, d, u: f.jacfwd(lambda a: t.softmax(a, 0))(x),
    "sort": lambda t, f, x, d, u: f.jacfwd(lambda a: a.sort(descending=True)[0].cumsum(0))(x),
    "convolution": lambda t, f, x, d, u: f.jvp(
        lambda a: t.nn.functional.conv1d(a.view(1, 1, 3), a[:2].view(1, 1, 2)), (x,), (d,)
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_like_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    found = []
    for t in (clew, torch):
        values = [t.tensor(v, dtype=t.float64) for v in (X, T, U)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = PROGRAMS[name](t, t.func, *values)
        results: Any = result if isinstance(result, (tuple, list)) else (result,)
        found.append([r.detach().numpy() for r in results])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


def test_levels_are_not_confused() -> None:
    one = clew.ones((), dtype=clew.float64)
    # d/da a * d/db (a + b) = 1, and not 2
    assert jvp(lambda a: a * jvp(lambda b: a + b, (one,), (one,))[1], (one,), (one,))[1] == 1
    assert grad(lambda a: a * jvp(lambda b: a * b, (one,), (one,))[1])(one) == 2
    assert jvp(lambda a: a * grad(lambda b: a * b)(one), (one,), (one,))[1] == 2


def test_a_captured_tensor_has_no_tangent() -> None:
    w = clew.tensor(3.0, requires_grad=True)
    value, product = jvp(lambda a: a * w, (w,), (clew.tensor(1.0),))
    assert (value.item(), product.item()) == (9.0, 3.0)
    with pytest.raises(RuntimeError, match="would mutate a captured Tensor"):
        jvp(lambda a: clew.ones(1).copy_(a) + w.detach().add_(a), (w,), (w,))


def test_linearize() -> None:
    x, t, u = (clew.tensor(v, dtype=clew.float64) for v in (X, T, U))
    calls = []

    def f(a: Any) -> Any:
        calls.append(1)
        return of_all(clew, a)

    value, along = linearize(f, x)
    for direction in (t, u):
        expected = jvp(lambda a: of_all(clew, a), (x,), (direction,))
        np.testing.assert_allclose(value, expected[0])
        np.testing.assert_allclose(along(direction), expected[1])
    assert len(calls) == 1
    assert vmap(along)(clew.stack([t, u])).shape == (2, 3)
    with pytest.raises(RuntimeError, match=r"tangent:0 with shape .*\[2\]"):
        along(clew.ones(2, dtype=clew.float64))


@pytest.mark.parametrize(
    "primals, tangents, message",
    [
        ([1], [1], "Expected primals to be a tuple"),
        ((), (), "Expected primals to contain at least one Tensor"),
        ((3.0,), (3.0,), "Expected primals to only contain Tensors, got <class 'float'>"),
        ((clew.ones(1),), (clew.ones(1),) * 2, "to have the same python structure"),
        ((clew.ones(1),), (clew.ones(2),), "has a different size"),
    ],
)
def test_jvp_refuses(primals: Any, tangents: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        jvp(lambda x: x, primals, tangents)


def test_jacfwd_refuses() -> None:
    x = clew.ones(2)
    with pytest.raises(RuntimeError, match="Got argnum=5, but only 1 positional inputs"):
        jacfwd(lambda x: x, argnums=5)(x)
    with pytest.raises(RuntimeError, match="randomness error mode"):
        jacfwd(lambda x: x * clew.rand(2))(x)
    assert jacfwd(lambda x: x * clew.rand(2), randomness="same")(x).shape == (2, 2)
