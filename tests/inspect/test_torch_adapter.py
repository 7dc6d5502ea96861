"""Graphs of real PyTorch: read without changing or running anything."""

import subprocess
import sys

import pytest

import clew
import clew.inspect
from clew.inspect import torch_adapter

torch = pytest.importorskip("torch")


def test_clew_does_not_import_torch():
    program = (
        "import sys, clew, clew.inspect\n"
        "with clew.inspect.record(), clew.inspect.trace():\n"
        "    clew.graph((clew.ones(2, requires_grad=True) * 2).sum())\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_torch_that_means_clew_is_not_torch():
    program = (
        "import clew\nclew.enable_torch()\nimport torch\n"
        "from clew.inspect import torch_adapter\n"
        "assert torch_adapter.loaded() is None\n"
        "assert clew.graph(torch.ones(2, requires_grad=True) * 2).engine == 'clew'"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_reading_runs_no_unpack_hook_and_leaves_backward_as_it_is():
    calls = []

    def unpack(packed):
        calls.append(packed)
        return packed

    x = torch.ones(3, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), unpack):
        y = (x * x).exp().sum()
    graph = clew.graph(y)
    assert calls == []
    assert {s.role for n in graph for s in n.saved} == {"packed"}
    y.backward()
    assert torch.allclose(x.grad, 2 * x * torch.exp(x * x))


def test_what_a_pack_hook_made_need_not_be_a_tensor():
    x = torch.ones(3, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(), torch.from_numpy):
        y = x.detach().requires_grad_().exp() * x.detach()
    (saved,) = (s for n in clew.graph(y) for s in n.saved if n.name == "ExpBackward0")
    assert (saved.dtype, saved.role) == ("ndarray", "packed")


def test_freed_and_changed_tensors_do_not_raise():
    x = torch.ones(3, requires_grad=True)
    y = (x * 2).exp()
    z = (y * y).sum()
    y.detach().add_(1)
    assert {s.changed for n in clew.graph(z) for s in n.saved} == {True}
    z = (x * x).exp().sum()
    z.backward()
    graph = clew.graph(z)
    assert [n.freed for n in graph] == [False, True, True, False]
    assert graph.saved_bytes == 0


def test_a_view_pins_all_of_its_memory():
    big = torch.ones(1000, requires_grad=True) * 1
    y = big[:1] * torch.ones(1, requires_grad=True)
    (saved,) = (s for n in clew.graph(y) for s in n.saved if s.nbytes == 4 and s.role == "input")
    assert saved.storage_nbytes == 4000


def test_numbers_are_attributes_and_tensors_of_no_dimension_are_saved():
    x = torch.ones(3, requires_grad=True)
    by_number = clew.graph(x * 2.5).nodes[0]
    assert by_number.attrs["other"] == 2.5
    assert by_number.saved == []
    by_tensor = clew.graph(x * torch.tensor(2.5)).nodes[0]
    assert [s.name for s in by_tensor.saved] == ["other"]


def test_anomaly_mode_gives_lines():
    x = torch.ones(3, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        y = (x * 3).sum()
    sites = [n.site for n in clew.graph(y) if not n.leaf]
    assert {s.text for s in sites} == {"y = (x * 3).sum()"}
    assert all(s.file == __file__ for s in sites)


def test_nodes_stand_for_tensors():
    y = (torch.ones(3, requires_grad=True) * 3).sum()
    assert [n.name for n in clew.graph(y.grad_fn)] == [n.name for n in clew.graph(y)]
    z = (clew.ones(3, requires_grad=True) * 3).sum()
    assert [n.name for n in clew.graph(z.grad_fn)] == [n.name for n in clew.graph(z)]


@pytest.mark.parametrize("engine", [clew, torch], ids=["clew", "torch"])
def test_gradient_edges_stand_for_tensors(engine):
    y = engine.ones(3, requires_grad=True) * 3
    edge = engine.autograd.graph.get_gradient_edge(y)
    assert [n.name for n in clew.graph(edge)] == ["MulBackward0", "AccumulateGrad"]


def test_kinds_of_tensors_that_only_pytorch_has():
    def jagged():
        rows = [torch.ones(2, 3), torch.ones(4, 3)]
        nested = torch.nested.nested_tensor(rows, layout=torch.jagged, requires_grad=True)
        return (nested * 2).sin().values().sum()

    def sparse():
        matrix = torch.eye(3).to_sparse().requires_grad_()
        return torch.sparse.mm(matrix, torch.ones(3, 2, requires_grad=True)).sum()

    def meta():
        return (torch.ones(3, device="meta", requires_grad=True).exp()).sum()

    for program in (jagged, sparse, meta):
        graph = clew.graph(program())
        assert len(graph) > 2
        assert str(graph)
        assert graph._repr_html_()


def test_one_kind_of_tensors_at_a_time():
    with pytest.raises(TypeError, match="give one kind"):
        clew.graph([torch.ones(1, requires_grad=True), clew.ones(1, requires_grad=True)])
    with pytest.raises(TypeError, match="call the module and give what it returns"):
        clew.graph(torch.nn.Linear(1, 1))


@pytest.mark.parametrize("engine", [clew, torch], ids=["clew", "torch"])
def test_a_deep_graph_is_read_without_recursion(engine):
    y = engine.ones(1, requires_grad=True)
    for _ in range(5_000):
        y = (y * 2).exp()
    graph = clew.graph(y)
    assert len(graph) == 10_001
    assert len({id(n) for n in graph}) == len(graph)


def test_hooks_of_leaves_are_listed():
    x = torch.ones(3, requires_grad=True)
    x.register_hook(lambda grad: None)
    (leaf,) = clew.graph(x * 2).leaves
    assert leaf.hooks[0].startswith("tensor hook test_hooks_of_leaves")


def test_two_adapters_answer_the_same_questions():
    from clew.inspect import clew_adapter

    questions = (
        "name", "owns", "edge_of", "edges", "seq", "kind", "site", "shape_and_type", "leaf_of",
        "describe", "named_leaves",
    )  # fmt: skip
    for adapter in (clew_adapter, torch_adapter):
        assert all(hasattr(adapter, q) for q in questions)
