"""Functions that have no order, or no kernel, for complex numbers refuse them as torch's do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from teaching import check_as_torch

UNARY = (
    "floor", "ceil", "trunc", "fix", "round", "frac", "sign", "signbit", "relu", "amax", "amin",
    "aminmax", "max", "min", "argmax", "argmin", "median", "nanmedian", "mode", "sort", "argsort",
    "msort", "unique", "unique_consecutive", "histc", "bitwise_not", "deg2rad", "erf", "lgamma",
)  # fmt: skip
ALONG = ("amax", "amin", "max", "min", "argmax", "argmin", "median", "nanmedian", "mode", "cummax",
         "cummin")  # fmt: skip
BINARY = (
    "lt", "le", "gt", "ge", "remainder", "fmod", "floor_divide", "maximum", "minimum", "fmax",
    "fmin", "clamp_min", "clamp_max", "atan2", "hypot", "copysign", "xlogy", "logaddexp2",
    "heaviside", "nextafter", "gcd", "bitwise_and", "bitwise_or", "bitwise_xor",
    "bitwise_left_shift", "bitwise_right_shift", "searchsorted", "bucketize", "isin",
)  # fmt: skip
WITH_NUMBER = ("lt", "le", "gt", "ge", "remainder", "fmod", "floor_divide", "copysign", "xlogy")


def check(call: Callable[[Any], Any]) -> None:
    error = check_as_torch(call)
    assert isinstance(error, RuntimeError)


def complex_of(t: Any, dtype: str = "complex64") -> Any:
    return t.tensor([1 + 2j, 3 - 1j], dtype=getattr(t, dtype))


@pytest.mark.parametrize("name", UNARY)
def test_of_one_tensor(name: str) -> None:
    check(lambda t: getattr(t, name)(complex_of(t)))
    check(lambda t: getattr(t, name)(complex_of(t, "complex128")))


@pytest.mark.parametrize("name", ALONG)
def test_along_a_dimension(name: str) -> None:
    check(lambda t: getattr(t, name)(complex_of(t), 0))
    if name not in ("mode", "cummax", "cummin"):
        check(lambda t: getattr(t, name)(t.tensor(1j), 0))


@pytest.mark.parametrize("name", BINARY)
def test_of_two_tensors(name: str) -> None:
    check(lambda t: getattr(t, name)(complex_of(t), complex_of(t)))
    check(lambda t: getattr(t, name)(complex_of(t), t.ones(2)))
    check(lambda t: getattr(t, name)(t.ones(2), complex_of(t)))


@pytest.mark.parametrize("name", WITH_NUMBER)
def test_with_a_number(name: str) -> None:
    check(lambda t: getattr(t, name)(complex_of(t), 2))
    check(lambda t: getattr(t, name)(complex_of(t), 1j))
    check(lambda t: getattr(t, name)(t.ones(2), 1j))


@pytest.mark.parametrize("name", ["lt_", "gt_", "remainder_", "fmod_", "floor_divide_", "xlogy_"])
def test_in_place(name: str) -> None:
    check(lambda t: getattr(complex_of(t), name)(2))


@pytest.mark.parametrize("name", ["floor_", "ceil_", "trunc_", "round_", "frac_"])
def test_rounded_in_place(name: str) -> None:
    check(lambda t: getattr(complex_of(t), name)())


def test_options() -> None:
    check(lambda t: t.div(complex_of(t), 2, rounding_mode="floor"))
    check(lambda t: t.div(complex_of(t), complex_of(t), rounding_mode="trunc"))
    check(lambda t: t.round(complex_of(t), decimals=2))
    check(lambda t: t.unique(complex_of(t), dim=0))
    check(lambda t: 2 // complex_of(t))
    check(lambda t: 2 % complex_of(t))
    check(lambda t: t.isin(1j, t.ones(2)))


def test_nothing_is_refused_too() -> None:
    check(lambda t: t.lt(complex_of(t)[:0], complex_of(t)[:0]))
    check(lambda t: t.atan2(complex_of(t)[:0], complex_of(t)[:0]))
    check(lambda t: complex_of(t)[:0].floor())


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_bools_have_no_place_of_an_extremum(name: str) -> None:
    check(lambda t: getattr(t, name)(t.tensor([True, False])))
