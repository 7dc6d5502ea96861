"""Errors of hooks and custom Functions: as torch's, and they name the hook or the Function."""

import numpy as np
import pytest

import clew
from clew import errors
from teaching import check_as_torch, check_teaches, error_of


def leaf(t, *values):
    return t.tensor([float(v) for v in values], requires_grad=True)


# -- hooks


def number_from_a_hook(t):
    x = t.ones(2, requires_grad=True)  #: gradient
    x.register_hook(lambda grad: 1.0)  #: hook
    x.sum().backward()


def hook_changes_the_shape(t):
    x = leaf(t, 1, 2)
    y = x * 2  #: gradient

    def halve(grad):  #: hook
        return grad[:1]

    y.register_hook(halve)
    y.sum().backward()


def hook_changes_the_type(t):
    x = leaf(t, 1, 2)
    y = x * 2  #: gradient
    y.register_hook(lambda grad: grad.double())  #: hook
    y.sum().backward()


def hook_of_a_node_returns_a_tensor(t):
    y = leaf(t, 1, 2) * 2  #: gradient
    y.grad_fn.register_hook(lambda grad_inputs, grad_outputs: grad_inputs[0])  #: hook
    y.sum().backward()


def hook_of_a_node_returns_too_many(t):
    y = leaf(t, 1, 2) * 2  #: gradient
    y.grad_fn.register_hook(lambda grad_inputs, grad_outputs: (*grad_inputs, None))  #: hook
    y.sum().backward()


def hook_of_a_node_fills_in(t):
    y = leaf(t, 1, 2) * 2  #: gradient
    y.grad_fn.register_hook(lambda grad_inputs, _: (grad_inputs[0], t.ones(2)))  #: hook
    y.sum().backward()


def prehook_of_a_node_returns_a_tensor(t):
    y = leaf(t, 1, 2) * 2  #: gradient
    y.grad_fn.register_prehook(lambda grad_outputs: grad_outputs[0])  #: hook
    y.sum().backward()


def prehook_of_a_node_changes_the_shape(t):
    y = leaf(t, 1, 2) * 2  #: gradient
    y.grad_fn.register_prehook(lambda grad_outputs: (grad_outputs[0][:1],))  #: hook
    y.sum().backward()


def late_hook_returns_a_number(t):
    x = t.ones(2, requires_grad=True)  #: gradient
    x.register_post_accumulate_grad_hook(lambda p: 1)  #: hook
    x.sum().backward()


def late_hook_returns_a_tensor(t):
    x = t.ones(2, requires_grad=True)  #: gradient
    x.register_post_accumulate_grad_hook(lambda p: p * 2)  #: hook
    x.sum().backward()


# -- custom Functions


def function(t, forward, backward=None, **methods):
    """A Function named Cube."""
    methods = {"forward": forward, "backward": backward} | methods
    written = {name: staticmethod(m) for name, m in methods.items() if m is not None}
    return type("Cube", (t.autograd.Function,), written)


def too_few_gradients(t):
    x = leaf(t, 1, 2)
    cube = function(t, lambda ctx, a, b: a * b, lambda ctx, g: g)  #: backward
    y = cube.apply(x, x)  #: call
    y.sum().backward()


def too_many_gradients(t):
    x = leaf(t, 1, 2)
    cube = function(t, lambda ctx, a: a * 2, lambda ctx, g: (g, g))  #: backward
    y = cube.apply(x)  #: call
    y.sum().backward()


def gradient_of_a_number(t):
    x = leaf(t, 1, 2)
    cube = function(t, lambda ctx, a, n: a * n, lambda ctx, g: (g, g))  #: backward
    y = cube.apply(x, 2.0)  #: call
    y.sum().backward()


def number_for_a_gradient(t):
    x = leaf(t, 1, 2)
    cube = function(t, lambda ctx, a: a * 2, lambda ctx, g: 1.0)  #: backward
    y = cube.apply(x)  #: call
    y.sum().backward()


def number_from_vjp(t):
    x = leaf(t, 1, 2)
    cube = function(t, lambda ctx, a: a * 2, vjp=lambda ctx, g: 1.0)  #: vjp
    y = cube.apply(x)  #: call
    y.sum().backward()


def number_saved(t):
    def forward(ctx, a):  #: forward
        ctx.save_for_backward(a, 3)
        return a * 3

    function(t, forward, lambda ctx, g: g * 3).apply(leaf(t, 1, 2))  #: call


def dirty_and_not_returned(t):
    def forward(ctx, a):  #: forward
        ctx.mark_dirty(a)
        return a * 2

    function(t, forward, lambda ctx, g: g * 2).apply(leaf(t, 1, 2) * 1)  #: call


def gradient_of_another_shape(t):
    x = leaf(t, 1, 2)
    cube = function(t, lambda ctx, a: a * 2, lambda ctx, g: t.ones(5))
    y = cube.apply(x)  #: call
    y.sum().backward()  #: given


def leaf_marked_dirty(t):
    def forward(ctx, a):
        ctx.mark_dirty(a)
        return a.add_(1)

    x = t.ones(2, requires_grad=True)  #: tensor
    function(t, forward, lambda ctx, g: g).apply(x)  #: written


def saved_input_modified(t):
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return a * a

    h = leaf(t, 1, 2) * 1  #: tensor
    square = function(t, forward, lambda ctx, g: g * ctx.saved_tensors[0] * 2)
    y = square.apply(h)  #: saved by
    h.add_(1)  #: changed
    y.sum().backward()


def saved_values_released(t):
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return a * a

    square = function(t, forward, lambda ctx, g: g * ctx.saved_tensors[0] * 2)  #: again
    y = square.apply(leaf(t, 1, 2)).sum()  #: node
    y.backward()  #: freed
    y.backward()


def view_from_a_function_written(t):
    y = function(t, lambda ctx, a: a.view(2, 1), lambda ctx, g: g.view(2)).apply(leaf(t, 1, 2) * 1)
    y.add_(1)  #: written


PROGRAMS = [
    number_from_a_hook, hook_changes_the_shape, hook_changes_the_type,
    hook_of_a_node_returns_a_tensor, hook_of_a_node_returns_too_many, hook_of_a_node_fills_in,
    prehook_of_a_node_returns_a_tensor, prehook_of_a_node_changes_the_shape,
    late_hook_returns_a_number, late_hook_returns_a_tensor, too_few_gradients, too_many_gradients,
    gradient_of_a_number, number_for_a_gradient, number_from_vjp, number_saved,
    dirty_and_not_returned, gradient_of_another_shape,
    leaf_marked_dirty, saved_input_modified, saved_values_released, view_from_a_function_written,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_teaches(program):
    check_teaches(program)


def instantiated(t):
    function(t, lambda ctx, a: a)()(leaf(t, 1))


def test_an_instance_cannot_be_called():
    check_as_torch(instantiated)


@pytest.mark.parametrize("mark", ["mark_dirty", "mark_non_differentiable"])
def test_a_number_marked_is_named(mark):
    """As torch's, which breaks off where the kind of thing should stand."""

    def setup_context(ctx, inputs, output):
        getattr(ctx, mark)(3)

    def program(t):
        doubled = function(t, lambda a: a * 2, lambda ctx, g: g * 2, setup_context=setup_context)
        doubled.apply(leaf(t, 1, 2))

    theirs, ours = error_of(program, pytest.importorskip("torch")), error_of(program, clew)
    assert isinstance(ours, errors.FunctionResultError)
    assert type(theirs) is RuntimeError
    assert ours.clause.startswith(str(theirs))
    assert ours.clause.endswith(" int")
    assert "setup_context, defined at " in dict(ours.facts)["setup"]


# -- errors that users raise


def test_an_error_in_a_hook_names_the_leaf():
    def hook(grad):
        raise KeyError("mine")

    def program(t):
        x = t.ones(2, requires_grad=True)
        x.register_hook(hook)
        (x * 2).sum().backward()

    (note,) = error_of(program, clew).__notes__
    assert note.startswith("while the gradient of a leaf tensor float32 [2], made at ")
    assert note.endswith(": x = t.ones(2, requires_grad=True) was accumulated")


def test_an_error_in_a_backward_names_the_call():
    def program(t):
        x = t.ones(2, requires_grad=True)
        cube = function(t, lambda ctx, a: a * 2, lambda ctx, g: g["mine"])
        cube.apply(x).sum().backward()

    (note,) = error_of(program, clew).__notes__
    assert note.startswith("while CubeBackward ran backward, recorded at ")
    assert note.endswith(": cube.apply(x).sum().backward()")


def test_a_hook_that_is_an_object_is_named_by_its_class():
    class Halve:
        def __call__(self, grad):
            return grad[:1]

    x = clew.ones(2, requires_grad=True)
    x.register_hook(Halve())
    with pytest.raises(errors.HookResultError, match="hook 'Halve' has changed the size") as caught:
        x.sum().backward()
    assert dict(caught.value.facts)["hook"] == "Halve"


# -- repr of nodes


def test_repr_of_nodes():
    x, y = leaf(clew, 1, 2, 3), clew.ones(3, dtype=clew.float64)
    product = x * y
    text = repr(product.grad_fn)
    assert text.startswith("<MulBackward0 keeps other float64 [3] 24 B; at ")
    assert text.endswith("in test_repr_of_nodes: product = x * y>")
    total = product.sum()
    assert repr(total.grad_fn).startswith("<SumBackward0 keeps nothing; at ")
    total.backward()
    assert repr(product.grad_fn).startswith("<MulBackward0 released; at ")
    accumulator = product.grad_fn.next_functions[0][0]
    assert repr(accumulator).startswith("<AccumulateGrad of leaf tensor float32 [3], made at ")


def test_repr_of_a_node_tells_a_write():
    x = leaf(clew, 1, 2)
    y = x.exp()
    node = y.grad_fn
    y.add_(1)
    assert repr(node).startswith("<ExpBackward0 keeps result float32 [2] 8 B (changed since); at ")
    assert (
        repr(node._raw_saved_result) == "<SavedTensor float32 [2] 8 B (changed since), version 0>"
    )


def test_repr_of_other_kinds_of_nodes():
    h = leaf(clew, 1, 2) * 1
    h[0] = 5.0
    assert repr(h.grad_fn).startswith("<CopySlices keeps nothing; at ")
    with clew.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(), lambda a: clew.tensor(a)):
        node = (h * clew.ones(2)).grad_fn
    assert repr(node).startswith("<MulBackward0 keeps other packed as ndarray; at ")
    assert repr(node._raw_saved_other) == "<PackedTensor packed as ndarray>"
    assert isinstance(node._raw_saved_other.packed, np.ndarray)


def test_repr_without_provenance(monkeypatch):
    monkeypatch.setattr(clew.config.switches, "provenance", False)
    assert repr((leaf(clew, 1) + 1).grad_fn) == "<AddBackward0 keeps nothing>"
