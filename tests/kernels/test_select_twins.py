"""The compiled twins that choose by a mask agree with NumPy, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from both_ways import both
from clew.kernels import select


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("lie", ["contiguous", "turned", "broadcast", "read-only"])
def test_by_a_mask(monkeypatch: pytest.MonkeyPatch, dtype: Any, lie: str) -> None:
    monkeypatch.setattr(select, "_MANY", 0)
    monkeypatch.setattr(select, "PIECE", 32)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(9, 31)).astype(dtype)
    x[:, :5] = np.nan, np.inf, -np.inf, -0.0, 1e-40
    mask = rng.random(x.shape) < 0.5
    if lie == "turned":
        mask, x = mask.T, x.T
    elif lie == "broadcast":
        mask = mask[:1]
    elif lie == "read-only":
        mask.flags.writeable = x.flags.writeable = False
    with np.errstate(invalid="ignore"):  # as in ops
        results = [
            both(select.keep_where, mask, x),
            both(select.scale_elsewhere, mask, x, 0.2),
            both(select.scale_elsewhere, mask, x, 0.0),
        ]
    for fast, plain in results:
        assert fast.dtype == dtype and fast.shape == x.shape
        np.testing.assert_array_equal(fast, plain)
