"""Connectionist temporal classification."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew import kernels
from clew.dtypes import scalar_name
from clew.op import op
from clew.ops.checks import differentiable_once


@op("ctc_loss(log_probs, targets; input_lengths, target_lengths, blank, zero_infinity) -> "
    "result0, result1", publish=(), no_grad_outputs=(1,), tensors_only=True, jvp=None)  # fmt: skip
def ctc_loss(
    log_probs: Any, targets: Any, *, input_lengths: Any, target_lengths: Any, blank: int,
    zero_infinity: bool,
) -> tuple[Any, Any]:  # fmt: skip
    """The loss of each sample, and the logarithms of the forward recursion.

    Shapes: log_probs ``(T, N, C)``; targets ``(N, S)`` padded, or all one after the other.

    Raises:
        RuntimeError: shapes, types or lengths do not fit.
        IndexError: a target is no class.
    """
    if log_probs.dtype not in (np.float32, np.float64):
        raise NotImplementedError(
            f"\"ctc_loss_cpu\" not implemented for '{scalar_name(log_probs.dtype)}'"
        )
    _check(log_probs, targets, input_lengths, target_lengths, blank)
    padded, steps, lengths = _as_arrays(log_probs, targets, input_lengths, target_lengths)
    return kernels.ctc.ctc_loss(log_probs, padded, steps, lengths, blank)


@ctc_loss.grad("log_probs")
def _(
    F: Any, grad: Any, log_probs: Any, targets: Any, result0: Any, result1: Any, *,
    input_lengths: Any, target_lengths: Any, blank: int, zero_infinity: bool,
) -> Any:  # fmt: skip
    return F.ctc_loss_backward(
        grad, log_probs, targets, result0, result1, input_lengths=input_lengths,
        target_lengths=target_lengths, blank=blank, zero_infinity=zero_infinity,
    )  # fmt: skip


@op("ctc_loss_backward(grad_output, log_probs, targets, neg_log_likelihood, log_alpha; "
    "input_lengths, target_lengths, blank, zero_infinity)", publish=(), jvp=None)  # fmt: skip
def ctc_loss_backward(
    grad: Any, log_probs: Any, targets: Any, nll: Any, alpha: Any, *,
    input_lengths: Any, target_lengths: Any, blank: int, zero_infinity: bool,
) -> Any:  # fmt: skip
    """Gradient of `ctc_loss`; it has no gradient itself."""
    padded, steps, lengths = _as_arrays(log_probs, targets, input_lengths, target_lengths)
    return kernels.ctc.ctc_loss_backward(
        grad, log_probs, padded, steps, lengths, nll, alpha, blank, zero_infinity
    )


ctc_loss_backward.grad("grad_output", "log_probs")(differentiable_once("_ctc_loss_backward"))


def _as_arrays(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any) -> Any:
    """Targets padded, by samples, and the lengths as arrays."""
    lengths = np.array(target_lengths, np.int64)
    if targets.ndim == 1:
        padded = np.zeros((len(lengths), lengths.max(initial=0)), np.int64)
        padded[np.arange(padded.shape[1]) < lengths[:, None]] = targets
    else:
        padded = targets[:, : lengths.max(initial=0)].astype(np.int64)
    padded[np.arange(padded.shape[1]) >= lengths[:, None]] = 0
    outside = padded[np.logical_or(padded < 0, padded >= log_probs.shape[2])]
    if outside.size:
        raise IndexError(f"Target {outside[0]} is out of bounds.")
    return padded, np.array(input_lengths, np.int64), lengths


def _check(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int
) -> None:
    """Raise PyTorch's errors for what does not fit."""
    where = "(while checking arguments for ctc_loss_allocate_outputs)"
    if log_probs.ndim != 3:
        raise RuntimeError(
            f"Expected 3-dimensional tensor, but got {log_probs.ndim}-dimensional tensor for "
            f"argument #1 'log_probs' {where}"
        )
    if targets.ndim not in (1, 2):
        raise RuntimeError(
            f"Expected 1 to 2 dimensions, but got {targets.ndim}-dimensional tensor for argument "
            f"#2 'targets' {where}"
        )
    steps, batch, classes = log_probs.shape
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    for name, lengths in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if len(lengths) != batch:
            raise RuntimeError(f"{name} must be of size batch_size")
        for n in lengths:
            if n < 0:
                raise RuntimeError(
                    f"Expected {name} to have value at least 0, but got value {n} {where}"
                )
    longest, total = max(target_lengths, default=0), sum(target_lengths)
    if targets.ndim == 1 and len(targets) != total:
        raise RuntimeError(
            f"Expected tensor to have size {total} at dimension 0, but got size {len(targets)} for "
            f"argument #2 'targets' {where}"
        )
    if targets.ndim == 2 and targets.shape[1] < longest:
        raise RuntimeError(
            f"Expected tensor to have size at least {longest} at dimension 1, but got size "
            f"{targets.shape[1]} for argument #2 'targets' {where}"
        )
    for n in input_lengths:
        if n > steps:
            raise RuntimeError(
                f"Expected input_lengths to have value at most {steps}, but got value {n} {where}"
            )
