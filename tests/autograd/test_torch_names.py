"""Names of PyTorch's engine that programs reach for: `_grad_fn`, ``torch._C``, old modules."""

from collections import OrderedDict

import pytest

from twins import assert_same

GUARDED = ("_grad_fn", "_backward_hooks", "_post_accumulate_grad_hooks", "data", "requires_grad")


@pytest.mark.parametrize("name", GUARDED)
def test_what_cannot_be_deleted(name):
    assert_same(lambda e: delattr(e.ones(2, requires_grad=True), name))


def test_grad_can_be_deleted():
    def run(e):
        x = e.ones(2, requires_grad=True)
        x.grad = e.ones(2)
        del x.grad
        return x.grad

    assert_same(run)


def test_setting_grad_fn_to_none_detaches():
    def run(e):
        y = e.ones(2, requires_grad=True) * 2
        y._grad_fn = None
        return [y.grad_fn, y.requires_grad, y._grad_fn]

    assert_same(run)
    assert_same(lambda e: setattr(e.ones(2, requires_grad=True), "_grad_fn", 3))


@pytest.mark.parametrize("leaf", [True, False])
def test_hooks_of_a_tensor(leaf):
    def run(e):
        x = e.ones(2, requires_grad=True)
        x = x if leaf else x * 2
        before = x._backward_hooks
        x.register_hook(lambda grad: grad)
        found = [before, type(x._backward_hooks).__name__, len(x._backward_hooks)]
        return [*found, None if leaf else x.is_leaf]

    assert_same(run)


@pytest.mark.parametrize("kind", ["leaf", "result", "plain"])
def test_hooks_may_be_replaced(kind):
    def run(e):
        x = e.ones(2, requires_grad=True)
        y = {"leaf": x, "result": x * 2, "plain": e.ones(2)}[kind]
        y._backward_hooks = OrderedDict({0: lambda grad: grad * 3})
        (x + y).sum().backward()
        found = [x.grad, list(y._backward_hooks)]
        y._backward_hooks = None
        (x + y).sum().backward()
        return [*found, x.grad]

    assert_same(run)


def test_late_hooks_of_a_leaf():
    def run(e):
        x = e.ones(2, requires_grad=True)
        before = x._post_accumulate_grad_hooks
        x.register_post_accumulate_grad_hook(lambda x: None)
        return [before, len(x._post_accumulate_grad_hooks)]

    assert_same(run)


@pytest.mark.parametrize(
    "name",
    ["AccumulateGrad", "MulBackward0", "AddBackward0", "CopySlices", "DelayedError", "Error"],
)
def test_classes_of_nodes(name):
    def run(e):
        x = e.ones(2, requires_grad=True)
        nodes = [(x * 2).grad_fn, (x + 1).grad_fn, (x + x * 2).grad_fn.next_functions[0][0]]
        kind = getattr(e._C._functions, name)
        return [issubclass(kind, e.autograd.graph.Node), *(isinstance(n, kind) for n in nodes)]

    assert_same(run)


def test_a_class_of_nodes_that_there_is_not():
    assert_same(lambda e: hasattr(e._C._functions, "NoSuchBackward0"))


def test_delayed_error():
    def run(e):
        x, plain = e.ones(2, requires_grad=True), e.ones(2)
        a, b = e._C._functions.DelayedError("later", 2)(x * 2, plain)
        return [a, a.grad_fn, b, b.grad_fn, a.sum().backward()]

    assert assert_same(run) == ("RuntimeError", "later")
    assert_same(lambda e: e._C._functions.DelayedError("later", 2)(e.ones(1)))


def test_undefined_grad():
    def run(e):
        x = e.ones(2, requires_grad=True)
        seen = []
        y = x * 2
        y.register_hook(seen.append)
        z = e._C._functions.UndefinedGrad()(y)
        found = [z, z.grad_fn]
        z.sum().backward()
        return [*found, seen, x.grad]

    assert_same(run)


def test_engine_state():
    def run(e):
        c = e._C
        seen = [c._current_autograd_node(), c._current_graph_task_id()]

        def hook(grad):
            seen.append(c._current_autograd_node())
            seen.append(c._current_graph_task_id() >= 0)
            seen.append(c._will_engine_execute_node(y.grad_fn))
            seen.append(c._autograd._get_current_graph_task_keep_graph())

        x = e.ones(2, requires_grad=True)
        y = (x * 2).exp()
        y.register_hook(hook)
        y.sum().backward()
        return seen

    assert_same(run)
    assert_same(lambda e: e._C._will_engine_execute_node(None))


def test_saved_tensors():
    def run(e):
        x = e.ones(2, requires_grad=True)
        kind = e._C._autograd.SavedTensor
        y = x * x
        node = y.grad_fn
        before = isinstance(node._raw_saved_self, kind)
        node._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
        return [before, isinstance(node._raw_saved_self, kind), isinstance(x, kind)]

    assert_same(run)
    assert_same(lambda e: e._C._autograd.SavedTensor())


def test_hooks_on_saved_none():
    def run(e):
        x = e.ones(2, 2, requires_grad=True)
        y = x[:, e.tensor([0, 1])]  # torch's saved tensors do not keep their node alive
        y.grad_fn._raw_saved_indices[0].register_hooks(abs, abs)

    assert "value None" in assert_same(run)[1]


def test_hooks_on_what_is_freed():
    def run(e):
        x = e.ones(2, requires_grad=True)
        y = x * x
        y.sum().backward()
        y.grad_fn._raw_saved_self.register_hooks(abs, abs)

    assert "after it has been freed" in assert_same(run)[1]


def test_freed_tuples():
    def run(e):
        x = e.ones(2, 2, requires_grad=True)
        y = x[:, e.tensor([0, 1])]
        y.sum().backward()
        return y.grad_fn._raw_saved_indices

    assert "a second time" in assert_same(run)[1]


def test_saved_hooks_enabled():
    def run(e):
        enabled = e._C._autograd._saved_tensors_hooks_is_enabled
        with e.autograd.graph.disable_saved_tensors_hooks("no"):
            inside = enabled()
        return [inside, enabled()]

    assert_same(run)


@pytest.mark.parametrize(
    "path",
    [
        "grad_mode.no_grad",
        "grad_mode.set_multithreading_enabled",
        "anomaly_mode.detect_anomaly",
        "variable.Variable",
        "function.BackwardCFunction",
        "function.FunctionCtx",
    ],
)
def test_modules(path):
    def run(e):
        found = e.autograd
        for part in path.split("."):
            found = getattr(found, part)
        return found.__name__ if "Backward" not in path else issubclass(
            found, e.autograd.graph.Node
        )  # fmt: skip

    assert_same(run)


@pytest.mark.parametrize("contiguous", [True, False])
def test_resize(contiguous):
    def run(e):
        from importlib import import_module

        resize = import_module(f"{e.__name__}.autograd._functions").Resize
        x = e.arange(6.0).reshape(2, 3).requires_grad_()
        y = resize.apply(x if contiguous else x.t(), (3, 2))
        (y * e.arange(6.0).view(3, 2)).sum().backward()
        return [y.detach(), x.grad]

    def wrong(e):
        from importlib import import_module

        import_module(f"{e.__name__}.autograd._functions").Resize.apply(e.ones(2, 3), (4,))

    import clew

    assert run(clew)  # PyTorch's own backward looks for an attribute of another name
    assert_same(wrong)


def test_multithreading_mode():
    def run(e):
        enabled, mode = e.autograd.is_multithreading_enabled, e.autograd.set_multithreading_enabled
        seen = [enabled()]
        with mode(False):
            seen.append(enabled())
            mode(True)
            seen.append(enabled())
        seen.append(enabled())
        mode(False)
        seen.append(enabled())
        mode(True)
        return [*seen, enabled()]

    assert_same(run)
    assert_same(lambda e: e.autograd.set_multithreading_enabled(3))


@pytest.mark.parametrize(
    "arguments",
    [
        ((2, 3), (4, 1)),
        ((2, 2), (0, 1)),
        ((), ()),
        ((0, 3), (3, 1)),
        ((2,), (1, 1)),
        ((-2,), (1,)),
        ((2, 2), (-1, 1)),
    ],
)
def test_empty_strided(arguments):
    def run(e):
        x = e.empty_strided(*arguments, dtype=e.float64)
        y = e.ones(1, dtype=e.int8).new_empty_strided(*arguments)
        size = x.untyped_storage().nbytes()
        return [tuple(x.shape), tuple(x.stride()), str(x.dtype), size, str(y.dtype)]

    assert_same(run)


@pytest.mark.parametrize("name", ["acosh_", "asinh_", "atanh_", "arccosh_"])
def test_functions_without_a_derivative_in_place(name):
    def run(e):
        y = e.tensor([0.5], requires_grad=True).clone()
        getattr(y, name)()
        return [y.grad_fn, y.sum().backward()]

    assert "the derivative for 'inplace version of a" in assert_same(run)[1]


REPLAYED = {
    "one": lambda x: x.view(-1),
    "two": lambda x: x.t()[0],
    "narrowed": lambda x: x[:, 1:].unsqueeze(0),
    "part outside": None,
}


@pytest.mark.parametrize("view", REPLAYED.values(), ids=REPLAYED)
@pytest.mark.parametrize("write", ["base", "view"])
def test_view_replay(view, write):
    def run(e):
        x = e.arange(4.0).view(2, 2).requires_grad_()
        b = x.clone()
        before = None if view is not None else b.t()
        with e.autograd._force_original_view_tracking(True):
            v = before[0] if view is None else view(b)
            (b if write == "base" else v).mul_(2)
            found = [v.grad_fn, e.autograd.is_view_replay_enabled()]
        (v * v).sum().backward()
        return [*found, x.grad, e.autograd.is_view_replay_enabled()]

    assert_same(run)


def test_view_replay_as_a_call():
    def run(e):
        e.autograd._force_original_view_tracking(True)
        try:
            b = e.ones(2, 2, requires_grad=True).clone()
            v = b.view(-1)
            b.add_(1)
            return [v.grad_fn, e.autograd.is_view_replay_enabled()]
        finally:
            e.autograd._force_original_view_tracking(False)

    assert_same(run)


def test_views_of_many_are_not_replayed():
    def run(e):
        with e.autograd._force_original_view_tracking(True):
            b = e.ones(2, requires_grad=True).clone()
            v = b.unbind()[0]
            b.add_(1)
            return v.grad_fn

    assert "returns multiple views" in assert_same(run)[1]
