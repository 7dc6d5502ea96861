"""Powers.  Layer 2."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from clew.kernels.pointwise import reciprocal_root
from clew.kernels.shared import Shared
from clew.op import op
from clew.ops.elementwise import _ARITHMETIC, _is_integer, _rounded_once
from clew.ops.layout import contiguous, copy_alike
from clew.ops.rules import conj, is_complex
from clew.promotion import arithmetic


@op("pow(self, exponent)", node="PowBackward1", domain="positive", tensors_only=True,
    **_ARITHMETIC)  # fmt: skip
def pow(x: Any, y: Any) -> Any:
    """``self ** exponent`` of two tensors."""
    result = _power(x, y)
    if y.size == 1 and y.dtype.kind == "f" and y.item() == 0.5:  # NumPy takes the square root
        result = np.where(np.equal(x, -math.inf), result.dtype.type(math.inf), result)
    return result


@pow.grad("self")
def _(F: Any, grad: Any, self: Any, exponent: Any, result: Any) -> Any:
    value = grad * conj(F, exponent * F.pow(self, F.sub(exponent, 1)))
    return F.where(exponent == 0, F.zeros_like(value), value)


@pow.grad("exponent")
def _(F: Any, grad: Any, self: Any, exponent: Any, result: Any) -> Any:
    if is_complex(result) and not is_complex(self):
        self = F.to_dtype(self, dtype=result.dtype)  # a negative number has a complex logarithm
    value = conj(F, result * F.log(self))
    # 0 ** y is constant in y >= 0, and log(0) must not make it nan.
    constant = F.logical_and(self == 0, _not_negative(F, exponent))
    return grad * F.where(constant, F.zeros_like(value), value)


@op("pow_scalar(self; exponent)", node="PowBackward0", publish=(), domain="positive", inplace=True,
    label="pow")  # fmt: skip
def pow_scalar(x: Any, *, exponent: Any) -> Any:
    """``self ** exponent`` for a number."""
    if x.dtype.kind in "biu" and isinstance(exponent, int) and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    simple = _SIMPLE_POWERS.get(exponent) if x.dtype.kind == "c" else None
    if simple is not None:
        return simple(x)
    x, exponent = arithmetic([x, exponent])
    return _power(x, exponent)


@pow_scalar.grad("self")
def _(F: Any, grad: Any, self: Any, *, exponent: Any) -> Any:
    if exponent == 0:
        return F.full(self, size=tuple(self.shape), value=0)
    return grad * conj(F, exponent * F.pow_scalar(self, exponent=exponent - 1))


@op("rpow(exponent, base)", node="PowBackward2", publish=(), promote="arithmetic", mixes=False,
    jvp="elementwise")  # fmt: skip
@contiguous
def rpow(x: Any, base: Any) -> Any:
    """``base ** exponent`` for a number as the base."""
    return _power(base, x)


@rpow.grad("exponent")
def _(F: Any, grad: Any, exponent: Any, base: Any, result: Any) -> Any:
    # Among complex numbers a negative base has a logarithm.
    value = grad * conj(F, result * _log_of_number(complex(base) if is_complex(result) else base))
    if base != 0:
        return value
    return F.where(_not_negative(F, exponent), F.zeros_like(value), value)


def _log_of_number(x: Any) -> Any:
    """The logarithm of a number, of a real one that is negative nan."""
    if isinstance(x, complex):
        import cmath

        return cmath.log(x) if x else complex(-math.inf)
    return math.log(x) if x > 0 else -math.inf if x == 0 else math.nan


def _not_negative(F: Any, x: Any) -> Any:
    """Where a number is real and at least zero."""
    if not is_complex(x):
        return x >= 0
    return F.logical_and(F.imag(x) == 0, F.real(x) >= 0)


_reciprocal = Shared(np.reciprocal, "reciprocal")


def _power(x: Any, exponent: Any) -> Any:
    """Small exponents by multiplication: NumPy's float power is many times slower."""
    if exponent.__class__ in (int, float):
        if exponent == 2:
            return np.multiply(x, x)
        if exponent == 3:
            return _rounded_once(lambda x: x * x * x, x)
        if exponent == 1:
            return copy_alike(x)
        if exponent == 0.5 and x.dtype.kind == "f":
            return np.sqrt(x)
        if exponent == -1 and x.dtype.kind == "f":
            return _reciprocal(x)
        if exponent == -2 and x.dtype.kind == "f":
            return _rounded_once(lambda x: _reciprocal(np.asarray(x * x)), x)
        if exponent == -0.5 and x.dtype.kind == "f":
            return reciprocal_root(x)
    if is_complex(x) or is_complex(exponent):  # as in C; NumPy has other powers of 0
        return np.exp(exponent * np.log(x))
    if _is_integer(x) and _is_integer(exponent) and np.less(exponent, 0).any():
        inverse = np.where(np.abs(x) == 1, np.power(x, np.abs(exponent)), 0)
        return np.where(np.less(exponent, 0), inverse, np.power(x, np.maximum(exponent, 0)))
    return np.power(x, exponent)


_SIMPLE_POWERS: dict[Any, Any] = {
    0: np.ones_like,
    0.5: np.sqrt,
    1: copy_alike,
    2: lambda x: x * x,
    3: lambda x: x * x * x,
    -0.5: lambda x: np.true_divide(1, np.sqrt(x)),
    -1: lambda x: np.true_divide(1, x),
    -2: lambda x: np.true_divide(1, x * x),
}
"""By exponent, the powers of complex numbers that PyTorch does not take a logarithm for."""
