"""Activations made of straight pieces, and their derivatives as ops of their own.

A derivative is an op so that it runs in few passes over memory and is itself differentiable: it
is linear in the incoming gradient and constant in the input.  Which value belongs to a kink, and
what becomes of NaN, is PyTorch's choice for each function.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from clew.dtypes import of_numpy, scalar_name
from clew.kernels.pointwise import pointwise
from clew.kernels.select import choose, keep_where, limited, relu_in_place, scale_elsewhere
from clew.limits import finfo
from clew.op import op
from clew.ops.checks import clamp_real_only, floating_only, real_only
from clew.ops.layout import by_second
from clew.packing import two_kinds


def _constant(F: Any, grad: Any, self: Any) -> Any:
    """The gradient of a derivative with respect to the input: there is none, but an edge.

    PyTorch keeps the input for it, and so do we.
    """
    return F.zeros_like(grad)


def _or_mask(derivative: Callable[..., Any]) -> Callable[..., Any]:
    """Let a derivative that keeps the gradient or drops it take bools that say where (Note
    [Packings]) in the place of the input."""

    @wraps(derivative)
    def either(grad: Any, x: Any, **attrs: Any) -> Any:
        return keep_where(x, grad) if x.dtype == np.bool_ else derivative(grad, x, **attrs)

    return either


# -- relu and threshold


_KEPT_BY_RELU = two_kinds(lambda x: np.less_equal(x, 0), second=True)


def _write_relu(x: Any) -> None:
    _check_relu(x)
    relu_in_place(x)


@op("relu(self)", inplace=True, write=_write_relu, domain="off_kinks",
    packings={"result": _KEPT_BY_RELU})  # fmt: skip
def relu(x: Any) -> Any:
    """``max(self, 0)``; NaN stays NaN.

    Raises:
        RuntimeError: the tensor is of bools or complex.
    """
    _check_relu(x)
    return _relu(x)


def _check_relu(x: Any) -> None:
    if x.dtype.kind == "b":
        raise RuntimeError("Boolean inputs not supported for relu")
    clamp_real_only(x)


@pointwise(twin="relu")
def _relu(x: Any) -> Any:
    return np.maximum(x, 0)


@relu.grad("self")
def _(F: Any, grad: Any, result: Any) -> Any:
    return F.threshold_backward(grad, result, threshold=0)


@op("threshold_backward(grad_output, self; threshold)", publish=(), domain="off_kinks",
    mixes=False, self=_constant)  # fmt: skip
@by_second
@_or_mask
@pointwise(twin="threshold_backward")
def threshold_backward(grad: Any, x: Any, *, threshold: Any) -> Any:
    """`grad_output` except where ``self <= threshold``."""
    return keep_where(np.logical_not(np.less_equal(x, threshold)), grad)


@threshold_backward.grad("grad_output")
def _(F: Any, grad: Any, self: Any, *, threshold: Any) -> Any:
    return F.threshold_backward(grad, self, threshold=threshold)


def _threshold(x: Any, *, threshold: Any, value: Any) -> Any:
    """`self` where it is above `threshold`, else `value`."""
    real_only(x, "threshold_cpu")
    return np.where(np.less_equal(x, threshold), np.asarray(value).astype(x.dtype), x)


def _threshold_grad(F: Any, grad: Any, self: Any, *, threshold: Any) -> Any:
    return F.threshold_backward(grad, self, threshold=threshold)


_KEPT_BY_THRESHOLD = two_kinds(
    lambda x, *, threshold, value: np.less_equal(x, threshold), second=True
)

op(
    "threshold(self; threshold, value)", _threshold, publish=("function",), domain="off_kinks",
    self=_threshold_grad, packings={"self": _KEPT_BY_THRESHOLD},
)  # fmt: skip
op(
    "threshold_inplace(self; threshold, value)", _threshold, publish=(),
    node="ThresholdBackward1", inplace=True, label="threshold", domain="off_kinks",
    self=_threshold_grad,
)  # fmt: skip


# -- leaky relus


def _leaky_relu(x: Any, *, negative_slope: float) -> Any:
    """`self` where positive, else ``negative_slope * self``."""
    floating_only(x, "leaky_relu_cpu")
    return _leaky(x, negative_slope=negative_slope)


@pointwise(twin="leaky_relu")
def _leaky(x: Any, *, negative_slope: float) -> Any:
    if 0 < negative_slope <= 1:
        return np.maximum(x, np.multiply(x, negative_slope))
    return np.add(np.maximum(x, 0), np.multiply(np.minimum(x, 0), negative_slope))


_KEPT_BY_LEAKY_RELU = two_kinds(lambda x, *, negative_slope: np.greater(x, 0))

op(
    "leaky_relu(self; negative_slope=0.01)", _leaky_relu, publish=(), domain="off_kinks",
    packings={"self": _KEPT_BY_LEAKY_RELU},
    self=lambda F, grad, self, *, negative_slope: F.leaky_relu_backward(
        grad, self, negative_slope=negative_slope
    ),
)  # fmt: skip


def _leaky_relu_grad_by_result(F: Any, grad: Any, result: Any, *, negative_slope: float) -> Any:
    if negative_slope < 0:
        raise RuntimeError(
            "In-place leakyReLu backward calculation is triggered with a negative slope which is "
            "not supported. This is caused by calling in-place forward function with a negative "
            "slope, please call out-of-place version instead."
        )
    return F.leaky_relu_backward(grad, result, negative_slope=negative_slope)


op(
    "leaky_relu_inplace(self; negative_slope=0.01)", _leaky_relu, publish=(), inplace=True,
    node="LeakyReluBackward1", domain="off_kinks", self=_leaky_relu_grad_by_result,
    packings={"result": _KEPT_BY_LEAKY_RELU},
)  # fmt: skip


@op("leaky_relu_backward(grad_output, self; negative_slope)", publish=(), domain="off_kinks",
    mixes=False, self=_constant)  # fmt: skip
@by_second
@pointwise(twin="leaky_relu_backward")
def leaky_relu_backward(grad: Any, x: Any, *, negative_slope: float) -> Any:
    """`grad_output` where `self` is positive, else ``negative_slope * grad_output``."""
    positive = x if x.dtype == np.bool_ else np.greater(x, 0)  # Note [Packings]
    if 0 <= negative_slope <= 1:
        return scale_elsewhere(positive, grad, negative_slope)
    return choose(positive, grad, np.multiply(grad, negative_slope))


@leaky_relu_backward.grad("grad_output")
def _(F: Any, grad: Any, self: Any, *, negative_slope: float) -> Any:
    return F.leaky_relu_backward(grad, self, negative_slope=negative_slope)


@op("prelu_kernel(self, weight)", publish=(), domain="off_kinks")
@pointwise
def prelu_kernel(x: Any, weight: Any) -> Any:
    """`self` where positive, else ``weight * self``; `weight` broadcasts."""
    return choose(np.greater(x, 0), x, np.multiply(x, weight))


@prelu_kernel.grad("self", "weight")
def _(F: Any, grad: Any, self: Any, weight: Any, *, need: Any) -> Any:
    positive = F.gt(self, 0)
    return [
        F.where(positive, grad, weight * grad) if need[0] else None,
        F.where(positive, 0, self * grad) if need[1] else None,
    ]


def _rrelu(x: Any, noise: Any, *, lower: float, upper: float, training: bool) -> Any:
    """`self` times its `noise` in training, else (without) a leaky relu of the mean slope."""
    if training:
        floating_only(x, "rrelu_with_noise_out_cpu")
        return np.multiply(x, noise)
    return _leaky_relu(x, negative_slope=(lower + upper) / 2)


def _rrelu_grad(
    F: Any, grad: Any, self: Any, noise: Any, *, lower: float, upper: float, training: bool
) -> Any:
    if training:
        return grad * noise
    return F.leaky_relu_backward(grad, self, negative_slope=(lower + upper) / 2)


def _rrelu_grad_by_result(
    F: Any, grad: Any, result: Any, noise: Any, *, lower: float, upper: float, training: bool
) -> Any:
    return _rrelu_grad(F, grad, result, noise, lower=lower, upper=upper, training=training)


op(
    "rrelu_with_noise(self, noise=None; lower, upper, training)", _rrelu, publish=(),
    domain="off_kinks", self=_rrelu_grad,
)  # fmt: skip
op(
    "rrelu_with_noise_inplace(self, noise=None; lower, upper, training)", _rrelu, publish=(),
    node="RreluWithNoiseBackward1", inplace=True, domain="off_kinks", self=_rrelu_grad_by_result,
)  # fmt: skip


# -- clipped lines


_KEPT_BY_HARDTANH = two_kinds(lambda x, *, min_val, max_val: _inside(x, min_val, max_val))


@op("hardtanh(self; min_val=-1.0, max_val=1.0)", publish=(), inplace=True, domain="off_kinks",
    packings={"self": _KEPT_BY_HARDTANH})  # fmt: skip
def hardtanh(x: Any, *, min_val: Any, max_val: Any) -> Any:
    """Limit to ``[min_val, max_val]``.

    Raises:
        RuntimeError: the tensor is of bools or complex, or unsigned and a limit is negative.
    """
    if x.dtype.kind == "b":
        raise RuntimeError("Bool inputs not supported for hardtanh")
    clamp_real_only(x)
    if x.dtype.kind in "iu":
        min_val, max_val = int(min_val), int(max_val)
        if x.dtype.kind == "u" and (min_val < 0 or max_val < 0):
            raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    return limited(x, low=min_val, high=max_val)


@hardtanh.grad("self")
def _(F: Any, grad: Any, self: Any, *, min_val: Any, max_val: Any) -> Any:
    return F.hardtanh_backward(grad, self, min_val=min_val, max_val=max_val)


@op("hardtanh_backward(grad_output, self; min_val, max_val)", publish=(), domain="off_kinks",
    self=_constant)  # fmt: skip
@_or_mask
@pointwise(twin="hardtanh_backward")
def hardtanh_backward(grad: Any, x: Any, *, min_val: Any, max_val: Any) -> Any:
    """`grad_output` where `self` is strictly inside the limits (or NaN), else 0."""
    return keep_where(_inside(x, min_val, max_val), grad)


def _inside(x: Any, low: Any, high: Any) -> Any:
    return np.logical_not(np.logical_or(np.less_equal(x, low), np.greater_equal(x, high)))


@hardtanh_backward.grad("grad_output")
def _(F: Any, grad: Any, self: Any, *, min_val: Any, max_val: Any) -> Any:
    return F.hardtanh_backward(grad, self, min_val=min_val, max_val=max_val)


@op("hardsigmoid(self)", publish=(), inplace=True, domain="off_kinks")
def hardsigmoid(x: Any) -> Any:
    """``self / 6 + 1/2`` limited to ``[0, 1]``."""
    floating_only(x, "hardsigmoid_cpu")
    return _hardsigmoid(x)


@pointwise(twin="hardsigmoid")
def _hardsigmoid(x: Any) -> Any:
    return np.divide(_clipped(x), 6)


def _clipped(x: Any) -> Any:
    return np.minimum(np.maximum(np.add(x, 3), 0), 6)


@hardsigmoid.grad("self")
def _(F: Any, grad: Any, self: Any) -> Any:
    return F.hardsigmoid_backward(grad, self)


@op("hardsigmoid_backward(grad_output, self)", publish=(), domain="off_kinks", self=_constant,
    grad_output=lambda F, grad, self: F.hardsigmoid_backward(grad, self))  # fmt: skip
@pointwise(twin="hardsigmoid_backward")
def hardsigmoid_backward(grad: Any, x: Any) -> Any:
    """``grad_output / 6`` where `self` is between -3 and 3, else 0."""
    inside = np.logical_and(np.greater(x, -3), np.less(x, 3))
    return keep_where(inside, np.divide(grad, 6))


@op("hardswish(self)", publish=(), inplace=True, domain="off_kinks")
def hardswish(x: Any) -> Any:
    """``self * hardsigmoid(self)``."""
    floating_only(x, "hardswish_cpu")
    return _hardswish(x)


@pointwise(twin="hardswish")
def _hardswish(x: Any) -> Any:
    return np.divide(np.multiply(x, _clipped(x)), 6)


@hardswish.grad("self")
def _(F: Any, grad: Any, self: Any) -> Any:
    return F.hardswish_backward(grad, self)


@op("hardswish_backward(grad_output, self)", publish=(), domain="off_kinks",
    grad_output=lambda F, grad, self: F.hardswish_backward(grad, self))  # fmt: skip
@pointwise(twin="hardswish_backward")
def hardswish_backward(grad: Any, x: Any) -> Any:
    """`grad_output` times the slope: 0 up to -3, ``self / 3 + 1/2`` up to 3, then 1."""
    between = np.logical_and(np.greater(x, -3), np.less(x, 3))
    beyond = np.logical_or(np.greater_equal(x, 3), np.isnan(x))
    slope = np.add(keep_where(between, np.divide(x, 3) + x.dtype.type(0.5)), beyond)
    return np.multiply(grad, slope.astype(x.dtype))


@hardswish_backward.grad("self")
def _(F: Any, grad: Any, grad_output: Any, self: Any) -> Any:
    inside = F.logical_and(F.gt(self, -3), F.lt(self, 3))
    return F.where(inside, grad * grad_output / 3, 0)


# -- shrinkage


_KEPT_BY_SHRINKAGE = {
    "self": two_kinds(lambda x, *, lambd: np.less_equal(np.abs(x), lambd), second=True)
}


def _shrink_rule(F: Any, grad: Any, self: Any, *, lambd: float) -> Any:
    return F.shrink_backward(grad, self, lambd=lambd)


@op("hardshrink(self; lambd=0.5)", domain="off_kinks", self=_shrink_rule,
    packings=_KEPT_BY_SHRINKAGE)  # fmt: skip
def hardshrink(x: Any, *, lambd: float) -> Any:
    """`self` outside ``[-lambd, lambd]``, 0 inside."""
    floating_only(x, "hardshrink_cpu")
    return shrink_backward.forward(x, x, lambd=lambd)


@op("softshrink(self; lambd=0.5)", publish=(), domain="off_kinks", self=_shrink_rule,
    packings=_KEPT_BY_SHRINKAGE)  # fmt: skip
def softshrink(x: Any, *, lambd: float) -> Any:
    """`self` moved by `lambd` towards 0; 0 where it is no further away than that.

    Raises:
        RuntimeError: `lambd` is negative.
    """
    floating_only(x, "softshrink_check")
    largest = finfo(of_numpy(x.dtype)).max
    if not 0 <= lambd <= largest:
        raise RuntimeError(
            f"lambda must be in range [0, {largest:g}] for input dtype {scalar_name(x.dtype)}, "
            f"but found {lambd:g}"
        )
    return _shrunk(x, lambd=lambd)


@pointwise(twin="softshrink")
def _shrunk(x: Any, *, lambd: float) -> Any:
    return np.subtract(x, np.minimum(np.maximum(x, -lambd), lambd))


@op("shrink_backward(grad_output, self; lambd)", publish=(), node="HardshrinkBackwardBackward0",
    domain="off_kinks", self=_constant)  # fmt: skip
@_or_mask
@pointwise(twin="shrink_backward")
def shrink_backward(grad: Any, x: Any, *, lambd: float) -> Any:
    """`grad_output` where `self` is outside ``[-lambd, lambd]``, else 0."""
    return keep_where(np.logical_not(np.less_equal(np.abs(x), lambd)), grad)


@shrink_backward.grad("grad_output")
def _(F: Any, grad: Any, self: Any, *, lambd: float) -> Any:
    return F.shrink_backward(grad, self, lambd=lambd)
