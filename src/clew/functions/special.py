"""Special functions whose name covers several ops, or that are composed of others."""

from __future__ import annotations

from math import sqrt
from typing import Any

from clew.dispatch import apply, apply_inplace
from clew.op import REGISTRY
from clew.publish import composite
from clew.tensor import Tensor


def _check_order(n: Any) -> None:
    if not isinstance(n, int):
        raise TypeError(
            f"polygamma(): argument 'n' (position 1) must be int, not {type(n).__name__}"
        )


@composite(method=False, out=True)
def polygamma(n: int, input: Tensor) -> Any:
    """The `n`-th derivative of `digamma`.

    Raises:
        RuntimeError: `n` is negative.
    """
    _check_order(n)
    return apply(REGISTRY["polygamma"], (input,), {"n": n})


@composite(function=False, name="polygamma")
def _polygamma(self: Tensor, n: int) -> Any:
    """The `n`-th derivative of `digamma`."""
    return polygamma(n, self)


@composite(function=False)
def polygamma_(self: Tensor, n: int) -> Tensor:
    """`polygamma`, in place."""
    _check_order(n)
    return apply_inplace(REGISTRY["polygamma"], self, (), {"n": n})


def entr(input: Tensor) -> Any:
    """``-input * log(input)``; 0 at 0, and minus infinity for negative numbers."""
    return apply(REGISTRY["special_entr"], (input,))


def erfcx(input: Tensor) -> Any:
    """``exp(input**2) * erfc(input)``, which does not vanish for large numbers."""
    return apply(REGISTRY["special_erfcx"], (input,))


def log_ndtr(input: Tensor) -> Any:
    """The logarithm of `ndtr`, also where that vanishes."""
    return apply(REGISTRY["special_log_ndtr"], (input,))


def ndtr(input: Any) -> Any:
    """The probability that a standard normal variable is below `input`."""
    return (1 + apply(REGISTRY["erf"], (input * sqrt(0.5),))) * 0.5


def xlog1py(input: Any, other: Any) -> Any:
    """``input * log(1 + other)``, 0 where `input` is 0 and `other` is not nan.

    Raises:
        TypeError: both are numbers.
    """
    first, second = isinstance(input, Tensor), isinstance(other, Tensor)
    if not first and not second:
        raise TypeError(
            "special_xlog1py() received an invalid combination of arguments - got "
            f"({type(input).__name__}, {type(other).__name__})"
        )
    suffix = "" if first and second else "_with_number" if first else "_of_number"
    return apply(REGISTRY[f"special_xlog1py{suffix}"], (input, other))
