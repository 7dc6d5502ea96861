"""Indexing against PyTorch: values, gradients, views, layout in memory, history, errors."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import clew
from twins import assert_same, outcome


def names(engine: Any) -> dict[str, Any]:
    """What the expressions below speak of."""
    base = np.random.default_rng(0).standard_normal((4, 5, 6)).astype(np.float32)
    return {
        "torch": engine,
        "np": np,
        "leaf": (leaf := engine.tensor(base, requires_grad=True)),
        "x": leaf * 1,
        "i": engine.tensor([0, 1]),
        "j": engine.tensor([3, -2, 3]),
        "m": engine.tensor([True, False, True, True]),
        "v": engine.tensor(base[0], requires_grad=True),
        "w": engine.tensor(2.0, requires_grad=True),
    }


def history(tensor: Any) -> list[str]:
    """The names of the nodes from a tensor down its first edges."""
    found = []
    node = tensor.grad_fn
    while node is not None and "Accumulate" not in node.name():
        found.append(node.name())
        node = node.next_functions[0][0] if node.next_functions else None
    return found


READS = """
x[0]; x[-1]; x[3]; x[:]; x[...]; x[None]; x[()]; x[(0,)]; x[:, :]; x[0:4]; x[0:10]; x[-10:]
x[1:3]; x[:, 1:3]; x[3:1]; x[::2, ::3]; x[None:3]; x[:2**70]; x[-2**70:]; x[0, 1]; x[0, 1, 2]
x[..., 0]; x[0, ...]; x[..., 0, ...]; x[..., ...]; x[None, :, 0]; x[:, None]; x[..., None]
x[np.int64(1)]; x[np.int8(2):3]; x[torch.tensor(1)]; x[:, torch.tensor(2)]; x[torch.tensor(1):3]
x[True]; x[False]; x[torch.tensor(True)]; x[torch.tensor(False)]; x[None, True]; x[0, True]
x[i]; x[:, i]; x[..., i]; x[i, 1]; x[1, i]; x[0, :, i]; x[i, :, i]; x[i, ..., i]; x[i, i, i]
x[i[:, None], j]; x[:, i[:, None], j]; x[i[:, None], :, j]; x[i, None]; x[None, i]; x[i, True]
x[1:2, i]; x[::2, j]; x[i.int()]; x[i, j[:2]]; x[torch.tensor(2), i]; x[j[i[:, None] + i]]
x[m]; x[m, 1]; x[:, x[0, :, 0] > 0]; x[x > 0]; x[x[:, :, 0] > 0]; x[x[:, :, 0] > 0, None]
x[None, x[:, :, 0] > 0]; x[:, x[0] > 0]; x[x[:, :, 0] > 0, j[:1]]
x[[0, 1]]; x[[0, 1], [1, 2]]; x[([0, 1], [1, 2])]; x[[True, False, True, False]]; x[range(2)]
x[[]]; x[[1.5]]; x[list(range(3)) * 12]; x[np.array([0, 1])]; x[np.array(1)]; x[np.array(True)]
x[np.array([[0, 1], [1, 2]])]; x[torch.tensor([], dtype=torch.long)]; x[i.to(torch.int16)[0]]
x.permute(2, 0, 1)[:, i]; x.permute(2, 0, 1)[:, :, i]; x.transpose(1, 2)[i]; x.transpose(0, 1)[i]
x[:1].expand(4, 5, 6)[j]; x[:, :, torch.ones(2, 3, dtype=torch.long).t()]
x.permute(1, 2, 0)[i, :, j[:2]]
leaf.sum()[...]; leaf.sum()[None]; leaf.sum()[()]; leaf.sum()[True]; leaf.sum()[..., None]
""".replace("\n", ";").split(";")


@pytest.mark.parametrize("expression", [e.strip() for e in READS if e.strip()])
def test_reading(expression: str) -> None:
    def read(engine: Any) -> Any:
        known = names(engine)
        part = eval(expression, known)
        x = known["leaf"]
        (gradient,) = engine.autograd.grad((part * part).sum(), x, retain_graph=True)
        offset = part.storage_offset() if part.numel() else None
        return [part, part.stride(), history(part), part._is_view(), offset, gradient]

    result = assert_same(read)
    assert isinstance(result, list), result


REFUSED = """
x[4]; x[-5]; x[0, 5]; x[:, -9]; x[None, :, 9]; x[:, None, 7]; x[0, 0, 0, 0]; x[..., 0, 0, 0, 0]
x[::-1]; x[::0]; x[1.0:2]; x[slice("a")]; x[i:3]; x[1.5]; x["a"]; x[object()]; x[{1}]; x[2**70]
x[torch.tensor(9)]; x[torch.tensor([9])]; x[torch.tensor([-9])]; x[:, torch.tensor([9])]
x[i, :, torch.tensor([1, 9])]; x[i, j]; x[i, i, i, i]; x[None, i, i, i, i]
x[torch.tensor([True, False])]; x[:, m]; x[torch.tensor([[True]])]; x[torch.ones(4, 5, 6, 1) > 0]
x[x[:, :, 0] > 0, i, i]; x[torch.tensor([1.5])]; x[torch.tensor(1.5)]; x[i.to(torch.int8)]
x[np.bool_(True)]; x.sum()[0]; x.sum()[:]; x.sum()[0, 0]; x.sum()[i]; x.sum()[:, None]
""".replace("\n", ";").split(";")


@pytest.mark.parametrize("expression", [e.strip() for e in REFUSED if e.strip()])
def test_refused(expression: str) -> None:
    kind, message = assert_same(lambda engine: eval(expression, names(engine)))
    assert kind.endswith("Error"), message


WRITES = """
x[0] = 1; x[0] = v; x[0] = w; x[:, 1:3] = 2; x[None] = 1; x[0, 0, 0] = 1; x[0, 0, 0] = w
x[True] = 3; x[False] = 3; x[torch.tensor(True)] = 1; x[torch.tensor(False)] = 1; x[1:1] = 5
x[0] = v[0]; x[0] = v[None]; x[0] = torch.ones(1, 1, 5, 6); x[:] = torch.ones(6); x[:] = v
x[...] = v; x[torch.tensor(1)] = v; x[0] = v.double(); x[0] = torch.ones(5, 6, dtype=torch.long)
x[i] = 1; x[i] = True; x[i] = v; x[i] = w; x[i] = v[None]; x[i] = v[0]; x[i] = v[:, :1]
x[[0, 1]] = 5; x[i, i] = torch.ones(1, 2, 6); x[torch.tensor([1, 1])] = v; x[i, 1] = v[0]
x[:, i] = v[i]; x[i, :, i] = v[:2, :5]; x[0, i, 0] = v[0, :2]; x[True, i] = v; x[i] = x[i]
x[j[:2]] = x[i] * 2; x[m] = 1.0; x[m] = v; x[m] = w; x[x > 0] = w
x[x > 0] = torch.tensor([3.0], dtype=torch.float64)
x[x[:, :, 0] > 0] = v[0]; x[..., None] = w; x[torch.zeros(4, dtype=torch.bool)] = torch.ones(1)
""".replace("\n", ";").split(";")


@pytest.mark.parametrize("statement", [e.strip() for e in WRITES if e.strip()])
def test_writing(statement: str) -> None:
    def write(engine: Any) -> Any:
        known = names(engine)
        x = known["x"]
        version = x._version
        exec(statement, known)
        gradients = engine.autograd.grad(
            (x * x).sum(), [known[n] for n in ("leaf", "v", "w")], allow_unused=True
        )
        return [x, x._version - version, gradients]

    result = assert_same(write, atol=1e-5)
    assert isinstance(result, list), result


REFUSED_WRITES = """
x[4] = 1; x[0] = np.ones(6); x[0] = [1, 2]; x[0] = None; x[0] = "a"; x[0] = 1j; x[0] = 1e40
x[0] = 10**30; x[0] = np.float32(1); x[0] = torch.ones(7); x[i] = torch.ones(7); x[::-1] = 1
x[i] = torch.ones(2, 3, 5, 6); x[m] = torch.ones(3); x[0, i] = v; x[i] = v.double(); x[i] = v.long()
x[i] = w.double(); leaf[0] = 1; leaf[i] = 1; leaf[m] = 1; leaf[:] = 1; del x[0]; x.sum()[0] = 1
x[:1].expand(4, 5, 6)[...] = 1; x[torch.tensor([9])] = 1
""".replace("\n", ";").split(";")


@pytest.mark.parametrize("statement", [e.strip() for e in REFUSED_WRITES if e.strip()])
def test_refused_writes_change_nothing(statement: str) -> None:
    def write(engine: Any) -> Any:
        known = names(engine)
        before = known["x"]._version
        try:
            exec(statement, known)
        finally:
            assert known["x"]._version == before
        return None

    assert assert_same(write) is not None


NUMBERS = [127, 128, -128, -129, 255, 256, -255, -256, -0.5, 1.5, 127.9, 2**31, 2**62, 1e10, 1e19,
           1e39, 65504.0, 65520.0, float("nan"), float("inf"), True, 1j, 2 + 0j]  # fmt: skip


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16",
              "float32", "float64", "complex64"],
)  # fmt: skip
@pytest.mark.parametrize("target", ["0", "i", "m"])
def test_numbers_that_do_not_fit_are_refused(dtype: str, target: str) -> None:
    index = {"0": 0, "i": [0, 1], "m": [True, False]}[target]

    def write(number: Any, engine: Any) -> Any:
        x = engine.zeros(2, dtype=getattr(engine, dtype))
        x[index] = number
        return x

    for number in NUMBERS:
        if number != number or abs(number) == float("inf"):
            kind = outcome(partial(write, number), clew)
            torch = pytest.importorskip("torch")
            assert repr(kind) == repr(outcome(partial(write, number), torch))
        else:
            assert_same(partial(write, number))


def test_lists_of_lists_mean_a_tuple_with_a_warning() -> None:
    x = clew.arange(12).reshape(3, 4)
    with pytest.warns(UserWarning, match="non-tuple sequence"):
        assert x[[[0, 1], [1, 2]]].tolist() == [1, 6]


def test_uint8_masks_work_with_a_warning() -> None:
    x = clew.arange(3)
    with pytest.warns(UserWarning, match="dtype torch.uint8 is now deprecated"):
        assert x[clew.tensor([1, 0, 1], dtype=clew.uint8)].tolist() == [0, 2]


def test_a_changed_index_is_noticed_in_backward() -> None:
    def run(engine: Any) -> None:
        x = engine.ones(3, requires_grad=True)
        index = engine.tensor([0, 1])
        y = x[index].sum()
        index[0] = 2
        y.backward()

    kind, message = assert_same(run)
    assert kind == "RuntimeError" and "modified by an inplace operation" in message


def test_second_order_through_indices() -> None:
    def run(engine: Any) -> Any:
        known = names(engine)
        x = known["leaf"]
        y = (x[known["i"], 1] ** 3).sum() + (x[x > 0] ** 2).sum() + x[:, 2:4, ::2].pow(3).sum()
        (first,) = engine.autograd.grad(y, x, create_graph=True)
        (second,) = engine.autograd.grad(first[known["j"]].pow(2).sum(), x)
        return [first, second]

    assert_same(run, rtol=1e-4)


# -- random indices


@st.composite
def layouts(draw: Any) -> tuple[tuple[int, ...], list[int]]:
    """The shape of a dense array and an order to permute its dimensions by."""
    shape = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    return tuple(shape), draw(st.permutations(range(len(shape))))


@st.composite
def indices(draw: Any, shape: tuple[int, ...], broadcast: bool = False) -> tuple[Any, ...]:
    """An index that fits an array of this shape; arrays stand for tensors."""
    common = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=2)))
    parts: list[Any] = []
    dim = 0
    while dim < len(shape) and len(parts) < 6:
        n = shape[dim]
        kind = draw(st.sampled_from(["slice", "int", "tensor", "mask", "None", "bool", "stop"]))
        if kind == "stop":
            break
        if kind == "None":
            parts.append(None)
        elif kind == "bool" and not broadcast:
            parts.append(draw(st.booleans()))
        elif kind == "int" and n:
            parts.append(draw(st.integers(-n, n - 1)))
            dim += 1
        elif kind == "tensor" and n:
            own = common[draw(st.integers(0, len(common) - 1)) :]
            count = int(np.prod(own))
            chosen = draw(st.lists(st.integers(-n, n - 1), min_size=count, max_size=count))
            parts.append(np.array(chosen, np.int64).reshape(own))
            dim += 1
        elif kind == "mask" and not any(isinstance(p, np.ndarray) for p in parts):
            dims = draw(st.integers(1, len(shape) - dim))
            size = shape[dim : dim + dims]
            count = int(np.prod(size))
            chosen = draw(st.lists(st.booleans(), min_size=count, max_size=count))
            parts.append(np.array(chosen, np.bool_).reshape(size))
            return tuple(parts)
        else:
            ends = st.none() | st.integers(-6, 6)
            parts.append(slice(draw(ends), draw(ends), draw(st.none() | st.integers(1, 3))))
            dim += 1
    if draw(st.booleans()):
        parts.append(Ellipsis)
    return tuple(parts)


def made(engine: Any, layout: tuple[tuple[int, ...], list[int]]) -> tuple[Any, Any]:
    """A leaf of small whole numbers, and a permutation of it."""
    shape, order = layout
    values = np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape) - 5
    leaf = engine.tensor(values, requires_grad=True)
    return leaf, leaf.permute(order)


def of(engine: Any, index: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(engine.tensor(p) if isinstance(p, np.ndarray) else p for p in index)


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(st.data())
def test_any_read(data: Any) -> None:
    layout = data.draw(layouts())
    index = data.draw(indices(tuple(layout[0][d] for d in layout[1])))

    def read(engine: Any) -> Any:
        leaf, x = made(engine, layout)
        part = x[of(engine, index)]
        (gradient,) = engine.autograd.grad((part * part).sum(), leaf)
        if part.numel() == 0:
            return [part, gradient, part._is_view()]
        offset = part.data_ptr() - leaf.data_ptr() if part._is_view() else None
        # The stride of a dimension of size one says nothing, and may differ.
        strides = None if 1 in part.shape else part.stride()
        return [part, gradient, part._is_view(), offset, strides]

    assert_same(read)


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(st.data())
def test_any_write(data: Any) -> None:
    layout = data.draw(layouts())
    index = data.draw(indices(tuple(layout[0][d] for d in layout[1]), broadcast=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        target = made(clew, layout)[1][of(clew, index)].shape
    shape = [n if data.draw(st.booleans()) else 1 for n in target]
    shape = shape[data.draw(st.integers(0, len(shape))) :]
    whole = any(isinstance(p, np.ndarray) and p.dtype != np.bool_ for p in index)
    values = np.zeros(shape) if whole else np.arange(float(np.prod(shape))).reshape(shape)

    def write(engine: Any) -> Any:
        leaf, x = made(engine, layout)
        x = x * 2
        value = engine.tensor(values, requires_grad=True)
        version = x._version
        x[of(engine, index)] = value
        gradients = engine.autograd.grad((x * x).sum(), [leaf, value], allow_unused=True)
        return [x, x._version - version, gradients]

    assert_same(write)


@pytest.mark.parametrize(
    "kind", ["int64", "uint8", "float16", "bfloat16", "float32", "bool", "complex64"]
)
@pytest.mark.parametrize(
    "value", [2 - 2j, 2 + 0j, 300, -1, 65519.0, 1e30, 1e300, float("nan"), True]
)
@pytest.mark.parametrize("accumulate", [False, True])
def test_one_number_for_a_mask(kind: str, value: Any, accumulate: bool) -> None:
    def write(engine: Any) -> Any:
        x = engine.zeros(2, dtype=getattr(engine, kind))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return x.index_put_((x == 0,), engine.tensor(value), accumulate=accumulate)

    assert_same(write)
