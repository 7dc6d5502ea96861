"""gather, scatter, the index_* family, take, put and masks against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import clew
from twins import assert_same


def names(engine: Any) -> dict[str, Any]:
    """What the expressions below speak of."""
    draws = np.random.default_rng(1)
    x = engine.tensor(draws.standard_normal((3, 4)), requires_grad=True)
    return {
        "torch": engine,
        "x": x,
        "z": engine.tensor(3.0, dtype=engine.float64, requires_grad=True),
        "s": engine.tensor(draws.standard_normal((2, 4)), requires_grad=True),
        "t": engine.tensor(draws.standard_normal((3, 4)), requires_grad=True),
        "w": engine.tensor(2.0, dtype=engine.float64, requires_grad=True),
        "i": engine.tensor([0, 2]),
        "d": engine.tensor([1, 1]),
        "g": engine.tensor([[0, 1, 2, 0]]),
        "h": engine.tensor([[0, 1, 2, 0], [2, 1, 2, 0]]),
        "f": engine.tensor([[0, -1], [5, 5]]),
        "m": engine.tensor(draws.random((3, 4)) > 0.5),
    }


EXPRESSIONS = """
x.gather(0, g)
x.gather(1, h)
x.gather(0, g.int())
x.t().gather(0, h[:, :3])
z.gather(0, torch.tensor([0, 0]))
x[0].gather(0, torch.tensor(2))
x.gather(0, torch.zeros(0, 4, dtype=torch.long))
torch.gather(input=x, dim=-1, index=h)
x.take_along_dim(g, 0)
x.take_along_dim(torch.tensor([[1], [-1], [0]]), 1)
x.take_along_dim(torch.tensor([[1]]), 1)
x.take_along_dim(h)
x.scatter(0, g, s[:1])
x.scatter(0, h, s)
x.scatter(0, h[:, :2], s.detach())
x.scatter(1, h, 5)
x.scatter(1, h, value=5.0)
x.t().scatter(0, h[:, :3], 5)
x.scatter(0, g, 1.0, reduce="add")
x.scatter(0, h, s, reduce="multiply")
z.scatter(0, torch.tensor(0), 1.0)
x.scatter_add(0, h, s)
x.scatter_add(1, h, s)
x.scatter_add(0, g, t[:1])
x.scatter_add(0, g, t.detach())
x.index_select(0, i)
x.index_select(-1, d)
x.t().index_select(0, d)
z.index_select(0, torch.tensor([0]))
x.index_select(1, torch.tensor(1))
x.index_select(0, torch.tensor([], dtype=torch.long))
x.index_add(0, i, s)
x.index_add(0, d, s, alpha=2)
x.index_add(1, d, x[:, :2])
z.index_add(0, torch.tensor(0), w)
x.index_copy(0, i, s)
z.index_copy(0, torch.tensor([0]), w)
x.index_fill(0, i, 1)
x.index_fill(1, torch.tensor([-1]), 3)
x.index_fill(1, torch.tensor([3]), w)
x.index_fill(0, torch.tensor(1), 1.5)
x.index_reduce(0, d, s, "prod")
x.index_reduce(0, d, s, "mean", include_self=False)
x.index_reduce(1, d, x[:, :2], "amax")
x.index_reduce(0, i, s, reduce="amin")
x.index_put((i, i), s[0, :2])
x.index_put([d], s, accumulate=True)
x.index_put((d, i), w, True)
x.index_put(indices=[i], values=s)
x.take(f)
x.t().take(f)
x.put(f, s[:, :2])
x.put(torch.tensor([1, 1]), s[0, :2], accumulate=True)
x.masked_select(m)
x.masked_select(m[0])
z.masked_select(torch.tensor([True, False, True]))
x.masked_fill(m, 3)
x.masked_fill(m[0], w)
x.masked_scatter(m, t)
x.masked_scatter(m[0], t)
x.select_scatter(s[0], 0, 1)
x.slice_scatter(s, 0, 0, 2)
x.slice_scatter(x[:, :2], dim=1, start=0, end=4, step=2)
x.diagonal_scatter(s[0, :3], 1)
x.nonzero()
(x * m).nonzero(as_tuple=True)
torch.nonzero(z)
torch.nonzero(z, as_tuple=True)
torch.nonzero(torch.zeros(2, 3))
torch.argwhere(x * m)
torch.nonzero_static(x * m, size=3)
torch.nonzero_static(x * m, size=15, fill_value=7)
torch.unravel_index(f, (2, 3))
torch.unravel_index(i, 6)
torch.tril_indices(3, 4)
torch.triu_indices(3, 4, 1, dtype=torch.int32)
""".strip().split("\n")


def gradients(engine: Any, result: Any, known: dict[str, Any]) -> Any:
    if not isinstance(result, engine.Tensor) or not result.requires_grad:
        return None
    leaves = [known[n] for n in ("x", "z", "s", "t", "w")]
    loss = (result * result * 0.5).sum()
    return engine.autograd.grad(loss, leaves, allow_unused=True)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_values_gradients_and_nodes(expression: str) -> None:
    def run(engine: Any) -> Any:
        known = names(engine)
        result = eval(expression, known)
        node = getattr(result, "grad_fn", None)
        if node is None:
            return [result]
        if "reduce=" in expression and "scatter(" in expression:
            return [result, node.name()]  # PyTorch has no derivative of this
        return [result, result.stride(), node, gradients(engine, result, known)]

    assert isinstance(assert_same(run), list)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool"])
def test_scatter_reduce(name: str, include_self: bool, dtype: str) -> None:
    if dtype == "bool" and name == "mean":
        pytest.skip("PyTorch has no mean of bools")

    def run(engine: Any) -> Any:
        kind = getattr(engine, dtype)
        x = engine.tensor([[1, 0, 3], [4, 5, 0]], dtype=kind)
        src = engine.tensor([[2, 0, 0], [-7, 5, 1], [1, 0, 0]], dtype=kind)
        index = engine.tensor([[0, 0, 1], [0, 1, 1], [1, 0, 0]])
        floating = dtype.startswith("float")
        if floating:
            x.requires_grad_()
            src.requires_grad_()
        result = x.scatter_reduce(0, index, src, reduce=name, include_self=include_self)
        if not floating:
            return result
        return [result, engine.autograd.grad((result * result).sum(), [x, src])]

    assert_same(run)


def test_products_with_zeros_have_a_second_derivative() -> None:
    def run(engine: Any) -> Any:
        x = engine.tensor([2.0, 3.0], requires_grad=True)
        src = engine.tensor([0.0, 5.0, 7.0], requires_grad=True)
        index = engine.tensor([0, 0, 1])
        result = x.scatter_reduce(0, index, src, "prod")
        first = engine.autograd.grad(result.sum(), [x, src], create_graph=True)
        return engine.autograd.grad(first[0].sum() + first[1][1:].sum(), [x, src])

    assert_same(run)


INPLACE = """
y.scatter_(0, g, s[:1])
y.scatter_(1, h, 5)
y.scatter_(0, g, 2.0, reduce="multiply")
y.scatter_add_(0, h, s)
y.scatter_reduce_(0, h, s, "amax")
y.index_add_(0, d, s)
y.index_copy_(0, i, s)
y.index_fill_(0, i, 1)
y.index_fill_(0, i, w)
y.index_reduce_(0, d, s, "mean")
y.index_put_((i, i), s[0, :2])
y.index_put_((d,), s, accumulate=True)
y.put_(f, s[:, :2])
y.masked_fill_(m, 3)
y.masked_fill_(m[0], w)
y.masked_scatter_(m, t)
y.t().index_add_(1, d, s.t())
y.t().put_(f, s[:, :2], accumulate=True)
y.t().scatter_(1, h.t()[:, :2], 7.0)
y.t().index_put_((d,), w, accumulate=True)
y[:, ::2].index_fill_(1, d, 3)
""".strip().split("\n")


@pytest.mark.parametrize("expression", INPLACE)
def test_in_place(expression: str) -> None:
    def run(engine: Any) -> Any:
        known = names(engine)
        y = known["y"] = known["x"] * 1
        version = y._version
        result = eval(expression, known)
        if "reduce=" in expression:
            return [y, y._version - version]
        return [y, result, y._version - version, gradients(engine, y, known)]

    assert isinstance(assert_same(run), list)


REFUSED = """
x.gather(0, torch.tensor([[5]]))
x.gather(0, torch.tensor([[-1]]))
x.gather(0, torch.tensor([0]))
x.gather(0, torch.zeros(4, 5).long())
x.gather(0, g.double())
x.gather(2, g)
x.scatter(0, g, torch.ones(1, 3, dtype=torch.double))
x.scatter(0, g, torch.ones(1, 4))
x.scatter(0, g, w)
x.scatter(0, torch.tensor([[5]]), 1.0)
x.scatter(0, torch.zeros(4, 5).long(), 1.0)
x.scatter(0, g, 1.0, reduce="mean")
x.scatter(0, g, 1j)
x.scatter(0, g, s, reduce="add").sum().backward()
x.scatter_add(0, g, s.float())
x.scatter_reduce(0, g, s, "nothing")
x.scatter_reduce(0, g, s)
x.index_select(0, torch.tensor([0, 3]))
x.index_select(0, torch.tensor([-1]))
x.index_select(0, i.double())
x.index_select(0, g)
x.index_select(2, i)
z.index_select(0, i)
x.index_add(0, i, t)
x.index_add(0, i, s[:, :3])
x.index_add(0, i.double(), s)
x.index_add(0, torch.tensor([0, 5]), s)
x.index_add(0, i, s.float())
x.index_add(0, g, s)
x.index_copy(0, i.int(), s)
x.index_copy(0, i, t)
x.index_copy(0, i, s[:, :3])
x.index_copy(0, torch.tensor([5, 0]), s)
x.index_copy(0, i, s.float())
x.index_copy(0, torch.tensor(0), s[0])
x.index_fill(0, torch.tensor([5]), 1)
x.index_fill(0, i.int(), 1)
x.index_fill(0, i, torch.ones(2))
x.index_fill(0, i, 1j)
x.index_fill(0, g, 1)
x.index_reduce(0, i, s, "sum")
x.index_reduce(0, i, s.float(), "prod")
x.index_put((i, i, i), w)
x.index_put((i.double(),), w)
x.index_put((torch.tensor([7]),), w)
x.index_put((i,), t)
x.take(torch.tensor([12]))
x.take(torch.tensor([-13]))
x.take(i.int())
torch.zeros(0).take(torch.tensor([0]))
x.put(i, w)
x.put(torch.tensor([99]), w)
x.put(i, s[0, :2].float())
x.put(i.int(), s[0, :2])
x.masked_select(torch.ones(5) > 0)
x.masked_select(m.byte())
x.masked_scatter(m, t[0, :1])
x.masked_scatter(m, t.float())
x.masked_scatter(x, t)
x.masked_fill(m, 1j)
x.masked_fill(m, t)
x.masked_fill(m.long(), 1)
x.take_along_dim(torch.tensor([1]), 1)
x.take_along_dim(h.int(), 1)
x.select_scatter(s, 0, 1)
x.select_scatter(s[0], 0, 9)
x.slice_scatter(t, 0, 0, 2)
torch.tril_indices(-1, 3)
torch.nonzero_static(x, size=-1)
torch.unravel_index(x, (2, 3))
torch.unravel_index(i, (2, -3))
torch.unravel_index(i, "a")
x.index_fill_(0, i, 1)
""".strip().split("\n")


@pytest.mark.parametrize("expression", REFUSED)
def test_refused(expression: str) -> None:
    kind, message = assert_same(lambda engine: eval(expression, names(engine)))
    assert kind.endswith("Error"), message


def test_numbers_and_lists_are_no_tensors() -> None:
    x, index = clew.ones(3), clew.tensor([0])
    for call in (lambda: x.take([0]), lambda: x.scatter_add(0, index, 1.0), lambda: x.gather(0, 1)):
        with pytest.raises(TypeError, match=r"argument '\w+' .* must be Tensor, not"):
            call()


SAVED = {
    "x.gather(0, g)": "x", "x.take(f)": "x", "x.masked_select(m)": "x",
    "x.masked_scatter(m, t)": "m", "x.index_add(0, i, s)": "s", "x.index_copy(0, i, s)": "s",
    "x.index_select(0, i)": "i",
    "x.put(f, s[:, :2])": "f", "x.index_put((i,), s)": "i", "x.scatter(0, g, s[:1])": "g",
    "x.scatter_add(0, g, s[:1])": "g", "x.scatter_reduce(0, h, s, 'amax')": "x",
    "x.index_fill(0, i, 1)": "i", "x[i]": "i",
}  # fmt: skip


@pytest.mark.parametrize("expression", SAVED)
@pytest.mark.parametrize("changed", ["x", "s", "t", "i", "g", "f", "m"])
def test_edits_raise_in_backward_where_pytorch_raises(expression: str, changed: str) -> None:
    def run(engine: Any) -> Any:
        known = names(engine)
        result = eval(expression, known)
        with engine.no_grad():
            known[changed].copy_(known[changed].clone())
        return gradients(engine, result, known)

    outcome = assert_same(run)
    if SAVED[expression] == changed:
        assert isinstance(outcome, tuple) and "modified by an inplace operation" in outcome[1]


@st.composite
def along(draw: Any) -> tuple[tuple[int, ...], int, np.ndarray]:
    """A shape, a dimension of it, and an index for gather and scatter along that dimension."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    dim = draw(st.integers(0, len(shape) - 1))
    size = tuple(
        draw(st.integers(0, 4)) if d == dim else draw(st.integers(1, n))
        for d, n in enumerate(shape)
    )
    count = int(np.prod(size))
    places = draw(st.lists(st.integers(0, shape[dim] - 1), min_size=count, max_size=count))
    return shape, dim, np.array(places, np.int64).reshape(size)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(along())
def test_gather_and_scatter_add_are_adjoint(case: Any) -> None:
    shape, dim, places = case
    draws = np.random.default_rng(0)
    x, y = draws.standard_normal(shape), draws.standard_normal(places.shape)
    index = clew.tensor(places)
    gathered = clew.tensor(x).gather(dim, index)
    scattered = clew.zeros(shape, dtype=clew.float64).scatter_add(dim, index, clew.tensor(y))
    assert float((gathered * clew.tensor(y)).sum()) == pytest.approx(
        float((scattered * clew.tensor(x)).sum()), abs=1e-9
    )
