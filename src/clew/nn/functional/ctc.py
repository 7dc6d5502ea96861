"""Connectionist temporal classification: the loss of labels whose times are not known."""

from __future__ import annotations

import math
from typing import Any

from clew.functions.calls import Tensor, call, require_tensors
from clew.functions.create import tensor, zeros_like
from clew.nn.functional.reduction import check_reduction, reduced
from clew.tensor import Tensor as _Tensor


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """The negative logarithm of the probability that the symbols spell the target.

    Its gradient is that of the logits, so `log_probs` must come from a log-softmax.

    Args:
        log_probs: ``(T, N, C)``, or ``(T, C)`` for one sample.
        targets: classes, ``(N, S)`` padded, or all one after the other.
        input_lengths: how many of the T steps count for each sample, ints or a tensor.
        target_lengths: how many labels each sample has.
        blank: the class that stands for no label.
        reduction: "mean" divides each loss by the length of its target first.
        zero_infinity: losses that are infinite (more labels than steps) count 0.

    Raises:
        RuntimeError: shapes, types or lengths do not fit.
        IndexError: a target is no class.

    Source: Graves et al. 2006.
    """
    check_reduction(reduction)
    require_tensors("ctc_loss", log_probs=log_probs, targets=targets)
    batched = log_probs.dim() == 3
    lengths = _lengths(target_lengths, "target_lengths")
    losses = call(
        "ctc_loss",
        log_probs if batched else log_probs.unsqueeze(1),
        targets.long() if batched or targets.dim() != 1 else targets.long().unsqueeze(0),
        input_lengths=_lengths(input_lengths, "input_lengths"),
        target_lengths=lengths,
        blank=blank,
        zero_infinity=zero_infinity,
    )[0]
    if zero_infinity:
        losses = call("where", losses == math.inf, zeros_like(losses), losses)
    if reduction == "mean":
        losses = losses / tensor(lengths, dtype=losses.dtype).clamp_min(1)
    result = reduced(losses, reduction)
    return result if batched or reduction != "none" else result.squeeze(0)


def _lengths(value: Any, name: str) -> tuple[int, ...]:
    """Lengths given as a tensor of integers, a sequence of ints or a single one.

    Raises:
        TypeError: they are no integers.
    """
    if isinstance(value, _Tensor):
        if value.is_floating_point() or value.is_complex():
            raise RuntimeError(f"{name} must be integral")
        return tuple(value.reshape(-1).tolist())
    values = value if isinstance(value, (tuple, list)) else (value,)
    if not all(hasattr(n, "__index__") for n in values):
        raise TypeError(f"ctc_loss(): argument '{name}' must be tuple of ints")
    return tuple(n.__index__() for n in values)
