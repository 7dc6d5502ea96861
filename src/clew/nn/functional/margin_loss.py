"""Losses that ask for a margin: between classes, between a pair of samples, or two distances."""

from __future__ import annotations

from collections.abc import Callable

from clew.functions.calls import Tensor, call, refuse_gradients
from clew.functions.create import zeros_like
from clew.functions.distance import pairwise_distance
from clew.nn.functional.activation import logsigmoid
from clew.nn.functional.reduction import check_reduction, reduced, reduction_of

# -- classes


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``log(1 + exp(-target * input))`` for targets 1 and -1."""
    reduction = reduction_of(reduction, size_average, reduce)
    refuse_gradients("soft_margin_loss", target=target)
    return call("soft_margin_loss", input, target, reduction=reduction)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``sum(max(0, margin - input[target] + input[j])**p) / C`` over the other classes j.

    Shapes: input ``(N, C)`` or ``(C,)``; target, class indices, ``(N,)`` or ``()``; weight, of the
    target's class, ``(C,)``.

    Raises:
        ValueError: `p` is neither 1 nor 2, or `weight` is no vector.
        RuntimeError: shapes or types do not fit, or a target is no class.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    refuse_gradients("multi_margin_loss", weight=weight)
    return call("multi_margin_loss", input, target, weight, p=p, margin=margin, reduction=reduction)


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``sum(max(0, 1 - input[t] + input[j])) / C`` over labels t and other classes j.

    Shapes: input and target ``(N, C)`` or ``(C,)``; each row of the target lists labels and ends
    at the first -1.

    Raises:
        RuntimeError: shapes or types do not fit, or a label is no class.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    return call("multilabel_margin_loss", input, target, reduction=reduction)[0]


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over classes of the binary cross-entropy of ``sigmoid(input)``.

    Raises:
        ValueError: there is no such reduction.
    """
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    reduction = reduction_of(reduction, size_average, reduce)
    losses = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        losses = losses * weight
    class_dim = input.dim() - 1
    return reduced(losses.sum(dim=class_dim) / input.size(class_dim), reduction)


# -- pairs


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """`input`, a distance, where the target is 1; ``max(0, margin - input)`` where it is -1."""
    reduction = reduction_of(reduction, size_average, reduce)
    nothing = zeros_like(input)
    apart = (margin - input).clamp_min(0).where(target != 1, nothing)
    return reduced(apart + input.where(target != -1, nothing), reduction)


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, margin - target * (input1 - input2))``: target 1 wants the first to be larger.

    Raises:
        RuntimeError: the tensors differ in their number of dimensions.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return reduced((-target * (input1 - input2) + margin).clamp_min(0), reduction)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 minus the cosine where the target is 1; ``max(0, cosine - margin)`` where it is -1.

    Shapes: inputs ``(N, D)`` and target ``(N,)``, or ``(D,)`` and ``()``.

    Raises:
        RuntimeError: shapes do not fit.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if target.dim() > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    ndim = target.dim() + 1
    if not input1.dim() == input2.dim() == ndim:
        raise RuntimeError(
            f"{target.dim()}D target tensor expects {ndim}D input tensors, but found inputs with "
            f"sizes {list(input1.shape)} and {list(input2.shape)}."
        )
    dim = target.dim()
    lengths = ((input1 * input1).sum(dim) + 1e-12) * ((input2 * input2).sum(dim) + 1e-12)
    cosine = (input1 * input2).sum(dim) / lengths.sqrt()
    nothing = zeros_like(cosine)
    alike = (1 - cosine).where(target == 1, nothing)
    unlike = (cosine - margin).clamp_min(0).where(target == -1, nothing)
    return reduced(alike + unlike, reduction)


# -- two distances


def _check_triplet(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float) -> None:
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {anchor.ndim}D, positive {positive.ndim}D, and negative "
            f"{negative.ndim}D inputs"
        )


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, margin + d(anchor, positive) - d(anchor, negative))`` with p-norm distances d.

    `swap` takes the negative's distance from the positive where that is smaller.

    Raises:
        ValueError: `margin` is not positive.
        RuntimeError: the tensors differ in their number of dimensions.
    """
    reduction = reduction_of(reduction, size_average, reduce)

    def distance(x: Tensor, y: Tensor) -> Tensor:
        return pairwise_distance(x, y, p, eps)

    return _triplet(anchor, positive, negative, distance, margin, swap, reduction)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with any distance.

    Raises:
        ValueError: `margin` is not positive.
        RuntimeError: the tensors differ in their number of dimensions.
    """
    check_reduction(reduction)
    distance = pairwise_distance if distance_function is None else distance_function
    return _triplet(anchor, positive, negative, distance, margin, swap, reduction)


def _triplet(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    distance: Callable[[Tensor, Tensor], Tensor],
    margin: float,
    swap: bool,
    reduction: str,
) -> Tensor:
    _check_triplet(anchor, positive, negative, margin)
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return reduced((margin + near - far).clamp_min(0), reduction)
