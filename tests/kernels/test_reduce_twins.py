"""Sums along any dimensions, in all layouts: exact to a rounding or two, whoever computes them."""

from __future__ import annotations

import itertools
import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import clew
from clew.kernels import reduce

DIMS = [dims for n in (1, 2, 3) for dims in itertools.combinations(range(3), n)]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reduce, "MANY", 2)
    monkeypatch.setattr(reduce, "MANY_RUNNING", 2)
    monkeypatch.setattr(reduce, "PIECE", 512)


def check(result: Any, exact: Any, size: Any, dtype: Any) -> None:
    """Within a few roundings of what the summands' sizes add up to."""
    assert result is not None and result.dtype == dtype and result.shape == exact.shape
    eps = np.finfo(dtype).eps
    assert (np.abs(result - exact) <= 3 * eps * np.abs(exact) + 2 * eps * size + 1e-300).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1, 7), (5, 6, 7), (3, 130, 17), (2, 3, 9000), (70, 1, 1100)])
@pytest.mark.parametrize("dims", DIMS)
def test_sums(dims: tuple[int, ...], shape: tuple[int, ...], dtype: Any) -> None:
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    wide = x.astype(np.longdouble)
    for a, w, d in ((x, wide, dims), (x.T, wide.T, tuple(2 - i for i in dims))):
        result = reduce.sums(a, d)
        if dims == (0, 2) and 1 not in shape[1:2]:
            assert result is None  # not next to one another
        elif result is not None:
            check(result, w.sum(axis=d), np.abs(w).sum(axis=d), dtype)
        squares = reduce.sums(a, d, squares=True)
        if squares is not None:
            check(squares, (w * w).sum(axis=d), (w * w).sum(axis=d), dtype)
    assert dims == (0, 2) or reduce.sums(x, dims) is not None


def test_long_sums_are_exact() -> None:
    """A million equal numbers, of which a plain sum in float32 loses four digits."""
    x = np.full((1000, 1000), 0.1, np.float32)
    for a, axes in ((x.reshape(-1), (0,)), (x.reshape(-1, 1), (0,)), (x.reshape(-1, 2), (0,))):
        result = reduce.sums(a, axes)
        assert result is not None
        exact = float(np.float32(0.1)) * a.size / result.size
        assert np.abs(result - exact).max() <= 1e-6 * exact


def test_special_values_and_where_they_stand() -> None:
    x = np.zeros((40, 50), np.float32)
    x[3, 7], x[5, 9], x[6, 9] = math.nan, math.inf, -math.inf
    with np.errstate(all="ignore"):
        for axes in ((0,), (1,), (0, 1)):
            np.testing.assert_array_equal(reduce.sums(x, axes), x.sum(axis=axes))


def test_threads_change_nothing() -> None:
    x = np.random.default_rng(0).normal(size=(60, 700)).astype(np.float32)
    before = clew.get_num_threads()
    try:
        for axes in ((0,), (1,), (0, 1)):
            results = []
            for number in (1, 2, 5):
                clew.set_num_threads(number)
                results.append(reduce.sums(x, axes))
            np.testing.assert_array_equal(results[0], results[1])
            np.testing.assert_array_equal(results[0], results[2])
    finally:
        clew.set_num_threads(before)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_halves_are_summed_in_single(dtype: Any) -> None:
    x = np.random.default_rng(0).normal(size=(20, 300)).astype(dtype)
    for axes in ((0,), (1,), None):
        result = reduce.sums(x, axes)
        exact = x.astype(np.float64).sum(axis=axes)
        check(result, exact, np.abs(x.astype(np.float64)).sum(axis=axes), np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_running(name: str, dtype: Any) -> None:
    x = np.random.default_rng(0).uniform(0.9, 1.1, size=(6, 50, 21)).astype(dtype)
    for axis in range(3):
        result = reduce.running(x, axis, name)
        exact = getattr(np, name)(x.astype(np.longdouble), axis=axis)
        assert result is not None and result.dtype == dtype
        rounding = np.finfo(dtype).eps if dtype == np.float32 else 30 * np.finfo(dtype).eps
        np.testing.assert_allclose(result, exact.astype(dtype), rtol=rounding)


@pytest.mark.parametrize("dim", [None, 0, 1, 2, (0, 1), (1, 2), (0, 2)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_as_ops(dim: Any, keepdim: bool) -> None:
    x = clew.randn(8, 9, 70, dtype=clew.float64, requires_grad=True)
    dims = {} if dim is None else {"dim": dim, "keepdim": keepdim}
    axis = {"axis": dim, "keepdims": keepdim if dim is not None else False}
    for name in ("sum", "mean"):
        for view in (x, x.transpose(0, 2), x[:, ::2]):
            result = getattr(view, name)(**dims)
            expected = getattr(np, name)(view.detach().numpy(), **axis)
            assert result.is_contiguous()
            np.testing.assert_allclose(result.detach().numpy(), expected, atol=1e-12)
    x.sum(**dims).square().sum().backward()
    expected = 2 * np.broadcast_to(x.detach().numpy().sum(axis=dim, keepdims=True), x.shape)
    np.testing.assert_allclose(x.grad.numpy(), expected, atol=1e-12)
