"""The engine: accumulation, retained graphs, order, `inputs`, re-entrance, threads, memory."""

import gc
import threading
import weakref

import numpy as np
import pytest

import clew
from twins import assert_same


def leaf(engine, *values):
    return engine.tensor([float(v) for v in values], requires_grad=True)


# -- the same as torch


def first_scenario(t):
    a = leaf(t, 2)
    b = a * 3
    c = b**2
    c.backward()
    return a.grad, c.grad_fn, b.grad_fn, a.is_leaf, b.is_leaf, a.grad_fn


def accumulates(t):
    a = leaf(t, 1, 2)
    for _ in range(3):
        (a * 3).sum().backward()
    return a.grad, a.grad._version


def diamond(t):
    a = leaf(t, 1, 2)
    b = a * 2
    (b * b + b.sin() + b).sum().backward()
    return a.grad


def broadcast(t):
    a, b = leaf(t, 1, 2, 3), t.tensor([[1.0], [2.0]], requires_grad=True)
    (a * b + a - b / a).sum().backward()
    return a.grad, b.grad


def several_roots(t):
    a, b = leaf(t, 1, 2), leaf(t, 3, 4)
    t.autograd.backward([a * b, a + b], [t.ones(2), t.tensor([2.0, 3.0])])
    return a.grad, b.grad


def second_backward(t):
    a = leaf(t, 1, 2)
    y = (a * a).sum()
    y.backward()
    y.backward()


def second_backward_that_needs_nothing(t):
    a = leaf(t, 1, 2)
    y = (a + a - 3).sum()
    y.backward()
    y.backward()
    return a.grad


def retained(t):
    a = leaf(t, 1, 2)
    y = a.exp().sum()
    y.backward(retain_graph=True)
    y.backward()
    return a.grad


def shared_part_is_freed(t):
    a = leaf(t, 1, 2)
    h = a.exp()
    (h * 2).sum().backward()
    (h * 3).sum().backward()


def grad_of_inputs(t):
    a, b = leaf(t, 1, 2), leaf(t, 3, 4)
    h = a * b
    y = (h * h).sum()
    return *t.autograd.grad(y, [h, a]), a.grad, b.grad


def unused_input(t):
    a, b = leaf(t, 1), leaf(t, 2)
    return t.autograd.grad((a * 2).sum(), [a, b])


def unused_input_allowed(t):
    a, b = leaf(t, 1), leaf(t, 2)
    return t.autograd.grad((a * 2).sum(), [a, b], allow_unused=True)


def unused_input_materialized(t):
    a, b = leaf(t, 1), leaf(t, 2)
    return t.autograd.grad((a * 2).sum(), [a, b], materialize_grads=True)


def backward_inputs(t):
    a, b = leaf(t, 1, 2), leaf(t, 3, 4)
    h = a * b
    (h * h).sum().backward(inputs=[a, h])
    return a.grad, b.grad, h.grad


def backward_without_inputs(t):
    (leaf(t, 1) * 2).backward(inputs=[])


def no_gradient_path(t):
    t.ones(1).backward()


def not_scalar(t):
    (leaf(t, 1, 2) * 2).backward()


def wrong_gradient_shape(t):
    (leaf(t, 1, 2) * 2).backward(t.ones(3))


def gradient_count(t):
    t.autograd.backward([leaf(t, 1)], [t.ones(1), t.ones(1)])


def higher_orders(t):
    a = t.tensor(1.5, requires_grad=True)
    y, found = a**4 * a.sin(), []
    for _ in range(4):
        (y,) = t.autograd.grad(y, a, create_graph=True)
        found.append(y)
    return found


def create_graph_accumulates_out_of_place(t):
    a = leaf(t, 1, 2)
    (a * a).sum().backward(create_graph=True)
    first = a.grad
    (a * a).sum().backward(create_graph=True)
    return first, a.grad, first is a.grad, a.grad.requires_grad


def gradient_is_not_shared(t):
    a, b, g = leaf(t, 1, 2), leaf(t, 3, 4), t.ones(2)
    (a + b).backward(g)
    a.grad.add_(1)
    return a.grad, b.grad, g


def integers_do_not_require_grad(t):
    t.tensor([1], requires_grad=True)


def mixed_types(t):
    a = t.tensor([1.0, 2.0], dtype=t.float32, requires_grad=True)
    b = t.tensor([3.0, 4.0], dtype=t.float64, requires_grad=True)
    (a * b).sum().backward()
    return a.grad, b.grad


def batched_gradients(t):
    a = leaf(t, 1, 2, 3)
    return t.autograd.grad(a * a, a, t.eye(3), is_grads_batched=True)


def detached_then_backward(t):
    a = leaf(t, 2)
    (a.detach() ** 2).backward()


def unused_branch(t):
    a = leaf(t, 1, 2)
    h = a.exp()
    branch = h.sin()
    h.sum().backward()
    return a.grad, branch.sum().backward()


SCENARIOS = [
    first_scenario, accumulates, diamond, broadcast, several_roots, second_backward,
    second_backward_that_needs_nothing, retained, shared_part_is_freed, grad_of_inputs,
    unused_input, unused_input_allowed, unused_input_materialized, backward_inputs,
    backward_without_inputs, no_gradient_path, not_scalar, wrong_gradient_shape, gradient_count,
    higher_orders, create_graph_accumulates_out_of_place, gradient_is_not_shared,
    integers_do_not_require_grad, mixed_types, batched_gradients, detached_then_backward,
    unused_branch,
]  # fmt: skip


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda f: f.__name__)
def test_scenario(scenario):
    assert_same(scenario)


def test_nodes_run_in_torch_order():
    def order(t):
        ran = []
        a, b = leaf(t, 1, 2), leaf(t, 3, 4)
        parts = {"exp": a.exp(), "mul": a * b, "sin": b.sin()}
        parts["late"] = parts["exp"] * parts["sin"]
        total = (parts["late"] + parts["mul"]).sum()
        for name, part in parts.items():
            part.grad_fn.register_hook(lambda *_, name=name: ran.append(name))
        for name, x in (("a", a), ("b", b)):
            x.register_hook(lambda *_, name=name: ran.append(name))
        total.backward()
        return ran

    assert_same(order)


# -- depth, re-entrance, threads


def test_a_hundred_thousand_nodes():
    a = clew.ones(1, requires_grad=True)
    y = a
    for _ in range(100_000):
        y = y + 1
    y.sum().backward()
    assert a.grad.tolist() == [1.0]
    del y  # freeing the chain must not recurse either


def test_backward_inside_backward():
    class Nested(clew.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            inner = x.detach().requires_grad_()
            with clew.enable_grad():
                (inner * inner).sum().backward()
            return grad * inner.grad

    a = leaf(clew, 1, 2)
    y = Nested.apply(a)
    (y + a.exp() * 0).sum().backward()
    assert a.grad.tolist() == [2.0, 4.0]


def test_eight_threads_lose_no_gradient():
    a = clew.zeros(1000, requires_grad=True)
    rounds, errors = 50, []

    def work():
        try:
            for _ in range(rounds):
                (a * 2).sum().backward()
        except Exception as error:  # shown below
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert np.all(a.grad.numpy() == 8 * rounds * 2)


def test_grad_mode_is_per_thread():
    seen = []
    with clew.no_grad():
        thread = threading.Thread(target=lambda: seen.append(clew.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


# -- memory


@pytest.fixture
def without_gc():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_an_error_that_is_caught_keeps_nothing(without_gc):
    """A reshape first tries a view, whose kernel raises."""
    x = clew.ones(3, 4)
    kept = weakref.ref(x)
    x.t().reshape(-1)
    with pytest.raises(RuntimeError):
        x.t().view(-1)
    del x
    assert kept() is None


@pytest.mark.parametrize("run_backward", [False, True])
@pytest.mark.parametrize("create_graph", [False, True])
def test_a_graph_is_freed_without_the_garbage_collector(without_gc, run_backward, create_graph):
    a = clew.ones(3, requires_grad=True)
    y = ((a * 2).exp().tanh() ** 2).sum()
    nodes = []
    stack = [y.grad_fn]
    while stack:
        node = stack.pop()
        nodes.append(weakref.ref(node))
        stack += [n for n, _ in node.next_functions if n is not None]
    del node
    if run_backward:
        clew.autograd.grad(y, a, create_graph=create_graph)
    array = weakref.ref(y)
    del y
    assert array() is None
    assert all(n() is None for n in nodes)


def test_views_and_in_place_leave_no_cycle(without_gc):
    a = clew.ones(4, requires_grad=True)
    b = a * 2
    v = b.view(2, 2)
    v.mul_(3)
    y = (b + v.view(4)).sum()
    references = [weakref.ref(x) for x in (b, v, y, y.grad_fn, b.grad_fn)]
    y.backward()
    del b, v, y
    assert all(r() is None for r in references)


def test_saved_values_are_released_as_backward_passes():
    a = clew.ones(3, requires_grad=True)
    h = a.exp()
    y = h * h
    saved = [weakref.ref(s) for _, s in (*h.grad_fn.kept(), *y.grad_fn.kept())]
    assert all(r() is not None for r in saved)
    y.sum().backward()
    assert all(r() is None for r in saved)


def test_the_first_gradient_is_stored_without_a_copy():
    made = []

    class Double(clew.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            result = grad * 2
            made.append(result.data_ptr())
            return result

    a = clew.ones(3, requires_grad=True)
    Double.apply(a).sum().backward()
    assert a.grad.data_ptr() == made[0]


def test_a_transposed_weight_gets_its_gradient_without_a_copy(monkeypatch):
    import clew.autograd.algebra as algebra

    monkeypatch.setattr(algebra, "_copied", lambda *_: pytest.fail("the gradient was copied"))
    w, x = clew.ones(4, 3, requires_grad=True), clew.ones(2, 3)
    ((x @ w.t()) * 2).sum().backward()
    assert w.grad.is_contiguous()


def test_interrupted_backward_leaves_tensors_usable():
    a = leaf(clew, 1, 2)
    h = a * 2
    handle = h.register_hook(lambda g: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        (h * h).sum().backward()
    handle.remove()
    (a * 3).sum().backward()
    assert a.grad.tolist() == [3.0, 3.0]


def test_an_error_in_a_hook_names_the_node():
    a = leaf(clew, 1, 2)
    h = a * 2

    def broken(grad):
        raise ValueError("broken")

    h.register_hook(broken)
    with pytest.raises(ValueError, match="broken") as info:
        (h * h).sum().backward()
    assert "MulBackward0" in info.value.__notes__[0]
    assert "test_engine.py" in info.value.__notes__[0]


@pytest.mark.parametrize("join", [clew.cat, clew.stack, clew.block_diag])
def test_each_of_very_many_inputs_has_its_gradient(join):
    leaves = [clew.full((1,), float(i), requires_grad=i % 3 == 0) for i in range(200)]
    joined = join(leaves) if join is not clew.block_diag else join(*leaves)
    (joined * joined).sum().backward()
    for i, leaf in enumerate(leaves):
        assert (None if leaf.grad is None else leaf.grad.item()) == (None if i % 3 else 2 * i)
