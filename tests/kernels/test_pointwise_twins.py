"""Compiled twins of elementwise formulas agree with the formulas, which are the reference."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import clew
from clew.kernels import compiled, pointwise
from clew.kernels.pointwise import MANY, TWINS

SPECIAL = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-45, -1e-40, 5e-324, 3.0, -3.0, 6.0, 0.5,
           20.0, 20.5, -90.0, 89.0, -0.5, 710.0, -750.0, 1e30, -1e30]  # fmt: skip
ATTRIBUTES: dict[str, list[dict[str, Any]]] = {
    "softplus": [{"beta": 1, "threshold": 20}, {"beta": 0.5, "threshold": 3}],
    "elu": [{"alpha": 1.0, "scale": 1.0, "input_scale": 1.0},
            {"alpha": 1.67, "scale": 1.05, "input_scale": 0.5}],
    "threshold_backward": [{"threshold": 0}, {"threshold": 0.5}],
    "leaky_relu": [{"negative_slope": 0.01}, {"negative_slope": -1.5}],
    "hardtanh": [{"low": -1.0, "high": 1.0}, {"low": 0.0, "high": 6.0}],
    "hardtanh_backward": [{"min_val": -1.0, "max_val": 1.0}],
    "softshrink": [{"lambd": 0.5}],
    "lerp_number": [{"weight": 0.3}, {"weight": 1.5}],
    "addcmul": [{"value": 1}, {"value": 0.3}],
    "add_scaled": [{"alpha": -0.7}],
}  # fmt: skip
ATTRIBUTES["softplus_backward"] = ATTRIBUTES["softplus"]
ATTRIBUTES["leaky_relu_backward"] = ATTRIBUTES["leaky_relu"]
ATTRIBUTES["shrink_backward"] = ATTRIBUTES["softshrink"]
ATTRIBUTES["addcdiv"] = ATTRIBUTES["addcmul"]
ATTRIBUTES["elu_backward"] = [
    {**a, "is_result": flag} for a in ATTRIBUTES["elu"] for flag in (False, True)
]
CASES = [(name, attributes) for name in TWINS for attributes in ATTRIBUTES.get(name, [{}])]


def count(name: str) -> int:
    """How many arrays the formula takes."""
    code = TWINS[name].__wrapped__.__code__  # type: ignore[attr-defined]
    return int(code.co_argcount)


def operands(name: str, size: int, dtype: Any) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=size) * np.resize([1e-3, 1, 1, 5], size)
    x[: len(SPECIAL)] = SPECIAL[:size]
    with np.errstate(over="ignore"):
        rest = [rng.normal(size=size).astype(dtype) for _ in range(count(name) - 1)]
        return [*rest, x.astype(dtype)]


def compare(name: str, attributes: dict[str, Any], inputs: list[np.ndarray]) -> None:
    dtype = inputs[0].dtype
    wide = np.longdouble if dtype == np.float64 else np.float64
    with np.errstate(all="ignore"):
        result = TWINS[name](*inputs, **attributes)
        formula = TWINS[name].__wrapped__  # type: ignore[attr-defined]
        expected = np.asarray(formula(*inputs, **attributes))
        exact = np.asarray(formula(*[x.astype(wide) for x in inputs], **attributes))
    assert result.dtype == dtype and result.shape == inputs[0].shape
    np.testing.assert_array_equal(np.isnan(result), np.isnan(expected))
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(result[~finite], expected[~finite])
    # Not much further from the exact value than the formula is: a few roundings, of the result
    # and of what is about one or as small as the input.
    info = np.finfo(dtype)
    expected, exact = expected[finite].astype(wide), exact[finite]
    exact = np.where(np.isfinite(exact), exact, expected)
    small = np.fmin(np.fmax(*(np.abs(x[finite]) for x in (inputs[0], inputs[-1]))), 1)
    allowed = 16 * info.eps * (np.abs(exact) + small) + np.abs(expected - exact) + 4 * info.tiny
    off = np.abs(result[finite] - exact)
    worst = np.argmax(off - allowed) if off.size else 0
    assert (off <= allowed).all(), (result[finite][worst], exact[worst])


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twins for arrays of all sizes, in more than one piece."""
    monkeypatch.setattr(pointwise, "MANY", 0)
    monkeypatch.setattr(pointwise, "PIECE", 32)


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 31, 33, 100, 1025])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name, attributes", CASES)
def test_like_the_formula(
    name: str, attributes: dict[str, Any], dtype: Any, size: int, always: None
) -> None:
    compare(name, attributes, operands(name, size, dtype))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name, attributes", CASES)
def test_halves_are_rounded_once(name: str, attributes: dict[str, Any], dtype: Any) -> None:
    inputs = operands(name, MANY, dtype)
    with np.errstate(all="ignore"):
        result = TWINS[name](*inputs, **attributes)
        wide = TWINS[name](*[x.astype(np.float32) for x in inputs], **attributes)
        rounded = wide.astype(dtype)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result.astype(np.float32), rounded.astype(np.float32))


@pytest.mark.parametrize("layout", ["turned", "channels last", "gaps", "misaligned", "mixed"])
def test_other_layouts(layout: str, always: None) -> None:
    rng = np.random.default_rng(0)
    x, grad = rng.normal(size=(2, 4, 5, 6, 7)).astype(np.float32)[:, :2, :3]
    if layout == "turned":
        x, grad = x.copy().T, grad.copy().T
    elif layout == "channels last":
        x, grad = (np.ascontiguousarray(a.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
                   for a in (x, grad))  # fmt: skip
    elif layout == "gaps":
        x, grad = x[..., ::2], grad[..., ::2]
    elif layout == "misaligned":
        x, grad = (np.frombuffer(b"a" + a.tobytes(), np.float32, offset=1).reshape(a.shape)
                   for a in (x, grad))  # fmt: skip
    else:
        grad = grad.T.copy().T
    result = TWINS["silu_backward"](grad, x)
    s = 1 / (1 + np.exp(-x))
    np.testing.assert_allclose(result, grad * s * (1 + x * (1 - s)), rtol=1e-5, atol=1e-7)
    if layout in ("turned", "channels last"):
        assert result.strides == x.strides


@settings(max_examples=60, deadline=None)
@given(data=st.data(), case=st.sampled_from(CASES), dtype=st.sampled_from(["float32", "float64"]))
def test_any_numbers(data: Any, case: Any, dtype: str) -> None:
    name, attributes = case
    size = data.draw(st.sampled_from([MANY, MANY + 7]))
    numbers = st.floats(width=32, allow_subnormal=True)
    inputs = [
        data.draw(arrays(dtype, size, elements=numbers, fill=numbers)) for _ in range(count(name))
    ]
    with np.errstate(all="ignore"):
        result = TWINS[name](*inputs, **attributes)
        formula = TWINS[name].__wrapped__  # type: ignore[attr-defined]
        expected = np.asarray(formula(*inputs, **attributes))
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


def test_without_numba_the_formula_runs() -> None:
    x = clew.randn(MANY)
    fast = clew.nn.functional.gelu(x)
    compiled.switch(False)
    try:
        slow = clew.nn.functional.gelu(x)
    finally:
        compiled.switch(True)
    clew.testing.assert_close(fast, slow)


def test_threads_change_nothing() -> None:
    x = clew.randn(1 << 20)
    before = clew.get_num_threads()
    results = []
    try:
        for number in (1, 2, 3):
            clew.set_num_threads(number)
            results.append(clew.nn.functional.gelu(x))
    finally:
        clew.set_num_threads(before)
    assert clew.equal(results[0], results[1]) and clew.equal(results[0], results[2])
