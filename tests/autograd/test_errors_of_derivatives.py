"""Errors of `autograd.functional`, of forward mode, of Functions without a method: as torch's, and
they teach."""

import pytest

import clew
from clew import errors
from teaching import check_teaches, error_of, without_a_tensor


def leaf(t, *values):
    return t.tensor([float(v) for v in values], requires_grad=True)


# -- functional


@without_a_tensor
def list_of_inputs(t):
    t.autograd.functional.jacobian(lambda x: x, [t.ones(2)])  #: asked


@without_a_tensor
def number_among_outputs(t):
    t.autograd.functional.vjp(lambda x: (x, 3), t.ones(2), None)  #: asked


@without_a_tensor
def hessian_of_two_outputs(t):
    t.autograd.functional.hessian(lambda x: (x.sum(), x.sum()), t.ones(2))  #: asked


def hessian_of_a_vector(t):
    def square(x):
        return x * x  #: tensor

    t.autograd.functional.hessian(square, t.ones(2))  #: asked


def vector_that_is_missing(t):
    def double(x):
        return x * 2  #: tensor

    t.autograd.functional.vjp(double, t.ones(2))  #: asked


@without_a_tensor
def direction_that_is_missing(t):
    t.autograd.functional.jvp(lambda x: x.sum(), t.ones(2))  #: asked


def vector_of_another_shape(t):
    def double(x):
        return x * 2  #: belongs to

    t.autograd.functional.vjp(double, t.ones(2), t.ones(3))  #: asked


@without_a_tensor
def too_many_vectors(t):
    t.autograd.functional.hvp(lambda x: x.sum(), t.ones(2), (t.ones(2), t.ones(2)))  #: asked


@without_a_tensor
def vectors_of_another_number(t):
    two = (t.ones(2), t.ones(2))
    t.autograd.functional.jvp(lambda x, y: x * y, two, t.ones(2))  #: asked


def constant_output(t):
    def cut(x):
        return x.detach() * 2  #: why

    t.autograd.functional.jacobian(cut, t.ones(2), strict=True)  #: asked


def independent_of_an_input(t):
    two = (t.ones(2), t.ones(2))
    t.autograd.functional.jacobian(lambda x, y: x * 2, two, strict=True)  #: asked


def vjp_independent_of_an_input(t):
    two = (t.ones(2), t.ones(2))
    t.autograd.functional.vjp(lambda x, y: x.sum(), two, strict=True)  #: asked


def jacobian_that_is_constant(t):
    x = leaf(t, 1, 2)
    t.autograd.functional.jacobian(lambda x: x * 2, x, strict=True, create_graph=True)  #: asked


def hessian_of_something_linear(t):
    t.autograd.functional.hessian(lambda x: x.sum(), t.ones(2), strict=True)  #: asked


@without_a_tensor
def strict_and_vectorized(t):
    t.autograd.functional.jacobian(abs, t.ones(2), strict=True, vectorize=True)  #: asked


@without_a_tensor
def forward_mode_by_loop(t):
    t.autograd.functional.jacobian(abs, t.ones(2), strategy="forward-mode")  #: asked


@without_a_tensor
def forward_mode_recorded(t):
    t.autograd.functional.jacobian(  #: asked
        abs, t.ones(2), create_graph=True, strategy="forward-mode"
    )


# -- forward mode


@without_a_tensor
def levels_inside_each_other(t):
    with t.autograd.forward_ad.dual_level():
        t.autograd.forward_ad.dual_level().__enter__()  #: asked


@without_a_tensor
def no_level_left(t):
    t.autograd.forward_ad.exit_dual_level()  #: asked


@without_a_tensor
def another_level_left(t):
    t.autograd.forward_ad.exit_dual_level(level=3)  #: asked


def dual_without_a_level(t):
    x = leaf(t, 1, 2)
    y = x * 2  #: tensor
    t.autograd.forward_ad.make_dual(y, t.ones(2))  #: asked


def dual_of_integers(t):
    with t.autograd.forward_ad.dual_level():
        t.autograd.forward_ad.make_dual(t.ones(2, dtype=t.int64), t.ones(2))  #: asked


def tangent_of_integers(t):
    with t.autograd.forward_ad.dual_level():
        t.autograd.forward_ad.make_dual(t.ones(2), t.ones(2, dtype=t.int64))  #: asked


def tangent_of_another_shape(t):
    x = leaf(t, 1, 2)
    y = x * 2
    with t.autograd.forward_ad.dual_level():
        t.autograd.forward_ad.make_dual(y, t.ones(3))  #: asked


def dual_made_twice(t):
    with t.autograd.forward_ad.dual_level():
        dual = t.autograd.forward_ad.make_dual(t.ones(2), t.ones(2))
        t.autograd.forward_ad.make_dual(dual, t.ones(2))  #: asked


def tangent_with_a_tangent(t):
    with t.autograd.forward_ad.dual_level():
        dual = t.autograd.forward_ad.make_dual(t.ones(2), t.ones(2))
        t.autograd.forward_ad.make_dual(t.ones(2), dual)  #: asked


@without_a_tensor
def level_that_is_not_there(t):
    with t.autograd.forward_ad.dual_level():
        t.autograd.forward_ad.make_dual(t.ones(2), t.ones(2), level=2)  #: asked


# -- Functions without a method


def function(t, **methods):
    return type("Cube", (t.autograd.Function,), {k: staticmethod(m) for k, m in methods.items()})


@without_a_tensor
def without_forward(t):
    function(t).apply(leaf(t, 1, 2))  #: asked


def without_backward(t):
    y = function(t, forward=lambda ctx, x: x * 2).apply(leaf(t, 1, 2))  #: call
    y.sum().backward()  #: asked


def backward_and_vjp(t):
    both = function(
        t,
        forward=lambda ctx, x: x * 2,
        backward=lambda ctx, g: g,
        vjp=lambda ctx, g: g,  #: vjp
    )
    y = both.apply(leaf(t, 1, 2))  #: call
    y.sum().backward()


def without_jvp(t):
    with t.autograd.forward_ad.dual_level():
        dual = t.autograd.forward_ad.make_dual(t.ones(2), t.ones(2))
        function(t, forward=lambda ctx, x: x * 2).apply(dual)  #: asked


# -- inputs


@without_a_tensor
def zeros_for_an_edge(t):
    x, y = leaf(t, 1, 2), leaf(t, 1, 2)
    edge = t.autograd.graph.get_gradient_edge(y * 1)
    t.autograd.grad(x.sum(), edge, materialize_grads=True)  #: asked


PROGRAMS = [
    list_of_inputs, number_among_outputs, hessian_of_two_outputs, hessian_of_a_vector,
    vector_that_is_missing, direction_that_is_missing, vector_of_another_shape, too_many_vectors,
    vectors_of_another_number, constant_output, independent_of_an_input,
    vjp_independent_of_an_input, jacobian_that_is_constant, hessian_of_something_linear,
    strict_and_vectorized, forward_mode_by_loop, forward_mode_recorded, levels_inside_each_other,
    no_level_left, another_level_left, dual_without_a_level, dual_of_integers,
    tangent_of_integers, tangent_of_another_shape, dual_made_twice, tangent_with_a_tangent,
    level_that_is_not_there, without_forward, without_backward, backward_and_vjp, without_jvp,
    zeros_for_an_edge,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_teaches(program):
    check_teaches(program)


def test_a_method_that_is_missing_is_said_with_a_cure():
    for method in ("setup_context", "vmap"):
        with pytest.raises(errors.MissingMethodError) as caught:
            getattr(clew.autograd.Function, method)(None, None, None)
        assert "write" in dict(caught.value.facts)["cure"] or method == "vmap"


def test_a_number_saved_for_forward_names_the_method():
    def forward(ctx, x):
        ctx.save_for_forward(x, 3)
        return x * 2

    def program(t):
        function(t, forward=forward).apply(leaf(t, 1, 2))

    error = error_of(program, clew)
    assert isinstance(error, errors.FunctionTypeError)
    assert "forward, defined at " in dict(error.facts)["forward"]
