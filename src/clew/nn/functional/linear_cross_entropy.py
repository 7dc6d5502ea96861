"""The cross-entropy of a linear layer's result."""

from __future__ import annotations

from math import prod
from typing import Any

from clew.functions.calls import Tensor
from clew.functions.linalg import linear
from clew.nn.functional.loss import cross_entropy


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """`cross_entropy` of ``linear(input, linear_weight, linear_bias)``.

    Args:
        input: ``(N, features)`` or ``(features,)``.
        linear_weight: ``(C, *out, features)`` for C classes.
        target: class indices ``(N, *out)``, or probabilities of the logits' shape.
        linear_bias: ``(C, *out)``.
        weight, reduction, ignore_index, label_smoothing: as for `cross_entropy`.
        options: how PyTorch saves memory by working in chunks, which changes no result; clew takes
            the batch as a whole.

    Raises:
        RuntimeError: shapes do not fit.
    """
    _check(input, linear_weight, linear_bias)
    classes, *out, features = linear_weight.shape
    shape = (*input.shape[:-1], classes, *out)
    if tuple(target.shape) == shape and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    if out:
        linear_weight = linear_weight.reshape(classes * prod(out), features)
        if linear_bias is not None:
            linear_bias = linear_bias.reshape(classes * prod(out))
    logits = linear(input, linear_weight, linear_bias).reshape(shape)
    return cross_entropy(
        logits, target, weight=weight, reduction=reduction,
        ignore_index=-100 if ignore_index is None else ignore_index,
        label_smoothing=label_smoothing,
    )  # fmt: skip


def _check(input: Tensor, linear_weight: Tensor, linear_bias: Tensor | None) -> None:
    if input.dim() not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(
            f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}"
        )
    classes, *out, features = linear_weight.shape
    if input.shape[-1] != features:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.shape[-1]} and {features}, respectively"
        )
    if linear_bias is not None and tuple(linear_bias.shape) != (classes, *out):
        raise RuntimeError(
            f"expected linear_bias shape {(classes, *out)}, got {tuple(linear_bias.shape)}"
        )
    if out and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} "
            f"requires batched input, (N, {features}), got unbatched input with shape "
            f"{tuple(input.shape)}"
        )
