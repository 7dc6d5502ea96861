"""Errors of `inputs=`, callbacks, unpacked tensors, checkpoints: torch's, and they teach."""

import importlib

import pytest

import clew
from clew import errors
from teaching import check_facts, check_teaches, error_of, warning_of, without_a_tensor


def leaf(t, *values):
    return t.tensor([float(v) for v in values], requires_grad=True)


def checkpoint(t):
    return importlib.import_module(f"{t.__name__}.utils.checkpoint").checkpoint


# -- inputs


def no_inputs_of_backward(t):
    x = leaf(t, 1, 2)
    y = x.sum()  #: output
    y.backward(inputs=[])  #: asked


def no_inputs_of_several_outputs(t):
    x = leaf(t, 1, 2)
    y = x.sum()  #: output
    t.autograd.backward([y, y], inputs=iter(()))  #: asked


def no_inputs_of_grad(t):
    x = leaf(t, 1, 2)
    y = x.sum()  #: output
    t.autograd.grad(y, ())  #: asked


def no_inputs_in_a_dict(t):
    x = leaf(t, 1, 2)
    y = x.sum()  #: output
    t.autograd.grad(y, {})  #: asked


@without_a_tensor
def none_among_inputs(t):
    x = leaf(t, 1, 2)
    t.autograd.grad(x.sum(), [x, None])  #: asked


# -- callbacks


@without_a_tensor
def callback_outside_backward(t):
    def notify():  #: callback
        pass

    t.autograd.Variable._execution_engine.queue_callback(notify)  #: queued


@without_a_tensor
def callback_after_backward(t):
    x = leaf(t, 1, 2)
    x.register_hook(lambda grad: None)
    x.sum().backward()
    t.autograd.Variable._execution_engine.queue_callback(print)  #: queued


# -- what unpack hooks return


def unpacked_in_another_shape(t):
    x = leaf(t, 1, 2)

    def unpack(kept):  #: hook
        return t.ones(3)

    with t.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
        y = x.exp()  #: saved by
    y.sum().backward()  #: backward


def input_unpacked_in_another_shape(t):
    x = leaf(t, 1, 2)

    def unpack(kept):  #: hook
        return t.ones(4, 3)

    with t.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
        y = x * x  #: saved by
    t.autograd.grad(y.sum(), x)  #: backward


def unpacked_in_another_shape_under_create_graph(t):
    x = leaf(t, 1, 2)

    def unpack(kept):  #: hook
        return t.ones(3)

    with t.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
        y = x.tanh()  #: saved by
    t.autograd.grad(y.sum(), x, create_graph=True)  #: backward


def leaf_unpacked_as_integers(t):
    x = leaf(t, 1, 2)

    def unpack(kept):  #: hook
        return kept.long()

    with t.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
        y = x * x  #: saved by
    y.sum().backward()  #: backward


# -- mutation of saved tensors


@without_a_tensor
def backward_after_the_context(t):
    x = leaf(t, 1, 2)
    with t.autograd.graph.allow_mutation_on_saved_tensors():  #: context
        y = (x * x).sum()
    y.backward()  #: backward


@without_a_tensor
def backward_in_another_context(t):
    x = leaf(t, 1, 2)
    with t.autograd.graph.allow_mutation_on_saved_tensors():  #: context
        y = x * 1
        z = (y * y).sum()
        y.add_(1)
    with t.autograd.graph.allow_mutation_on_saved_tensors():
        z.backward()  #: backward


# -- checkpoints


@without_a_tensor
def reentrant_with_inputs(t):
    x = leaf(t, 1, 2)

    def double(x):  #: function
        return x * 2

    checkpoint(t)(double, x, use_reentrant=True).sum().backward(inputs=[x])  #: backward


@without_a_tensor
def reentrant_under_grad(t):
    x = leaf(t, 1, 2)

    def double(x):  #: function
        return x * 2

    t.autograd.grad(checkpoint(t)(double, x, use_reentrant=True).sum(), x)  #: backward


@without_a_tensor
def reentrant_without_a_gradient(t):
    x = leaf(t, 1, 2)

    def cut(x):  #: function
        return x.detach()

    checkpoint(t)(cut, x, use_reentrant=True).sum().backward()  #: backward


@without_a_tensor
def keyword_with_reentrance(t):
    checkpoint(t)(max, leaf(t, 1), key=abs, use_reentrant=True)  #: asked


@without_a_tensor
def contexts_with_reentrance(t):
    checkpoint(t)(abs, leaf(t, 1), context_fn=tuple, use_reentrant=True)  #: asked


@without_a_tensor
def unknown_check(t):
    checkpoint(t)(abs, leaf(t, 1), determinism_check="all", use_reentrant=False)  #: asked


@without_a_tensor
def debug_with_contexts(t):
    checkpoint(t)(abs, leaf(t, 1), context_fn=tuple, debug=True, use_reentrant=False)  #: asked


def saved_tensors_read_twice(t):
    class Twice(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x.exp())
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0] + ctx.saved_tensors[0]  #: second

    x = leaf(t, 1, 2)
    y = checkpoint(t)(Twice.apply, x, use_reentrant=False)  #: first run
    y.sum().backward()


def changes_between_runs(t, first, second, **options):
    runs = []

    def region(x):  #: function
        runs.append(x)
        return (first if len(runs) == 1 else second)(x)

    x = leaf(t, 1, 2)
    y = checkpoint(t)(region, x, use_reentrant=False, **options)  #: first run
    y.sum().backward()


DIFFERENCES = {
    "fewer": (lambda x: x.exp().exp(), lambda x: x.exp(), {}),
    "more": (lambda x: x.exp(), lambda x: x.exp().exp(), {"early_stop": False}),
    "shape": (lambda x: x.exp().sum(), lambda x: x[:1].exp().sum(), {}),
    "dtype": (lambda x: x.exp().sum(), lambda x: x.double().exp().sum(), {}),
    "nested": (
        lambda x: checkpoint(clew)(lambda z: z.exp().exp(), x, use_reentrant=False).sin(),
        lambda x: checkpoint(clew)(lambda z: z.exp(), x, use_reentrant=False).exp().sin().sin(),
        {"early_stop": False},
    ),
}

PROGRAMS = [
    no_inputs_of_backward, no_inputs_of_several_outputs, no_inputs_of_grad, no_inputs_in_a_dict,
    unpacked_in_another_shape, input_unpacked_in_another_shape,
    unpacked_in_another_shape_under_create_graph, leaf_unpacked_as_integers,
    none_among_inputs, callback_outside_backward, callback_after_backward,
    backward_after_the_context, backward_in_another_context, reentrant_with_inputs,
    reentrant_under_grad, reentrant_without_a_gradient, keyword_with_reentrance,
    contexts_with_reentrance, unknown_check, debug_with_contexts,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_teaches(program):
    check_teaches(program)


def test_reading_saved_tensors_twice_teaches():
    torch = pytest.importorskip("torch")
    theirs, ours = (error_of(saved_tensors_read_twice, t) for t in (torch, clew))
    assert (type(theirs).__name__, str(theirs)) == (type(ours).__name__, str(ours))
    check_facts(saved_tensors_read_twice, ours.__notes__[0], "checkpoint")


@pytest.mark.parametrize("case", ["fewer", "more", "shape", "dtype"])
def test_another_second_run_teaches(case):
    """As torch's, without the tip that follows there, which is the cure here."""
    torch = pytest.importorskip("torch")
    first, second, options = DIFFERENCES[case]

    def program(t):
        changes_between_runs(t, first, second, **options)

    theirs, ours = error_of(program, torch), error_of(program, clew)
    assert type(theirs).__name__ == type(ours).__name__ == "CheckpointError"
    assert str(theirs).startswith(f"{ours}\n\nTip:")
    check_facts(changes_between_runs, ours.__notes__[0], "checkpoint")
    assert "debug=True" in dict(ours.facts)["cure"]


def test_nested_checkpoint_with_another_second_run():
    first, second, options = DIFFERENCES["nested"]
    with pytest.raises(errors.CheckpointError) as caught:
        changes_between_runs(clew, first, second, **options)
    assert "region" in dict(caught.value.facts)["function"]


def test_reentrant_without_inputs_that_require_grad_warns():
    torch = pytest.importorskip("torch")

    def program(t):
        return checkpoint(t)(lambda x: x * 2, t.ones(2), use_reentrant=True)  #: called

    theirs, ours = warning_of(program, torch), warning_of(program, clew)
    assert ours.startswith(theirs)
    check_facts(program, ours.removeprefix(theirs), "checkpoint")


def test_what_broadcasts_is_no_error():
    """An unpacked tensor of another shape or type may fit, and then it counts, as in torch."""
    torch = pytest.importorskip("torch")

    def run(t, shape, dtype):
        x = leaf(t, 1, 2)
        hooks = t.autograd.graph.saved_tensors_hooks
        with hooks(lambda kept: kept, lambda kept: t.full(shape, 3, dtype=getattr(t, dtype))):
            y = x.exp()
        y.sum().backward()
        return x.grad.dtype, x.grad.tolist()

    for shape in [(), (1,), (2, 1), (3, 2)]:
        for dtype in ["float32", "float64", "int64"]:
            ours, theirs = run(clew, shape, dtype), run(torch, shape, dtype)
            assert str(ours) == str(theirs), (shape, dtype)
