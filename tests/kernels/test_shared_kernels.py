"""NumPy's functions give the same whether an array is large or not, in place or not, and shared."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import clew
from clew.kernels import shared
from clew.kernels.pointwise import MANY

DTYPES = [clew.float16, clew.bfloat16, clew.float32, clew.float64, clew.int64, clew.complex64]
UNARY = ["exp", "expm1", "log", "log1p", "tanh", "sin", "sqrt", "reciprocal", "square"]
BINARY: list[Any] = [operator.add, operator.sub, operator.mul, operator.truediv]
COMPARED: list[Any] = [operator.gt, operator.le, operator.eq, operator.ne]


@pytest.fixture(autouse=True)
def several_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(shared, "PIECE", MANY // 4)
    before = clew.get_num_threads()
    clew.set_num_threads(2)
    yield
    clew.set_num_threads(before)


def of(dtype: Any, size: int = MANY + 5, seed: int = 0) -> Any:
    generator = clew.Generator().manual_seed(seed)
    x = clew.rand(size, generator=generator) * 3 + 0.5
    return (x * 10).to(dtype) if dtype == clew.int64 else x.to(dtype)


def in_small_parts(function: Any, *operands: Any) -> Any:
    """The same without a large array."""
    step = MANY // 2
    size = next(o for o in operands if isinstance(o, clew.Tensor)).shape[0]
    parts = [
        function(*[o[at : at + step] if isinstance(o, clew.Tensor) and o.dim() else o
                   for o in operands])
        for at in range(0, size, step)
    ]  # fmt: skip
    return clew.cat(parts)


def close(x: Any, y: Any) -> None:
    assert x.dtype == y.dtype and x.shape == y.shape
    exact = not x.is_floating_point() or x.dtype == clew.float64
    tolerance = 0.0 if not x.is_floating_point() else 4 * clew.finfo(x.dtype).eps
    if exact:
        tolerance = 1e-14 if x.is_floating_point() or x.is_complex() else 0.0
    clew.testing.assert_close(x, y, rtol=max(tolerance, 1e-6) if x.is_complex() else tolerance,
                              atol=tolerance, equal_nan=True)  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str, dtype: Any) -> None:
    x = of(dtype)
    function = getattr(clew, name)
    close(function(x), in_small_parts(function, x))
    if dtype != clew.int64 and name != "square":
        expected, target = function(x), x.clone()
        getattr(target, name + "_")()
        close(target, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("function", [*BINARY, *COMPARED])
def test_binary(function: Any, dtype: Any) -> None:
    if dtype == clew.complex64 and function in COMPARED[:2]:
        pytest.skip("complex numbers have no order")
    x, y = of(dtype), of(dtype, seed=1)
    others = [y, 2, 1.7, clew.tensor(3, dtype=dtype), clew.tensor(1.3, dtype=clew.float64), True]
    for other in others[:-1] if function is operator.sub else others:
        close(function(x, other), in_small_parts(function, x, other))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["add_", "sub_", "mul_", "div_"])
def test_in_place(name: str, dtype: Any) -> None:
    if dtype == clew.int64 and name == "div_":
        pytest.skip("a quotient of integers is no integer")
    x, y = of(dtype), of(dtype, seed=1)
    function = getattr(clew, name[:-1])
    for other in (y, 3, clew.tensor(2, dtype=dtype), x):
        target = x.clone()
        expected = in_small_parts(function, target, target.clone() if other is x else other)
        getattr(target, name)(target if other is x else other)
        close(target, expected)
    for view in (x.clone()[::2], x[: x.shape[0] // 2 * 2].clone().view(2, -1).t()):
        expected = function(view.clone(), 3)
        assert getattr(view, name)(3) is view
        close(view, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["add", "sub"])
def test_scaled_in_place(name: str, dtype: Any) -> None:
    x, y = of(dtype), of(dtype, seed=1)
    for alpha in (2, -3) if dtype == clew.int64 else (2, -0.3):
        expected = getattr(clew, name)(x, y, alpha=alpha)
        target = x.clone()
        close(getattr(target, name + "_")(y, alpha=alpha), expected)
        close(target, expected)
        twice = x.clone()
        getattr(twice, name + "_")(twice, alpha=alpha)
        close(twice, getattr(clew, name)(x, x, alpha=alpha))


def test_in_place_refuses_what_does_not_fit() -> None:
    x = clew.ones(MANY)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        x.add_(clew.ones(2, MANY))
    with pytest.raises(RuntimeError, match="can't be cast"):
        clew.ones(MANY, dtype=clew.int64).mul_(clew.ones(MANY))
    assert clew.equal(x, clew.ones(MANY))


def test_other_layouts_and_broadcasting() -> None:
    x = clew.randn(60, 70)
    for y in (
        clew.randn(70),
        clew.randn(60, 1),
        clew.randn(70, 60).t(),
        clew.randn(60, 140)[:, ::2],
    ):
        close(x + y, clew.from_numpy(x.numpy() + y.numpy()))
        close(y.contiguous() * x, clew.from_numpy(y.numpy() * x.numpy()))
    assert (x.t() + x.t()).stride() == x.t().stride()


def test_special_values() -> None:
    values = [0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 89, -104, -1, -2, 1e30]
    x = clew.from_numpy(np.resize(values, MANY).astype("f"))
    for name in UNARY:
        function = getattr(clew, name)
        close(function(x), in_small_parts(function, x))
