"""`torch.func`'s reverse mode: values, structures, what requires grad, errors, like torch."""

import pytest

from twins import assert_same

VALUES = [0.5, -1.0, 2.0]


def vector(t, **options):
    return t.tensor(VALUES, dtype=t.float64, **options)


CALLS = {
    "plain": lambda t, F: F.grad(lambda x: x.sin().sum())(vector(t)),
    "twice": lambda t, F: F.grad(F.grad(lambda x: x**4))(t.tensor(2.0)),
    "inner and outer": lambda t, F: F.grad(lambda x: x * F.grad(lambda y: x + y)(t.tensor(1.0)))(
        t.tensor(3.0)
    ),
    "perturbation": lambda t, F: F.grad(lambda x: F.grad(lambda y: x * y * y)(x * 1))(
        t.tensor(3.0)
    ),
    "argnums": lambda t, F: F.grad(lambda x, y: (x * y).sum(), argnums=1)(vector(t), vector(t) * 2),
    "several": lambda t, F: F.grad(lambda x, y: (x * y).sum(), argnums=(0, -1))(
        vector(t), vector(t) * 2
    ),
    "containers": lambda t, F: F.grad(lambda d: (d["a"][0] * d["b"]).sum())(
        {"a": [vector(t)], "b": vector(t)}
    ),
    "keywords": lambda t, F: F.grad(lambda x, *, y: (x * y).sum())(vector(t), y=vector(t)),
    "aux": lambda t, F: F.grad(lambda x: (x.sum(), {"double": x * 2}), has_aux=True)(vector(t)),
    "value": lambda t, F: F.grad_and_value(lambda x: (x * x).sum())(vector(t)),
    "value and aux": lambda t, F: F.grad_and_value(lambda x: (x.sum(), x), has_aux=True)(vector(t)),
    "unused": lambda t, F: F.grad(lambda x: t.zeros(()))(vector(t)),
    "leaf outside": lambda t, F: F.grad(lambda x: (x * x).sum())(vector(t, requires_grad=True)),
    "linear in a captured": lambda t, F: F.grad(lambda x: (x * w(t)).sum())(vector(t)),
    "captured": lambda t, F: (lambda v: F.grad(lambda x: (x * v).sum())(vector(t)))(w(t)),
    "captured but apart": lambda t, F: (
        lambda v: F.grad(lambda x: (x * x).sum() + v.sum())(vector(t))
    )(w(t)),
    "captured by jacrev": lambda t, F: (lambda v: F.jacrev(lambda x: x * v)(vector(t)))(w(t)),
    "captured, differentiated": lambda t, F: (
        lambda v: t.autograd.grad(F.grad(lambda x: (x * x * v).sum())(vector(t)).sum(), v)
    )(w(t)),
    "captured apart": lambda t, F: F.grad(lambda x: (x * x).sum() + w(t).sum())(vector(t)),
    "under no_grad": lambda t, F: without_grad(t, F.grad(lambda x: (x * w(t) * x).sum()))(
        vector(t)
    ),
    "no_grad inside": lambda t, F: F.grad(lambda x: (x - without_grad(t, t.square)(x)).sum())(
        vector(t)
    ),
    "grad inside": lambda t, F: F.grad(
        lambda x: t.autograd.grad(x.sin().sum(), x, create_graph=True)[0].sum()
    )(vector(t)),
    "writes inside": lambda t, F: F.grad(lambda x: t.zeros(3).add_(x).mul_(x).sum())(
        vector(t).float()
    ),
    "a view written to": lambda t, F: F.grad(written_view)(vector(t)),
    "an argument written to": lambda t, F: F.grad(lambda x, y: (y.mul_(2) * x).sum())(
        vector(t), vector(t)
    ),
    "hook": lambda t, F: F.grad(hooked)(vector(t)),
    "complex": lambda t, F: F.grad(lambda x: (x * x).abs().sum())(vector(t) + 1j * vector(t)),
    "vjp": lambda t, F: F.vjp(lambda x, y: {"a": x * y, "b": (x, y.exp())}, vector(t), vector(t))[
        1
    ]({"a": vector(t), "b": (vector(t), vector(t))}),
    "vjp twice": lambda t, F: [f(vector(t)) for f in [F.vjp(t.sin, vector(t))[1]] * 2],
    "vjp value": lambda t, F: F.vjp(t.sin, vector(t, requires_grad=True))[0],
    "vjp aux": lambda t, F: F.vjp(lambda x: (x.sin(), x), vector(t), has_aux=True)[2],
    "vjp in grad": lambda t, F: F.grad(lambda x: F.vjp(t.sin, x)[1](x)[0].sum())(vector(t)),
    "jacrev": lambda t, F: F.jacrev(lambda x: (x.sin(), {"s": x.sum()}))(vector(t)),
    "jacrev several": lambda t, F: F.jacrev(lambda x, y: x[:, None] * y, argnums=(0, 1))(
        vector(t), vector(t)
    ),
    "jacrev chunks": lambda t, F: [
        F.jacrev(lambda x: x.sin(), chunk_size=n)(vector(t)) for n in (1, 2, 7)
    ],
    "jacrev aux": lambda t, F: F.jacrev(lambda x: (x.sin(), x), has_aux=True)(vector(t)),
    "jacrev of jacrev": lambda t, F: F.jacrev(F.jacrev(lambda x: (x.sin() * x).sum()))(vector(t)),
    "jacrev recorded": lambda t, F: F.jacrev(lambda x: x * w(t))(vector(t)),
    "jacrev of a leaf": lambda t, F: F.jacrev(t.sin)(vector(t, requires_grad=True)),
    "hessian": lambda t, F: F.hessian(lambda x: (x**3).prod())(vector(t)),
    "functionalize": lambda t, F: F.functionalize(lambda x: x.clone().mul_(2))(vector(t)),
}


def w(t):
    return t.tensor([2.0, 3.0, 4.0], dtype=t.float64, requires_grad=True)


def without_grad(t, function):
    def call(*args):
        with t.no_grad():
            return function(*args)

    return call


def written_view(x):
    y = x * 2
    y[1:].mul_(x[:2])
    y[0] = x[2]
    return (y * y).sum()


def hooked(x):
    y = x * 2
    y.register_hook(lambda g: g * 10)
    return y.sum()


@pytest.mark.parametrize("name", CALLS)
def test_like_torch(name):
    def run(t):
        return CALLS[name](t, t.func)

    assert_same(run)


ERRORS = {
    "not a number": lambda t, F: F.grad(lambda x: x)(vector(t)),
    "no tensor": lambda t, F: F.grad(lambda x: 1.0)(vector(t)),
    "tuple": lambda t, F: F.grad(lambda x: (x.sum(), x))(vector(t)),
    "aux missing": lambda t, F: F.grad(lambda x: x.sum(), has_aux=True)(vector(t)),
    "argnums too large": lambda t, F: F.grad(lambda x: x.sum(), argnums=1)(vector(t)),
    "argnums twice": lambda t, F: F.grad(lambda x, y: x.sum(), argnums=(0, 0))(
        vector(t), vector(t)
    ),
    "argnums empty": lambda t, F: F.grad(lambda x: x.sum(), argnums=())(vector(t)),
    "argnums of a type": lambda t, F: F.grad(lambda x: x.sum(), argnums="0")(vector(t)),
    "integers": lambda t, F: F.grad(lambda x: x.sum())(t.arange(3)),
    "a number given": lambda t, F: F.grad(lambda x: x * 1)(3.0),
    "leaf written to": lambda t, F: F.grad(lambda x: x.mul_(2).sum())(vector(t)),
    "requires_grad_": lambda t, F: F.grad(lambda x: x.detach().requires_grad_().sum())(vector(t)),
    "backward": lambda t, F: F.grad(lambda x: (x.sum().backward(), x.sum())[1])(vector(t)),
    "functional": lambda t, F: F.grad(
        lambda x: t.autograd.functional.jacobian(t.sin, x).sum()
    )(vector(t)),
    "saved-tensor hooks": lambda t, F: F.grad(packing(t))(vector(t)),
    "cotangents": lambda t, F: F.vjp(t.sin, vector(t))[1](t.ones(2)),
    "structure": lambda t, F: F.vjp(t.sin, vector(t))[1]((vector(t), vector(t))),
    "vjp of no tensor": lambda t, F: F.vjp(lambda x: 3, vector(t)),
    "vjp of integers": lambda t, F: F.vjp(lambda x: x.long(), vector(t)),
    "vjp of nothing": lambda t, F: F.vjp(lambda x: (), vector(t)),
    "jacrev complex": lambda t, F: F.jacrev(t.sin)(vector(t) + 1j),
    "jacrev chunks": lambda t, F: F.jacrev(t.sin, chunk_size=0)(vector(t)),
    "setup_context": lambda t, F: F.grad(old_function(t))(vector(t)),
    "functionalize": lambda t, F: F.functionalize(t.sin, remove="views"),
}  # fmt: skip


def packing(t):
    def function(x):
        with t.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
            return x.sin().sum()

    return function


def old_function(t):
    class Old(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    return lambda x: Old.apply(x).sum()


@pytest.mark.parametrize("name", ERRORS)
def test_errors_like_torch(name):
    def run(t):
        return ERRORS[name](t, t.func)

    found = assert_same(run)
    assert isinstance(found, tuple)


def test_writing_to_what_is_captured_is_refused():
    import clew

    kept = clew.ones(3)
    with pytest.raises(RuntimeError, match=r"in-place operation \(aten::mul_\) that would mutate"):
        clew.func.grad(lambda x: kept.mul_(x).sum())(clew.ones(3))
    assert kept.tolist() == [1, 1, 1]


def test_nothing_is_left_behind():
    import clew
    from clew.autograd.transforms import running, stack

    x = clew.ones(3)
    with pytest.raises(ZeroDivisionError):
        clew.func.grad(lambda x: x.sum() / (1 // 0))(x)
    clew.func.grad(lambda x: x.sum())(x)
    assert not running and not stack.levels
    assert not x.requires_grad and x.grad is None
