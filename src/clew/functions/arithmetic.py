"""Arithmetic whose name covers several ops."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.dispatch import OperandError, apply, apply_inplace
from clew.functions.linalg import refuse_numbers
from clew.op import REGISTRY, Op
from clew.outputs import refuse_recorded, write_out
from clew.publish import composite
from clew.tensor import Tensor

_ADD, _ADD_SCALED = REGISTRY["add"], REGISTRY["add_scaled"]
_SUB, _SUB_SCALED = REGISTRY["sub"], REGISTRY["sub_scaled"]
_DIV, _DIV_ROUNDED = REGISTRY["div"], REGISTRY["div_rounded"]
_POW, _POW_SCALAR, _RPOW = REGISTRY["pow"], REGISTRY["pow_scalar"], REGISTRY["rpow"]


@composite()
def add(self: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Any:
    """``self + alpha * other``."""
    if out is not None:
        refuse_recorded(out, "add", (self, other))
    if alpha == 1:
        result = apply(_ADD, (self, other))
    else:
        result = apply(_ADD_SCALED, (self, other), {"alpha": alpha})
    return result if out is None else write_out(out, result, "add", (self, other))


@composite(function=False)
def add_(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """`add`, in place."""
    if alpha == 1:
        return apply_inplace(_ADD, self, (other,))
    return apply_inplace(_ADD_SCALED, self, (other,), {"alpha": alpha}, name="add_")


@composite(aliases=("subtract",), name="sub")
def sub(self: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Any:
    """``self - alpha * other``."""
    if out is not None:
        refuse_recorded(out, "sub", (self, other))
    if alpha == 1:
        result = apply(_SUB, (self, other))
    else:
        result = apply(_SUB_SCALED, (self, other), {"alpha": alpha})
    return result if out is None else write_out(out, result, "sub", (self, other))


@composite(function=False, aliases=("subtract_",), name="sub_")
def sub_(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """`sub`, in place."""
    if alpha == 1:
        return apply_inplace(_SUB, self, (other,))
    return apply_inplace(_SUB_SCALED, self, (other,), {"alpha": alpha}, name="sub_")


@composite(method=False)
def rsub(self: Any, other: Any, *, alpha: Any = 1) -> Any:
    """``other - alpha * self``."""
    if alpha == 1:
        return apply(REGISTRY["rsub"], (self, other))
    return apply(_SUB_SCALED, (other, self), {"alpha": alpha})


@composite(out=True)
def pow(self: Any, exponent: Any) -> Tensor:
    """``self ** exponent``; either may be a number."""
    if not isinstance(self, Tensor):
        refuse_numbers("pow", self, exponent)
        return apply(_RPOW, (exponent, self))
    exponent = _number_or_tensor(exponent)
    if isinstance(exponent, (int, float, complex)):
        return apply(_POW_SCALAR, (self,), {"exponent": exponent})
    return apply(_POW, (self, exponent))


def _number_or_tensor(value: Any) -> Any:
    """NumPy's numbers as Python's."""
    return value.item() if isinstance(value, np.generic) else value


@composite(function=False)
def pow_(self: Tensor, exponent: Any) -> Tensor:
    """`pow`, in place."""
    exponent = _number_or_tensor(exponent)
    if isinstance(exponent, (int, float, complex)):
        return apply_inplace(_POW_SCALAR, self, (), {"exponent": exponent})
    return apply_inplace(_POW, self, (exponent,))


@composite(out=True)
def square(self: Tensor) -> Any:
    """``self ** 2``."""
    return pow(self, 2)


composite(name="square_")(lambda self: pow_(self, 2))


def _power(self: Tensor, exponent: Any) -> Any:
    try:
        return pow(self, exponent)
    except OperandError:
        return NotImplemented


def _reflected_power(self: Tensor, base: Any) -> Any:
    try:
        return pow(base, self) if isinstance(base, Tensor) else apply(_RPOW, (self, base))
    except OperandError:
        return NotImplemented


composite(function=False, name="__pow__")(_power)
composite(function=False, name="__rpow__")(_reflected_power)
composite(function=False, name="__ipow__")(pow_)


@composite(function=False)
def __neg__(self: Tensor) -> Any:
    return apply(REGISTRY["neg"], (self,))


@composite(function=False)
def __abs__(self: Tensor) -> Any:
    return apply(REGISTRY["abs"], (self,))


@composite(function=False)
def __invert__(self: Tensor) -> Any:
    return apply(REGISTRY["bitwise_not"], (self,))


@composite(aliases=("divide",), out=True)
def div(self: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """``self / other``, truncated or floored if `rounding_mode` is "trunc" or "floor"."""
    if rounding_mode is None:
        return apply(_DIV, (self, other))
    return apply(_DIV_ROUNDED, (self, other), {"rounding_mode": rounding_mode})


@composite(function=False, aliases=("divide_",))
def div_(self: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """`div`, in place."""
    if rounding_mode is None:
        return apply_inplace(_DIV, self, (other,))
    return apply_inplace(_DIV_ROUNDED, self, (other,), {"rounding_mode": rounding_mode})


@composite(aliases=("true_divide",), name="true_divide", out=True)
def true_divide(self: Any, other: Any) -> Any:
    """``self / other``."""
    return apply(_DIV, (self, other))


composite(function=False, name="true_divide_")(lambda self, other: div_(self, other))


def _operator_of(name: str, *, inplace: bool = False) -> Any:
    op = REGISTRY[name]

    def operator(self: Tensor, other: Any) -> Any:
        try:
            if inplace:
                return apply_inplace(op, self, (other,))
            return apply(op, (self, other))
        except OperandError:
            return NotImplemented

    return operator


composite(function=False, name="__floordiv__")(_operator_of("floor_divide"))
composite(function=False, name="__ifloordiv__")(_operator_of("floor_divide", inplace=True))


@composite(function=False)
def __rfloordiv__(self: Tensor, other: Any) -> Any:
    return apply(REGISTRY["floor_divide"], (other, self))


# -- limits


@composite(aliases=("clip",), out=True)
def clamp(self: Tensor, min: Any = None, max: Any = None) -> Any:
    """Limit to ``[min, max]``; numbers or tensors, None for no limit."""
    return apply(*_clamp(self, min, max))


@composite(function=False, aliases=("clip_",))
def clamp_(self: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """`clamp`, in place."""
    op, inputs, attrs = _clamp(self, min, max)
    return apply_inplace(op, self, inputs[1:], attrs)


def _clamp(self: Tensor, min: Any, max: Any) -> tuple[Op, tuple[Any, ...], dict[str, Any]]:
    """The op for limits of these kinds, its inputs and attributes.

    Raises:
        TypeError: one limit is a tensor and the other a number.
    """
    limits = [limit for limit in (min, max) if limit is not None]
    tensors = sum(isinstance(limit, Tensor) for limit in limits)
    if not tensors:
        attrs = {"min": _number_or_tensor(min), "max": _number_or_tensor(max)}
        return REGISTRY["clamp"], (self,), attrs
    if tensors < len(limits):
        kinds = ", ".join(type(limit).__name__ for limit in limits)
        raise TypeError(
            f"clamp() received an invalid combination of arguments - got ({kinds}), but expected "
            "one of:\n * (Tensor min = None, Tensor max = None)\n"
            " * (Number min = None, Number max = None)"
        )
    return REGISTRY["clamp_tensors"], (self, min, max), {}


@composite(out=True)
def clamp_min(self: Tensor, min: Any) -> Any:
    """Limit from below, by a number or a tensor."""
    return apply(*_one_limit("clamp_min", self, "min", min))


@composite(out=True)
def clamp_max(self: Tensor, max: Any) -> Any:
    """Limit from above, by a number or a tensor."""
    return apply(*_one_limit("clamp_max", self, "max", max))


@composite(function=False)
def clamp_min_(self: Tensor, min: Any) -> Tensor:
    """`clamp_min`, in place."""
    op, inputs, attrs = _one_limit("clamp_min", self, "min", min)
    return apply_inplace(op, self, inputs[1:], attrs)


@composite(function=False)
def clamp_max_(self: Tensor, max: Any) -> Tensor:
    """`clamp_max`, in place."""
    op, inputs, attrs = _one_limit("clamp_max", self, "max", max)
    return apply_inplace(op, self, inputs[1:], attrs)


def _one_limit(
    name: str, self: Tensor, side: str, limit: Any
) -> tuple[Op, tuple[Any, ...], dict[str, Any]]:
    if not isinstance(self, Tensor):
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got ({type(self).__name__}, "
            f"{type(limit).__name__}), but expected one of:\n * (Tensor input, Tensor {side})\n"
            f" * (Tensor input, Number {side})"
        )
    if isinstance(limit, Tensor):
        return REGISTRY[name + "_tensor"], (self, limit), {}
    return REGISTRY[name], (self,), {side: _number_or_tensor(limit)}


@composite(out=True)
def lerp(self: Tensor, end: Tensor, weight: Any) -> Any:
    """``self + weight * (end - self)``, for a weight that is a number or a tensor."""
    if isinstance(weight, Tensor):
        return apply(REGISTRY["lerp"], (self, end, weight))
    return apply(REGISTRY["lerp_number"], (self, end), {"weight": weight})


@composite(function=False)
def lerp_(self: Tensor, end: Tensor, weight: Any) -> Tensor:
    """`lerp`, in place."""
    if isinstance(weight, Tensor):
        return apply_inplace(REGISTRY["lerp"], self, (end, weight))
    return apply_inplace(REGISTRY["lerp_number"], self, (end,), {"weight": weight})


@composite(out=True)
def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """`input` where `condition`, else `other`; the indices of true elements if neither is given."""
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    return apply(REGISTRY["where"], (condition, input, other))


composite(function=False, name="where")(
    lambda self, condition, other: apply(REGISTRY["where"], (condition, self, other))
)


@composite(method=False)
def fill(self: Tensor, value: Any) -> Tensor:
    """A tensor like `self`, filled with a number or a 0-d tensor."""
    if isinstance(value, Tensor):
        return apply(REGISTRY["fill_tensor"], (self, value))
    return apply(REGISTRY["fill"], (self,), {"value": value})


@composite()
def fill_(self: Tensor, value: Any) -> Tensor:
    """`fill`, in place."""
    if isinstance(value, Tensor):
        return apply_inplace(REGISTRY["fill_tensor"], self, (value,))
    return apply_inplace(REGISTRY["fill"], self, (), {"value": value})


@composite(function=False)
def copy_(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Overwrite with the values of `src`, broadcast and cast; recorded."""
    return apply_inplace(REGISTRY["copy"], self, (src,))
