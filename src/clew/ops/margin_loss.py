"""Losses that ask for a margin between the right classes and the others.

Their derivatives are composed of ops, so they hold for any order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.dtypes import scalar_name
from clew.kernels.half import narrow, widen
from clew.op import op
from clew.ops.loss import reduced


def _check_classes(x: Any) -> None:
    if x.ndim > 2 or 0 in x.shape[-1:]:
        raise RuntimeError(
            "Expected non-empty vector or matrix with optional 0-dim batch size, but got: "
            f"{list(x.shape)}"
        )


def _check_long(target: Any) -> None:
    if target.dtype != np.int64:
        raise RuntimeError(f"expected scalar type Long but found {scalar_name(target.dtype)}")


# -- one right class


@op("multi_margin_loss(self, target, weight=None; p, margin, reduction)", publish=())
def multi_margin_loss(
    x: Any, target: Any, weight: Any, *, p: int, margin: float, reduction: str
) -> Any:
    """``sum(max(0, margin - self[target] + self[j])**p) / C`` over the other classes j.

    Raises:
        RuntimeError: shapes or types do not fit, or a target is no class.
    """
    _check_classes(x)
    samples, classes = _rows(x.shape)
    if target.ndim > 1 or target.size != samples:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input "
            f"samples (batch size). Expected target size [{samples}], but got "
            f"{list(target.shape)}. Input has shape {list(x.shape)}."
        )
    if weight is not None and weight.shape != (classes,):
        raise RuntimeError(
            f"inconsistent weight size, expected {classes} but got {list(weight.shape)}"
        )
    _check_long(target)
    chosen = target.reshape(-1)
    if np.logical_or(chosen < 0, chosen >= classes).any():
        raise RuntimeError("target out of range")
    rows = widen(x).reshape(samples, classes)
    excess = np.maximum(margin - rows[np.arange(samples), chosen][:, None] + rows, 0)
    excess[np.arange(samples), chosen] = 0
    losses = (excess if p == 1 else excess * excess).sum(axis=1) / classes
    if weight is not None:
        losses *= widen(weight)[chosen]
    result = reduced(losses, reduction)
    return narrow(result if x.ndim == 2 else result.reshape(()), x.dtype)


@multi_margin_loss.grad("self")
def _(
    F: Any, grad: Any, self: Any, target: Any, weight: Any, *,
    p: int, margin: float, reduction: str,
) -> Any:  # fmt: skip
    shape = tuple(self.shape)
    rows = _rows(shape)
    x = F.reshape(self, rows)
    right = F.eq(F.one_hot(F.reshape(target, (-1,)), num_classes=rows[1]), 1)
    excess = margin - F.sum(F.where(right, x, 0), 1, keepdim=True) + x
    slope = F.cast_like(F.gt(excess, 0), x) if p == 1 else 2 * F.clamp(excess, min=0)
    others = F.where(right, 0, slope)
    if weight is not None:
        others = others * F.sum(F.where(right, weight, 0), 1, keepdim=True)
    slope = others - F.where(right, F.sum(others, 1, keepdim=True), 0)
    return F.reshape(slope * _per_row(F, grad, rows, reduction), shape)


def _rows(shape: tuple[int, ...]) -> tuple[int, int]:
    """Samples and classes; a single sample is a batch of one."""
    return (shape[0], shape[1]) if len(shape) == 2 else (1, shape[0] if shape else 1)


def _per_row(F: Any, grad: Any, rows: tuple[int, int], reduction: str) -> Any:
    """The gradient of each sample's sum, as a column."""
    samples, classes = rows
    column = F.reshape(grad, (-1, 1)) / classes
    return column / samples if reduction == "mean" else column


# -- several right classes


@op("label_counts(self; classes)", publish=())
def label_counts(target: Any, *, classes: int) -> Any:
    """How often each class stands in each row of labels, which ends at the first -1."""
    ended = np.logical_or.accumulate(target < 0, axis=1)
    counts = np.zeros((len(target), classes), np.int64)
    row, place = np.nonzero(~ended)
    np.add.at(counts, (row, target[row, place]), 1)
    return counts


@op("multilabel_margin_loss(self, target; reduction) -> output, is_target", publish=(),
    no_grad_outputs=(1,))  # fmt: skip
def multilabel_margin_loss(x: Any, target: Any, *, reduction: str) -> tuple[Any, Any]:
    """``sum(max(0, 1 - self[t] + self[j])) / C`` over labels t and other classes j.

    Each row of `target` lists labels and ends at the first -1.

    Raises:
        RuntimeError: shapes or types do not fit, or a label is no class.
    """
    _check_classes(x)
    if target.shape != x.shape:
        raise RuntimeError(
            f"inconsistent target size: {list(target.shape)} for input of size: {list(x.shape)}"
        )
    _check_long(target)
    samples, classes = _rows(x.shape)
    if target.size and (target.min() < -1 or target.max() >= classes):
        raise RuntimeError("argument #2 'target' is out of range")
    rows = widen(x).reshape(samples, classes)
    counts = label_counts.forward(target.reshape(samples, classes), classes=classes)
    excess = np.maximum(1 - rows[:, :, None] + rows[:, None, :], 0)
    excess *= counts[:, :, None]
    excess *= (counts == 0)[:, None, :]
    result = reduced(excess.sum(axis=(1, 2)) / classes, reduction)
    result = result if x.ndim == 2 else result.reshape(())
    return narrow(result, x.dtype), (counts > 0).astype(x.dtype).reshape(x.shape)


@multilabel_margin_loss.grad("self")
def _(F: Any, grad: Any, self: Any, target: Any, *, reduction: str) -> Any:
    shape = tuple(self.shape)
    rows = _rows(shape)
    x = F.reshape(self, rows)
    counts = F.label_counts(F.reshape(target, rows), classes=rows[1])
    excess = 1 - F.unsqueeze(x, 2) + F.unsqueeze(x, 1)
    counted = F.logical_and(F.gt(excess, 0), F.unsqueeze(F.eq(counts, 0), 1))
    pairs = F.where(counted, F.unsqueeze(F.cast_like(counts, x), 2), 0)
    slope = F.sum(pairs, 1) - F.sum(pairs, 2)
    return F.reshape(slope * _per_row(F, grad, rows, reduction), shape)
