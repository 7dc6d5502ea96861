"""Batching rules of losses: of each element first, then the mean or sum of each example."""

from __future__ import annotations

from typing import Any

from clew.dispatch import apply
from clew.func.batching.kinds import aligned
from clew.func.batching.rules import (
    Call,
    looped,
    one_by_one,
    padded,
    reshaped,
    rule,
    run,
    total,
)
from clew.op import Op
from clew.ops.rules import broadcast_shape

_ELEMENTWISE = (
    "mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "soft_margin_loss",
)  # fmt: skip


def _reduced(losses: Any, reduction: str) -> Any:
    """The mean or the sum of each example."""
    if reduction == "none":
        return losses
    dims = tuple(range(1, losses._array.ndim))
    if not dims:
        return losses
    return run(reduction, losses, dim=dims, keepdim=False, dtype=None)


@rule(*_ELEMENTWISE)
def elementwise(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """The loss of each element, reduced in each example."""
    losses = apply(op, _of_one_shape(call, (0, 1)), {**attrs, "reduction": "none"})
    return _reduced(losses, attrs["reduction"])


def _of_one_shape(call: Call, positions: tuple[int, ...]) -> list[Any]:
    """The inputs aligned, and those at `positions` (the tensors compared) with all examples."""
    values = aligned(call)
    ndim = max(call.ndim(i) for i in range(len(call)))
    for i in positions:
        if not call.is_batched(i):
            values[i] = padded(call.full(i), ndim)
    return values


@rule(*(f"{name}_backward" for name in _ELEMENTWISE if name != "soft_margin_loss"))
def elementwise_backward(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """The gradient of each element, of the mean a share."""
    values = _of_one_shape(call, (1, 2))
    if attrs["reduction"] == "mean":
        shape = broadcast_shape(call.shape(1), call.shape(2))
        values[0] = run("div", values[0], max(total(shape), 1))
    return apply(op, values, {**attrs, "reduction": "none"})


# -- likelihood of classes


def _rows(x: Any, several: bool) -> Any:
    """Examples of rows as more rows; examples of one row each are rows."""
    if not several:
        return x
    batch, rows, *rest = x._array.shape
    return reshaped(x, batch * rows, *rest)


def _weights_of(op: Op, call: Call, attrs: dict[str, Any], target: Any, like: Any) -> Any:
    """How much each element of the loss counts: the loss of log-probabilities of -1."""
    ones = run("full", like, size=tuple(like._array.shape), value=-1)
    return apply(op, (ones, target, call.values[2]), {**attrs, "reduction": "none"})[0]


@rule("nll_loss", "nll_loss_2d")
def nll_loss(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """The loss of each element; the mean is weighted."""
    if call.is_batched(2):
        return looped(op, call, attrs)
    several = call.ndim(0) > 1
    x, target = (_rows(call.full(i), several) for i in (0, 1))
    losses = apply(op, (x, target, call.values[2]), {**attrs, "reduction": "none"})[0]
    shape = (call.size, *call.shape(1))
    losses = reshaped(losses, *shape)
    reduction = attrs["reduction"]
    nothing = run("full", losses, size=(call.size,), value=0)
    if reduction == "none":
        return losses, nothing
    weights = reshaped(_weights_of(op, call, attrs, target, x), *shape)
    weight = _reduced(weights, "sum")
    summed = _reduced(losses, "sum")
    if reduction == "mean":
        summed = run("div", summed, weight)
    return summed, weight


@rule("nll_loss_backward")
def nll_loss_backward(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """The gradient of each element's loss, from its share of the example's."""
    if call.is_batched(3):
        return looped(op, call, attrs)
    several = call.ndim(1) > 1
    grad, x, target = (call.full(i) for i in (0, 1, 2))
    if attrs["reduction"] != "none":
        if attrs["reduction"] == "mean":
            grad = run("div", grad, call.full(4))
        shape = call.shape(2)
        column = reshaped(grad, call.size, *(1,) * len(shape))
        grad = run("expand", column, size=(call.size, *shape))
    values = (_rows(grad, several), _rows(x, several), _rows(target, several), call.values[3], None)
    found = apply(op, values, {**attrs, "reduction": "none"})
    return reshaped(found, call.size, *call.shape(1))


@rule("multi_margin_loss")
def multi_margin_loss(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """The loss of each row."""
    if call.is_batched(2):
        return looped(op, call, attrs)
    several = call.ndim(0) > 1
    x, target = (_rows(call.full(i), several) for i in (0, 1))
    x = x if call.ndim(0) else reshaped(x, call.size, 1)
    target = reshaped(target, x._array.shape[0])  # of one row it may be a vector of one
    losses = apply(op, (x, target, call.values[2]), {**attrs, "reduction": "none"})
    return _reduced(reshaped(losses, call.size, *call.shape(0)[:-1]), attrs["reduction"])


@rule("multilabel_margin_loss", "label_counts", "ctc_loss", "ctc_loss_backward")
def in_turn(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """One example after the other."""
    return one_by_one(op, call, attrs)
