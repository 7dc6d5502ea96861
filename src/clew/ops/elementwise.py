"""Elementwise arithmetic and functions.

Formulas are PyTorch's (which of input and result a rule reads decides which in-place writes
raise); "derivatives.yaml" of PyTorch is the source.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.kernels.division import by_number
from clew.kernels.half import is_half, narrow, widen
from clew.kernels.pointwise import in_place, pointwise
from clew.kernels.shared import Shared
from clew.op import of_number, op
from clew.ops.layout import in_order_of_operands
from clew.ops.rules import conj, over, times
from clew.promotion import Refusal, Unrounded, no_kernel

_ARITHMETIC: dict[str, Any] = {"promote": "arithmetic", "inplace": True}
_DIFFERENCE: dict[str, Any] = {"promote": "difference", "inplace": True}
_FLOATING: dict[str, Any] = {"promote": "floating", "inplace": True}

# -- arithmetic


def _rounded_once(formula: Any, *operands: Any) -> Any:
    """`formula` of operands of one type and numbers; of halves it is computed in float32.

    Numbers that are not `Unrounded` become halves first, as in PyTorch ``alpha`` does.  Formulas
    use Python's operators: NumPy's functions make float64 of two numbers.
    """
    dtype = next(o.dtype for o in operands if isinstance(o, np.ndarray))
    if not is_half(dtype):
        return formula(*operands)
    wide = [float(o) if isinstance(o, Unrounded) else widen(np.asarray(o, dtype)) for o in operands]
    return narrow(np.asarray(formula(*wide)), dtype)


add = op(
    "add(self, other)", np.add, doc="``self + other``.", jvp="linear", domain="real", publish=(),
    in_rules="AddBackward1", self=lambda F, grad: grad, other=lambda F, grad: grad,
    large=Shared(np.add), promote="sum", inplace=True,
)  # fmt: skip


def _plus(x: Any, y: Any, *, alpha: Any, out: Any = None) -> Any:
    if _are_floats(x, y):
        if out is not None and in_place("add_scaled_in_place", (out, y), (alpha,)):
            return out
        return _put(out, _add_scaled(x, y, alpha=alpha))
    return _put(out, _rounded_once(lambda x, y, alpha: x + y * alpha, x, y, alpha))


def _minus(x: Any, y: Any, *, alpha: Any, out: Any = None) -> Any:
    if _are_floats(x, y):
        return _plus(x, y, alpha=-alpha, out=out)
    return _put(out, _rounded_once(lambda x, y, alpha: x - y * alpha, x, y, alpha))


def _put(out: Any, result: Any) -> Any:
    if out is None:
        return result
    out[...] = result
    return out


op("add_scaled(self, other; *, alpha)", _plus, node="AddBackward0", jvp="linear", domain="real",
    publish=(), self=lambda F, grad: grad, other=lambda F, grad, *, alpha: grad * alpha,
    large=_plus, doc="``self + alpha * other``.", **_ARITHMETIC)  # fmt: skip


@pointwise(twin="add_scaled")
def _add_scaled(x: Any, y: Any, *, alpha: Any) -> Any:
    return x + y * alpha


def _are_floats(*operands: Any) -> bool:
    """Whether all are arrays of floating numbers that NumPy computes with as they are."""
    return all(
        x.__class__ is np.ndarray and x.dtype.kind == "f" and x.itemsize > 2 for x in operands
    )


sub = op(
    "sub(self, other)", np.subtract, doc="``self - other``.", jvp="linear", domain="real",
    publish=(), in_rules="SubBackward1", large=Shared(np.subtract),
    self=lambda F, grad: grad, other=lambda F, grad: -grad, **_DIFFERENCE,
)  # fmt: skip


op("sub_scaled(self, other; *, alpha)", _minus, node="SubBackward0", jvp="linear", domain="real",
    publish=(), self=lambda F, grad: grad,
    other=lambda F, grad, *, alpha: -grad if alpha == 1 else -grad * alpha,
    large=_minus, doc="``self - alpha * other``.", **_DIFFERENCE)  # fmt: skip


@op("rsub(self, other)", jvp="linear", domain="real", publish=(), promote="difference",
    overloads=(of_number("other", "RsubBackward1"),), in_rules="SubBackward0",
    self=lambda F, grad: -grad,
    other=lambda F, grad: grad, mixes=False)  # fmt: skip
def rsub(x: Any, y: Any) -> Any:
    """``other - self``."""
    return in_order_of_operands(np.asarray(np.subtract(y, x)), (y, x))


mul = op(
    "mul(self, other)",
    np.multiply,
    doc="``self * other``.",
    jvp="bilinear",
    domain="real",
    number_first=True,
    in_rules="MulBackward1",
    aliases=("multiply",),
    self=lambda F, grad, other: times(F, grad, other),
    other=lambda F, grad, self: times(F, grad, self),
    promote="product",
    inplace=True,
    large=Shared(np.multiply),
)


@op("div(self, other)", promote="quotient", aliases=("true_divide",), domain="nonzero",
    publish=(), inplace=True, in_rules="DivBackward1", large=Shared(np.true_divide))  # fmt: skip
def div(x: Any, y: Any) -> Any:
    """``self / other``."""
    return np.true_divide(x, y)


@div.grad("self")
def _(F: Any, grad: Any, other: Any) -> Any:
    return over(F, grad, other)


@div.grad("other")
def _(F: Any, grad: Any, self: Any, other: Any) -> Any:
    return -grad * conj(F, (self / other) / other)


@op("div_rounded(self, other; rounding_mode)", promote="division", node="DivBackward2",
    publish=(), domain="nonzero", inplace=True, label="div")  # fmt: skip
def div_rounded(x: Any, y: Any, *, rounding_mode: str) -> Any:
    """``self / other``, truncated or floored: `rounding_mode` is "trunc" or "floor"."""
    if rounding_mode in ("floor", "trunc"):
        no_kernel(f"div_{rounding_mode}_cpu").check(x, y)
    if rounding_mode == "floor":
        return _integer_division(_floor_divide, x, y)
    if rounding_mode != "trunc":
        raise RuntimeError(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
            f"'{rounding_mode}'"
        )
    if _is_integer(x) and _is_integer(y):
        return _integer_division(_truncated, x, y)
    if isinstance(y, Unrounded):
        return _rounded_once(lambda x, y: np.trunc(x / y), x, y)
    return np.trunc(np.true_divide(x, y))


@div_rounded.grad("self")
def _(F: Any, grad: Any, other: Any, *, rounding_mode: str) -> Any:
    return F.mul(grad, 0)


@div_rounded.grad("other")
def _(F: Any, grad: Any, self: Any, other: Any, *, rounding_mode: str) -> Any:
    return F.mul(grad, 0)


def _no_derivative(F: Any, grad: Any) -> Any:
    raise RuntimeError("derivative for aten::floor_divide is not implemented")


@op("floor_divide(self, other)", promote="division", complex=no_kernel("div_floor_cpu"),
    node="torch::autograd::NotImplemented", inplace=True, number_first=True, self=_no_derivative,
    other=_no_derivative)  # fmt: skip
def floor_divide(x: Any, y: Any) -> Any:
    """``floor(self / other)``."""
    return _integer_division(_floor_divide, x, y)


_fmod, _remainder = by_number("fmod", np.fmod), by_number("remainder", np.remainder)
_floor_divide = by_number("floor_divide", np.floor_divide)


def _is_integer(x: Any) -> bool:
    return isinstance(x, int) or (isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "biu")


def _truncated(x: Any, y: Any) -> Any:
    return np.floor_divide(np.subtract(x, np.fmod(x, y)), y)


def _integer_division(divide: Any, x: Any, y: Any) -> Any:
    _refuse_zero(x, y)
    return divide(x, y)


def _refuse_zero(x: Any, y: Any) -> None:
    if _is_integer(x) and _is_integer(y) and np.any(np.equal(y, 0)):
        raise RuntimeError("ZeroDivisionError")


@op("remainder(self, other)", domain="nonzero", number_first=True, node="RemainderBackward1",
    complex=no_kernel("remainder_cpu"),
    overloads=(of_number("other", "RemainderBackward0"),), **_ARITHMETIC)  # fmt: skip
def remainder(x: Any, y: Any) -> Any:
    """``self - other * floor(self / other)``: the result has the sign of `other`."""
    _refuse_zero(x, y)
    return _remainder(x, y)


@remainder.grad("self")
def _(F: Any, grad: Any) -> Any:
    return grad


@remainder.grad("other")
def _(F: Any, grad: Any, self: Any, other: Any) -> Any:
    return -grad * F.div_rounded(self, other, "floor")


@op("fmod(self, other)", domain="nonzero", node="FmodBackward1", complex=no_kernel("fmod_cpu"),
    overloads=(of_number("other", "FmodBackward0"),), **_ARITHMETIC)  # fmt: skip
def fmod(x: Any, y: Any) -> Any:
    """The remainder of division rounded to zero: the result has the sign of `self`."""
    _refuse_zero(x, y)
    return _fmod(x, y)


@fmod.grad("self")
def _(F: Any, grad: Any) -> Any:
    return grad


@fmod.grad("other")
def _(F: Any, grad: Any, self: Any, other: Any) -> Any:
    return -grad * F.div_rounded(self, other, "trunc")


# -- minimum, maximum and friends


def _unordered(name: str) -> Refusal:
    return Refusal(f"{name} not implemented for complex tensors.", RuntimeError)


def _extremum(name: str, function: Any, aliases: tuple[str, ...] = ()) -> Any:
    """An elementwise choice of one of two; equal values share the gradient."""
    loses, wins = {"maximum": ("lt", "gt"), "minimum": ("gt", "lt")}[name]

    def shared(F: Any, grad: Any, self: Any, other: Any, chosen: str) -> Any:
        halves = F.where(F.eq(self, other), grad / 2, grad)
        return F.masked_out(halves, getattr(F, chosen)(self, other))

    def of_self(F: Any, grad: Any, self: Any, other: Any) -> Any:
        return shared(F, grad, self, other, loses)

    def of_other(F: Any, grad: Any, self: Any, other: Any) -> Any:
        return shared(F, grad, self, other, wins)

    return op(
        f"{name}(self, other)", function, doc=f"Elementwise {name}; see `np.{name}`.",
        promote="arithmetic", tensors_only=True, domain="off_ties", self=of_self, other=of_other,
        large=Shared(function), complex=_unordered(name),
    )  # fmt: skip


def _first_wins(name: str, function: Any) -> Any:
    """`_extremum` that passes over nan; of equal values the first has the gradient."""
    wins = {"fmax": "ge", "fmin": "le"}[name]

    def first(F: Any, self: Any, other: Any) -> Any:
        return F.logical_or(getattr(F, wins)(self, other), F.isnan(other))

    return op(
        f"{name}(self, other)", function, doc=f"Elementwise {name}; see `np.{name}`.",
        promote="arithmetic", tensors_only=True, domain="off_ties", complex=_unordered(name),
        self=lambda F, grad, self, other: F.masked_fill(
            grad, F.logical_not(first(F, self, other)), 0
        ),
        other=lambda F, grad, self, other: F.masked_fill(grad, first(F, self, other), 0),
    )  # fmt: skip


def _inverse_square(F: Any, x: Any, y: Any) -> Any:
    """``1 / (x**2 + y**2)``, 0 at the origin, where the angle has no derivative."""
    square = x * x + y * y
    return F.masked_fill(F.reciprocal(square), F.eq(square, 0), 0)


maximum = _extremum("maximum", np.maximum)
minimum = _extremum("minimum", np.minimum)
fmax = _first_wins("fmax", np.fmax)
fmin = _first_wins("fmin", np.fmin)

atan2 = op(
    "atan2(self, other)", np.arctan2, doc="The angle of the point (other, self).",
    aliases=("arctan2",), domain="nonzero", tensors_only=True, complex=no_kernel("atan2_cpu"),
    self=lambda F, grad, self, other: grad * other * _inverse_square(F, self, other),
    other=lambda F, grad, self, other: grad * -self * _inverse_square(F, self, other),
    **_FLOATING,
)  # fmt: skip

hypot = op(
    "hypot(self, other)", np.hypot, doc="``sqrt(self**2 + other**2)``.", domain="nonzero",
    tensors_only=True, complex=no_kernel("hypot_cpu"),
    self=lambda F, grad, self, result: grad * self / result,
    other=lambda F, grad, other, result: grad * other / result,
    **_ARITHMETIC,
)  # fmt: skip


@op("lerp(self, end, weight)", promote="arithmetic", inplace=True, publish=(), domain="real",
    tensors_only=True, node="LerpBackward1")  # fmt: skip
def lerp(x: Any, end: Any, weight: Any) -> Any:
    """``self + weight * (end - self)``, computed from the nearer end."""
    if _are_floats(x, end, weight):
        return _lerp(x, end, weight)
    return _rounded_once(_interpolated, x, end, weight)


def _interpolated(x: Any, end: Any, weight: Any) -> Any:
    difference = end - x
    forwards = x + weight * difference
    backwards = end - difference * (1 - weight)
    return np.where(np.abs(weight) < 0.5, forwards, backwards)


_lerp = pointwise(_interpolated, twin="lerp")


@lerp.grad("self")
def _(F: Any, grad: Any, weight: Any) -> Any:
    return grad * conj(F, 1 - weight)


@lerp.grad("end")
def _(F: Any, grad: Any, weight: Any) -> Any:
    return grad * conj(F, weight)


@lerp.grad("weight")
def _(F: Any, grad: Any, self: Any, end: Any, weight: Any) -> Any:
    return grad * conj(F, end - self)


@op("lerp_number(self, end; weight)", promote="arithmetic", inplace=True, publish=(),
    domain="real", tensors_only=True, node="LerpBackward0", label="lerp")  # fmt: skip
def lerp_number(x: Any, end: Any, *, weight: Any) -> Any:
    """`lerp` with a number, which halves meet unrounded."""
    if _are_floats(x, end):
        return _lerp_number(x, end, weight=weight)
    exact = Unrounded(weight) if is_half(x.dtype) else weight
    return _rounded_once(_interpolated, x, end, exact)


@pointwise(twin="lerp_number")
def _lerp_number(x: Any, end: Any, *, weight: Any) -> Any:
    if abs(weight) < 0.5:
        return x + weight * (end - x)
    return end - (end - x) * (1 - weight)


@lerp_number.grad("self")
def _(F: Any, grad: Any, *, weight: Any) -> Any:
    return grad * conj(F, 1 - weight)


@lerp_number.grad("end")
def _(F: Any, grad: Any, *, weight: Any) -> Any:
    return grad * conj(F, weight)


@op("addcmul(self, tensor1, tensor2; *, value=1)", promote="arithmetic", inplace=True,
    domain="real")  # fmt: skip
def addcmul(x: Any, first: Any, second: Any, *, value: Any) -> Any:
    """``self + value * tensor1 * tensor2``."""
    if _are_floats(x, first, second):
        return _addcmul(x, first, second, value=value)
    if value == 1:
        return _rounded_once(lambda x, y, z: x + y * z, x, first, second)
    return _rounded_once(lambda x, y, z: x + y * value * z, x, first, second)


@pointwise(twin="addcmul")
def _addcmul(x: Any, first: Any, second: Any, *, value: Any) -> Any:
    return x + (first * second if value == 1 else first * value * second)


@addcmul.grad("self")
def _(F: Any, grad: Any) -> Any:
    return grad


@addcmul.grad("tensor1")
def _(F: Any, grad: Any, tensor2: Any, *, value: Any) -> Any:
    return grad * conj(F, tensor2 * value)


@addcmul.grad("tensor2")
def _(F: Any, grad: Any, tensor1: Any, *, value: Any) -> Any:
    return grad * conj(F, tensor1 * value)


@op("addcdiv(self, tensor1, tensor2; *, value=1)", promote="arithmetic", inplace=True,
    domain="nonzero")  # fmt: skip
def addcdiv(x: Any, first: Any, second: Any, *, value: Any) -> Any:
    """``self + value * tensor1 / tensor2``."""
    if _is_integer(first) and _is_integer(second):
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release "
            "addcdiv will perform a true division of tensor1 and tensor2. The historic "
            "addcdiv behavior can be implemented as (input + value * torch.trunc(tensor1 / "
            "tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / "
            "tensor2) for float inputs. The future addcdiv behavior is just the latter "
            "implementation: (input + value * tensor1 / tensor2), for all dtypes."
        )
    if _are_floats(x, first, second):
        return _addcdiv(x, first, second, value=value)
    return _rounded_once(lambda x, y, z: x + y * value / z, x, first, second)


@pointwise(twin="addcdiv")
def _addcdiv(x: Any, first: Any, second: Any, *, value: Any) -> Any:
    return x + first * value / second


@addcdiv.grad("self")
def _(F: Any, grad: Any, tensor2: Any) -> Any:
    return grad


@addcdiv.grad("tensor1")
def _(F: Any, grad: Any, tensor2: Any, *, value: Any) -> Any:
    return grad * conj(F, value / tensor2)


@addcdiv.grad("tensor2")
def _(F: Any, grad: Any, tensor1: Any, tensor2: Any, *, value: Any) -> Any:
    return -grad * conj(F, value * tensor1 / (tensor2 * tensor2))
