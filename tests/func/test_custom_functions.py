"""Custom Functions inside transforms, like torch."""

import pytest

from twins import assert_same


def values(t):
    return t.tensor([[0.5, -1.0, 2.0], [3.0, 0.25, -0.5]], dtype=t.float64)


def generated(t):
    class Scaled(t.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, w, factor):
            return x * w * factor, x.sum()

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, w, ctx.factor = inputs
            ctx.save_for_backward(x, w)

        @staticmethod
        def backward(ctx, grad, grad_sum):
            x, w = ctx.saved_tensors
            return grad * w * ctx.factor + grad_sum, grad * x * ctx.factor, None

    return Scaled


def by_hand(t):
    class Cube(t.autograd.Function):
        @staticmethod
        def forward(x):
            return x**3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, grad):
            return grad * 3 * ctx.saved_tensors[0] ** 2

        @staticmethod
        def vmap(info, in_dims, x):
            assert (info.batch_size, info.randomness) == (x.shape[in_dims[0]], "error")
            return x**3, in_dims[0]

    return Cube


def out(t, x, w):
    return generated(t).apply(x, w, 2.0)[0].sum()


CALLS = {
    "vmap": lambda t, F: F.vmap(lambda x: generated(t).apply(x, x, 3.0))(values(t)),
    "shared": lambda t, F: F.vmap(lambda x: generated(t).apply(x, values(t)[0], 3.0))(values(t)),
    "grad": lambda t, F: F.grad(lambda x: out(t, x, x))(values(t)),
    "per example": lambda t, F: F.vmap(F.grad(lambda w, x: out(t, x, w)), (None, 0))(
        values(t)[0], values(t)
    ),
    "of a batch": lambda t, F: F.grad(
        lambda w: F.vmap(lambda x: out(t, x, w))(values(t)).sum()
    )(values(t)[0]),
    "second": lambda t, F: F.grad(lambda x: F.grad(lambda y: out(t, y, y))(x).sum())(values(t)),
    "by hand": lambda t, F: F.vmap(by_hand(t).apply, in_dims=1)(values(t)),
    "by hand, per example": lambda t, F: F.vmap(F.grad(lambda x: by_hand(t).apply(x).sum()))(
        values(t)
    ),
    "by hand, of a batch": lambda t, F: F.grad(lambda x: F.vmap(by_hand(t).apply)(x).sum())(
        values(t)
    ),
    "recorded": lambda t, F: t.autograd.grad(
        F.vmap(lambda x: out(t, x, x))(v := values(t).requires_grad_()).sum(), v
    ),
    "defaults": lambda t, F: (
        t.autograd.Function.generate_vmap_rule,
        hasattr(t.autograd.Function, "vmap"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_like_torch(name):
    def run(t):
        return CALLS[name](t, t.func)

    assert_same(run)


def variant(t, **methods):
    base = by_hand(t)
    return type("Variant", (base,), methods)


def without_rule(t):
    class Bare(t.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    return Bare


def old(t):
    class Old(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    return Old


ERRORS = {
    "no setup_context": lambda t: t.vmap(old(t).apply)(values(t)),
    "no rule": lambda t: t.vmap(without_rule(t).apply)(values(t)),
    "both": lambda t: t.vmap(variant(t, generate_vmap_rule=True).apply)(values(t)),
    "out_dims": lambda t: t.vmap(
        variant(t, vmap=staticmethod(lambda info, dims, x: (x, (0, 0)))).apply
    )(values(t)),
    "three": lambda t: t.vmap(
        variant(t, vmap=staticmethod(lambda info, dims, x: (1, 2, 3))).apply
    )(values(t)),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors_like_torch(name):
    assert isinstance(assert_same(ERRORS[name]), tuple)
