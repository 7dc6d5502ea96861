"""Losses: sums of pairs, negative log-likelihood over classes. Imports NumPy, sibling kernels.

Shapes of the latter: x, log-probabilities, (C,), (N, C) or (N, C, d1, ...); target (), (N,) or
(N, d1, ...) with class indices in int64 or uint8; weight (C,). Half precision is computed in
float32.
"""

from math import prod

import numpy as np
from numpy.typing import NDArray

from ..dtypes import scalar_name
from ..threads import split
from .compiled import Twins, twins
from .half import narrow, widen
from .pointwise import in_pieces
from .rows import first_outside

Ints = tuple[int, ...]

# Arrays of fewer elements have no twins.
SMALL = 64
# A twin adds up so many losses to one sum, and a thread takes up so many sums at a time.
PART = 4096
PARTS = 16


def total_of_pairs(name: str, x: NDArray, t: NDArray, number: float) -> float | None:
    """The sum of the losses of pairs by the twin ``<name>_total``; None: NumPy is to be used."""
    fast = _twins(x)
    if fast is None or _differ(x, t) or not (_is_plain(x) and _is_plain(t)):
        return None
    totals, twin = np.empty(-(-x.size // PART)), getattr(fast, name + "_total")
    first, second = x.ravel(), t.ravel()
    if len(totals) == 1:
        twin(totals, first, second, number, 0, 1)
        return totals.item()
    split(
        lambda start, stop: twin(totals, first, second, number, start, stop), len(totals), PARTS
    )  # fmt: skip
    return float(totals.sum())


def slope_of_pairs(
    name: str, grad: NDArray, x: NDArray, t: NDArray, *numbers: float
) -> NDArray | None:
    """The gradient of each loss by the twin ``<name>_slope``; None: NumPy is to be used.

    The first of the numbers, times `grad`, is what all are multiplied by.
    """
    fast = _twins(x)
    if fast is None or grad.size != 1 or _differ(x, t):
        return None
    factor = grad.item() * numbers[0]
    return in_pieces(getattr(fast, name + "_slope"), (x, t), (factor, *numbers[1:]))


def _twins(x: NDArray) -> Twins | None:
    return twins("loss", x.dtype) if x.size >= SMALL else None


def _differ(x: NDArray, t: NDArray) -> bool:
    return x.shape != t.shape or x.dtype != t.dtype


def _is_plain(x: NDArray) -> bool:
    return x.flags.c_contiguous and x.flags.aligned


def nll_loss(
    x: NDArray, target: NDArray, weight: NDArray | None, reduction: str, ignore_index: int
) -> tuple[NDArray, NDArray]:
    """-weight[target] * x[target], its sum or weighted mean; and the total weight.

    `reduction` is "none", "mean" or "sum"; targets equal to `ignore_index` count nothing. As in
    PyTorch, the total weight is 0 for reduction "none" of a batch, where nothing needs it.

    Raises ValueError or RuntimeError for shapes that do not fit, IndexError for a target that is
    no class.
    """
    _check(x.shape, target, weight)
    fast = _nll_twins(x, target, weight, reduction)
    if fast is not None:
        found = np.empty(3)
        fast.nll(found, x, target, ignore_index)
        total, count, wrong = found.tolist()
        if not wrong:
            mean = reduction == "mean"
            out = total if not mean else total / count if count else np.nan
            return np.array(out, x.dtype), np.array(count, x.dtype)
    wide = widen(x)
    rows = _plain_rows(x.shape, target, weight, ignore_index)
    if rows is not None:
        return _plain_loss(wide[rows, target], reduction, x.dtype)
    flat, weights, ignored = _locate(x.shape, target, weight, ignore_index, wide.dtype)
    losses = -weights * wide.reshape(-1)[flat]
    losses[ignored] = 0
    total = weights.sum()
    if reduction == "none":
        out = losses.reshape(() if x.ndim == 1 else target.shape)
        total = total if x.ndim == 1 else np.zeros_like(total)
    elif reduction == "sum":
        out = losses.sum()
    else:
        out = losses.sum() / total
    return narrow(np.asarray(out), x.dtype), narrow(np.asarray(total), x.dtype)


def nll_loss_backward(
    grad: NDArray,
    x_shape: Ints,
    target: NDArray,
    weight: NDArray | None,
    reduction: str,
    ignore_index: int,
    total_weight: NDArray,
) -> NDArray:
    """Gradient of the log-probabilities, shape `x_shape`; `total_weight` is the forward's."""
    g = widen(grad)
    out = np.empty(x_shape, g.dtype)
    fast = _nll_twins(out, target, weight, reduction)
    if fast is not None:
        wrong, value = np.empty(1), -float(g)
        value = value / float(total_weight) if reduction == "mean" and total_weight else value
        fast.nll_backward(out, wrong, target, ignore_index, value)
        if not wrong[0]:
            return narrow(out, grad.dtype)
    rows = _plain_rows(x_shape, target, weight, ignore_index)
    if rows is not None:
        out = np.zeros(x_shape, g.dtype)
        out[rows, target] = -g / widen(total_weight) if reduction == "mean" else -g
        return narrow(out, grad.dtype)
    flat, weights, ignored = _locate(x_shape, target, weight, ignore_index, g.dtype)
    if reduction == "none":
        g = g.reshape(-1)
    elif reduction == "mean":
        g = g / widen(total_weight)
    values = -weights * g
    values[ignored] = 0
    out = np.zeros(prod(x_shape), g.dtype)
    out[flat] = values
    return narrow(out.reshape(x_shape), grad.dtype)


def _nll_twins(x: NDArray, target: NDArray, weight: NDArray | None, reduction: str) -> Twins | None:
    """The twins for a reduced loss of (N, C), where each target counts once."""
    if weight is not None or reduction == "none" or x.ndim != 2 or target.dtype != np.int64:
        return None
    return _twins(x) if _is_plain(x) and _is_plain(target) else None


def _plain_rows(
    x_shape: Ints, target: NDArray, weight: NDArray | None, ignore_index: int
) -> NDArray | None:
    """The numbers of the rows of (N, C) if each counts once; None for any other case."""
    if weight is not None or ignore_index >= 0 or len(x_shape) != 2 or target.size == 0:
        return None
    if target.dtype != np.int64 or first_outside(target, x_shape[1]) is not None:
        return None
    return np.arange(len(target))


def _plain_loss(picked: NDArray, reduction: str, dtype: np.dtype) -> tuple[NDArray, NDArray]:
    """`nll_loss` of the log-probabilities of the targets, each of weight 1."""
    losses = np.negative(picked)
    if reduction == "none":
        return narrow(losses, dtype), np.zeros((), dtype)
    total = losses.dtype.type(len(losses))
    out = losses.sum() if reduction == "sum" else losses.sum() / total
    return narrow(np.asarray(out), dtype), narrow(np.asarray(total), dtype)


def _locate(
    x_shape: Ints, target: NDArray, weight: NDArray | None, ignore_index: int, dtype: np.dtype
) -> tuple[NDArray, NDArray, NDArray]:
    """For each target: the flat index of its log-probability, its weight, whether to ignore it.

    What is ignored has weight 0 and the index of class 0.
    """
    batch, classes, *space = x_shape if len(x_shape) > 1 else (1, *x_shape)
    length = prod(space)
    classes_of = target.reshape(batch, length).astype(np.int64)
    ignored = classes_of == ignore_index
    classes_of[ignored] = 0
    outside = classes_of.view(np.uint64) >= classes  # negative indices are huge ones
    if outside.any():
        raise IndexError(f"Target {classes_of[outside][0]} is out of bounds.")
    if weight is None:
        weights = np.ones(classes_of.shape, dtype)
    else:
        weights = widen(weight).astype(dtype, copy=False)[classes_of]
    weights[ignored] = 0
    flat = classes_of * length
    flat += np.arange(0, batch * classes * length, classes * length)[:, None]
    flat += np.arange(length)
    return flat.reshape(-1), weights.reshape(-1), ignored.reshape(-1)


def _check(x_shape: Ints, target: NDArray, weight: NDArray | None) -> None:
    """Raise PyTorch's errors for shapes and dtypes that do not fit."""
    if not x_shape:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if len(x_shape) > 1 and target.shape[:1] != x_shape[:1]:
        raise ValueError(
            f"Expected input batch_size ({x_shape[0]}) to match target batch_size "
            f"({target.shape[0] if target.ndim else 0})."
        )
    if len(x_shape) <= 2:
        _check_flat(x_shape, target)
    else:
        _check_spatial(x_shape, target)
    if target.dtype not in (np.int64, np.uint8):
        raise RuntimeError(
            f"expected target dtype to be Long or Byte, but got {scalar_name(target.dtype)}"
        )
    classes = x_shape[0] if len(x_shape) == 1 else x_shape[1]
    if weight is not None and weight.shape != (classes,):
        if len(x_shape) > 2:
            raise RuntimeError("weight tensor should be defined either for all or no classes")
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes "
            f"but got weight tensor of shape: {list(weight.shape)}"
        )


def _check_flat(x_shape: Ints, target: NDArray) -> None:
    if target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if len(x_shape) == 1 and target.size != 1:
        raise ValueError(
            f"For 1D input, 1D target must have size 1, but got target size: {target.size}"
        )


def _check_spatial(x_shape: Ints, target: NDArray) -> None:
    if len(x_shape) == 4 and target.ndim != 3:
        raise RuntimeError(
            "only batches of spatial targets supported (3D tensors) but got targets of "
            f"dimension: {target.ndim}"
        )
    if target.shape[1:] != x_shape[2:]:
        shapes = list(x_shape), list(target.shape)
        if len(x_shape) == 4:
            raise RuntimeError("size mismatch (got input: {} , target: {}".format(*shapes))
        expected = [x_shape[0], *x_shape[2:]]
        raise RuntimeError(f"Expected target size {expected}, got {shapes[1]}")
