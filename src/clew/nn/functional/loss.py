"""Losses of regression and classification.

`reduction` is "mean" (over all elements), "sum" or "none"; `size_average` and `reduce` are its
deprecated forms.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

from clew import dtypes
from clew.autograd.modes import no_grad
from clew.dispatch import apply
from clew.functions.calls import Tensor, are_tensors, call, refuse_gradients, require_tensors
from clew.functions.create import ones_like
from clew.functions.join import broadcast_tensors
from clew.functions.linalg import broadcast_shape
from clew.nn.functional.reduction import check_reduction, reduced, reduction_of
from clew.op import REGISTRY

_LOG_SOFTMAX, _NLL_LOSS, _NLL_LOSS_2D, _LOGIT_LOSS = (
    REGISTRY[name]
    for name in ("log_softmax", "nll_loss", "nll_loss_2d", "binary_cross_entropy_with_logits")
)


def _are_alike(x: Any, y: Any) -> bool:
    """Whether both are tensors of one shape."""
    return are_tensors(x, y) and x._array.shape == y._array.shape


# -- regression


def _pair(input: Tensor, target: Tensor) -> Any:
    """Input and target in one shape, with a warning if they had two."""
    if _are_alike(input, target) or target.size() == input.size():
        return input, target
    warnings.warn(
        f"Using a target size ({target.size()}) that is different to the input size "
        f"({input.size()}). This will likely lead to incorrect results due to broadcasting. "
        "Please ensure they have the same size.",
        stacklevel=3,
    )
    return broadcast_tensors(input, target)


def _check_weight(weight: Tensor, input: Tensor) -> None:
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")


def _weighted(errors: Tensor, weight: Tensor, reduction: str) -> Tensor:
    """Errors times weights; their mean is that by weight."""
    errors = errors * weight
    return errors.sum() / weight.sum() if reduction == "mean" else reduced(errors, reduction)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """``(input - target)**2``; with `weight`, of the input's size, the mean is that by weight."""
    input_, target_ = _pair(input, target)
    reduction = reduction_of(reduction, size_average, reduce)
    if weight is None:
        return call("mse_loss", input_, target_, reduction=reduction)
    _check_weight(weight, input)
    return _weighted((input_ - target_) ** 2, weight, reduction)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """``abs(input - target)``; with `weight`, of the input's size, the mean is that by weight."""
    input_, target_ = _pair(input, target)
    reduction = reduction_of(reduction, size_average, reduce)
    errors = (input_ - target_).abs()
    if weight is None:
        return reduced(errors, reduction)
    _check_weight(weight, input)
    return _weighted(errors, weight, reduction)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """`l1_loss` less ``beta / 2``, but ``(input - target)**2 / (2 * beta)`` nearer than `beta`."""
    input_, target_ = _pair(input, target)
    reduction = reduction_of(reduction, size_average, reduce)
    if beta == 0:
        return reduced((input_ - target_).abs(), reduction)
    return call("smooth_l1_loss", input_, target_, reduction=reduction, beta=beta)


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """``(input - target)**2 / 2``, continued by a line from the distance `delta` on."""
    input_, target_ = _pair(input, target)
    check_reduction(reduction)
    if weight is None:
        return call("huber_loss", input_, target_, reduction=reduction, delta=delta)
    _check_weight(weight, input)
    errors = call("huber_loss", input_, target_, reduction="none", delta=delta)
    return reduced(errors * weight, reduction)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """``(log(var) + (input - target)**2 / var) / 2``, with `var` at least `eps`.

    `var` has the input's size, or lacks its last dimension, or has one dimension of size 1
    instead.  `full` adds the constant ``log(2 * pi) / 2``.

    Raises:
        ValueError: `var` is negative or has another size.
    """
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * ones_like(input)
    elif (var < 0).any():
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        var = _fit_variance(var, input)
    _check_reduction(reduction)
    var = var.clone()
    with no_grad():
        var.clamp_(min=eps)
    losses = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        losses = losses + 0.5 * math.log(2 * math.pi)
    return reduced(losses, reduction)


def _fit_variance(var: Tensor, input: Tensor) -> Tensor:
    if input.size()[:-1] == var.size():
        return var.unsqueeze(-1)
    differing = [n for m, n in zip(input.size(), var.size()) if m != n]
    if input.ndim == var.ndim and sum(differing) == 1:
        return var
    raise ValueError("var is of incorrect size")


def _check_reduction(reduction: str) -> None:
    """As `check_reduction`, in the words that some of PyTorch's losses use."""
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``exp(input) - target * input``: the loss of counts whose rate has the logarithm `input`.

    With ``log_input=False`` the rate itself is `input`.  `full` adds Stirling's approximation of
    ``log(target!)`` for targets above 1.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if log_input:
        losses = input.exp() - target * input
    else:
        losses = input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        losses = losses + stirling.masked_fill(target <= 1, 0)
    return reduced(losses, reduction)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """``target * (log(target) - input)``: the divergence of log-probabilities from probabilities.

    With `log_target` the target holds log-probabilities too.  "batchmean" divides the sum by the
    size of the batch, as the mathematical definition does.

    Raises:
        RuntimeError: a tensor is of integers.
    """
    per_sample = False
    if size_average is None and reduce is None:
        if reduction == "mean":
            warnings.warn(
                "reduction: 'mean' divides the total loss by both the batch size and the support "
                "size.'batchmean' divides only by the batch size, and aligns with the KL div math "
                "definition.'mean' will be changed to behave the same as 'batchmean' in the next "
                "major release.",
                stacklevel=2,
            )
        if reduction == "batchmean":
            reduction, per_sample = "sum", True
    reduction = reduction_of(reduction, size_average, reduce)
    if not (input.is_floating_point() and target.is_floating_point()):
        raise RuntimeError("kl_div: Integral inputs not supported.")
    if log_target:
        losses = target.exp() * (target - input)
    else:
        cross = target * input  # first, as in PyTorch
        losses = target.xlogy(target) - cross
    losses = reduced(losses, reduction)
    return losses / input.size(0) if per_sample and input.ndim else losses


# -- two classes


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``-weight * (target * log(input) + (1 - target) * log(1 - input))``; logs end at -100.

    Raises:
        ValueError: sizes differ.
        RuntimeError: an element of `input` is not between 0 and 1.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size "
            f"({input.size()}) is deprecated. Please ensure they have the same size."
        )
    if weight is not None:
        refuse_gradients("binary_cross_entropy", weight=weight)
        weight = weight.expand(broadcast_shape(tuple(target.shape), tuple(weight.shape)))
    return call("binary_cross_entropy", input, target, weight, reduction=reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """`binary_cross_entropy` of ``sigmoid(input)``, exact for large inputs too.

    `pos_weight` multiplies the part of the loss that has target 1.

    Raises:
        ValueError: sizes differ.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if not _are_alike(input, target) and target.size() != input.size():
        raise ValueError(
            f"Target size ({target.size()}) must be the same as input size ({input.size()})"
        )
    if target._array.dtype.kind in "biu" and input.is_floating_point():
        names = dtypes.SCALAR_NAMES[input.dtype.name], dtypes.SCALAR_NAMES[target.dtype.name]
        raise RuntimeError(
            "result type {} can't be cast to the desired output type {}".format(*names)
        )
    if weight is not None or pos_weight is not None:
        refuse_gradients(_LOGIT_LOSS.name, weight=weight, pos_weight=pos_weight)
    inputs = (input, target, weight, pos_weight)
    return apply(_LOGIT_LOSS, inputs, {"reduction": reduction})


# -- many classes


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``-weight[target] * input[target]`` of log-probabilities; the mean is that by weight.

    Shapes: input ``(C,)``, ``(N, C)`` or ``(N, C, d1, ...)``; target, class indices, the same
    without C; weight ``(C,)``.  Targets equal to `ignore_index` count nothing.

    Raises:
        IndexError: a target is no class.
        RuntimeError, ValueError: shapes or types do not fit.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    return _nll_loss(input, target, weight, reduction, ignore_index)


def _nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, ignore_index: int
) -> Tensor:
    op = _NLL_LOSS if input._array.ndim <= 2 else _NLL_LOSS_2D
    if weight is not None:
        refuse_gradients(f"{op.name.replace('_2', '2')}_forward", weight=weight)
    attrs = {"reduction": reduction, "ignore_index": ignore_index}
    return apply(op, (input, target, weight), attrs)[0]


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """`nll_loss` of ``log_softmax(input)``; a target of the input's shape holds probabilities.

    `label_smoothing` moves that part of the target's weight to all classes evenly.

    Raises:
        IndexError: a target is no class.
        RuntimeError, ValueError: shapes, types or `label_smoothing` do not fit.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if not are_tensors(input, target):
        require_tensors("cross_entropy_loss", input=input, target=target)
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    shape = input._array.shape
    class_dim = 0 if len(shape) == 1 else 1
    if shape == target._array.shape:
        if not target.is_floating_point():
            raise RuntimeError(
                "Expected floating point type for target with class probabilities, got "
                f"{dtypes.SCALAR_NAMES[target.dtype.name]}"
            )
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        return _of_probabilities(input, target, weight, reduction, label_smoothing, class_dim)
    logs = apply(_LOG_SOFTMAX, (input,), {"dim": class_dim})
    losses = _nll_loss(logs, target, weight, reduction, ignore_index)
    if label_smoothing == 0:
        return losses
    evenly = _over_all_classes(logs, target, weight, reduction, ignore_index, class_dim)
    share = label_smoothing / input.size(class_dim)
    return (1 - label_smoothing) * losses + evenly * share


def _aligned(weight: Tensor, logs: Tensor, class_dim: int) -> Tensor:
    """The weights of the classes, shaped to meet the log-probabilities.

    Raises:
        RuntimeError: there is not one weight for each class.
    """
    classes = logs.size(class_dim)
    if weight.ndim != 1 or weight.numel() != classes:
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {classes} classes or "
            f"no classes but got weight tensor of shape: {list(weight.shape)}"
        )
    return weight.view([classes if d == class_dim else 1 for d in range(logs.ndim)])


def _of_probabilities(
    input: Tensor, target: Tensor, weight: Any, reduction: str, smoothing: float, class_dim: int
) -> Tensor:
    logs = call("log_softmax", input, dim=class_dim)
    classes = input.size(class_dim)
    if smoothing > 0:
        target = target * (1 - smoothing) + smoothing / classes
    losses = logs * target
    if weight is not None:
        losses = losses * _aligned(weight, logs, class_dim)
    if reduction == "none":
        return -losses.sum(class_dim)
    total = -losses.sum()
    samples = input.numel() // max(classes, 1)
    return total / (samples or math.nan) if reduction == "mean" else total


def _over_all_classes(
    logs: Tensor, target: Tensor, weight: Any, reduction: str, ignore_index: int, class_dim: int
) -> Tensor:
    """The loss of a target that is all classes, evenly."""
    ignored = target == ignore_index
    if weight is None:
        losses = -logs.sum(class_dim)
    else:
        losses = -(logs * _aligned(weight, logs, class_dim)).sum(class_dim)
    losses = losses.masked_fill(ignored, 0)
    if reduction != "mean":
        return reduced(losses, reduction)
    if weight is None:
        return losses.sum() / (~ignored).sum()
    return losses.sum() / weight[target.masked_select(~ignored)].sum()
