"""Gather, scatter, index_add and the embedding's gradient against PyTorch."""

import ml_dtypes
import numpy as np
import pytest

from clew.kernels import rows
from clew.kernels.gather import gather, gather_backward, scatter, scatter_add
from clew.kernels.rows import embedding_backward, index_add

torch = pytest.importorskip("torch")
embedding_dense_backward = torch.ops.aten.embedding_dense_backward


def randn(shape, seed=1, dtype=np.float64):
    return np.asarray(np.random.default_rng(seed).standard_normal(shape)).astype(dtype)


def integers(high, shape, seed=2):
    return np.asarray(np.random.default_rng(seed).integers(0, high, shape))


# x, dim, index
PLACES = {
    "columns": ((3, 4), 1, (3, 6)),
    "rows": ((3, 4), 0, (5, 4)),
    "smaller index": ((3, 4, 5), -2, (2, 7, 3)),
    "vector": ((5,), 0, (9,)),
    "0-d": ((), 0, ()),
    "0-d by a vector": ((), 0, (3,)),
    "empty index": ((3, 4), 1, (0, 9)),
    "empty index of other dimensions": ((3, 4), 1, (0,)),
}


@pytest.mark.parametrize("name", PLACES)
def test_gather(name):
    shape, dim, index_shape = PLACES[name]
    x, grad = randn(shape), randn(index_shape, seed=3)
    index = integers(shape[dim] if shape else 1, index_shape)
    x_t = torch.tensor(x, requires_grad=True)
    expected = torch.gather(x_t, dim, torch.tensor(index))
    ours = gather(x, dim, index)
    assert ours.shape == index_shape
    np.testing.assert_array_equal(ours, expected.detach().numpy())
    if name != "empty index of other dimensions":  # where PyTorch's own backward fails
        expected.backward(torch.tensor(grad))
        np.testing.assert_allclose(
            gather_backward(grad, shape, dim, index), x_t.grad.numpy(), rtol=1e-13
        )


@pytest.mark.parametrize("name", PLACES)
def test_scatter(name):
    shape, dim, index_shape = PLACES[name]
    x, src = randn(shape), randn(tuple(n + 1 for n in index_shape), seed=3)
    index = integers(shape[dim] if shape else 1, index_shape)
    tensors = torch.tensor(x), dim, torch.tensor(index)
    expected = torch.scatter_add(*tensors, torch.tensor(src)).numpy()
    np.testing.assert_allclose(scatter_add(x, dim, index, src), expected, rtol=1e-13)
    expected = torch.scatter(*tensors, torch.tensor(src)).numpy()
    np.testing.assert_array_equal(scatter(x, dim, index, src), expected)
    expected = torch.scatter(*tensors, 7.0).numpy()
    np.testing.assert_array_equal(scatter(x, dim, index, 7.0), expected)


def test_arguments_are_left_alone_and_may_be_strided():
    x, index, src = randn((4, 3)).T, integers(4, (5, 3)).T, randn((5, 3), seed=3).T
    before = x.copy()
    np.testing.assert_array_equal(gather(x, 1, index), gather(x.copy(), 1, index.copy()))
    for function in (scatter, scatter_add):
        expected = function(x.copy(), 1, index.copy(), src.copy())
        np.testing.assert_array_equal(function(x, 1, index, src), expected)
    np.testing.assert_array_equal(x, before)


# x, dim, index, source
ADDITIONS = {
    "rows": ((5, 3), 0, (8,), (8, 3)),
    "middle": ((2, 5, 3), 1, (8,), (2, 8, 3)),
    "last": ((2, 5, 3), -1, (4,), (2, 5, 4)),
    "vector": ((5,), 0, (7,), (7,)),
    "0-d index": ((5, 3), 0, (), (1, 3)),
    "0-d": ((), 0, (), ()),
    "no indices": ((5, 3), 0, (0,), (0, 3)),
    "empty slices": ((5, 0), 0, (4,), (4, 0)),
}


@pytest.mark.parametrize("long", [1, rows.LONG])
@pytest.mark.parametrize("block", [1, rows.BLOCK])
@pytest.mark.parametrize("name", ADDITIONS)
def test_index_add(name, block, long, monkeypatch):
    monkeypatch.setattr(rows, "LONG", long)
    monkeypatch.setattr(rows, "BLOCK", block)
    shape, dim, index_shape, source_shape = ADDITIONS[name]
    x, source = randn(shape), randn(source_shape, seed=3)
    index = integers(shape[dim] if shape else 1, index_shape)
    expected = torch.index_add(torch.tensor(x), dim, torch.tensor(index), torch.tensor(source))
    ours = index_add(x, dim, index, source)
    assert ours.shape == shape
    np.testing.assert_allclose(ours, expected.numpy(), rtol=1e-13)


@pytest.mark.parametrize("by_frequency", [True, False])
@pytest.mark.parametrize("padding_idx", [-1, 2])
@pytest.mark.parametrize("length", [3, 600])
def test_embedding_backward(length, padding_idx, by_frequency):
    indices, grad = integers(6, (4, 5)), randn((4, 5, length))
    options = (7, padding_idx, by_frequency)
    expected = embedding_dense_backward(torch.tensor(grad), torch.tensor(indices), *options)
    ours = embedding_backward(grad, indices, *options)
    np.testing.assert_allclose(ours, expected.numpy(), rtol=1e-13)


def test_embedding_backward_of_nothing():
    ours = embedding_backward(np.zeros((0, 3)), np.zeros(0, np.int64), 4, -1, True)
    np.testing.assert_array_equal(ours, np.zeros((4, 3)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_adds_up_as_in_pytorch(dtype):
    """Small addends vanish beside a large sum in half precision, not in float32."""
    numpy_dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    wide = np.array([[1.0], [0.003], [0.003], [0.003]] * 3, np.float32)
    torch_dtype = getattr(torch, dtype)
    source, source_t = wide.astype(numpy_dtype), torch.tensor(wide).to(torch_dtype)
    zeros, zeros_t = np.zeros((2, 1), numpy_dtype), torch.zeros(2, 1, dtype=torch_dtype)
    index = np.zeros(12, np.int64)
    index_t = torch.tensor(index)
    pairs = [
        (index_add(zeros, 0, index, source), zeros_t.index_add(0, index_t, source_t)),
        (
            scatter_add(zeros, 0, index[:, None], source),
            zeros_t.scatter_add(0, index_t[:, None], source_t),
        ),
        (
            embedding_backward(source, index, 2, -1, False),
            embedding_dense_backward(source_t, index_t, 2, -1, False),
        ),
    ]
    for ours, expected in pairs:
        assert ours.dtype == numpy_dtype
        np.testing.assert_array_equal(ours.astype(np.float32), expected.float().numpy())


def message(function, *arguments):
    with pytest.raises((RuntimeError, IndexError)) as caught:
        function(*arguments)
    return caught.type, str(caught.value)


BAD_INDICES = {
    "too large": (1, np.array([[0, 4]])),
    "negative": (1, np.array([[0, -1]])),
    "dimensions": (1, np.array([0])),
    "size": (1, np.zeros((4, 1), np.int64)),
    "size, other dimension": (0, np.zeros((1, 5), np.int64)),
    "float": (1, np.array([[0.0]])),
    "int16": (1, np.array([[0]], np.int16)),
}


@pytest.mark.parametrize("name", BAD_INDICES)
def test_errors_of_gather_and_scatter_are_pytorchs(name):
    dim, index = BAD_INDICES[name]
    x, src = np.zeros((3, 4)), np.zeros((5, 6))
    x_t, index_t, src_t = torch.tensor(x), torch.tensor(index), torch.tensor(src)
    assert message(gather, x, dim, index) == message(torch.gather, x_t, dim, index_t)
    for ours, theirs in ((scatter, torch.scatter), (scatter_add, torch.scatter_add)):
        assert message(ours, x, dim, index, src) == message(theirs, x_t, dim, index_t, src_t)
    assert message(scatter, x, dim, index, 1.0) == message(torch.scatter, x_t, dim, index_t, 1.0)


@pytest.mark.parametrize(
    "index, src",
    [
        (np.zeros((1, 2), np.int64), np.zeros((1, 1))),
        (np.zeros((1, 2), np.int64), np.zeros((1, 2), np.float32)),
        (np.zeros((1, 1), np.int64), np.zeros((1, 1, 1))),
    ],
    ids=["size", "dtype", "dimensions"],
)
def test_errors_of_a_source_are_pytorchs(index, src):
    x = np.zeros((3, 4))
    x_t, index_t, src_t = torch.tensor(x), torch.tensor(index), torch.tensor(src)
    for ours, theirs in ((scatter, torch.scatter), (scatter_add, torch.scatter_add)):
        assert message(ours, x, 1, index, src) == message(theirs, x_t, 1, index_t, src_t)


BAD_ADDITIONS = {
    "too large": ((3, 4), 0, np.array([0, 3]), (2, 4)),
    "negative": ((3, 4), 0, np.array([0, -1]), (2, 4)),
    "too large, vector": ((3,), 0, np.array([5]), (1,)),
    "count": ((3, 4), 0, np.array([0, 1, 1]), (2, 4)),
    "size": ((3, 4), 0, np.array([0, 1]), (2, 3)),
    "dimensions": ((3, 4), 0, np.array([0]), (1, 4, 1)),
    "matrix of indices": ((3, 4), 0, np.array([[0, 1]]), (2, 4)),
    "float": ((3, 4), 0, np.array([0.0]), (1, 4)),
    "0-d source": ((3,), 0, np.array(1), ()),
    "0-d self": ((), 0, np.array([0, 0]), (2,)),
}


@pytest.mark.parametrize("name", BAD_ADDITIONS)
def test_errors_of_index_add_are_pytorchs(name):
    shape, dim, index, source_shape = BAD_ADDITIONS[name]
    x, source = np.zeros(shape), np.zeros(source_shape)
    theirs = message(
        torch.index_add, torch.tensor(x), dim, torch.tensor(index), torch.tensor(source)
    )
    assert message(index_add, x, dim, index, source) == theirs


def test_index_add_wants_one_dtype():
    x, source = np.zeros((3, 4), np.float32), np.zeros((1, 4))
    index = np.array([0])
    theirs = message(torch.index_add, torch.tensor(x), 0, torch.tensor(index), torch.tensor(source))
    assert message(index_add, x, 0, index, source) == theirs
