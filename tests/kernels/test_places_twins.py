"""The compiled twins of gathering and scattering do to the bit what NumPy does."""

import numpy as np
import pytest

from clew.kernels import gather, rows
from clew.kernels.compiled import switch

TYPES = ("float32", "float64", "float16")
SHAPES = [((7,), 0), ((4, 5, 3), 0), ((4, 5, 3), 1), ((4, 5, 3), 2), ((4, 0, 3), 1), ((3, 70), 1)]


def same(monkeypatch, function, *arguments):
    """The result with twins, whatever the size, is the one without."""
    monkeypatch.setattr(gather, "_SMALL", -1)
    monkeypatch.setattr(rows, "SMALL", -1)
    fast = function(*arguments)
    switch(False)
    try:
        plain = function(*arguments)
    finally:
        switch(True)
    assert fast.dtype == plain.dtype and fast.shape == plain.shape
    np.testing.assert_array_equal(fast, plain)


def values(shape, dtype):
    """Numbers, not in C order, one of them a NaN."""
    x = np.random.default_rng(0).normal(size=shape[::-1]).astype(dtype).T
    if x.size:
        x[(0,) * x.ndim] = np.nan
    return x


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape, dim", SHAPES)
@pytest.mark.parametrize("index_type", ["int32", "int64"])
@pytest.mark.parametrize("count", [6, 2])
def test_along_a_dimension(monkeypatch, dtype, shape, dim, index_type, count):
    x = values(shape, dtype)
    wanted = (*shape[:dim], count if x.size else 0, *shape[dim + 1 :])
    index = np.random.default_rng(1).integers(0, max(1, shape[dim]), wanted).astype(index_type)
    source = values(wanted, dtype) * 3
    same(monkeypatch, gather.gather, x, dim, index)
    same(monkeypatch, gather.scatter, x, dim, index, source)
    same(monkeypatch, gather.scatter_add, x, dim, index, source)
    if len(shape) > 1:
        smaller = index[(slice(1, None),) * len(shape)]
        same(monkeypatch, gather.gather, x, dim, smaller)
        same(monkeypatch, gather.scatter_add, x, dim, smaller, source)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape, dim", SHAPES)
def test_slices(monkeypatch, dtype, shape, dim):
    x = values(shape, dtype)
    index = np.random.default_rng(1).integers(0, max(1, shape[dim]), 9 if x.size else 0)
    same(monkeypatch, rows.take_slices, x, dim, index)
    source = values((*shape[:dim], len(index), *shape[dim + 1 :]), dtype)
    same(monkeypatch, rows.index_add, x, dim, index, source)


@pytest.mark.parametrize("length", [1, 3, 600])
def test_the_gradient_of_an_embedding(monkeypatch, length):
    grad, indices = values((5, 4, length), "float32"), np.arange(20).reshape(5, 4) % 7
    for padding, by_frequency in ((-1, False), (3, True)):
        given = grad, indices, 8, padding, by_frequency
        same(monkeypatch, rows.embedding_backward, *given)


@pytest.mark.parametrize("wrong", [-1, 5])
@pytest.mark.parametrize("index_type", ["int32", "int64"])
def test_what_is_not_there_is_refused(monkeypatch, wrong, index_type):
    monkeypatch.setattr(gather, "_SMALL", -1)
    x, index = np.zeros((5, 2), "f"), np.zeros((3, 2), index_type)
    index[1, 1] = wrong
    for call in (
        lambda: gather.gather(x, 0, index),
        lambda: gather.scatter(x, 0, index, x),
        lambda: gather.scatter_add(x, 0, index, x),
    ):
        with pytest.raises(RuntimeError, match=f"index {wrong} is out of bounds for dimension 0"):
            call()
