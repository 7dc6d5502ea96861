"""Functions of one or two numbers that PyTorch took over from NumPy and the C library."""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np

from clew.dtypes import scalar_name
from clew.errors import NoDerivativeError
from clew.kernels.half import narrow, widen
from clew.kernels.pointwise import pointwise
from clew.op import of_number, op
from clew.ops.rules import NO_GRADIENT, both, conj
from clew.promotion import Refusal, floating, no_kernel, product, to_common


def _not_for(x: Any, kinds: str, name: str) -> None:
    if x.dtype.kind in kinds:
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{scalar_name(x.dtype)}'")


def _widened(function: Any, x: Any, y: Any) -> Any:
    """`function` of halves in single precision."""
    if x.dtype.itemsize > 2:
        return function(x, y)
    return np.asarray(function(x.astype(np.float32), y.astype(np.float32))).astype(x.dtype)


# -- logarithms


def _log_sum(name: str, function: Any, exponential: str, power: Any, refused: str = "biu") -> None:
    def forward(x: Any, y: Any) -> Any:
        _not_for(x, refused, name)
        if x.dtype.kind == "c":
            return _complex_log_sum(x, y)
        return _widened(function, x, y)

    def of_self(F: Any, grad: Any, self: Any, other: Any) -> Any:
        return grad / conj(F, 1 + power(F, other - self))

    def of_other(F: Any, grad: Any, self: Any, other: Any) -> Any:
        return grad / conj(F, 1 + power(F, self - other))

    op(
        f"{name}(self, other)", forward, promote="arithmetic", tensors_only=True, domain="real",
        self=of_self, other=of_other,
        doc=f"The logarithm of ``{exponential}(self) + {exponential}(other)``, in that base.",
    )  # fmt: skip


def _complex_log_sum(x: Any, y: Any) -> Any:
    large = np.where(x.real < y.real, y, x)
    small = np.where(x.real < y.real, x, y)
    return large + np.log1p(np.exp(small - large))


@pointwise(twin="logaddexp")
def _logaddexp(x: Any, y: Any) -> Any:
    return np.logaddexp(x, y)


_log_sum("logaddexp", _logaddexp, "exp", lambda F, x: F.exp(x))
_log_sum("logaddexp2", np.logaddexp2, "exp2", lambda F, x: F.rpow(x, 2.0), refused="biuc")


def _xlogy(x: Any, y: Any) -> Any:
    """``self * log(other)``, 0 where `self` is 0 (and `other` is not nan)."""
    kind = x.dtype if isinstance(x, np.ndarray) else y.dtype
    x, y = np.asarray(x, kind), np.asarray(y, kind)
    nothing = np.logical_and(np.equal(x, 0), np.logical_not(np.isnan(y)))
    return np.where(nothing, kind.type(0), np.multiply(x, np.log(y)))


def _xlogy_of_self(F: Any, grad: Any, self: Any, other: Any) -> Any:
    nothing = both(F, F.eq(self, 0), other <= 0)
    return F.masked_fill(F.xlogy(grad, other), nothing, 0)


def _xlogy_of_other(F: Any, grad: Any, self: Any, other: Any) -> Any:
    return grad * self / other


_XLOGY: dict[str, Any] = {
    "promote": "floating", "domain": "positive", "complex": no_kernel("xlogy_cpu"),
}  # fmt: skip
op("xlogy(self, other)", _xlogy, publish=(), inplace=True, self=_xlogy_of_self,
   other=_xlogy_of_other, overloads=(of_number("other", "XlogyBackward2"),), **_XLOGY)  # fmt: skip
op("xlogy_of_number(self, other)", _xlogy, publish=(), node="XlogyBackward1",
   other=_xlogy_of_other, **_XLOGY)  # fmt: skip
op("xlogy_with_number(self, other)", _xlogy, publish=(), node="XlogyBackward2",
   self=_xlogy_of_self, **_XLOGY)  # fmt: skip


@op("ldexp(self, other)", tensors_only=True, domain="real")
def ldexp(x: Any, y: Any) -> Any:
    """``self * 2 ** other``."""
    (powers,) = floating([y])
    return np.multiply(*to_common([x, np.exp2(powers)]))


@ldexp.grad("self")
def _(F: Any, grad: Any, other: Any, result: Any) -> Any:
    return grad * conj(F, F.rpow(other, 2.0))


@ldexp.grad("other")
def _(F: Any, grad: Any, result: Any) -> Any:
    return grad * conj(F, result) * log(2)


@op("frexp(self) -> mantissa, exponent", publish=(), tensors_only=True, no_grad_outputs=(1,))
def frexp(x: Any) -> Any:
    """Mantissas in [1/2, 1) and integer exponents: ``self = mantissa * 2 ** exponent``."""
    if x.dtype.kind not in "fV":
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    mantissa, exponent = np.frexp(widen(x))
    return narrow(mantissa, x.dtype), exponent.astype(np.int32)


@frexp.grad("self")
def _(F: Any, grads: Any, exponent: Any) -> Any:
    return F.ldexp(grads[0], -exponent)


# -- steps and signs


def refusing(name: str) -> Any:
    """The rule of what has no derivative: it raises when a gradient arrives."""

    def rule(F: Any, grad: Any) -> Any:
        raise NoDerivativeError(f"derivative for aten::{name} is not implemented", NO_GRADIENT)

    return rule


@op("heaviside(self, values)", inplace=True, node="torch::autograd::NotImplemented",
    tensors_only=True, self=refusing("heaviside"), values=refusing("heaviside"),
    mixes=True)  # fmt: skip
def heaviside(x: Any, values: Any) -> Any:
    """0 where `self` is negative, 1 where it is positive, `values` where it is 0."""
    Refusal("heaviside is not yet implemented for complex tensors.", RuntimeError).check(x, values)
    if x.dtype != values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    return np.where(x == 0, values, (x > 0).astype(x.dtype))


def _copysign(x: Any, y: Any) -> Any:
    """The magnitude of `self` with the sign of `other`."""
    return np.copysign(x, y)


def _copysign_of_self(F: Any, grad: Any, self: Any, result: Any) -> Any:
    return F.mul(grad, F.masked_out(F.div(result, self), F.eq(self, 0)))


op("copysign(self, other)", _copysign, promote="floating", publish=(), inplace=True,
   complex=no_kernel("copysign_cpu"),
   tensors_only=True, domain="nonzero", self=_copysign_of_self,
   other=lambda F, grad, result: F.full(grad, size=tuple(grad.shape), value=0))  # fmt: skip
op("copysign_number(self, other)", _copysign, promote="floating", publish=(), inplace=True,
   complex=no_kernel("copysign_cpu"),
   node="CopysignBackward1", self=_copysign_of_self, domain="nonzero")  # fmt: skip


@op("nextafter(self, other)", promote="arithmetic", inplace=True, tensors_only=True,
    domain="real")  # fmt: skip
def nextafter(x: Any, y: Any) -> Any:
    """The number next to `self` in the direction of `other`."""
    _not_for(x, "biuc", "nextafter")
    return np.nextafter(x, y)


@nextafter.grad("self")
def _(F: Any, grad: Any, self: Any, other: Any) -> Any:
    return F.where(F.eq(self, other), 0, grad)


@nextafter.grad("other")
def _(F: Any, grad: Any) -> Any:
    return F.zeros_like(grad)


# -- integers


def _integers(name: str, function: Any, doc: str) -> None:
    def forward(x: Any, y: Any) -> Any:
        x, y = to_common([x, y])
        _not_for(x, "bfcV", name)
        return function(x, y)

    op(f"{name}(self, other)", forward, inplace=True, tensors_only=True, doc=doc)


_integers("gcd", np.gcd, "The greatest common divisor.")
_integers("lcm", np.lcm, "The least common multiple.")


# -- angles and waves


@op("sinc(self)", promote="floating", inplace=True, domain="nonzero")
@pointwise
def sinc(x: Any) -> Any:
    """``sin(pi * self) / (pi * self)``, and 1 at 0."""
    wave = x * x.dtype.type(pi)
    return np.where(x == 0, x.dtype.type(1), np.sin(wave) / wave)


@sinc.grad("self")
def _(F: Any, grad: Any, self: Any) -> Any:
    wave = self * pi
    square = self * self * pi
    slope = (wave * F.cos(wave) - F.sin(wave)) / square
    return F.where(F.eq(square, 0), 0, grad * conj(F, slope))


def _scaling(name: str, factor: float, node: str, doc: str) -> None:
    def forward(x: Any) -> Any:
        if x.dtype.kind == "c":
            raise RuntimeError(f"{name} is not supported for complex tensors.")
        return np.multiply(*product([x, factor]))

    op(
        f"{name}(self)", forward, promote="floating", inplace=True, jvp="linear", node=node,
        domain="real", self=lambda F, grad: grad * factor, doc=doc,
    )  # fmt: skip


_scaling("deg2rad", pi / 180, "Deg2RadBackward0", "Degrees in radians.")
_scaling("rad2deg", 180 / pi, "Rad2DegBackward0", "Radians in degrees.")
