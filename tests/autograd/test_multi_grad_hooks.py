"""Hooks on several tensors (`register_multi_grad_hook`), in both modes."""

import pytest

from twins import assert_same


def leaf(t, *values):
    return t.tensor([float(v) for v in values], requires_grad=True)


def multi(t, *args, **options):
    return t.autograd.graph.register_multi_grad_hook(*args, **options)


def plain(grads):
    return [None if g is None else g.tolist() for g in grads]


def test_all_waits_for_the_last():
    def run(t):
        a, b, log = leaf(t, 1, 2), leaf(t, 3, 4), []
        c = a * b
        d = c.exp()
        multi(t, (a, c, d, b), lambda grads: log.append(plain(grads)))
        c.register_hook(lambda grad: log.append("c"))
        (d + a).sum().backward()
        return log

    assert_same(run)


def test_all_with_unused_and_pruned_tensors():
    def run(t):
        a, b, c, log = leaf(t, 1), leaf(t, 2), leaf(t, 3), []
        multi(t, (a, b, c), lambda grads: log.append(plain(grads)))
        y, z = a * b, b * c
        y.sum().backward(retain_graph=True)
        z.sum().backward(retain_graph=True)
        (y + z).sum().backward(inputs=[b], retain_graph=True)
        (y * z).sum().backward(inputs=[a, c], retain_graph=True)
        (y * z).sum().backward()
        return log

    assert_same(run)


@pytest.mark.parametrize("mode", ["all", "any"])
def test_no_tensor_is_used(mode):
    def run(t):
        a, b, log = leaf(t, 1), leaf(t, 2), []
        multi(t, (a,), log.append, mode=mode)
        (b * 2).sum().backward()
        return log

    assert_same(run)


@pytest.mark.parametrize("mode", ["all", "any"])
def test_under_grad_of_results(mode):
    def run(t):
        x, log = leaf(t, 1, 2), []
        h, k = x * 2, x * 3
        multi(t, (h, k), lambda g: log.append(plain(g if mode == "all" else [g])), mode=mode)
        t.autograd.grad((h * k).sum(), x, retain_graph=True)
        t.autograd.grad((h * k).sum(), h, retain_graph=True)
        t.autograd.grad((h * k).sum(), [k, x])
        return log

    assert_same(run)


def test_all_of_a_leaf_under_grad_is_refused():
    def run(t):
        x, log = leaf(t, 1, 2), []
        multi(t, (x,), log.append)
        t.autograd.grad((x * 2).sum(), x)
        return log

    assert_same(run)


def test_any_calls_once_per_pass():
    def run(t):
        a, b, log = leaf(t, 1), leaf(t, 2), []
        constant = t.ones(1)
        multi(t, (a, constant, b), lambda grad: log.append(grad.tolist()), mode="any")
        for _ in range(2):
            (a * 5 + b.exp()).sum().backward()
        (b * 7).sum().backward()
        return log

    assert_same(run)


@pytest.mark.parametrize("mode", ["all", "any"])
def test_removal(mode):
    def run(t):
        a, b, log = leaf(t, 1), leaf(t, 2), []
        first = multi(t, (a, b), lambda g: log.append("first"), mode=mode)
        multi(t, (a, b), lambda g: log.append("second"), mode=mode)
        (a * b).sum().backward()
        first.remove()
        first.remove()
        (a * b).sum().backward()
        with multi(t, (a, b), lambda g: log.append("third"), mode=mode):
            (a * b).sum().backward()
        (a * b).sum().backward()
        return log

    assert_same(run)


@pytest.mark.parametrize("mode", ["all", "any"])
def test_removed_in_the_hook(mode):
    def run(t):
        a, b, log = leaf(t, 1), leaf(t, 2), []

        def once(g):
            log.append("called")
            handle.remove()

        handle = multi(t, (a, b), once, mode=mode)
        for _ in range(2):
            (a * b).sum().backward()
        return log, a.grad, b.grad

    assert_same(run)


@pytest.mark.parametrize("mode", ["all", "any"])
def test_errors_of_the_hook(mode):
    def run(t):
        a, b, log = leaf(t, 1), leaf(t, 2), []

        def fail(g):
            log.append("called")
            if len(log) == 1:
                raise KeyError("hook")

        multi(t, (a, b), fail, mode=mode)
        for _ in range(2):
            try:
                (a * b).sum().backward()
            except KeyError as error:
                log.append(str(error))
        return log

    assert_same(run)


@pytest.mark.parametrize("mode", ["all", "any"])
def test_what_it_returns_is_ignored(mode):
    def run(t):
        a, b = leaf(t, 1), leaf(t, 2)
        multi(t, (a, b), lambda g: t.zeros(1), mode=mode)
        (a * b).sum().backward()
        return a.grad, b.grad

    assert_same(run)


@pytest.mark.parametrize("mode", ["all", "any"])
def test_same_tensor_twice_and_empty(mode):
    def run(t):
        a, log = leaf(t, 1), []
        multi(t, (a, a), lambda g: log.append("twice"), mode=mode)
        multi(t, (), lambda g: log.append("never"), mode=mode)
        (a * 2).sum().backward()
        return log

    assert_same(run)


def test_arguments():
    def run(t):
        results = []
        for tensors, mode in [
            ((leaf(t, 1),), "some"),
            ((t.ones(1),), "all"),
            ((t.ones(1),), "any"),
        ]:
            try:
                results.append(type(multi(t, tensors, print, mode=mode)).__name__ != "")
            except Exception as error:
                results.append(str(error).split("\n")[0])
        return results

    assert_same(run)


@pytest.mark.parametrize("mode", ["all", "any"])
def test_nested_pass_in_the_hook(mode):
    def run(t):
        a, b, log = leaf(t, 1), leaf(t, 2), []

        def nested(g):
            log.append("called")
            if len(log) < 3:
                with t.enable_grad():
                    (a * b).sum().backward()

        multi(t, (a, b), nested, mode=mode)
        (a * b).sum().backward()
        return log, a.grad, b.grad

    assert_same(run)


def test_create_graph_gives_gradients_with_a_graph():
    def run(t):
        a, b, seen = leaf(t, 1, 2), leaf(t, 3, 4), []
        h, k = a * b, b * 2
        multi(t, (h, k), seen.extend)
        (h.exp() * k).sum().backward(create_graph=True)
        return [(g.requires_grad, g.grad_fn.name(), g) for g in seen]

    assert_same(run)


def test_views_and_writes_in_place():
    def run(t):
        x, log = leaf(t, 1, 2, 3), []
        y = x * 1
        head = y[:2]
        multi(t, (y, head), lambda grads: log.append(plain(grads)))
        head.mul_(3)
        multi(t, (y, head), lambda grads: log.append(plain(grads)))
        (y * y).sum().backward()
        return log, x.grad

    assert_same(run)
