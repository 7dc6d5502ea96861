"""Errors of saved-tensor hooks, detaching, missing derivatives, nan, gradients that are none.

Each is torch's, and a note names the lines and the cure.
"""

import pytest

import clew
from teaching import check_teaches, error_of, without_a_tensor


def leaf(t, *values):
    return t.tensor([float(v) for v in values], requires_grad=True)


# -- hooks of saved tensors


def pack_hook_writes(t):
    x = leaf(t, 1, 2)
    y = x * 1  #: tensor

    def pack(tensor):  #: hook
        return tensor.add_(1)

    with t.autograd.graph.saved_tensors_hooks(pack, lambda kept: kept):
        y * y


def unpack_hook_returns_a_number(t):
    x = leaf(t, 1, 2)

    def unpack(kept):  #: hook
        return 3

    with t.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
        y = x.exp()  #: saved by
    y.sum().backward()


def hooked_twice(t):
    x = t.ones(2, requires_grad=True)  #: tensor
    y = x * x
    saved = y.grad_fn._raw_saved_self
    saved.register_hooks(lambda tensor: tensor, lambda kept: kept)
    saved.register_hooks(lambda tensor: tensor, lambda kept: kept)  #: asked


@without_a_tensor
def hooked_when_freed(t):
    x = leaf(t, 1, 2)
    y = x * x
    saved = y.grad_fn._raw_saved_self
    y.sum().backward()  #: freed
    y.grad_fn._raw_saved_self.register_hooks(lambda tensor: tensor, lambda kept: kept)  #: asked
    return saved


@without_a_tensor
def hooks_are_disabled(t):
    with t.autograd.graph.disable_saved_tensors_hooks("not here"):
        t.autograd.graph.saved_tensors_hooks(abs, abs).__enter__()  #: asked


@without_a_tensor
def disabled_among_hooks(t):
    with t.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda kept: kept):
        t.autograd.graph.disable_saved_tensors_hooks("not here").__enter__()  #: asked


@without_a_tensor
def mutation_in_mutation(t):
    with t.autograd.graph.allow_mutation_on_saved_tensors():
        t.autograd.graph.allow_mutation_on_saved_tensors().__enter__()  #: asked


# -- detaching in place


def detached_view(t):
    x = leaf(t, 1, 2)
    view = (x * 2).view(2)  #: view
    view.detach_()  #: asked


def detached_after_it_was_saved(t):
    x = leaf(t, 1, 2)
    y = x * 2  # the tensor below has lost this line
    z = y * y  #: saved by
    y.detach_()  #: detached
    z.sum().backward()


# -- no derivative


@without_a_tensor
def second_derivative(t):
    class Once(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @t.autograd.function.once_differentiable
        def backward(ctx, grad):
            return grad * 2

    x = leaf(t, 1, 2)
    (g,) = t.autograd.grad((Once.apply(x) ** 2).sum(), x, create_graph=True)
    g.sum().backward()  #: again


@without_a_tensor
def without_derivative(t):
    x = leaf(t, 1, 2)
    y = t.igamma(x, x)
    y.sum().backward()  #: backward


@without_a_tensor
def without_derivative_in_place(t):
    y = leaf(t, 0.5) * 1
    y.acosh_()
    y.backward()  #: backward


# -- nan


def nan_in_backward(t):
    with t.autograd.set_detect_anomaly(True):
        x = leaf(t, 1, 2)
        y = (x - 1).sqrt() * 0  #: node
        y.sum().backward()  #: backward


# -- what is given as a gradient


def fewer_gradients_than_outputs(t):
    x = leaf(t, 1, 2)
    y = x.sum()  #: output
    t.autograd.backward([y, y], [t.ones(())])  #: given


def number_as_a_gradient(t):
    x = leaf(t, 1, 2)
    y = x.sum()  #: output
    t.autograd.backward([y], [3])  #: given


def number_as_grad(t):
    x = t.ones(2, requires_grad=True)  #: tensor
    x.grad = 3  #: given


def itself_as_grad(t):
    x = t.ones(2, requires_grad=True)  #: tensor
    x.grad = x  #: given


# -- what needs, or must not have, a gradient


def edge_of_a_constant(t):
    x = t.ones(2)
    t.autograd.graph.get_gradient_edge(x)  #: asked


def hook_for_a_constant(t):
    x = t.ones(2)
    t.autograd.graph.register_multi_grad_hook((x,), print)  #: asked


def integers_as_data(t):
    x = t.ones(2, requires_grad=True)  #: tensor
    x.data = t.arange(2)  #: asked


def out_of_something_recorded(t):
    x = t.ones(2, requires_grad=True)
    t.mul(x, x, out=t.ones(2))  #: asked


def numpy_of_a_leaf(t):
    x = t.ones(2, requires_grad=True)  #: tensor
    x.numpy()  #: asked


def resized_leaf(t):
    x = t.ones(2, requires_grad=True)  #: tensor
    x.resize_(3)  #: asked


def mapped(t):
    x = t.ones(2, requires_grad=True)  #: tensor
    t.ones(2).map_(x, max)  #: asked


def applied(t):
    x = t.ones(2, requires_grad=True)  #: tensor
    x.apply_(abs)  #: asked


PROGRAMS = [
    pack_hook_writes, unpack_hook_returns_a_number, hooked_twice, detached_view,
    detached_after_it_was_saved, nan_in_backward, fewer_gradients_than_outputs,
    number_as_a_gradient, number_as_grad, itself_as_grad, edge_of_a_constant, hook_for_a_constant,
    integers_as_data, out_of_something_recorded, numpy_of_a_leaf, resized_leaf, mapped, applied,
    hooked_when_freed, hooks_are_disabled, disabled_among_hooks, mutation_in_mutation,
    second_derivative, without_derivative, without_derivative_in_place,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_teaches(program):
    check_teaches(program)


@pytest.mark.parametrize("program", [without_derivative, without_derivative_in_place])
def test_what_has_no_derivative_is_named(program):
    note = error_of(program, clew).__notes__[1]
    assert note.startswith("while ") and "Backward" in note and "recorded at" in note
