"""Batch norm: normalisation over the batch and space, one channel at a time.

Imports NumPy and sibling kernels. (Instance norm is batch norm of one image of N * C channels.)

Shapes: x, its output and their gradients (N, C, *size); weight, bias, running statistics and the
statistics of a batch (C,). Half-precision input is computed in float32; statistics have the dtype
of the weight, or else of the input.
"""

from math import prod

import numpy as np
from numpy.typing import NDArray

from .half import narrow, widen

Gradients = tuple[NDArray | None, NDArray | None, NDArray | None]


def batch_norm(
    x: NDArray,
    weight: NDArray | None,
    bias: NDArray | None,
    running_mean: NDArray | None,
    running_var: NDArray | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[NDArray, NDArray, NDArray]:
    """Normalise each channel of `x`; return the output, the means and 1 / sqrt(var + eps).

    In training the statistics are the batch's, and the running ones, where given, move towards
    them in place (the variance with Bessel's correction). Otherwise the running statistics are
    used, and the two that are returned are empty.

    Raises RuntimeError if a per-channel argument has not one element for each channel, or if
    running statistics are missing outside training.
    """
    _check(x, weight=weight, bias=bias, running_mean=running_mean, running_var=running_var)
    dtype = x.dtype if weight is None else weight.dtype
    rows = _rows(x)
    if training and rows.size:
        count = rows.shape[0] * rows.shape[2]
        mean = rows.sum(axis=(0, 2), dtype=np.float64) / count
        out = rows - _per_channel(mean, rows)
        var = np.einsum("ncl,ncl->c", out, out) / count
        _move(running_mean, mean, momentum)
        _move(running_var, var * count / (count - 1), momentum)
    elif training:
        return x.copy(), np.zeros(x.shape[1], dtype), np.zeros(x.shape[1], dtype)
    else:
        mean, var = _running(running_mean, running_var)
        out = rows - _per_channel(mean, rows)
    invstd = 1 / np.sqrt(var + eps)
    out *= _per_channel(_scale(invstd, weight), rows)
    if bias is not None:
        out += _per_channel(bias, rows)
    out = narrow(out.reshape(x.shape), x.dtype)
    if not training:
        return out, np.empty(0, dtype), np.empty(0, dtype)
    return out, mean.astype(dtype), invstd.astype(dtype)


def batch_norm_backward(
    grad: NDArray,
    x: NDArray,
    weight: NDArray | None,
    running_mean: NDArray | None,
    running_var: NDArray | None,
    mean: NDArray,
    invstd: NDArray,
    training: bool,
    eps: float,
    need: tuple[bool, bool, bool] = (True, True, True),
) -> Gradients:
    """Gradients of input, weight and bias; None for those that `need` does not ask for.

    `mean` and `invstd` are what the forward returned; outside training the running statistics
    take their place.
    """
    rows, g = _rows(x), _rows(grad)
    if training:
        mean, invstd = widen(mean), widen(invstd)
    else:
        mean, var = _running(running_mean, running_var)
        invstd = 1 / np.sqrt(var + eps)
    scale = _per_channel(_scale(invstd, weight), rows)
    total = g.sum(axis=(0, 2), dtype=np.float64)
    centred = rows - _per_channel(mean, rows)
    slope = np.einsum("ncl,ncl->c", g, centred) * invstd
    if training:
        # With x' normalised: scale * (grad - mean(grad) - x' * mean(grad * x')).
        count = max(1, rows.shape[0] * rows.shape[2])
        centred *= _per_channel(-slope * invstd / count, rows)
        centred += g
        centred -= _per_channel(total / count, rows)
        centred *= scale
        grad_x = centred
    else:
        grad_x = g * scale
    dtype = x.dtype if weight is None else weight.dtype
    need_x, need_weight, need_bias = need
    return (
        narrow(grad_x.reshape(x.shape), x.dtype) if need_x else None,
        slope.astype(dtype) if need_weight else None,
        total.astype(dtype) if need_bias else None,
    )


def _rows(x: NDArray) -> NDArray:
    """(N, C, *size) as (N, C, L), half precision widened."""
    return widen(x).reshape(*x.shape[:2], prod(x.shape[2:]))


def _per_channel(values: NDArray, rows: NDArray) -> NDArray:
    """One value for each channel, shaped and typed to meet `rows` (N, C, L)."""
    return values.astype(rows.dtype, copy=False)[:, None]


def _scale(invstd: NDArray, weight: NDArray | None) -> NDArray:
    return invstd if weight is None else invstd * widen(weight)


def _move(running: NDArray | None, value: NDArray, momentum: float) -> None:
    """Move a running statistic towards `value`, in place."""
    if running is not None:
        running[...] = (1 - momentum) * widen(running) + momentum * value


def _running(mean: NDArray | None, var: NDArray | None) -> tuple[NDArray, NDArray]:
    """The running statistics to normalise with outside training."""
    if mean is None or var is None:
        missing = "running_mean" if mean is None else "running_var"
        raise RuntimeError(f"{missing} must be defined in evaluation mode")
    return widen(mean), widen(var)


def _check(x: NDArray, **per_channel: NDArray | None) -> None:
    channels = x.shape[1]
    for name, values in per_channel.items():
        if values is not None and values.size != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {values.size}")
