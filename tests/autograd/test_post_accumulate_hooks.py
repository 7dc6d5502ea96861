"""Hooks that run when a leaf's gradient is there: optimizers in backward, `create_graph`."""

import pytest

from twins import assert_same


def leaf(t, *values):
    return t.tensor([float(v) for v in values], requires_grad=True)


OPTIMIZERS = {
    "SGD": {"lr": 0.1, "momentum": 0.9},
    "Adam": {"lr": 0.1},
    "Adagrad": {"lr": 0.1},
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizer_in_backward(name):
    """One optimizer per parameter, which steps and frees the gradient as soon as it is there."""

    def run(t):
        weights = [leaf(t, 1, 2), leaf(t, 3, 4), leaf(t, 0.5, -1)]
        make = getattr(t.optim, name)
        optimizers = {w: make([w], **OPTIMIZERS[name]) for w in weights}
        log = []

        def step(parameter):
            position = [w is parameter for w in weights].index(True)
            log.append((position, sum(w.grad is not None for w in weights)))
            optimizers[parameter].step()
            optimizers[parameter].zero_grad()

        for w in weights:
            w.register_post_accumulate_grad_hook(step)
        for _ in range(3):
            a, b, c = weights
            ((a.tanh() + b) * c).sin().sum().backward()
        return weights, [w.grad is None for w in weights], log

    assert_same(run)


def test_equal_to_one_step_after_backward():
    def run(t):
        results = []
        for fused in (True, False):
            w, v = leaf(t, 1, 2), leaf(t, 3, 4)
            optimizers = [t.optim.Adam([p], lr=0.1) for p in (w, v)]
            if fused:
                for p, o in zip((w, v), optimizers):
                    p.register_post_accumulate_grad_hook(
                        lambda p, o=o: (o.step(), o.zero_grad(), None)[2]
                    )
            for _ in range(4):
                (w.exp() + v).sin().sum().backward()
                if not fused:
                    for o in optimizers:
                        o.step()
                        o.zero_grad()
            results.append((w, v))
        return results

    assert_same(run)


def test_write_to_a_leaf_that_backward_still_needs():
    def run(t):
        w, v = leaf(t, 1, 2), leaf(t, 3, 4)

        def step(p):
            with t.no_grad():
                p.sub_(p.grad)

        h = w * 2
        w2 = (h * v).sum() + (v * v).sum()
        v.register_post_accumulate_grad_hook(step)
        w2.backward()
        return w.grad, v

    assert_same(run)


@pytest.mark.parametrize("create_graph", [True, False])
def test_the_gradient_in_the_hook(create_graph):
    def run(t):
        x, log = leaf(t, 1, 2), []

        def note(p):
            g = p.grad
            log.append(
                (p is x, g.requires_grad, g.grad_fn is None, t.is_grad_enabled(), g.detach())
            )

        x.register_post_accumulate_grad_hook(note)
        (x**3).sum().backward(create_graph=create_graph)
        (x**2).sum().backward(create_graph=create_graph)
        return log

    assert_same(run)


def test_second_derivative_through_the_hook():
    def run(t):
        x, seen = leaf(t, 1, 2), []

        def square(p):
            seen.append((p.grad**2).sum())
            p.grad = None

        x.register_post_accumulate_grad_hook(square)
        (x**3).sum().backward(create_graph=True)
        return t.autograd.grad(seen[0], x)

    assert_same(run)


def test_order_among_hooks():
    def run(t):
        x, log = leaf(t, 1, 2), []
        x.register_post_accumulate_grad_hook(lambda p: log.append("late 1"))
        x.register_hook(lambda g: log.append("tensor"))
        node = t.autograd.graph.get_gradient_edge(x).node
        node.register_prehook(lambda gs: log.append("pre"))
        node.register_hook(lambda gi, go: log.append(("post", len(gi), len(go))))
        x.register_post_accumulate_grad_hook(lambda p: log.append("late 2"))
        (x * 2).sum().backward()
        return log

    assert_same(run)


def test_not_called_by_grad_nor_for_leaves_not_listed():
    def run(t):
        x, y, log = leaf(t, 1), leaf(t, 2), []
        x.register_post_accumulate_grad_hook(lambda p: log.append("x"))
        y.register_post_accumulate_grad_hook(lambda p: log.append("y"))
        t.autograd.grad((x * y).sum(), [x, y])
        (x * y).sum().backward(inputs=[y])
        (x * y).sum().backward(inputs=[y, x])
        return log, x.grad, y.grad

    assert_same(run)


def test_once_for_a_leaf_that_is_used_often():
    def run(t):
        x, log = leaf(t, 1, 2), []
        x.register_post_accumulate_grad_hook(lambda p: log.append(p.grad.tolist()))
        (x * x + x.exp() + x).sum().backward()
        return log

    assert_same(run)


def test_removal_and_errors():
    def run(t):
        x, log = leaf(t, 1), []

        def fail(p):
            raise KeyError("late")

        handle = x.register_post_accumulate_grad_hook(fail)
        try:
            (x * 2).sum().backward()
        except KeyError as error:
            log.append((str(error), x.grad.tolist()))
        handle.remove()
        (x * 2).sum().backward()
        log.append(x.grad.tolist())
        for bad in (x * 2, t.ones(1)):
            try:
                bad.register_post_accumulate_grad_hook(fail)
            except RuntimeError as error:
                log.append(str(error).split("\n")[0])
        x.register_post_accumulate_grad_hook(lambda p: "a result")
        try:
            (x * 2).sum().backward()
        except TypeError as error:
            log.append(str(error).split("\n")[0])
        return log

    assert_same(run)


def test_backward_in_the_hook():
    def run(t):
        x, y, log = leaf(t, 1), leaf(t, 2), []

        def again(p):
            log.append(p.grad.tolist())
            if len(log) < 3:
                with t.enable_grad():
                    (p * 3 + y).sum().backward()

        x.register_post_accumulate_grad_hook(again)
        (x * 2).sum().backward()
        return log, x.grad, y.grad

    assert_same(run)


def test_replaced_and_changed_gradients():
    def run(t):
        x = leaf(t, 1, 2)
        handle = x.register_post_accumulate_grad_hook(lambda p: (p.grad.mul_(2), None)[1])
        (x * 3).sum().backward()
        first = x.grad.clone()
        handle.remove()
        x.register_post_accumulate_grad_hook(lambda p: setattr(p, "grad", t.zeros(2)))
        (x * 3).sum().backward()
        return first, x.grad

    assert_same(run)
