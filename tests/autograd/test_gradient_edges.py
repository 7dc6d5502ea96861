"""Gradient edges as inputs and outputs; `inputs=` with results and shared graphs; kept graphs."""

import pytest

from twins import assert_same


def leaf(t, *values):
    return t.tensor([float(v) for v in values], requires_grad=True)


def edge(t, x):
    return t.autograd.graph.get_gradient_edge(x)


def test_edges_as_inputs():
    def run(t):
        x = leaf(t, 1, 2)
        h = x * 3
        y = h.exp().sum()
        edges = [edge(t, x), edge(t, h)]
        del h
        return t.autograd.grad(y, [*edges, x]), edges[1].node.name(), edges[1].output_nr

    assert_same(run)


def test_edges_as_outputs():
    def run(t):
        x = leaf(t, 1, 2)
        a, b = (x * x).sum(), (x * 3).sum()
        first, second = edge(t, a), edge(t, b)
        del a, b
        both = t.autograd.grad([first, second], x, retain_graph=True)
        scaled = t.autograd.grad(first, x, t.tensor(5.0), retain_graph=True)
        t.autograd.backward([first, second], [None, t.tensor(2.0)])
        return both, scaled, x.grad

    assert_same(run)


def test_an_output_that_is_an_input():
    def run(t):
        x = leaf(t, 1, 2)
        y = (x * x).sum()
        e = edge(t, y)
        return t.autograd.grad(e, [e, y, x]), t.autograd.grad(x, edge(t, x), t.ones(2))

    assert_same(run)


@pytest.mark.parametrize("which", range(3))
def test_edge_of_one_of_several_outputs(which):
    def run(t):
        x = leaf(t, 1, 2, 3)
        parts = x.mul(2).unbind()
        e = edge(t, parts[which])
        y = (parts[0] * 2 + parts[1] * 3 + parts[2] * 4).exp() * 0.01
        return e.output_nr, t.autograd.grad(y, e, retain_graph=True), t.autograd.grad(y, x)

    assert_same(run)


def test_backward_into_edges():
    def run(t):
        x, w = leaf(t, 1, 2), leaf(t, 3, 4)
        (x * w).sum().backward(inputs=[edge(t, x)])
        log = [x.grad, w.grad]
        h = x * w
        try:
            h.exp().sum().backward(inputs=[edge(t, h), w])
        except RuntimeError as error:
            log.append(str(error).split("\n")[0])
        return log, x.grad, w.grad

    assert_same(run)


def test_unused_edges():
    def run(t):
        x, other = leaf(t, 1, 2), leaf(t, 3)
        y, e = (x * x).sum(), edge(t, other * 2)
        log = [t.autograd.grad(y, [x, e], retain_graph=True, allow_unused=True)]
        for options in ({}, {"materialize_grads": True}):
            try:
                t.autograd.grad(y, [x, e], retain_graph=True, **options)
            except RuntimeError as error:
                log.append(str(error).split("\n")[0])
        return log

    assert_same(run)


def test_edge_before_and_after_a_write():
    def run(t):
        x = leaf(t, 1, 2)
        h = x * 2
        before = edge(t, h)
        h.mul_(3)
        after = edge(t, h)
        y = (h * h).sum()
        return before.node.name(), after.node.name(), t.autograd.grad(y, [before, after, h])

    assert_same(run)


def test_edge_of_a_view():
    def run(t):
        x = leaf(t, 1, 2, 3)
        h = x * 2
        view = h[1:]
        view.mul_(5)
        e = edge(t, view)
        y = (h * h).sum() + view.sum()
        grads = t.autograd.grad(y, [e, h, x], allow_unused=True)
        return e.node.name(), grads

    assert_same(run)


def test_create_graph_through_edges():
    def run(t):
        x = leaf(t, 1, 2)
        h = x**2
        e = edge(t, h)
        (g,) = t.autograd.grad((h**3).sum(), e, create_graph=True)
        return g, t.autograd.grad(g.sum(), [e, x])

    assert_same(run)


def test_hooks_see_gradients_of_edges():
    def run(t):
        x, log = leaf(t, 1, 2), []
        h = x * 2
        h.register_hook(lambda g: (log.append(g.tolist()), g * 10)[1])
        y = (h * h).sum()
        e = edge(t, h)
        alone = t.autograd.grad(y, e, retain_graph=True)
        return alone, t.autograd.grad(y, [e, x]), log

    assert_same(run)


def test_shapes_of_gradients_at_edges():
    def run(t):
        x, log = leaf(t, 1, 2), []
        e = edge(t, x * 2)
        for grads in (None, t.ones(3), t.ones(2), t.ones(1, 2)):
            try:
                log.append(t.autograd.grad(e, x, grads, retain_graph=True))
            except RuntimeError as error:
                log.append(str(error).split("\n")[0])
        return log

    assert_same(run)


# -- inputs= of backward


def test_results_as_inputs_accumulate_into_grad():
    def run(t):
        x = leaf(t, 1, 2)
        h = x * 2
        y = (h * h).sum()
        y.backward(inputs=[h], retain_graph=True)
        first = h.grad.clone(), x.grad
        y.backward(inputs=[h, x])
        return first, h.grad, x.grad, h.retains_grad

    assert_same(run)


def test_shared_graph_with_inputs_on_both_sides():
    def run(t):
        x, w, v = leaf(t, 1, 2), leaf(t, 3, 4), leaf(t, 5, 6)
        shared = (x * w).tanh()
        a, b = (shared * v).sum(), (shared + v).exp().sum()
        a.backward(inputs=[v, shared], retain_graph=True)
        b.backward(inputs=[w], retain_graph=True)
        (a + b).backward(inputs=[x, shared])
        return x.grad, w.grad, v.grad, shared.grad

    assert_same(run)


def test_input_inside_the_path_to_another():
    def run(t):
        x = leaf(t, 1, 2)
        a = x * 2
        b = a.exp()
        c = b.sin()
        grads = t.autograd.grad(c.sum(), [b, x, a, x], retain_graph=True)
        c.sum().backward(inputs=(a,), retain_graph=True)
        c.sum().backward(inputs=x)
        return grads, a.grad, b.retains_grad, x.grad

    assert_same(run)


def test_same_input_twice():
    def run(t):
        x = leaf(t, 1, 2)
        h = x * 2
        (h * h).sum().backward(inputs=[x, x, h, h])
        return x.grad, h.grad

    assert_same(run)


def test_inputs_that_nothing_leads_to():
    def run(t):
        x, other, log = leaf(t, 1, 2), leaf(t, 3), []
        (x * x).sum().backward(inputs=[x, other])
        log.append((x.grad, other.grad))
        for bad in ([t.ones(1)], [x, t.ones(1)]):
            try:
                (x * x).sum().backward(inputs=bad)
            except RuntimeError as error:
                log.append(str(error).split("\n")[0])
        return log, x.grad

    assert_same(run)


# -- graphs that are kept, and partly gone


def test_only_what_ran_is_released():
    def run(t):
        x, w, log = leaf(t, 1, 2), leaf(t, 3, 4), []
        a = x.exp()
        b = w.exp()
        y = (a * b).sum()
        t.autograd.grad(y, a)
        for tensor, target in ((a.sum(), x), (b.sum(), w), (y, x)):
            try:
                log.append(t.autograd.grad(tensor, target, retain_graph=True))
            except RuntimeError as error:
                log.append(str(error)[:40])
        return log

    assert_same(run)


def test_second_pass_over_nodes_that_keep_nothing():
    def run(t):
        x = leaf(t, 1, 2)
        y = (x + 1).view(2, 1).sum() - x.sum()
        y.backward()
        y.backward()
        return x.grad

    assert_same(run)


def test_shared_part_is_gone_with_the_first_pass():
    def run(t):
        x, log = leaf(t, 1, 2), []
        shared = x.exp()
        left, right = (shared * 2).sum(), (shared + 1).sin().sum()
        left.backward()
        for again in (left, right, shared.sum()):
            try:
                again.backward()
                log.append("passes")
            except RuntimeError as error:
                log.append(str(error)[:40])
        return log, x.grad

    assert_same(run)


@pytest.mark.parametrize("keep", [(True, False, False), (False, True, True), (True, True, False)])
def test_sequences_of_passes(keep):
    def run(t):
        x, log = leaf(t, 1, 2), []
        y = (x * x).sum()
        for retain in keep:
            try:
                y.backward(retain_graph=retain)
                log.append(x.grad.tolist())
            except RuntimeError as error:
                log.append(str(error)[:40])
        return log

    assert_same(run)


def test_create_graph_keeps_unless_told_otherwise():
    def run(t):
        x, log = leaf(t, 1, 2), []
        y = (x**3).sum()
        (g,) = t.autograd.grad(y, x, create_graph=True)
        (h,) = t.autograd.grad(g.sum(), x, create_graph=True, retain_graph=False)
        for again in (y, g.sum(), h.sum()):
            try:
                log.append(t.autograd.grad(again, x, retain_graph=True))
            except RuntimeError as error:
                log.append(str(error)[:40])
        return log

    assert_same(run)
