"""The branch-free functions that compiled twins call: how far they are from the exact value."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

numba = pytest.importorskip("numba")

from clew.kernels.compiled import scalar  # noqa: E402
from clew.kernels.compiled.kernel import EXACT  # noqa: E402

_erf = np.vectorize(math.erf, otypes=[np.float64])

FUNCTIONS: dict[str, tuple[Callable[[Any], Any], float, float]] = {
    # exact value, units in the last place that float32 and float64 are off at most
    "exp": (np.exp, 1, 1.5),
    "expm1": (np.expm1, 2, 2.5),
    "tanh": (np.tanh, 3, 3.5),
    "log": (np.log, 1, 1.5),
    "log1p": (np.log1p, 2, 2.5),
    "erf": (lambda x: _erf(x.astype(np.float64)), 6, 10),
}


def loop_over(name: str) -> Any:
    function = getattr(scalar, name)

    @numba.njit(fastmath=set(EXACT), error_model="numpy")
    def loop(out: Any, x: Any) -> None:
        for i in range(out.shape[0]):
            out[i] = function(x[i])

    return loop


def values(dtype: Any) -> np.ndarray:
    """Of all sizes, as they come among random bits, and those that are special or near to it."""
    rng = np.random.default_rng(0)
    bits = np.frombuffer(rng.bytes(20_000 * np.dtype(dtype).itemsize), dtype)
    usual = np.concatenate([rng.normal(size=5000) * s for s in (1e-3, 0.1, 1, 10, 100, 400)])
    edges = [88.7, 88.73, -103.9, -104.5, 709.7, 709.8, -708.5, -744.4, -746, 9.1, 19.1, -37]
    info = np.finfo(dtype)
    special = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, info.max, info.tiny]
    special += [info.smallest_subnormal, -info.smallest_subnormal, info.tiny / 8, info.eps - 1]
    near_one = 1 + rng.normal(size=5000) * 1e-3
    return np.concatenate(
        [np.asarray(a).astype(dtype) for a in (bits, usual, edges, special, near_one)]
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_close_to_the_exact_value(name: str, dtype: Any) -> None:
    exact_function, *units = FUNCTIONS[name]
    with np.errstate(all="ignore"):
        x = values(dtype)
        out = np.empty_like(x)
        loop_over(name)(out, x)
        wide = exact_function(x.astype(np.longdouble if dtype == np.float64 else np.float64))
        exact = wide.astype(dtype)
        np.testing.assert_array_equal(np.isnan(out), np.isnan(exact))
        np.testing.assert_array_equal(np.isinf(out), np.isinf(exact))
        np.testing.assert_array_equal(out[np.isinf(exact)], exact[np.isinf(exact)])
        finite = np.isfinite(exact)
        off = np.abs(out[finite] - wide[finite]) / np.spacing(np.abs(exact[finite]))
    assert off.max() <= units[dtype == np.float64]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sigmoid(dtype: Any) -> None:
    """As PyTorch computes it: 0 where exp(-x) is infinite."""
    with np.errstate(all="ignore"):
        x = values(dtype)
        out = np.empty_like(x)
        loop_over("sigmoid")(out, x)
        exact = 1 / (1 + np.exp(-x.astype(np.longdouble)))
    np.testing.assert_allclose(
        out, exact.astype(dtype), rtol=4 * np.finfo(dtype).eps, atol=4 * np.finfo(dtype).tiny
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_erf_is_odd_and_reaches_one(dtype: Any) -> None:
    x = np.array([0.0, 0.3, 2.0, 4.1, 6.1, math.inf, math.nan], dtype)
    there, back = np.empty_like(x), np.empty_like(x)
    loop = loop_over("erf")
    loop(there, x)
    loop(back, -x)
    np.testing.assert_array_equal(there, -back)
    assert there[0] == 0 and there[4] == there[5] == 1 and math.isnan(there[6])
