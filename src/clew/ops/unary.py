"""Functions of one argument, elementwise."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.dtypes import preserve_format, scalar_name
from clew.kernels.half import cast
from clew.kernels.pointwise import pointwise, reciprocal_root
from clew.kernels.shared import Shared
from clew.op import given, op
from clew.ops.layout import empty_alike
from clew.ops.rules import (
    conj,
    is_complex,
    not_implemented,
    numpy_dtype,
    over,
    real_part,
    times,
)  # fmt: skip
from clew.promotion import Refusal, no_kernel

_COMPILED = ("exp", "expm1", "log", "log1p", "tanh", "reciprocal")
"""The functions that have twins."""


def _reciprocal(x: Any, out: Any = None) -> Any:
    """``1 / x``; NumPy's of complex numbers has another one of 0."""
    if x.dtype.kind == "c":
        return np.true_divide(1, x, out=out)
    return np.reciprocal(x, out=out)


def _function(name: str, forward: Any, rule: Any, **options: Any) -> Any:
    if isinstance(forward, np.ufunc):
        options["large"] = Shared(forward, name if name in _COMPILED else "")
    options = {
        "promote": "floating", "inplace": True, "jvp": "elementwise", "domain": "real", **options
    }  # fmt: skip
    return op(f"{name}(self)", forward, self=rule, **options)


_function("exp", np.exp, lambda F, grad, result: times(F, grad, result))
_function("exp2", np.exp2, lambda F, grad, result: grad * conj(F, result) * float(np.log(2)))
_function("expm1", np.expm1, lambda F, grad, result: grad * (conj(F, result) + 1))
_function("log", np.log, lambda F, grad, self: over(F, grad, self), domain="positive")
_function(
    "log2", np.log2, lambda F, grad, self: grad / (conj(F, self) * float(np.log(2))),
    domain="positive",
)  # fmt: skip
_function(
    "log10", np.log10, lambda F, grad, self: grad / (conj(F, self) * float(np.log(10))),
    domain="positive",
)  # fmt: skip
_function(
    "log1p", np.log1p, lambda F, grad, self: grad / (conj(F, self) + 1), domain="positive",
    node="Log1PBackward0",
)  # fmt: skip
_function("sqrt", np.sqrt, lambda F, grad, result: grad / (2 * conj(F, result)), domain="positive")
_function(
    "rsqrt",
    reciprocal_root,
    lambda F, grad, result: -0.5 * grad * conj(F, F.pow_scalar(result, 3)),
    doc="``1 / sqrt(self)``.",
    domain="positive",
)
_function(
    "reciprocal", _reciprocal, lambda F, grad, result: -grad * conj(F, result * result),
    domain="nonzero", large=Shared(_reciprocal, "reciprocal"),
)  # fmt: skip
_function("sin", np.sin, lambda F, grad, self: grad * conj(F, F.cos(self)))
_function("cos", np.cos, lambda F, grad, self: grad * -conj(F, F.sin(self)))
_function(
    "tan", np.tan, lambda F, grad, result: grad * conj(F, 1 + F.pow_scalar(result, 2)),
    domain="unit",
)  # fmt: skip
_function(
    "asin", np.arcsin, lambda F, grad, self: grad * conj(F, F.rsqrt(-self * self + 1)),
    domain="unit", aliases=("arcsin",),
)  # fmt: skip
_function(
    "acos", np.arccos, lambda F, grad, self: grad * -conj(F, F.rsqrt(-self * self + 1)),
    domain="unit", aliases=("arccos",),
)  # fmt: skip
_function(
    "atan", np.arctan, lambda F, grad, self: grad / conj(F, self * self + 1), aliases=("arctan",)
)
_function("sinh", np.sinh, lambda F, grad, self: grad * conj(F, F.cosh(self)))
_function("cosh", np.cosh, lambda F, grad, self: grad * conj(F, F.sinh(self)))
_function("tanh", np.tanh, lambda F, grad, result: F.tanh_backward(grad, result))


@op("tanh_backward(grad_output, output)", node="TanhBackwardBackward0", publish=(), domain="unit",
    jvp="twice")  # fmt: skip
@pointwise(twin="tanh_backward")
def tanh_backward(grad: Any, y: Any) -> Any:
    """The gradient of tanh: an op, so that a recorded backward keeps two tensors and no more."""
    slope = np.multiply(y, y)
    slope = np.subtract(1, slope)
    return np.multiply(grad, np.conjugate(slope) if slope.dtype.kind == "c" else slope)


@tanh_backward.grad("grad_output")
def _(F: Any, grad: Any, output: Any) -> Any:
    return F.tanh_backward(grad, conj(F, output))


@tanh_backward.grad("output")
def _(F: Any, grad: Any, grad_output: Any, output: Any) -> Any:
    return conj(F, grad) * (-2 * conj(F, output) * grad_output)


_function(
    "asinh", np.arcsinh, lambda F, grad, self: grad * conj(F, F.rsqrt(F.pow_scalar(self, 2) + 1)),
    aliases=("arcsinh",), inplace="asinh_inplace",
)  # fmt: skip
_function(
    "acosh", np.arccosh, lambda F, grad, self: grad * conj(F, F.rsqrt(self * self - 1)),
    domain="above_one", aliases=("arccosh",), doc="Inverse hyperbolic cosine.",
    inplace="acosh_inplace",
)  # fmt: skip
_function(
    "atanh", np.arctanh, lambda F, grad, self: grad * 1 / conj(F, 1 - F.pow_scalar(self, 2)),
    domain="unit", aliases=("arctanh",), inplace="atanh_inplace",
)  # fmt: skip


def _in_place_only(name: str, forward: Any) -> None:
    """What the in-place twin of a function records: PyTorch has no derivative for these."""
    op(
        f"{name}_inplace(self)", forward, promote="floating", publish=(), label=name,
        node=f"{name.capitalize()}Backward1", doc=f"`{name}` when it is written in place.",
        self=not_implemented(f"inplace version of {name}"),
    )  # fmt: skip


_in_place_only("asinh", np.arcsinh)
_in_place_only("acosh", np.arccosh)
_in_place_only("atanh", np.arctanh)


def _neg(x: Any) -> Any:
    if x.dtype.kind == "b":
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to "
            "invert a mask, use the `~` or `logical_not()` operator instead."
        )
    return np.negative(x)


op(
    "neg(self)", _neg, doc="``-self``.", inplace=True, jvp="linear", domain="real",
    aliases=("negative",), self=lambda F, grad: -grad,
)  # fmt: skip


def _write_abs(x: Any) -> None:
    if x.dtype.kind == "c":
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    np.abs(x, out=x)


op(
    "abs(self)", np.abs, inplace=True, domain="nonzero", aliases=("absolute",), write=_write_abs,
    self=lambda F, grad, self: F.mul(grad, F.sgn(self)),  # real and complex: laid out as PyTorch's
)  # fmt: skip

op(
    "square(self)", np.square, publish=(), doc="``self * self``.", domain="real",
    self=lambda F, grad, self: grad * (2 * conj(F, self)),
)  # fmt: skip


@op("sgn(self)", jvp="twice", inplace=True, domain="nonzero")
def sgn(x: Any) -> Any:
    """The sign; for a complex number the number divided by its absolute value."""
    return np.sign(x) if x.dtype.kind == "c" else _sign(x)


@sgn.grad("self")
def _(F: Any, grad: Any, self: Any, result: Any) -> Any:
    if not is_complex(self):
        return F.zeros_like(grad)
    # Only what is across the direction of the number turns it.
    size = F.abs(self)
    across = (grad - (result * result) * F.conj(grad)) / (size * 2.0)
    return F.masked_fill(across, F.eq(size, 0), value=0)


def _sign(x: Any) -> Any:
    """-1, 0 or 1; 0 of nan, where NumPy's is nan."""
    if x.dtype.kind == "c":
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use "
            "torch.sgn instead."
        )
    if x.dtype.kind in "bu":
        return np.not_equal(x, 0).astype(x.dtype)
    return _sign_of_number(x)


@pointwise(twin="sign")
def _sign_of_number(x: Any) -> Any:
    return np.subtract(x > 0, x < 0, dtype=x.dtype)


def _step(name: str, forward: Any, **options: Any) -> Any:
    """A function that is constant almost everywhere: its gradient is zero."""
    options = {"inplace": True, "jvp": "elementwise", "domain": "off_integers", **options}
    return op(f"{name}(self)", forward, self=lambda F, grad: F.zeros_like(grad), **options)


def _rounding(function: Any) -> Any:
    """Rounding leaves integers as they are, and there is none of complex numbers."""
    refusal = Refusal(f"{function.__name__} is not supported for complex inputs")

    def forward(x: Any) -> Any:
        kind = x.dtype.kind
        if kind in "iu":
            return x.copy()
        if kind == "c":
            refusal.check(x)
        return function(x)

    return forward


_step("floor", _rounding(np.floor), doc="The next integer below.")
_step("ceil", _rounding(np.ceil), doc="The next integer above.")
_step("trunc", _rounding(np.trunc), doc="The integer part.", aliases=("fix",))
_step("sign", _sign, domain="nonzero")

_fraction = pointwise(lambda x: x - np.trunc(x), twin="frac")


@op("frac(self)", inplace=True, domain="off_integers", self=lambda F, grad: grad)
def frac(x: Any) -> Any:
    """The fractional part."""
    if x.dtype.kind == "c":
        no_kernel("frac_cpu").check(x)
    return _fraction(x)


@op("round(self; *, decimals=0)", inplace=True, domain="off_integers",
    overloads=(given("decimals", "RoundBackward1"),),
    self=lambda F, grad: F.zeros_like(grad))  # fmt: skip
def round(x: Any, *, decimals: int) -> Any:
    """Round to `decimals` places, halves to even."""
    if x.dtype.kind == "c":
        no_kernel("round_cpu" if decimals else "round_vml_cpu").check(x)
    return x.copy() if x.dtype.kind in "iu" and not decimals else np.round(x, decimals)


op(
    "in_order(self)", lambda x: np.asarray(x, order="C"), publish=(), node="CloneBackward0",
    doc="A copy in order, for rules; of Tensors only where it is needed.", jvp="linear",
    domain="real", self=lambda F, grad: grad,
)  # fmt: skip


@op("clone(self; *, memory_format=None)", jvp="linear", domain="real", self=lambda F, grad: grad)
def clone(x: Any, *, memory_format: Any) -> Any:
    """A copy, recorded; its dimensions lie in the same order unless a `memory_format` is given."""
    if x.flags.c_contiguous or memory_format not in (None, preserve_format):
        return x.copy()
    copy = empty_alike(x)
    copy[...] = x
    return copy


@op("to_dtype(self; dtype)", node="ToCopyBackward0", publish=(), jvp="linear", domain="real",
    self=lambda F, grad: grad)  # fmt: skip
def to_dtype(x: Any, *, dtype: Any) -> Any:
    """A copy of another type; the engine casts the gradient back."""
    kind = numpy_dtype(dtype)
    part = real_part(x, kind)
    if part.flags.c_contiguous:
        return cast(part, kind)
    copy = empty_alike(part, kind)
    copy[...] = part
    return copy


@op("cast_like(self, other)", publish=())
def cast_like(x: Any, other: Any) -> Any:
    """`self` in the type of `other`; not differentiable (it serves rules, for masks)."""
    return np.asarray(x).astype(other.dtype)


@op("zeros_like(self)", publish=(), domain="real")
def zeros_like(x: Any) -> Any:
    """Zeros of the same shape and type; a constant."""
    zeros = empty_alike(x)
    zeros.fill(0)
    return zeros


@op("ones_like(self)", publish=(), domain="real")
def ones_like(x: Any) -> Any:
    """Ones of the same shape and type; a constant."""
    ones = empty_alike(x)
    ones.fill(1)
    return ones


@op("full(self; size, value)", publish=())
def full(x: Any, *, size: Any, value: Any) -> Any:
    """A constant of the type of `self`."""
    return np.full(size, value, dtype=x.dtype)


# -- complex numbers


@op("conj(self)", publish=(), jvp="linear", domain="real", self=lambda F, grad: F.conj(grad))
def conj_(x: Any) -> Any:
    """The complex conjugate; a real tensor as it is."""
    return np.conjugate(x) if x.dtype.kind == "c" else x


@op("real(self)", publish=(), jvp="linear", domain="real", self=lambda F, grad: grad)
def real(x: Any) -> Any:
    """The real part, copied."""
    return np.real(x).copy()


# -- tests, which have no gradient

for _name in ("isnan", "isinf", "isfinite"):
    op(f"{_name}(self)", getattr(np, _name), domain="real")


def _infinite_of(name: str, sign: int) -> None:
    def forward(x: Any) -> Any:
        if x.dtype.kind == "c":
            raise RuntimeError(f"{name} does not support complex inputs.")
        return np.equal(x, sign * np.inf)

    doc = f"Whether each element is {'' if sign > 0 else 'minus '}infinity."
    op(f"{name}(self)", forward, doc=doc, domain="real")


_infinite_of("isposinf", 1)
_infinite_of("isneginf", -1)
op("logical_not(self)", np.logical_not, inplace=True, domain="real")


@op("signbit(self)", domain="real")
def signbit(x: Any) -> Any:
    """Whether the sign is minus, also that of a zero or nan."""
    Refusal("signbit is not implemented for complex tensors.").check(x)
    return np.signbit(x)


@op("bitwise_not(self)", inplace=True, domain="integers")
def bitwise_not(x: Any) -> Any:
    """Bitwise not; logical not of bools.

    Raises:
        NotImplementedError: the tensor is neither integer nor bool.
    """
    if x.dtype.kind not in "biu":
        name = scalar_name(x.dtype)
        raise NotImplementedError(f"\"bitwise_not_cpu\" not implemented for '{name}'")
    return np.invert(x)
