"""Losses that PyTorch has nodes for: regression, binary cross-entropy, likelihood of classes.

Of a loss f(x, t), reduced to its mean or sum or not at all, the derivative by x is an op of its
own, ``<loss>_backward``; its rules give the second order.  `reduction` is "none", "mean" or "sum".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from clew import kernels
from clew.dtypes import scalar_name
from clew.kernels.half import is_half, narrow, widen
from clew.kernels.pointwise import pointwise
from clew.op import op
from clew.ops.activation import log_sigmoid, sigmoid
from clew.ops.checks import floating_only
from clew.ops.rules import count

_PAIR: dict[str, Any] = {"publish": (), "promote": "arithmetic", "tensors_only": True}


def reduced(losses: Any, reduction: str) -> Any:
    """The losses themselves, their sum or their mean (which is nan if there are none)."""
    if reduction == "none":
        return losses
    total = losses.sum(dtype=np.float32 if is_half(losses.dtype) else None)
    if reduction == "mean":
        total = np.true_divide(total, losses.size, dtype=total.dtype)
    return narrow(np.asarray(total), losses.dtype)


def _total_of_pairs(
    name: str, x: Any, t: Any, reduction: str, number: float = 0.0, scale: float = 1.0
) -> Any:
    """`scale` times the sum or mean of losses by a twin; None where there is none for them."""
    total = None if reduction == "none" else kernels.loss.total_of_pairs(name, x, t, number)
    if total is None:
        return None
    return np.array(total * scale / _share(x, reduction), x.dtype)


def _share(x: Any, reduction: str) -> float:
    """What the gradient of one loss is divided by."""
    return max(count(tuple(x.shape), None), 1) if reduction == "mean" else 1


def _each_from_the_other(
    need: Sequence[bool], backward: Any, grad: Any, x: Any, t: Any, **attrs: Any
) -> list[Any]:
    """The gradients of a loss that is the same if the two change places."""
    return [
        backward(grad, x, t, **attrs) if need[0] else None,
        backward(grad, t, x, **attrs) if need[1] else None,
    ]


def _both(need: Any, to_self: Any) -> list[Any]:
    """Gradients of a loss that depends on the difference of its inputs."""
    return [to_self if need[0] else None, -to_self if need[1] else None]


# -- squared error


@op("mse_loss(self, target; reduction)", **_PAIR)
def mse_loss(x: Any, t: Any, *, reduction: str) -> Any:
    """``(self - target)**2``."""
    floating_only(x, "mse_cpu")
    total = _total_of_pairs("squared", x, t, reduction)
    return reduced(_squared_difference(x, t), reduction) if total is None else total


@pointwise
def _squared_difference(x: Any, t: Any) -> Any:
    d = np.asarray(np.subtract(x, t))
    d *= d
    return d


@mse_loss.grad("self", "target")
def _(F: Any, grad: Any, self: Any, target: Any, *, reduction: str, need: Any) -> Any:
    return _each_from_the_other(need, F.mse_loss_backward, grad, self, target, reduction=reduction)


@op("mse_loss_backward(grad_output, self, target; reduction)", **_PAIR)
def mse_loss_backward(grad: Any, x: Any, t: Any, *, reduction: str) -> Any:
    """``2 * (self - target) * grad_output``."""
    d = kernels.loss.slope_of_pairs("squared", grad, x, t, 2 / _share(x, reduction))
    if d is None:
        d = np.asarray(np.subtract(widen(x), widen(t)))
        d *= np.multiply(widen(grad), 2 / _share(d, reduction))
    return narrow(d, x.dtype)


@mse_loss_backward.grad("grad_output", "self", "target")
def _(
    F: Any, grad: Any, grad_output: Any, self: Any, target: Any, *, reduction: str, need: Any
) -> Any:
    grad = grad * (2 / _share(self, reduction))
    bend = grad * grad_output
    return [grad * (self - target) if need[0] else None, *_both(need[1:], bend)]


# -- absolute error, rounded at 0


@op("smooth_l1_loss(self, target; reduction, beta)", **_PAIR)
def smooth_l1_loss(x: Any, t: Any, *, reduction: str, beta: float) -> Any:
    """With d = |self - target|: ``d**2 / (2 * beta)`` below beta, ``d - beta / 2`` above.

    Raises:
        RuntimeError: `beta` is negative.
    """
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    floating_only(x, "smooth_l1_cpu")
    return _reduced_rounded_distance(x, t, reduction, beta, 1 / beta)


def _reduced_rounded_distance(x: Any, t: Any, reduction: str, radius: float, scale: float) -> Any:
    total = _total_of_pairs("rounded", x, t, reduction, radius, scale)
    if total is not None:
        return total
    return reduced(_rounded_distance(x, t, radius=radius, scale=scale), reduction)


@pointwise
def _rounded_distance(x: Any, t: Any, *, radius: float, scale: float) -> Any:
    """``scale`` times d**2 / 2 up to d = radius, continued by a line."""
    d = np.asarray(np.subtract(x, t))
    np.abs(d, out=d)
    near = np.asarray(np.minimum(d, radius))
    d -= 0.5 * near
    d *= near
    d *= scale
    return d


@smooth_l1_loss.grad("self", "target")
def _(F: Any, grad: Any, self: Any, target: Any, *, reduction: str, beta: float, need: Any) -> Any:
    backward = F.smooth_l1_loss_backward
    return _each_from_the_other(need, backward, grad, self, target, reduction=reduction, beta=beta)


@op("smooth_l1_loss_backward(grad_output, self, target; reduction, beta)",
    **_PAIR)  # fmt: skip
def smooth_l1_loss_backward(grad: Any, x: Any, t: Any, *, reduction: str, beta: float) -> Any:
    """``(self - target) / beta`` limited to [-1, 1], times `grad_output`."""
    return _limited_difference(grad, x, t, reduction, beta, 1 / beta)


def _limited_difference(
    grad: Any, x: Any, t: Any, reduction: str, radius: float, scale: float
) -> Any:
    d = kernels.loss.slope_of_pairs("rounded", grad, x, t, scale / _share(x, reduction), radius)
    if d is None:
        d = np.asarray(np.subtract(widen(x), widen(t)))
        np.minimum(np.maximum(d, -radius, out=d), radius, out=d)
        d *= np.multiply(widen(grad), scale / _share(d, reduction))
    return narrow(d, x.dtype)


@smooth_l1_loss_backward.grad("grad_output", "self", "target")
def _(
    F: Any, grad: Any, grad_output: Any, self: Any, target: Any, *,
    reduction: str, beta: float, need: Any,
) -> Any:  # fmt: skip
    return _second_order(F, grad, grad_output, self, target, reduction, beta, 1 / beta, need)


def _second_order(
    F: Any, grad: Any, grad_output: Any, x: Any, t: Any,
    reduction: str, radius: float, scale: float, need: Any,
) -> Any:  # fmt: skip
    grad = grad * (scale / _share(x, reduction))
    d = x - t
    near = F.clamp(d, min=-radius, max=radius)
    bend = F.where(F.lt(F.abs(d), radius), grad * grad_output, 0)
    return [grad * near if need[0] else None, *_both(need[1:], bend)]


@op("huber_loss(self, target; reduction, delta)", **_PAIR)
def huber_loss(x: Any, t: Any, *, reduction: str, delta: float) -> Any:
    """With d = |self - target|: ``d**2 / 2`` below delta, ``delta * (d - delta / 2)`` above.

    Raises:
        RuntimeError: `delta` is not positive.
    """
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    floating_only(x, "huber_cpu")
    return _reduced_rounded_distance(x, t, reduction, delta, 1.0)


@huber_loss.grad("self", "target")
def _(F: Any, grad: Any, self: Any, target: Any, *, reduction: str, delta: float, need: Any) -> Any:
    return _each_from_the_other(
        need, F.huber_loss_backward, grad, self, target, reduction=reduction, delta=delta
    )


@op("huber_loss_backward(grad_output, self, target; reduction, delta)",
    **_PAIR)  # fmt: skip
def huber_loss_backward(grad: Any, x: Any, t: Any, *, reduction: str, delta: float) -> Any:
    """``self - target`` limited to [-delta, delta], times `grad_output`."""
    return _limited_difference(grad, x, t, reduction, delta, 1.0)


@huber_loss_backward.grad("grad_output", "self", "target")
def _(
    F: Any, grad: Any, grad_output: Any, self: Any, target: Any, *,
    reduction: str, delta: float, need: Any,
) -> Any:  # fmt: skip
    return _second_order(F, grad, grad_output, self, target, reduction, delta, 1.0, need)


# -- binary cross-entropy


@op("binary_cross_entropy(self, target, weight=None; reduction)", publish=())
def binary_cross_entropy(x: Any, t: Any, weight: Any, *, reduction: str) -> Any:
    """``-weight * (target * log(self) + (1 - target) * log(1 - self))``, no log below -100.

    Raises:
        RuntimeError: `self` is not between 0 and 1, or the types differ.
    """
    floating_only(x, "binary_cross_entropy")
    if t.dtype != x.dtype:
        raise RuntimeError(
            f"Found dtype {scalar_name(t.dtype)} but expected {scalar_name(x.dtype)}"
        )
    if not np.logical_and(np.greater_equal(x, 0), np.less_equal(x, 1)).all():
        raise RuntimeError("all elements of input should be between 0 and 1")
    return reduced(_weighted(_cross_entropy(x, t), weight), reduction)


@pointwise
def _cross_entropy(x: Any, t: Any) -> Any:
    out = np.asarray(np.negative(x))
    np.maximum(np.log1p(out, out=out), -100, out=out)
    out *= np.subtract(t, 1)
    out -= t * np.maximum(np.log(x), -100)
    return out


def _weighted(losses: Any, weight: Any) -> Any:
    return losses if weight is None else np.multiply(losses, weight)


@binary_cross_entropy.grad("self")
def _(F: Any, grad: Any, self: Any, target: Any, weight: Any, *, reduction: str) -> Any:
    return F.binary_cross_entropy_backward(grad, self, target, weight, reduction=reduction)


@binary_cross_entropy.grad("target")
def _(F: Any, grad: Any, self: Any, target: Any, weight: Any, *, reduction: str) -> Any:
    share = _share(self, reduction)
    if weight is not None:
        grad = grad * weight
    logs = [F.clamp(F.log(p), min=-100) for p in (1 - self, self)]
    return grad * (logs[0] - logs[1]) / share


@op("binary_cross_entropy_backward(grad_output, self, target, weight=None; reduction)",
    publish=())  # fmt: skip
def binary_cross_entropy_backward(grad: Any, x: Any, t: Any, weight: Any, *, reduction: str) -> Any:
    """``(self - target) / (self * (1 - self))`` times weight and `grad_output`."""
    d = _cross_entropy_slope(x, t)
    d *= _weighted(np.multiply(grad, 1 / _share(d, reduction)), weight)
    return d


@pointwise
def _cross_entropy_slope(x: Any, t: Any) -> Any:
    spread = np.asarray(np.subtract(1, x))
    spread *= x
    np.maximum(spread, 1e-12, out=spread)
    return np.divide(np.subtract(x, t), spread, out=spread)


@binary_cross_entropy_backward.grad("grad_output", "self", "target")
def _(
    F: Any, grad: Any, grad_output: Any, self: Any, target: Any, weight: Any, *,
    reduction: str, need: Any,
) -> Any:  # fmt: skip
    spread = F.clamp(self * (1 - self), min=1e-12)
    grad = grad / _share(self, reduction)
    if weight is not None:
        grad = grad * weight
    product = grad * grad_output
    bend = (self * self - 2 * self * target + target) / (spread * spread)
    return [
        grad * ((self - target) / spread) if need[0] else None,
        product * bend if need[1] else None,
        -product / spread if need[2] else None,
    ]


_LOGITS = "self, target, weight=None, pos_weight=None; reduction"


@op(f"binary_cross_entropy_with_logits({_LOGITS})", **_PAIR)
def binary_cross_entropy_with_logits(
    x: Any, t: Any, weight: Any, pos_weight: Any, *, reduction: str
) -> Any:
    """`binary_cross_entropy` of ``sigmoid(self)``; `pos_weight` counts only where target is."""
    floating_only(x, "log_sigmoid_cpu")
    if weight is None and pos_weight is None:
        total = _total_of_pairs("logit", x, t, reduction)
        if total is not None:
            return total
    losses = _logit_loss(x, t) if pos_weight is None else _positive_loss(x, t, pos_weight)
    return reduced(np.asarray(_weighted(losses, weight)), reduction)


@pointwise
def _logit_loss(x: Any, t: Any) -> Any:
    """``(1 - t) * x - log(sigmoid(x))``."""
    out = np.asarray(np.subtract(1, t))
    out *= x
    out -= log_sigmoid.forward(x)
    return out


@pointwise
def _positive_loss(x: Any, t: Any, pos_weight: Any) -> Any:
    """``(1 - t) * x - (1 + (pos_weight - 1) * t) * log(sigmoid(x))``."""
    out = np.asarray(np.multiply(pos_weight - 1, t))
    out += 1
    out *= log_sigmoid.forward(x)
    return np.subtract((1 - t) * x, out, out=out)


@binary_cross_entropy_with_logits.grad("self")
def _(
    F: Any, grad: Any, self: Any, target: Any, weight: Any, pos_weight: Any, *, reduction: str
) -> Any:
    return F.binary_cross_entropy_with_logits_backward(
        grad, self, target, weight, pos_weight, reduction=reduction
    )


@binary_cross_entropy_with_logits.grad("target")
def _(
    F: Any, grad: Any, self: Any, target: Any, weight: Any, pos_weight: Any, *, reduction: str
) -> Any:
    slope = -self
    if pos_weight is not None:
        slope = slope - (pos_weight - 1) * F.log_sigmoid(self)
    grad = F.mul(slope, grad) / _share(self, reduction)
    return grad if weight is None else grad * weight


@op(f"binary_cross_entropy_with_logits_backward(grad_output, {_LOGITS})", **_PAIR)
def binary_cross_entropy_with_logits_backward(
    grad: Any, x: Any, t: Any, weight: Any, pos_weight: Any, *, reduction: str
) -> Any:
    """``sigmoid(self) - target`` times weight and `grad_output`; see `pos_weight` above."""
    if weight is None and pos_weight is None:
        slope = kernels.loss.slope_of_pairs("logit", grad, x, t, 1 / _share(x, reduction))
        if slope is not None:
            return slope
    d = _logit_slope(x, t) if pos_weight is None else _positive_slope(x, t, pos_weight)
    d *= _weighted(np.multiply(grad, 1 / _share(d, reduction)), weight)
    return d


@pointwise
def _logit_slope(x: Any, t: Any) -> Any:
    out = sigmoid.forward(x)
    out -= t
    return out


@pointwise
def _positive_slope(x: Any, t: Any, pos_weight: Any) -> Any:
    positive = np.asarray(np.multiply(pos_weight, t))
    out = sigmoid.forward(x)
    out = np.asarray(np.multiply(out, positive + 1 - t))
    out -= positive
    return out


@binary_cross_entropy_with_logits_backward.grad("grad_output", "self", "target")
def _(
    F: Any, grad: Any, grad_output: Any, self: Any, target: Any, weight: Any, pos_weight: Any, *,
    reduction: str, need: Any,
) -> Any:  # fmt: skip
    s = F.sigmoid(self)
    grad = grad / _share(self, reduction)
    if weight is not None:
        grad = grad * weight
    product = grad * grad_output
    if pos_weight is None:
        slope, bend, by_target = s - target, s * (1 - s), -1
    else:
        total = pos_weight * target + 1 - target
        slope = total * s - pos_weight * target
        bend, by_target = total * (s * (1 - s)), (pos_weight - 1) * s - pos_weight
    return [
        grad * slope if need[0] else None,
        product * bend if need[1] else None,
        product * by_target if need[2] else None,
    ]


# -- likelihood of classes


def _declare_nll(name: str, node: str) -> None:
    """The loss of log-probabilities; PyTorch's nodes for one class and many have two names."""

    def forward(
        x: Any, target: Any, weight: Any, *, reduction: str, ignore_index: int
    ) -> tuple[Any, Any]:
        floating_only(x, "nll_loss_out_frame")
        if weight is not None and weight.dtype != x.dtype:
            raise RuntimeError(
                f"expected scalar type {scalar_name(x.dtype)} but found {scalar_name(weight.dtype)}"
            )
        return kernels.loss.nll_loss(x, target, weight, reduction, ignore_index)

    def rule(
        F: Any, grad: Any, self: Any, target: Any, weight: Any, total_weight: Any, *,
        reduction: str, ignore_index: int,
    ) -> Any:  # fmt: skip
        return F.nll_loss_backward(
            grad, self, target, weight, total_weight,
            reduction=reduction, ignore_index=ignore_index,
        )  # fmt: skip

    op(
        f"{name}(self, target, weight=None; reduction, ignore_index) -> output, total_weight",
        forward, publish=(), node=node, no_grad_outputs=(1,), self=rule,
        doc="``-weight[target] * self[target]`` of log-probabilities; and the total weight.",
    )  # fmt: skip


_declare_nll("nll_loss", "NllLossBackward0")
_declare_nll("nll_loss_2d", "NllLoss2DBackward0")


@op("nll_loss_backward(grad_output, self, target, weight=None, total_weight=None; reduction, "
    "ignore_index)", publish=())  # fmt: skip
def nll_loss_backward(
    grad: Any, x: Any, target: Any, weight: Any, total_weight: Any, *,
    reduction: str, ignore_index: int,
) -> Any:  # fmt: skip
    """Gradient of `nll_loss`, which is linear in `self`."""
    return kernels.loss.nll_loss_backward(
        grad, x.shape, target, weight, reduction, ignore_index, total_weight
    )


@nll_loss_backward.grad("grad_output")
def _(F: Any, grad: Any, target: Any, weight: Any, *, reduction: str, ignore_index: int) -> Any:
    return F.nll_loss(grad, target, weight, reduction=reduction, ignore_index=ignore_index)[0]


# -- soft margin


@op("soft_margin_loss(self, target; reduction)", publish=(), tensors_only=True)
def soft_margin_loss(x: Any, t: Any, *, reduction: str) -> Any:
    """``log(1 + exp(-target * self))``, in the type of `self`."""
    floating_only(x, "log_cpu")
    return reduced(_soft_margin(x, t.astype(x.dtype, copy=False)), reduction)


@pointwise
def _soft_margin(x: Any, t: Any) -> Any:
    return np.negative(log_sigmoid.forward(np.asarray(np.multiply(x, t))))


@soft_margin_loss.grad("self")
def _(F: Any, grad: Any, self: Any, target: Any, *, reduction: str) -> Any:
    share = _share(self, reduction)
    return grad * (-target * F.sigmoid(-target * self) / share)
