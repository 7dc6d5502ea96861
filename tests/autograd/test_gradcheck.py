"""gradcheck: what it accepts, what it finds, and what it says then.  Oracle: torch's."""

import re
import warnings

import pytest

import clew
from clew.autograd import gradcheck, gradgradcheck
from clew.autograd.gradcheck import GradcheckError
from engines import outcome, torch
from twins import assert_same

fast = pytest.mark.parametrize("fast_mode", [False, True])


def scaled(factor, *, real_part=False):
    """A function whose backward is wrong by a factor (or an addend)."""

    def f(x):
        y = x.real.clone() if real_part else x.clone()
        y.register_hook(lambda grad: grad + factor)
        return y

    return f


def said(e, function, *inputs, **options):
    """The text of the error, numbers left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            e.autograd.gradcheck(function, inputs, **options)
        except Exception as error:
            return type(error).__name__, re.sub(r"[-+]?\d+\.?\d*(e[-+]\d+)?", "0", str(error))
    return None


def check_says(make, **options):
    """Both say the same of the function and inputs that ``make(engine)`` gives."""
    ours, theirs = (said(e, *make(e), **options) for e in (clew, torch))
    assert ours == theirs, f"{ours}\ninstead of\n{theirs}"
    return ours


def doubles(e, *values, requires_grad=True, dtype="float64"):
    return e.tensor(values, dtype=getattr(e, dtype), requires_grad=requires_grad)


def test_a_mismatch_of_real_numbers():
    assert check_says(lambda e: (scaled(0.01), doubles(e, 1.0, 2.0)))[1].startswith("Jacobian mism")


@pytest.mark.parametrize("dtype", ["complex128", "float64"])
def test_a_mismatch_of_a_complex_output(dtype):
    def make(e):
        def f(x):
            y = x.clone() if dtype == "complex128" else e.complex(x, x)
            y.register_hook(lambda grad: grad + 0.01)
            return y

        return f, doubles(e, 1.0, 2.0, dtype=dtype)

    assert "considering the imaginary part of complex outputs" in check_says(make)[1]


def test_a_mismatch_of_the_real_part_only():
    def make(e):
        def f(x):
            y = x.clone()
            y.register_hook(lambda grad: e.complex(2 * grad.real, grad.imag))
            return y

        return f, doubles(e, 1.0, 2.0, dtype="complex128")

    ours = said(clew, *make(clew))
    assert "considering the real part of complex outputs" in ours[1]


def test_a_mismatch_of_a_complex_input():
    check_says(lambda e: (scaled(0.01, real_part=True), doubles(e, 1.0, 2.0, dtype="complex128")))


def test_a_mismatch_in_fast_mode():
    text = said(clew, scaled(0.01), doubles(clew, 1.0, 2.0), fast_mode=True)[1]
    expected = said(torch, scaled(0.01), doubles(torch, 1.0, 2.0), fast_mode=True)[1]
    assert text.split("\n\n")[-1].strip() == expected.split("\n\n")[-1].strip()
    assert "recompute numerical and analytical jacobians in slow mode" in text


def test_fast_mode_is_fast():
    """Two calls for each input and a few more, however many elements there are."""
    calls = []

    def f(x, y):
        calls.append(None)
        return x * y.sin()

    inputs = [clew.randn(50, dtype=clew.float64, requires_grad=True) for _ in range(2)]
    assert gradcheck(f, inputs, fast_mode=True, check_undefined_grad=False)
    assert len(calls) < 10


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_fast_mode_of_right_functions(dtype):
    x = doubles(clew, 0.5, -1.5, dtype=dtype)
    for function in (clew.exp, lambda x: x * x.conj(), clew.abs, lambda x: (x.real, x * 2)):
        assert gradcheck(function, (x,), fast_mode=True)
        assert gradgradcheck(function, (x,), fast_mode=True)


@fast
@pytest.mark.parametrize("what", ["shape", "dtype"])
def test_outputs_that_change_with_the_input(fast_mode, what):
    def make(e):
        def f(x):
            if not bool((x >= 1).all()):
                return x
            return e.cat([x, x]) if what == "shape" else x.to(e.float32)

        return f, doubles(e, 1.0)

    ours = [said(e, *make(e), fast_mode=fast_mode) for e in (clew, torch)]
    assert ours[0] == ours[1]
    assert f"outputs with the same {what} when inputs are perturbed" in ours[0][1]


def refuses_missing(x):
    def hook(grad):
        if grad is None:
            raise RuntimeError("nothing arrived")

    y = x.clone()
    y.register_hook(hook)
    return y


def from_nothing(e):
    class Careless(e.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return e.ones(2, dtype=e.float64) if grad is None else grad

    return Careless.apply


@fast
@pytest.mark.parametrize("function", [lambda e: refuses_missing, from_nothing])
def test_outputs_without_gradients(fast_mode, function):
    def make(e):
        return function(e), doubles(e, 1.0, 2.0)

    check_says(make, fast_mode=fast_mode)
    with pytest.warns(UserWarning, match="New undefined gradient support checking"):
        assert not gradcheck(*make(clew), fast_mode=fast_mode, raise_exception=False)
    assert gradcheck(*make(clew), fast_mode=fast_mode, check_undefined_grad=False)


def test_a_gradient_that_changes():
    def make(e):
        factors = iter(range(1, 1000))

        def f(x):
            y = x.clone()
            y.register_hook(lambda grad: grad + 1e-4 * next(factors))
            return y

        return f, doubles(e, 1.0)

    ours = said(clew, *make(clew))
    theirs = said(torch, *make(torch))
    assert ours[0] == theirs[0] == "GradcheckError"
    assert theirs[1].startswith(ours[1].removesuffix("."))


def test_a_gradient_that_is_not_zero_for_zero():
    class Adds(clew.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad if bool(grad.any()) else grad + 1

    with pytest.raises(GradcheckError, match="backward not multiplied by grad_output"):
        gradcheck(Adds.apply, doubles(clew, 1.0))


@pytest.mark.parametrize(
    "inputs",
    [
        lambda e: (doubles(e, 1.0, requires_grad=False),),
        lambda e: (doubles(e, 1.0).expand(3),),
        lambda e: (doubles(e, 1.0),),
    ],
    ids=["no grad", "expanded", "right"],
)
def test_inputs(inputs):
    assert_same(lambda e: e.autograd.gradcheck(lambda x: x * 2, inputs(e)))


def test_single_precision_is_warned_of():
    def run(e):
        with pytest.warns(UserWarning, match="double precision") as caught:
            e.autograd.gradcheck(lambda x: x * 2, e.ones(1, requires_grad=True), atol=1)
        return str(caught[0].message)

    assert outcome(run, clew) == outcome(run, torch)


@pytest.mark.parametrize(
    "options",
    [
        {"check_backward_ad": False},
        {"check_backward_ad": False, "check_forward_ad": True, "check_batched_grad": True},
        {"check_batched_forward_grad": True},
    ],
)
def test_options_that_contradict_each_other(options):
    check_says(lambda e: (lambda x: x, doubles(e, 1.0)), **options)


def test_no_differentiable_output():
    check_says(lambda e: (lambda x: x.detach() * 2, doubles(e, 1.0)))
    check_says(lambda e: (lambda x: x.detach() * 0, doubles(e, 1.0)))


def test_the_inputs_are_left_as_they_were():
    x = doubles(clew, 1.0, 2.0)
    before = x.tolist()
    gradcheck(clew.exp, x)
    gradcheck(clew.exp, x, fast_mode=True)
    assert x.tolist() == before
    assert x.grad is None
