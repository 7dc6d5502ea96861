"""Casts between halves and float32 are exact, and rounded to the nearest, for every number."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import clew
from clew.kernels import half

HALVES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]


def same(x: Any, y: Any) -> None:
    """Equal bits, but any NaN for a NaN."""
    assert x.dtype == y.dtype and x.shape == y.shape
    known = {2: np.uint16, 4: np.uint32}[x.itemsize]
    nan = np.isnan(x)
    np.testing.assert_array_equal(nan, np.isnan(y))
    np.testing.assert_array_equal(np.where(nan, 0, x.view(known)), np.where(nan, 0, y.view(known)))


@pytest.mark.parametrize("dtype", HALVES)
def test_every_half_is_widened(dtype: Any) -> None:
    x = np.arange(1 << 16).astype(np.uint16).view(dtype)
    with np.errstate(all="ignore"):
        same(half.widen(x), x.astype(np.float32))


@pytest.mark.parametrize("dtype", HALVES)
def test_rounding(dtype: Any) -> None:
    """Each half, what lies in the middle to the next, and its neighbours; and any bits."""
    with np.errstate(all="ignore"):
        bits = np.arange(1 << 16).astype(np.uint16).view(dtype).astype(np.float32).view(np.uint32)
        step = 1 << (12 if dtype == np.float16 else 15)
        near = [(bits + np.uint32(d)).view(np.float32) for d in (0, 1, step - 1, step, step + 1)]
        random = np.frombuffer(np.random.default_rng(0).bytes(1 << 20), np.float32)
        small = (np.random.default_rng(1).normal(size=1 << 16) * 1e-6).astype(np.float32)
        x = np.concatenate(
            [*near, random, small, np.array([65519, 65520, 65535, 65536, 1e30], "f")]
        )
        same(half.narrow(x, dtype), x.astype(dtype))


@pytest.mark.parametrize("dtype", [clew.float16, clew.bfloat16])
def test_layouts(dtype: Any) -> None:
    x = clew.randn(70, 80)
    for view in (x, x.t(), x[:, ::2], x[1:-1, 1:-1]):
        there = view.to(dtype)
        assert there.stride() == view.clone().stride()
        same(there.numpy() if dtype == clew.float16 else there._array,
             np.array(view.numpy()).astype(there._array.dtype))  # fmt: skip
        assert clew.equal(there.float(), there.float().contiguous())
