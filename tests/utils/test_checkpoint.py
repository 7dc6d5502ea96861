"""Checkpointing: gradients, random numbers, re-entrance, memory and errors as in PyTorch."""

import gc
import warnings
import weakref

import pytest

import clew
from engines import seed
from teaching import check_as_torch
from twins import assert_same

BOTH = pytest.mark.parametrize("reentrant", [True, False])


def leaves(e):
    x = e.tensor([0.5, 1.5, -0.3], requires_grad=True)
    w = e.tensor([2.0, -1.0, 0.7], requires_grad=True)
    return x, w


def block(x, w):
    return ((x * w).sin() * x).exp()


@BOTH
def test_values_and_gradients(reentrant):
    def run(e):
        x, w = leaves(e)
        y = e.utils.checkpoint.checkpoint(block, x, w, use_reentrant=reentrant)
        name = y.grad_fn.name()
        (y * w).sum().backward()
        return y, name, x.grad, w.grad

    assert_same(run)


@BOTH
def test_random_numbers_are_drawn_again(reentrant):
    def run(e):
        def noisy(x):
            return x * e.rand(3) * x

        x, _ = leaves(e)
        seed(e, 3)
        y = e.utils.checkpoint.checkpoint(noisy, x, use_reentrant=reentrant)
        after = e.rand(1)
        y.sum().backward()
        return y, after, x.grad, e.rand(1)

    assert_same(run)


@BOTH
def test_without_preserving_the_numbers_differ(reentrant):
    def run(e):
        def noisy(x):
            return x * e.rand(3) * x

        x, _ = leaves(e)
        seed(e, 3)
        y = e.utils.checkpoint.checkpoint(
            noisy, x, use_reentrant=reentrant, preserve_rng_state=False
        )
        y.sum().backward()
        return y, x.grad, e.rand(1)

    assert_same(run)


@BOTH
def test_several_outputs_and_arguments_that_are_no_tensors(reentrant):
    def run(e):
        def split(x, factor, w):
            return x * factor * w, "text", (x + w).tanh()

        x, w = leaves(e)
        a, text, b = e.utils.checkpoint.checkpoint(split, x, 3.0, w, use_reentrant=reentrant)
        (a * b).sum().backward()
        return a, text, b, x.grad, w.grad

    assert_same(run)


@BOTH
def test_nested(reentrant):
    def run(e):
        checkpoint = e.utils.checkpoint.checkpoint

        def inner(x):
            return x.sin().exp()

        def outer(x, w):
            y = checkpoint(inner, x * w, use_reentrant=reentrant)
            return checkpoint(inner, y * x, use_reentrant=reentrant) * w

        x, w = leaves(e)
        checkpoint(outer, x, w, use_reentrant=reentrant).sum().backward()
        return x.grad, w.grad

    assert_same(run)


def test_grad_and_higher_order_without_reentrance():
    def run(e):
        x, w = leaves(e)
        y = e.utils.checkpoint.checkpoint(block, x, w, use_reentrant=False)
        (g,) = e.autograd.grad(y.sum(), x, create_graph=True)
        (h,) = e.autograd.grad(g.sum(), w)
        return g, h

    assert_same(run)


def test_grad_with_reentrance_is_refused():
    def run(e):
        x, w = leaves(e)
        y = e.utils.checkpoint.checkpoint(block, x, w, use_reentrant=True)
        return e.autograd.grad(y.sum(), x)

    assert assert_same(run)[0] == "RuntimeError"


@BOTH
def test_retain_graph(reentrant):
    def run(e):
        x, w = leaves(e)
        y = e.utils.checkpoint.checkpoint(block, x, w, use_reentrant=reentrant).sum()
        y.backward(retain_graph=True)
        y.backward()
        return x.grad, w.grad

    assert_same(run)


def test_second_backward_is_refused():
    def run(e):
        x, w = leaves(e)
        y = e.utils.checkpoint.checkpoint(block, x, w, use_reentrant=False).sum()
        y.backward()
        y.backward()

    assert assert_same(run)[0] == "RuntimeError"


def test_keyword_arguments_without_reentrance():
    def run(e):
        x, w = leaves(e)
        y = e.utils.checkpoint.checkpoint(block, x=x, w=w, use_reentrant=False)
        y.sum().backward()
        return x.grad, w.grad

    assert_same(run)


def test_parameters_of_the_function_get_gradients_too():
    def run(e):
        x, w = leaves(e)
        y = e.utils.checkpoint.checkpoint(lambda x: block(x, w), x, use_reentrant=False)
        y.sum().backward()
        return x.grad, w.grad

    assert_same(run)


def test_no_grad_mode_only_calls_the_function():
    def run(e):
        x, w = leaves(e)
        with e.no_grad():
            return e.utils.checkpoint.checkpoint(block, x, w, use_reentrant=False)

    assert_same(run)


def calls_of(e, early_stop, override=None):
    calls = []

    def counted(x):
        y = x.exp()
        calls.append("exp")
        y = y.sin()
        calls.append("sin")
        z = y * 2
        calls.append("mul")
        return z

    x, _ = leaves(e)
    y = e.utils.checkpoint.checkpoint(counted, x, use_reentrant=False, early_stop=early_stop)
    if override is not None:
        with e.utils.checkpoint.set_checkpoint_early_stop(override):
            y = e.utils.checkpoint.checkpoint(
                counted, x, use_reentrant=False, early_stop=early_stop
            )
    calls.clear()
    y.sum().backward()
    return calls, x.grad


@pytest.mark.parametrize("early_stop", [True, False])
@pytest.mark.parametrize("override", [None, True, False])
def test_early_stop(early_stop, override):
    calls, _ = assert_same(lambda e: calls_of(e, early_stop, override))
    stops = early_stop if override is None else override
    assert calls == (["exp"] if stops else ["exp", "sin", "mul"])


def test_contexts_surround_both_runs():
    def run(e):
        seen = []

        class Note:
            def __init__(self, name):
                self.name = name

            def __enter__(self):
                seen.append("enter " + self.name)

            def __exit__(self, *exception):
                seen.append("exit " + self.name)

        x, w = leaves(e)
        y = e.utils.checkpoint.checkpoint(
            block, x, w, use_reentrant=False, context_fn=lambda: (Note("first"), Note("second"))
        )
        y.sum().backward()
        return seen, x.grad

    assert_same(run)


def test_a_context_must_not_swallow_errors():
    class Swallow:
        def __enter__(self):
            pass

        def __exit__(self, *exception):
            return True

    def run(e):
        def fail(x):
            raise ValueError("lost")

        return e.utils.checkpoint.checkpoint(
            fail, leaves(e)[0], use_reentrant=False, context_fn=lambda: (Swallow(), Swallow())
        )

    assert_same(run)


def changing(e, change, **options):
    """A checkpoint whose second run does something else."""
    runs = []

    def function(x):
        runs.append(1)
        return change(x, len(runs))

    x, _ = leaves(e)
    y = e.utils.checkpoint.checkpoint(function, x, use_reentrant=False, **options)
    y.sum().backward()
    return x.grad


CHANGES = {
    "fewer": lambda x, run: x.exp().sin().cos() if run == 1 else x.exp(),
    "more": lambda x, run: x.exp() if run == 1 else x.exp().sin().cos(),
    "shape": lambda x, run: x.exp().sin() if run == 1 else x[:2].exp().sin(),
    "dtype": lambda x, run: x.exp().sin() if run == 1 else x.double().exp().sin(),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("options", [{}, {"early_stop": False}])
def test_a_run_that_differs_is_found(change, options):
    assert_same(lambda e: changing(e, CHANGES[change], **options))


def test_determinism_check_can_be_turned_off():
    change = CHANGES["dtype"]
    assert_same(lambda e: changing(e, change, determinism_check="none"))


def test_differences_of_metadata_are_listed_as_in_torch():
    def lines(e):
        try:
            changing(e, CHANGES["dtype"])
        except RuntimeError as error:
            return type(error).__name__, str(error).split("\n")[:4]

    assert_same(lines)


def test_debug_lists_the_operations_of_both_runs():
    with pytest.raises(clew.utils.checkpoint.CheckpointError) as caught:
        changing(clew, CHANGES["fewer"], debug=True)
    text = str(caught.value)
    first, second = text.split("Operations executed during recomputation:")
    assert [w in first for w in ("exp ->", "sin ->", "cos ->")] == [True] * 3
    assert "exp ->" in second and "sin ->" not in second
    assert "test_checkpoint.py" in first
    with (
        clew.utils.checkpoint.set_checkpoint_debug_enabled(True),
        pytest.raises(clew.utils.checkpoint.CheckpointError, match="Operations executed"),
    ):
        changing(clew, CHANGES["fewer"])


BAD = {
    "keywords": lambda c, x: c.checkpoint(block, x, x, use_reentrant=True, w=1, v=2),
    "context": lambda c, x: c.checkpoint(block, x, x, use_reentrant=True, context_fn=int),
    "debug": lambda c, x: c.checkpoint(block, x, x, use_reentrant=True, debug=True),
    "check": lambda c, x: c.checkpoint(block, x, use_reentrant=False, determinism_check="all"),
    "debug context": lambda c, x: c.checkpoint(
        block, x, use_reentrant=False, debug=True, context_fn=int
    ),
    "sequential keywords": lambda c, x: c.checkpoint_sequential([], 1, x, True, debug=True),
    "segments": lambda c, x: c.checkpoint_sequential([abs], 3, x, True),
    "detach": lambda c, x: c.detach_variable([x]),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments_raise_as_torch(name):
    check_as_torch(lambda e: BAD[name](e.utils.checkpoint, leaves(e)[0]))


@pytest.mark.parametrize("sequential", [True, False])
def test_leaving_out_use_reentrant_warns(sequential):
    def run(e):
        x, _ = leaves(e)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if sequential:
                y = e.utils.checkpoint.checkpoint_sequential([e.exp, e.sin], 2, x)
            else:
                y = e.utils.checkpoint.checkpoint(e.exp, x)
        messages = [str(w.message).split(".")[:3] for w in caught]
        return y.grad_fn.name(), messages[0][:2], len(caught)

    assert_same(run)


def test_inputs_without_gradient_warn_with_reentrance():
    def run(e):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            y = e.utils.checkpoint.checkpoint(e.exp, e.ones(2), use_reentrant=True)
        return y, [str(w.message).split("\n")[0] for w in caught]

    assert_same(run)


@BOTH
@pytest.mark.parametrize("segments", [1, 2, 3])
def test_sequential(reentrant, segments):
    def run(e):
        x, w = leaves(e)
        steps = [e.sin, lambda v: v * w, e.exp, e.tanh, lambda v: v * v]
        y = e.utils.checkpoint.checkpoint_sequential(steps, segments, x, reentrant)
        y.sum().backward()
        return y, x.grad, w.grad

    assert_same(run)


@BOTH
def test_output_without_gradient(reentrant):
    def run(e):
        x, _ = leaves(e)
        y = e.utils.checkpoint.checkpoint(lambda v: v.detach() * 2, x, use_reentrant=reentrant)
        y.sum().backward()

    assert_same(run)


def test_changed_argument_is_found():
    def run(e):
        x, w = leaves(e)
        y = x * 1
        z = e.utils.checkpoint.checkpoint(block, y, w, use_reentrant=False)
        y.add_(1)
        z.sum().backward()

    assert assert_same(lambda e: outcome_kind(run, e)) == "RuntimeError"


def outcome_kind(run, e):
    try:
        run(e)
    except RuntimeError as error:
        assert "modified by an inplace operation" in str(error)
        return "RuntimeError"


def test_nothing_inside_is_kept_and_nothing_leaks():
    kept = []

    def remember(x):
        y = x.exp()
        kept.append(weakref.ref(y))
        return y.sin()

    gc.disable()
    try:
        x, _ = leaves(clew)
        z = clew.utils.checkpoint.checkpoint(remember, x, use_reentrant=False)
        assert kept[0]() is None
        z.sum().backward()
        assert kept[1]() is None
        node = weakref.ref(z.grad_fn)
        del z
        assert node() is None
    finally:
        gc.enable()


def test_looking_at_a_saved_tensor_recomputes_it():
    def run(e):
        x, _ = leaves(e)
        y = e.utils.checkpoint.checkpoint(lambda v: v.exp(), x, use_reentrant=False)
        return y.grad_fn._saved_result, y.grad_fn._saved_result

    assert_same(run)


def test_saved_tensors_cannot_be_taken_twice_in_one_pass():
    def run(e):
        class Twice(e.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                (first,) = ctx.saved_tensors
                (second,) = ctx.saved_tensors
                return grad * first * second

        x, _ = leaves(e)
        e.utils.checkpoint.checkpoint(Twice.apply, x, use_reentrant=False).sum().backward()

    kind, text = assert_same(lambda e: clause(run, e))
    assert kind == "CheckpointError" and "already unpacked once" in text


def clause(run, e):
    try:
        run(e)
    except Exception as error:
        return type(error).__name__, str(error).split(". ")[0]


def test_backward_inside_the_region():
    def run(e):
        def inner(x):
            y = x.exp().sin()
            (g,) = e.autograd.grad(y.sum(), x, create_graph=True)
            return g * x

        x, _ = leaves(e)
        e.utils.checkpoint.checkpoint(inner, x, use_reentrant=False).sum().backward()
        return x.grad

    assert_same(run)
