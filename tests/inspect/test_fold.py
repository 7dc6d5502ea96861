"""Groups: modules, repeated blocks, ranges, iterations; and that they make no cycle."""

import pytest

import clew
import clew.inspect
import graph_programs as programs
from clew.inspect.fold import MOST_CHILDREN, Group, fold


def recorded(program):
    with clew.inspect.record():
        tensors, module = program(clew)
    return clew.graph(tensors, params=module)


def chain_of(n, step):
    y = clew.ones(1, requires_grad=True)
    for i in range(n):
        y = step(y, i)
    return clew.graph(y)


def kinds(root):
    return [g.kind for g in root.groups()]


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_every_node_is_in_one_group(name):
    graph = recorded(programs.PROGRAMS[name])
    assert sorted(fold(graph).members()) == list(range(len(graph)))


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_no_group_leads_out_of_itself_and_back(name):
    graph = recorded(programs.PROGRAMS[name])
    for group in fold(graph).groups():
        place = {}
        for i, child in enumerate(group.children):
            for member in child.members() if isinstance(child, Group) else [child]:
                place[member] = i
        for user, source in graph.edges:
            if user in place and source in place:
                assert place[source] <= place[user]


def test_blocks_that_repeat_are_rolled():
    root = fold(recorded(programs.residual_net))
    (blocks,) = (g for g in root.groups() if g.kind == "repeat")
    assert (blocks.title, blocks.type, blocks.repeat) == ("layers.0 … layers.3", "Block", 4)


def test_operations_that_repeat_are_rolled():
    root = fold(chain_of(50, lambda y, i: (y * 2).exp()))
    (blocks,) = (g for g in root.groups() if g.kind == "repeat")
    assert (blocks.title, blocks.repeat) == ("Mul · Exp", 50)


def test_what_differs_is_not_rolled():
    root = fold(chain_of(12, lambda y, i: y.reshape(1) if i % 5 == 3 else y.sum(0, keepdim=i % 2)))
    assert all(g.repeat < 6 for g in root.groups())


def test_long_lists_become_ranges():
    root = fold(chain_of(1000, lambda y, i: y * 2))
    assert all(len(g.children) <= MOST_CHILDREN for g in root.groups())
    titles = [g.title for g in root.groups() if g.kind == "range"]
    assert titles[:2] == ["1–120", "121–240"]


def test_iterations_are_apart_where_there_are_several():
    w = clew.ones(2, requires_grad=True)
    optimizer = clew.optim.SGD([w], lr=0.1)
    total = 0
    with clew.inspect.record():
        for _ in range(3):
            loss = (w * w).sum()
            total = total + loss
            loss.backward()
            optimizer.step()
    titles = [g.title for g in fold(clew.graph(total)).groups() if g.kind == "iteration"]
    assert titles == ["iteration 0", "iteration 1", "iteration 2"]


def test_what_a_backward_recorded_is_apart():
    assert "backward" in kinds(fold(recorded(programs.double_backward)))


def test_functions_stand_for_modules_where_there_are_none():
    def encoder(x):
        for _ in range(8):
            x = (x * 2).sin()
            x = x.reshape(1).cos()
        return x

    def decoder(x):
        for i in range(8):
            x = x.exp() if i % 2 else x.tanh()
            x = x + 1
        return x.sum()

    graph = clew.graph(decoder(encoder(clew.ones(1, requires_grad=True))))
    titles = [g.title for g in fold(graph).groups() if g.kind == "function"]
    assert titles == ["encoder()", "decoder()"]
