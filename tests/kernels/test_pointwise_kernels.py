"""Choosing without branches, formulas in blocks, the error function in float32."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from clew.kernels.erf import erf, normal_cdf, normal_pdf
from clew.kernels.pointwise import BLOCK, pointwise
from clew.kernels.select import choose, keep_where

DTYPES = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
ODD = [1.5, -0.0, math.inf, -math.inf, math.nan, -2.0]


@pytest.mark.parametrize("dtype", [*DTYPES, np.int64, np.complex64])
def test_keep_where_is_where_with_zero(dtype: Any) -> None:
    x = np.array(ODD if dtype not in (np.int64,) else [1, -2, 3, 0, 5, 6]).astype(dtype)
    mask = np.array([True, False, False, True, False, True])
    kept = keep_where(mask, x)
    assert kept.dtype == x.dtype
    np.testing.assert_array_equal(kept, np.where(mask, x, np.zeros((), x.dtype)))


@pytest.mark.parametrize("size", [6, 6000])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_choose_is_where(dtype: Any, size: int) -> None:
    rng = np.random.default_rng(0)
    x, y = np.resize(ODD, size).astype(dtype), rng.normal(size=size).astype(dtype)
    mask = rng.random(size) < 0.5
    chosen = choose(mask, x, y)
    assert chosen.dtype == dtype
    np.testing.assert_array_equal(chosen, np.where(mask, x, y))
    # -0.0 stays what it is.
    np.testing.assert_array_equal(np.signbit(chosen), np.signbit(np.where(mask, x, y)))


def test_choose_broadcasts() -> None:
    mask = np.random.default_rng(0).random((100, 1, 90)) < 0.5
    x, y = np.array(2.5, np.float32), np.arange(90, dtype=np.float32) + np.zeros((3, 1), "f")
    np.testing.assert_array_equal(choose(mask, x, y), np.where(mask, x, y))


@pointwise
def _scaled_sum(x: np.ndarray, y: np.ndarray, *, factor: float) -> np.ndarray:
    return (x + y) * x.dtype.type(factor)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3, 5), (BLOCK // 4, 9)])
def test_blocks_change_nothing(dtype: Any, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=shape).astype(dtype), rng.normal(size=shape).astype(dtype)
    wide = (lambda a: a.astype(np.float32)) if x.dtype.itemsize == 2 else (lambda a: a)
    expected = ((wide(x) + wide(y)) * wide(x).dtype.type(0.3)).astype(dtype)
    for a, b in ((x, y), (x.T, y.T)):
        result = _scaled_sum(a, b, factor=0.3)
        assert isinstance(result, np.ndarray) and result.dtype == x.dtype
        np.testing.assert_array_equal(result, expected if a is x else expected.T)


def test_blocks_leave_broadcasting_alone() -> None:
    x, y = np.ones((BLOCK, 3), "f"), np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(_scaled_sum(x, y, factor=2.0), (x + y) * 2)


def test_erf_in_float32() -> None:
    """Within a few units in the last place (three without a twin), odd, 1 far out, NaN as it is."""
    x = np.concatenate([np.linspace(-6, 6, 40001), np.logspace(-30, 0, 500)]).astype(np.float32)
    exact = np.array([math.erf(float(v)) for v in x])
    units = np.abs(erf(x) - exact) / np.spacing(np.abs(exact).astype(np.float32))
    assert units.max() < 6
    np.testing.assert_array_equal(erf(-x), -erf(x))
    np.testing.assert_array_equal(
        erf(np.array([np.inf, -np.inf, 5, -5, np.nan], np.float32)), [1, -1, 1, -1, np.nan]
    )


def test_normal_distribution() -> None:
    x = np.array([-2.0, -0.3, 0.0, 1.7])
    exact = [0.5 * math.erfc(-v / math.sqrt(2)) for v in x]
    np.testing.assert_allclose(normal_cdf(x), exact, rtol=1e-14)
    step = 1e-5
    slope = (normal_cdf(x + step) - normal_cdf(x - step)) / (2 * step)
    np.testing.assert_allclose(normal_pdf(x), slope, rtol=1e-8)
