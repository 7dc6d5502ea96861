"""Special functions whose name covers several ops, or that are composed of others."""

from __future__ import annotations

from math import sqrt
from typing import Any

from clew.dispatch import apply, apply_inplace
from clew.op import REGISTRY
from clew.outputs import write_out
from clew.publish import composite, taking_other_names
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


def ndtr(input: Tensor, *, out: Any = None) -> Any:
    """The probability that a standard normal variable is below `input`."""
    result = (1 + apply(REGISTRY["erf"], (input * sqrt(0.5),))) * 0.5
    return result if out is None else write_out(out, result)


def _with_numbers(name: str, doc: str) -> Any:
    """A function of two tensors, or of one and a number on either side: three ops."""

    @taking_other_names
    def function(self: Any, other: Any, *, out: Any = None) -> Any:
        first, second = isinstance(self, Tensor), isinstance(other, Tensor)
        if not first and not second:
            raise TypeError(
                f"special_{name}() received an invalid combination of arguments - got "
                f"({type(self).__name__}, {type(other).__name__}), but expected one of:\n"
                " * (Tensor input, Tensor other, *, Tensor out = None)\n"
                " * (Number self, Tensor other, *, Tensor out = None)\n"
                " * (Tensor input, Number other, *, Tensor out = None)"
            )
        suffix = "" if first and second else "_with_number" if first else "_of_number"
        result = apply(REGISTRY[f"special_{name}{suffix}"], (self, other))
        return result if out is None else write_out(out, result)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


xlog1py = _with_numbers("xlog1py", "``self * log(1 + other)``, 0 where `self` is 0.")
zeta = _with_numbers(
    "zeta", "Hurwitz's zeta function: the sum of ``(other + k) ** -self`` over k = 0, 1, ..."
)
