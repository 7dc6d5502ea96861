"""Smooth activations, and their derivatives as ops of their own.

A derivative is an op so that it runs in few passes over memory; its rules give the second order.
In the formulas below s is the logistic function of x.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

import numpy as np

from clew.kernels.erf import normal_cdf, normal_pdf
from clew.kernels.half import narrow, widen
from clew.kernels.pointwise import pointwise
from clew.op import op
from clew.ops.checks import floating_only
from clew.ops.layout import contiguous
from clew.ops.rules import conj, wrap_dim

# -- sigmoid


@op("sigmoid(self)", promote="floating", inplace=True, domain="real", aliases=("expit",))
@pointwise(twin="sigmoid")
def sigmoid(x: Any) -> Any:
    """``1 / (1 + exp(-self))``."""
    out = np.asarray(np.negative(x))
    np.exp(out, out=out)
    out += 1
    return np.reciprocal(out, out=out)


@sigmoid.grad("self")
def _(F: Any, grad: Any, result: Any) -> Any:
    return F.sigmoid_backward(grad, result)


@op("sigmoid_backward(grad_output, output)", publish=(), domain="unit", jvp="twice")
@pointwise(twin="sigmoid_backward")
def sigmoid_backward(grad: Any, y: Any) -> Any:
    """``grad_output * (1 - output) * output``."""
    y = np.conjugate(y) if y.dtype.kind == "c" else y
    out = np.asarray(np.subtract(1, y))
    out *= grad
    out *= y
    return out


@sigmoid_backward.grad("grad_output")
def _(F: Any, grad: Any, output: Any) -> Any:
    return F.sigmoid_backward(grad, conj(F, output))


@sigmoid_backward.grad("output")
def _(F: Any, grad: Any, grad_output: Any, output: Any) -> Any:
    return conj(F, grad) * (grad_output * conj(F, 1 - 2 * output))


@op("log_sigmoid(self)", publish=(), domain="real")
@contiguous
def log_sigmoid(x: Any) -> Any:
    """``log(sigmoid(self))``."""
    floating_only(x, "log_sigmoid_cpu")
    return _log_sigmoid(x)


@pointwise(twin="log_sigmoid")
def _log_sigmoid(x: Any) -> Any:
    out = np.asarray(np.abs(x))
    np.negative(out, out=out)
    np.exp(out, out=out)
    np.log1p(out, out=out)
    return np.subtract(np.minimum(x, 0), out, out=out)


@log_sigmoid.grad("self")
def _(F: Any, grad: Any, self: Any) -> Any:
    return F.log_sigmoid_backward(grad, self)


@op("log_sigmoid_backward(grad_output, self)", publish=(), domain="real", mixes=False)
@contiguous
@pointwise(twin="log_sigmoid_backward")
def log_sigmoid_backward(grad: Any, x: Any) -> Any:
    """``grad_output * (1 - s)``."""
    out = np.asarray(np.exp(x))
    out += 1
    return np.divide(grad, out, out=out)


@log_sigmoid_backward.grad("grad_output")
def _(F: Any, grad: Any, self: Any) -> Any:
    return F.log_sigmoid_backward(grad, self)


@log_sigmoid_backward.grad("self")
def _(F: Any, grad: Any, grad_output: Any, self: Any) -> Any:
    s = F.sigmoid(self)
    return grad * grad_output * (s * (s - 1))


# -- silu, mish


@op("silu(self)", publish=(), inplace=True, domain="real")
def silu(x: Any) -> Any:
    """``self * sigmoid(self)``, also called swish."""
    if x.dtype.kind != "c":
        floating_only(x, "silu_cpu")
    return _silu(x)


@pointwise(twin="silu")
def _silu(x: Any) -> Any:
    out = np.asarray(np.negative(x))
    np.exp(out, out=out)
    out += 1
    return np.divide(x, out, out=out)


@silu.grad("self")
def _(F: Any, grad: Any, self: Any) -> Any:
    return F.silu_backward(grad, self)


@op("silu_backward(grad_output, self)", publish=(), domain="real")
@pointwise(twin="silu_backward")
def silu_backward(grad: Any, x: Any) -> Any:
    """``grad_output * s * (1 + x * (1 - s))``."""
    x = np.conjugate(x) if x.dtype.kind == "c" else x
    s = sigmoid.forward(x)
    out = np.asarray(np.subtract(1, s))
    out *= x
    out += 1
    out *= s
    out *= grad
    return out


@silu_backward.grad("grad_output")
def _(F: Any, grad: Any, self: Any) -> Any:
    return F.silu_backward(grad, self)


@silu_backward.grad("self")
def _(F: Any, grad: Any, grad_output: Any, self: Any) -> Any:
    s = F.sigmoid(self)
    return grad * conj(F, grad_output * (s * (1 - s) * (2 + self * (1 - 2 * s))))


@op("mish(self)", publish=(), inplace=True, domain="real")
def mish(x: Any) -> Any:
    """``self * tanh(log(1 + exp(self)))``."""
    floating_only(x, "mish_cpu")
    return _mish(x)


@pointwise(twin="mish")
def _mish(x: Any) -> Any:
    out = _tanh_of_softplus(x)
    out *= x
    return out


def _tanh_of_softplus(x: Any) -> Any:
    e = _grown(x)
    return np.divide(e, e + 2, out=e)


def _grown(x: Any) -> Any:
    """``e**2 + 2e`` with e = exp(x), where it is not yet so large that only that counts.

    Of it are made tanh(softplus(x)), as g / (g + 2), and 1 minus the square of that, as
    4 (g + 1) / (g + 2)**2.
    """
    e = np.asarray(np.exp(np.minimum(x, 20)))
    e *= e + 2
    return e


@mish.grad("self")
def _(F: Any, grad: Any, self: Any) -> Any:
    return F.mish_backward(grad, self)


@op("mish_backward(grad_output, self)", publish=(), domain="real")
@pointwise(twin="mish_backward")
def mish_backward(grad: Any, x: Any) -> Any:
    """With t = tanh(softplus(x)): ``grad_output * (t + x * s * (1 - t**2))``."""
    g = _grown(x)
    out = np.asarray(np.add(g, 2))
    t = np.asarray(np.divide(g, out))
    np.square(out, out=out)
    np.divide(np.add(g, 1, out=g), out, out=out)
    out *= 4
    out *= sigmoid.forward(x)
    out *= np.minimum(x, 20)  # beyond it this term is 0, but nan at infinity
    out += t
    out += np.multiply(x, 0)
    out *= grad
    return out


@mish_backward.grad("grad_output")
def _(F: Any, grad: Any, self: Any) -> Any:
    return F.mish_backward(grad, self)


@mish_backward.grad("self")
def _(F: Any, grad: Any, grad_output: Any, self: Any) -> Any:
    s, t = F.sigmoid(self), F.tanh(F.softplus(self))
    slope = s * (1 - t * t) * (2 + self * (1 - s - 2 * s * t))
    return grad * grad_output * slope


# -- softplus


@op("softplus(self; beta=1, threshold=20)", publish=(), domain="real")
def softplus(x: Any, *, beta: float, threshold: float) -> Any:
    """``log(1 + exp(beta * self)) / beta``; `self` where ``beta * self`` is above `threshold`."""
    floating_only(x, "softplus_cpu")
    return _softplus(x, beta=beta, threshold=threshold)


@pointwise(twin="softplus")
def _softplus(x: Any, *, beta: float, threshold: float) -> Any:
    out = np.asarray(np.multiply(x, beta))
    linear = np.greater(out, threshold)
    np.exp(out, out=out)
    np.log1p(out, out=out)
    out /= beta
    np.copyto(out, x, where=linear)
    return out


@softplus.grad("self")
def _(F: Any, grad: Any, self: Any, *, beta: float, threshold: float) -> Any:
    return F.softplus_backward(grad, self, beta=beta, threshold=threshold)


@op("softplus_backward(grad_output, self; beta, threshold)", publish=(), domain="real")
@pointwise(twin="softplus_backward")
def softplus_backward(grad: Any, x: Any, *, beta: float, threshold: float) -> Any:
    """``grad_output * sigmoid(beta * self)``; `grad_output` above the threshold."""
    out = np.asarray(np.multiply(x, beta))
    linear = np.greater(out, threshold)
    out = sigmoid.forward(out)
    out *= grad
    np.copyto(out, grad, where=linear)
    return out


@softplus_backward.grad("grad_output")
def _(F: Any, grad: Any, self: Any, *, beta: float, threshold: float) -> Any:
    return F.softplus_backward(grad, self, beta=beta, threshold=threshold)


@softplus_backward.grad("self")
def _(F: Any, grad: Any, grad_output: Any, self: Any, *, beta: float, threshold: float) -> Any:
    scaled = self * beta
    s = F.sigmoid(scaled)
    return F.where(F.gt(scaled, threshold), 0, grad * grad_output * (s * (1 - s) * beta))


# -- gelu

_ROOT, _CUBIC = sqrt(2 / pi), 0.044715
"""The tanh approximation is ``x / 2 * (1 + tanh(_ROOT * (x + _CUBIC * x**3)))``."""


@op("gelu(self; *, approximate='none')", publish=(), inplace=True, domain="real")
def gelu(x: Any, *, approximate: str) -> Any:
    """`self` times the probability that a standard normal variable is below `self`.

    Raises:
        RuntimeError: `approximate` is neither "none" nor "tanh".
    """
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    floating_only(x, "GeluKernelImpl")
    return _gelu_tanh(x) if approximate == "tanh" else _gelu(x)


@pointwise(twin="gelu")
def _gelu(x: Any) -> Any:
    out = normal_cdf(x)
    out *= x
    return out


@pointwise(twin="gelu_tanh")
def _gelu_tanh(x: Any) -> Any:
    out = _tanh_of_cubic(x)
    out += 1
    out *= 0.5
    out *= x
    return out


def _tanh_of_cubic(x: Any) -> Any:
    out = np.asarray(np.multiply(x, x))
    out *= _CUBIC
    out += 1
    out *= x
    out *= _ROOT
    return np.tanh(out, out=out)


@gelu.grad("self")
def _(F: Any, grad: Any, self: Any, *, approximate: str) -> Any:
    return F.gelu_backward(grad, self, approximate=approximate)


@op("gelu_backward(grad_output, self; approximate)", publish=(), domain="real")
def gelu_backward(grad: Any, x: Any, *, approximate: str) -> Any:
    """`grad_output` times the slope of `gelu`."""
    return _gelu_tanh_backward(grad, x) if approximate == "tanh" else _gelu_backward(grad, x)


@pointwise(twin="gelu_backward")
def _gelu_backward(grad: Any, x: Any) -> Any:
    out = normal_pdf(x)
    out *= x
    out += normal_cdf(x)
    out *= grad
    return out


@pointwise(twin="gelu_tanh_backward")
def _gelu_tanh_backward(grad: Any, x: Any) -> Any:
    t = _tanh_of_cubic(x)
    out = np.asarray(np.multiply(x, x))
    out *= 3 * _CUBIC * _ROOT
    out += _ROOT
    out *= x
    out *= 1 - t * t
    out += t
    out += 1
    out *= 0.5
    out *= grad
    return out


@gelu_backward.grad("grad_output")
def _(F: Any, grad: Any, self: Any, *, approximate: str) -> Any:
    return F.gelu_backward(grad, self, approximate=approximate)


@gelu_backward.grad("self")
def _(F: Any, grad: Any, grad_output: Any, self: Any, *, approximate: str) -> Any:
    square = self * self
    if approximate == "none":
        density = F.exp(square * -0.5) * (1 / sqrt(2 * pi))
        return grad * grad_output * (density * (2 - square))
    inner = _ROOT * (1 + 3 * _CUBIC * square)  # the slope of the tanh's argument
    t = F.tanh(_ROOT * self * (1 + _CUBIC * square))
    bend = self * (3 * _CUBIC * _ROOT * self - t * inner * inner)
    return grad * grad_output * ((1 - t * t) * (inner + bend))


# -- glu


@op("glu(self; dim=-1)", publish=())
def glu(x: Any, *, dim: int) -> Any:
    """The first half along `dim` times the sigmoid of the second half.

    Raises:
        RuntimeError: there is no dimension, or its size is odd.
    """
    if x.ndim == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    d = wrap_dim(dim, x.ndim)
    if x.shape[d] % 2:
        raise RuntimeError(
            f"Halving dimension must be even, but dimension {d} is size {x.shape[d]}"
        )
    floating_only(x, "glu_cpu")
    first, second = _halves(widen(x), d)
    out = sigmoid.forward(np.ascontiguousarray(second))
    out *= first
    return narrow(out, x.dtype)


def _halves(x: Any, dim: int) -> tuple[Any, Any]:
    half = x.shape[dim] // 2
    before = (slice(None),) * dim
    return x[(*before, slice(None, half))], x[(*before, slice(half, None))]


@glu.grad("self")
def _(F: Any, grad: Any, self: Any, *, dim: int) -> Any:
    return F.glu_backward(grad, self, dim=dim)


@op("glu_backward(grad_output, self; dim)", publish=())
def glu_backward(grad: Any, x: Any, *, dim: int) -> Any:
    """Gradient of `glu`: ``s * grad_output`` and ``s * (1 - s) * first * grad_output``."""
    d = wrap_dim(dim, x.ndim)
    wide = widen(x)
    first, second = _halves(wide, d)
    out = np.empty(x.shape, wide.dtype)
    of_first, of_second = _halves(out, d)
    s = sigmoid.forward(np.ascontiguousarray(second))
    np.multiply(s, widen(grad), out=of_first)
    np.subtract(1, s, out=s)
    s *= first
    np.multiply(s, of_first, out=of_second)
    return narrow(out, x.dtype)


@glu_backward.grad("grad_output")
def _(F: Any, grad: Any, self: Any, *, dim: int) -> Any:
    grad_first, grad_second = _split(F, grad, dim)
    first, second = _split(F, self, dim)
    s = F.sigmoid(second)
    return grad_first * s + grad_second * (s * (1 - s) * first)


@glu_backward.grad("self")
def _(F: Any, grad: Any, grad_output: Any, self: Any, *, dim: int) -> Any:
    grad_first, grad_second = _split(F, grad, dim)
    first, second = _split(F, self, dim)
    s = F.sigmoid(second)
    slope = s * (1 - s) * grad_output
    of_second = slope * (grad_first + grad_second * (first * (1 - 2 * s)))
    half = self.shape[dim] // 2
    shape = tuple(self.shape)
    place = {"size": shape, "dim": dim, "step": 1}
    return F.slice_backward(slope * grad_second, start=0, end=half, **place) + F.slice_backward(
        of_second, start=half, end=2 * half, **place
    )


def _split(F: Any, x: Any, dim: int) -> tuple[Any, Any]:
    half = x.shape[dim] // 2
    return F.slice(x, dim, 0, half), F.slice(x, dim, half, 2 * half)
