"""Compiled divisions with a remainder give NumPy's numbers, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clew.kernels.division import by_number
from clew.kernels.pointwise import MANY


@pytest.mark.parametrize("y", [0.7, -0.7, 1, -3, 1e-20, 7.3e20, 1 / 3, 2.0**-20, 0, np.inf, np.nan])
@pytest.mark.parametrize("name", ["fmod", "remainder", "floor_divide"])
def test_like_numpy(name: str, y: Any) -> None:
    rng = np.random.default_rng(0)
    near = np.float32(y if np.isfinite(y) else 1) * rng.integers(-50, 50, 4 * MANY)
    near = near.astype(np.float32) + np.float32(0)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e38, -1e38, 3e-39]
    parts = [near, np.nextafter(near, np.float32(9)), np.nextafter(near, np.float32(-9)), special]
    parts += [rng.normal(size=4 * MANY) * scale for scale in (1e-3, 1, 1e4)]
    parts.append(np.frombuffer(rng.bytes(16 * MANY), np.float32))
    with np.errstate(all="ignore"):
        x = np.concatenate([np.asarray(part).astype(np.float32) for part in parts])
        function = getattr(np, name)
        result, expected = by_number(name, function)(x, y), function(x, y)
    assert result.dtype == np.float32
    if name == "floor_divide":  # a quotient that is rounded otherwise may be the next integer
        np.testing.assert_allclose(result, expected, rtol=3e-7)
    else:
        np.testing.assert_array_equal(result, expected)
