"""The examples' meter of saved bytes, checked on PyTorch against counts made by hand."""

import importlib.util
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")
pytest.importorskip("PIL")

COMMON = Path(__file__).parents[2] / "examples" / "common.py"


@pytest.fixture(scope="module")
def common():
    spec = importlib.util.spec_from_file_location("examples_common", COMMON)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module._line_of_example = lambda: "a line"  # pytest is no script of ours
    return module


def test_shared_storage_counts_once_and_falls_with_backward(common):
    x = torch.ones(1000, requires_grad=True)
    with common.SavedBytes() as saved:
        loss = (x * x * x).sum()  # keeps x three times, and x * x
    assert saved.held == saved.peak == 8000
    assert saved.lines() == [("a line", 8000)]
    loss.backward()
    assert saved.held == 0
    assert saved.peak == 8000
    assert torch.equal(x.grad, torch.full((1000,), 3.0))


def test_falls_when_the_graph_is_dropped(common):
    x = torch.ones(1000, requires_grad=True)
    with common.SavedBytes() as saved:
        result = x.exp()  # keeps its own result
    assert saved.held == 4000
    del result
    assert saved.held == 0


def test_parameters_are_left_out(common):
    layer = torch.nn.Linear(10, 5)
    x = torch.ones(3, 10, requires_grad=True)
    with common.SavedBytes(leave_out=layer.parameters()) as saved:
        layer(x).sum()
        output = layer(x)
    assert saved.held == x.nbytes
    assert output.requires_grad


def test_a_view_counts_the_whole_storage_it_keeps_alive(common):
    whole = torch.ones(1000)
    weight = torch.ones(1, requires_grad=True)
    with common.SavedBytes() as saved:
        product = weight * whole[:1]
    assert saved.held == 4000
    assert product.shape == (1,)


def test_an_in_place_change_of_a_saved_tensor_still_raises(common):
    h = torch.ones(3, requires_grad=True) * 2
    with common.SavedBytes():
        loss = (h**2).sum()
    h.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_second_derivatives_are_the_same(common):
    def second(x):
        (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        return torch.autograd.grad(first.sum(), x)[0]

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with common.SavedBytes():
        assert second(x).tolist() == [6.0, 12.0]
