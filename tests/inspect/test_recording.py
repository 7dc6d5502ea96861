"""What a recording tells of nodes: module, iteration, order, line; on both engines."""

import threading

import pytest

import clew
import clew.inspect

torch = pytest.importorskip("torch")

engines = pytest.mark.parametrize("engine", [clew, torch], ids=["clew", "torch"])


def modules_of(graph):
    return [graph.module_of(n) for n in graph if not n.leaf]


@engines
def test_modules_are_named_by_variable_and_attribute(engine):
    class Model(engine.nn.Module):
        def __init__(self):
            super().__init__()
            self.steps = engine.nn.ModuleList([engine.nn.Tanh(), engine.nn.Sigmoid()])

        def forward(self, x):
            for step in self.steps:
                x = step(x)
            return x * 2

    model = Model()
    with clew.inspect.record():
        y = model(engine.ones(2, requires_grad=True))
    graph = clew.graph(y)
    assert modules_of(graph) == ["model", "model.steps.1", "model.steps.0"]
    assert [(s.name, s.type) for s in graph.scopes] == [
        ("model", "Model"), ("steps.0", "Tanh"), ("steps.1", "Sigmoid"),
    ]  # fmt: skip


@engines
def test_calls_of_one_module_are_told_apart(engine):
    layer = engine.nn.Linear(2, 2)
    with clew.inspect.record():
        y = layer(layer(engine.ones(1, 2)))
    graph = clew.graph(y)
    assert [s.call for s in graph.scopes] == [0, 1]
    assert {n.label for n in graph.leaves} == {"weight", "bias"}
    assert all(n.scope is None for n in graph.leaves)  # used in both calls


@engines
def test_an_error_in_a_forward_leaves_its_module(engine):
    class Fails(engine.nn.Module):
        def forward(self, x):
            raise ValueError("no")

    fails, tanh = Fails(), engine.nn.Tanh()
    with clew.inspect.record():
        with pytest.raises(ValueError, match="no"):
            fails(engine.ones(1))
        y = tanh(engine.ones(1, requires_grad=True))
    assert modules_of(clew.graph(y)) == ["tanh"]


@engines
def test_iterations_are_rounds_of_optimizer_steps(engine):
    w, v = (engine.ones(2, requires_grad=True) for _ in range(2))
    first, second = (engine.optim.SGD([p], lr=0.1) for p in (w, v))
    kept = []
    with clew.inspect.record():
        for _ in range(3):
            for parameter, optimizer in ((w, first), (v, second)):
                loss = (parameter * parameter).sum()
                kept.append(loss)
                loss.backward()
                optimizer.step()
    iterations = [{n.iteration for n in clew.graph(k) if not n.leaf} for k in kept]
    assert iterations == [{0}, {0}, {1}, {1}, {2}, {2}]


@engines
def test_orders_of_differentiation(engine):
    x = engine.linspace(0.1, 1, 3).requires_grad_()
    with clew.inspect.record():
        y = (x**4).sum()
        (first,) = engine.autograd.grad(y, x, create_graph=True)
        (second,) = engine.autograd.grad(first.sum(), x, create_graph=True)
        z = second.sum()
    assert {n.order for n in clew.graph(y)} == {0}
    orders = {n.order for n in clew.graph(z)}
    assert {0, 1, 2} >= orders >= {0, 2}


@engines
def test_lines_are_the_users(engine):
    with clew.inspect.record():
        x = engine.ones(3, requires_grad=True)
        y = engine.nn.functional.gelu(x * 2)
    assert {n.site.text for n in clew.graph(y) if not n.leaf} == {
        "y = engine.nn.functional.gelu(x * 2)"
    }


def test_nothing_stays_behind():
    from torch.autograd.variable import Variable
    from torch.nn.modules import module

    from clew.observers import observers

    before = (type(Variable._execution_engine), torch.autograd.Function.__dict__["apply"])
    with pytest.raises(KeyError), clew.inspect.record():
        raise KeyError
    assert observers == []
    assert (type(Variable._execution_engine), torch.autograd.Function.__dict__["apply"]) == before
    assert not module._global_forward_hooks
    assert not module._global_forward_pre_hooks


@engines
def test_a_graph_over_several_recordings_knows_all_of_them(engine):
    layer = engine.nn.Linear(2, 2)
    optimizer = engine.optim.SGD(layer.parameters(), lr=0.1)
    total = 0
    for _ in range(3):
        with clew.inspect.record():
            loss = layer(engine.ones(1, 2)).sum()
            total = total + loss
            loss.backward()
            optimizer.step()
    graph = clew.graph(total)
    calls = [(s.path, s.call) for s in graph.scopes]
    assert calls == [("layer", 0), ("layer", 1), ("layer", 2)]
    iterations = {n.iteration for n in graph if not n.leaf}
    assert len(iterations) == 3
    assert max(iterations) - min(iterations) == 2


@engines
def test_nodes_from_outside_the_recording_know_nothing(engine):
    x = engine.ones(3, requires_grad=True)
    before = x * 2
    with clew.inspect.record():
        pass
    after = x * 2
    for tensor in (before, after):
        assert [n.iteration for n in clew.graph(tensor)] == [None, None]


@engines
def test_recordings_of_two_threads_are_not_mixed_up(engine):
    """PyTorch numbers the nodes of each thread from zero: what two recordings saw, none tells."""

    def run(steps):
        layer = engine.nn.Linear(2, 2)
        optimizer = engine.optim.SGD(layer.parameters(), lr=0.1)
        with clew.inspect.record():
            for _ in range(steps):
                loss = layer(engine.ones(1, 2)).sum()
                loss.backward()
                optimizer.step()
            found.append(layer(engine.ones(1, 2)).sum())

    found = []
    for steps in (1, 4):
        thread = threading.Thread(target=run, args=(steps,))
        thread.start()
        thread.join()
    first, second = ([n.iteration for n in clew.graph(y) if not n.leaf] for y in found)
    if engine is torch:
        # Both began near zero; the second went on to numbers that the first has not seen.
        assert set(first) == {None}
        assert len(set(second)) == 1
    else:
        assert (set(first), set(second)) == ({1}, {5})
