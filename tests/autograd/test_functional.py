"""`autograd.functional`: the same values, structures and errors as torch."""

import pytest

from twins import assert_same

MATRIX = [[1.0, 2.0], [3.0, 4.0]]


def two_inputs(t):
    return t.tensor(MATRIX, dtype=t.float64), t.tensor([0.5, -1.5], dtype=t.float64)


def function(x, y):
    return (x * y).exp(), (x @ y).sin()


def number(x, y):
    return (x * y).exp().sum() * y.sum()


def test_vjp():
    def run(t):
        x, y = two_inputs(t)
        weights = (t.ones(2, 2, dtype=t.float64), t.tensor([1.0, 2.0], dtype=t.float64))
        return t.autograd.functional.vjp(function, (x, y), weights)

    assert_same(run)


def test_jvp():
    def run(t):
        x, y = two_inputs(t)
        directions = (t.ones(2, 2, dtype=t.float64), t.tensor([1.0, 2.0], dtype=t.float64))
        return t.autograd.functional.jvp(function, (x, y), directions)

    assert_same(run)


@pytest.mark.parametrize("options", [
    {}, {"vectorize": True}, {"create_graph": True},
    {"vectorize": True, "strategy": "forward-mode"},
])  # fmt: skip
def test_jacobian(options):
    assert_same(lambda t: t.autograd.functional.jacobian(function, two_inputs(t), **options))


@pytest.mark.parametrize("options", [
    {}, {"vectorize": True}, {"create_graph": True},
])  # fmt: skip
def test_hessian(options):
    assert_same(lambda t: t.autograd.functional.hessian(number, two_inputs(t), **options))


def test_hessian_by_columns():
    def run(t):
        options = {"vectorize": True, "outer_jacobian_strategy": "forward-mode"}
        found = t.autograd.functional.hessian(number, two_inputs(t), **options)
        return [[part.detach() for part in row] for row in found]

    assert_same(run)


@pytest.mark.parametrize("name", ["vhp", "hvp"])
def test_products_with_the_hessian(name):
    def run(t):
        x, y = two_inputs(t)
        directions = (t.ones(2, 2, dtype=t.float64), t.tensor([1.0, 2.0], dtype=t.float64))
        return getattr(t.autograd.functional, name)(number, (x, y), directions)

    assert_same(run)


def test_one_tensor_gives_one_tensor():
    assert_same(lambda t: t.autograd.functional.jacobian(t.sin, t.ones(3)))
    assert_same(lambda t: t.autograd.functional.hessian(lambda x: (x**3).sum(), t.ones(3)))


BAD = [
    lambda f, t: f.jacobian(lambda x: 1, t.ones(2)),
    lambda f, t: f.jacobian(t.sin, [1.0]),
    lambda f, t: f.jacobian(t.sin, t.ones(2), strategy="sideways"),
    lambda f, t: f.jacobian(lambda x: t.ones(2), t.ones(2), strict=True),
    lambda f, t: f.hessian(lambda x: x * x, t.ones(2)),
    lambda f, t: f.vjp(t.sin, t.ones(2)),
    lambda f, t: f.vjp(t.sin, t.ones(2), t.ones(3)),
    lambda f, t: f.jacobian(t.sin, t.ones(2), strategy="forward-mode"),
]


@pytest.mark.parametrize("bad", BAD)
def test_bad_calls_raise_as_torch(bad):
    kind, _ = assert_same(lambda t: bad(t.autograd.functional, t))
    assert kind.endswith("Error")
