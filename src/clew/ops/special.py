"""Functions of mathematical physics and statistics: error, gamma and entropy functions."""

from __future__ import annotations

from math import log, pi, sqrt
from typing import Any

import numpy as np

from clew.kernels import gamma, incomplete_gamma, special
from clew.kernels.erf import erf as erf_kernel
from clew.kernels.pointwise import pointwise
from clew.op import of_number, op
from clew.ops.checks import as_arrays, floating_only, single_or_double_only
from clew.ops.rules import both, not_implemented

_SLOPE = 2 / sqrt(pi)
"""The derivative of erf at 0."""


def _function(name: str, kernel: Any, checked: str, rule: Any, **options: Any) -> None:
    """A function of one real number that a kernel computes."""

    def forward(x: Any) -> Any:
        floating_only(x, checked)
        return kernel(x)

    options = {"promote": "floating", "inplace": True, "mixes": True, **options}
    op(f"{name}(self)", forward, doc=kernel.__doc__, self=rule, **options)


# -- error functions

_function(
    "erf", erf_kernel, "erf_vml_cpu",
    lambda F, grad, self: F.mul(_SLOPE * F.exp(-F.pow_scalar(self, 2)), grad), domain="real",
)  # fmt: skip
_function(
    "erfc", special.erfc, "erfc_vml_cpu",
    lambda F, grad, self: F.mul(-_SLOPE * F.exp(-F.pow_scalar(self, 2)), grad), domain="real",
)  # fmt: skip


def _of_erfinv(F: Any, grad: Any, self: Any) -> Any:
    return F.mul(F.exp(F.pow_scalar(F.erfinv(self), 2)) * (1 / _SLOPE), grad)


_function("erfinv", special.erfinv, "erfinv_vml_cpu", _of_erfinv, domain="unit")
_function(
    "special_erfcx", special.erfcx, "erfcx_cpu",
    lambda F, grad, self, result: F.mul(2 * self * result - _SLOPE, grad), domain="real",
    inplace=False, publish=("special",),
)  # fmt: skip


def _of_log_ndtr(F: Any, grad: Any, self: Any, result: Any) -> Any:
    # The density over the probability, both as logarithms: neither underflows.
    return grad / sqrt(2 * pi) * F.exp(-(result + F.pow_scalar(self, 2) / 2))


_function(
    "special_log_ndtr", special.log_ndtr, "log_ndtr_cpu", _of_log_ndtr, domain="real",
    inplace=False, publish=("special",),
)  # fmt: skip


@op("special_ndtri(self)", promote="floating", publish=("special",))
def special_ndtri(x: Any) -> Any:
    """The number below which a standard normal variable is with probability `self`."""
    single_or_double_only(x, "ndtri_cpu")
    return special.ndtri(x)


@special_ndtri.grad("self")
def _(F: Any, grad: Any, result: Any) -> Any:
    return grad * sqrt(2 * pi) * F.exp(F.pow_scalar(result, 2) / 2)


# -- gamma functions

_function(
    "lgamma", gamma.lgamma, "lgamma_vml_cpu",
    lambda F, grad, self: grad * F.digamma(self), domain="positive",
)  # fmt: skip
_function(
    "digamma", gamma.digamma, "digamma",
    lambda F, grad, self: grad * F.polygamma(self, 1), domain="positive",
)  # fmt: skip


@op("polygamma(self; n)", publish=(), promote="floating", domain="positive")
def polygamma(x: Any, *, n: int) -> Any:
    """The `n`-th derivative of `digamma`.

    Raises:
        RuntimeError: `n` is negative.
    """
    floating_only(x, "trigamma" if n == 1 else "polygamma")
    return gamma.polygamma(n, x)


@polygamma.grad("self")
def _(F: Any, grad: Any, self: Any, *, n: int) -> Any:
    return grad * F.polygamma(self, n + 1)


def _zeta(s: Any, q: Any) -> Any:
    """Hurwitz's zeta function: the sum of ``(other + k) ** -self`` over k = 0, 1, ..."""
    s, q = as_arrays(s, q)
    single_or_double_only(s, "zeta_cpu")
    return gamma.zeta(s, q)


def _zeta_of_self(F: Any, grad: Any) -> Any:
    raise NotImplementedError("the derivative for 'zeta' is not implemented.")


def _zeta_of_other(F: Any, grad: Any, self: Any, other: Any) -> Any:
    return grad * -self * F.special_zeta(self + 1, other)


_ZETA: dict[str, Any] = {"promote": "floating", "publish": ()}
op("special_zeta(self, other)", _zeta, self=_zeta_of_self, other=_zeta_of_other, **_ZETA)
op("special_zeta_of_number(self, other)", _zeta, other=_zeta_of_other,
   node="SpecialZetaBackward1", **_ZETA)  # fmt: skip
op("special_zeta_with_number(self, other)", _zeta, self=_zeta_of_self,
   node="SpecialZetaBackward2", **_ZETA)  # fmt: skip


@op("mvlgamma(self; p)", promote="floating", inplace=True, domain="above_one")
def mvlgamma(x: Any, *, p: int) -> Any:
    """The logarithm of the multivariate gamma function of dimension `p`.

    Raises:
        RuntimeError: `p` is not positive.
    """
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    floating_only(x, "lgamma_vml_cpu")
    total = np.full_like(x, p * (p - 1) * log(pi) / 4)
    for k in range(p):
        total += gamma.lgamma(x - x.dtype.type(k / 2))
    return total


@mvlgamma.grad("self")
def _(F: Any, grad: Any, self: Any, *, p: int) -> Any:
    slope = F.digamma(self)
    for k in range(1, p):
        slope = slope + F.digamma(self - k / 2)
    return grad * slope


def _incomplete(name: str, kernel: Any, sign: int) -> None:
    def forward(a: Any, x: Any) -> Any:
        floating_only(a, f"{name}_cpu")
        return kernel(a, x)

    def of_other(F: Any, grad: Any, self: Any, other: Any) -> Any:
        density = F.exp((self - 1) * F.log(other) - other - F.lgamma(self))
        return grad * density if sign > 0 else -grad * density

    op(
        f"{name}(self, other)", forward, promote="arithmetic", tensors_only=True, inplace=True,
        jvp="elementwise", doc=kernel.__doc__, self=not_implemented(f"{name}: input"),
        other=of_other,
    )  # fmt: skip


_incomplete("igamma", incomplete_gamma.lower, 1)
_incomplete("igammac", incomplete_gamma.upper, -1)


# -- odds and entropy


@pointwise
def _logit(x: Any, *, eps: float | None) -> Any:
    if eps is not None:
        x = np.clip(x, eps, 1 - eps)
    return np.log(x / (1 - x))


@op("logit(self; eps=None)", jvp="elementwise", promote="floating", inplace=True)
def logit(x: Any, *, eps: float | None) -> Any:
    """``log(self / (1 - self))``, of `self` limited to ``[eps, 1 - eps]`` if `eps` is given."""
    floating_only(x, "logit_cpu")
    return _logit(x, eps=eps)


@logit.grad("self")
def _(F: Any, grad: Any, self: Any, *, eps: float | None) -> Any:
    low = 0.0 if eps is None else eps
    inside = F.logical_and(F.ge(self, low), F.le(self, 1 - low))
    if eps is None and not getattr(self, "requires_grad", False):  # as one operation, `grad` first
        return F.div(grad, F.where(inside, self * (1 - self), float("nan")))
    outside = float("nan") if eps is None else 0.0
    return F.where(inside, grad / (self * (1 - self)), outside)


@op("special_entr(self)", promote="floating", publish=("special",), domain="positive")
def special_entr(x: Any) -> Any:
    """``-self * log(self)``; 0 at 0, and minus infinity for negative numbers."""
    floating_only(x, "entr_cpu")
    inner = np.where(x == 0, x.dtype.type(0), -x * np.log(x))
    return np.where(x < 0, x.dtype.type(-np.inf), inner)


@special_entr.grad("self")
def _(F: Any, grad: Any, self: Any) -> Any:
    return grad * -(1 + F.log(self))


def _xlog1py(x: Any, y: Any) -> Any:
    """``self * log(1 + other)``, 0 where `self` is 0 (and `other` is not nan)."""
    x, y = as_arrays(x, y)
    floating_only(x, "xlog1py_cpu")
    nothing = np.logical_and(np.equal(x, 0), np.logical_not(np.isnan(y)))
    return np.where(nothing, x.dtype.type(0), np.multiply(x, np.log1p(y)))


def _xlog1py_of_self(F: Any, grad: Any, self: Any, other: Any) -> Any:
    nothing = both(F, F.eq(self, 0), other <= -1)
    return F.masked_fill(F.special_xlog1py(grad, other), nothing, 0)


def _xlog1py_of_other(F: Any, grad: Any, self: Any, other: Any) -> Any:
    return grad * self / (other + 1)


_XLOG1PY: dict[str, Any] = {"promote": "floating", "publish": ()}
op("special_xlog1py(self, other)", _xlog1py, self=_xlog1py_of_self, other=_xlog1py_of_other,
   node="SpecialXlog1PyBackward0", domain="positive",
   overloads=(of_number("other", "SpecialXlog1PyBackward2"),), **_XLOG1PY)  # fmt: skip
op("special_xlog1py_of_number(self, other)", _xlog1py, other=_xlog1py_of_other,
   node="SpecialXlog1PyBackward1", jvp="elementwise", **_XLOG1PY)  # fmt: skip
op("special_xlog1py_with_number(self, other)", _xlog1py, self=_xlog1py_of_self,
   node="SpecialXlog1PyBackward2", jvp="elementwise", **_XLOG1PY)  # fmt: skip
