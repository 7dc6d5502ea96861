"""Batch norm: normalisation over the batch and space, one channel at a time.

Imports NumPy and sibling kernels. (Instance norm is batch norm of one image of N * C channels.)

Shapes: x, its output and their gradients (N, C, *size); weight, bias, running statistics and the
statistics of a batch (C,). Half-precision input is computed in float32; statistics have the dtype
of the weight, or else of the input.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..threads import split
from .compiled import Twins, twins
from .half import narrow, widen

Gradients = tuple[NDArray | None, NDArray | None, NDArray | None]

# Arrays of fewer elements have no twins, and threads take up no fewer at a time (some 20 us).
SMALL = 512
GRAIN = 1 << 16


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
    if training and not x.size:
        return x.copy(), np.zeros(x.shape[1], dtype), np.zeros(x.shape[1], dtype)
    rows = _rows(x)
    if not training:
        mean, var = _running(running_mean, running_var)
        out = _by_statistics(rows, mean, 1 / np.sqrt(var + eps), weight, bias)
        return narrow(out.reshape(x.shape), x.dtype), np.empty(0, dtype), np.empty(0, dtype)
    wide = any(r is not None and r.itemsize > rows.itemsize for r in (running_mean, running_var))
    normalise = _by_batch if wide or _twins(rows) is None else _by_batch_compiled
    out, mean, invstd = normalise(rows, weight, bias, running_mean, running_var, momentum, eps)
    return narrow(out.reshape(x.shape), x.dtype), narrow(mean, dtype), narrow(invstd, dtype)


def _by_batch(
    rows: NDArray, weight: NDArray | None, bias: NDArray | None, running_mean: NDArray | None,
    running_var: NDArray | None, momentum: float, eps: float,
) -> tuple[NDArray, NDArray, NDArray]:  # fmt: skip
    """Normalise by the batch's own statistics; the output, the means and 1 / sqrt(var + eps)."""
    count = rows.shape[0] * rows.shape[2]
    mean = rows.sum(axis=(0, 2), dtype=np.float64) / count
    out = rows - _per_channel(mean, rows)
    var = np.einsum("ncl,ncl->c", out, out) / count
    _move(running_mean, mean, momentum)
    _move(running_var, var * count / (count - 1), momentum)
    invstd = 1 / np.sqrt(var + eps)
    out *= _per_channel(_scale(invstd, weight), rows)
    if bias is not None:
        out += _per_channel(bias, rows)
    return out, mean, invstd


def _by_batch_compiled(
    rows: NDArray, weight: NDArray | None, bias: NDArray | None, running_mean: NDArray | None,
    running_var: NDArray | None, momentum: float, eps: float,
) -> tuple[NDArray, NDArray, NDArray]:  # fmt: skip
    """`_by_batch` by twins."""
    means, squares = _sums("moments", rows)
    mean, invstd, scale = (np.empty(rows.shape[1], rows.dtype) for _ in range(3))
    running = [_vector(r, rows) if r is not None else np.empty(0, rows.dtype)
               for r in (running_mean, running_var)]  # fmt: skip
    fast: Any = _twins(rows)
    fast.statistics(
        mean, invstd, scale, *running, means, squares, _vector(weight, rows, 1),
        rows.size // means.size, eps, momentum,
    )  # fmt: skip
    for own, moved in zip((running_mean, running_var), running):
        if own is not None and not np.may_share_memory(own, moved):
            own[...] = moved.reshape(own.shape)
    return _each("normalise", rows, vectors=(mean, scale, _vector(bias, rows))), mean, invstd


def _by_statistics(
    rows: NDArray, mean: NDArray, invstd: NDArray, weight: NDArray | None, bias: NDArray | None
) -> NDArray:
    """Normalise by given statistics."""
    scale = _scale(invstd, weight)
    if _twins(rows) is not None:
        vectors = _vector(mean, rows), _vector(scale, rows), _vector(bias, rows)
        return _each("normalise", rows, vectors=vectors)
    out = rows * _per_channel(scale, rows)
    out += _per_channel((0 if bias is None else bias) - mean * scale, rows)
    return out


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
    need_x, need_weight, need_bias = need
    compiled = _twins(rows) is not None and g.dtype == rows.dtype
    differentiate = _backward_compiled if compiled else _backward
    grad_x, slope, total = differentiate(
        g, rows, mean, invstd, _scale(invstd, weight), training, need_x
    )
    dtype = x.dtype if weight is None else weight.dtype
    return (
        None if grad_x is None else narrow(grad_x.reshape(x.shape), x.dtype),
        slope.astype(dtype) if need_weight else None,
        total.astype(dtype) if need_bias else None,
    )


def _backward(
    grad: NDArray, rows: NDArray, mean: NDArray, invstd: NDArray, scale: NDArray, training: bool,
    need_x: bool,
) -> tuple[NDArray | None, NDArray, NDArray]:  # fmt: skip
    """The gradient of the rows, and by channel the sums of grad * x', x' normalised, and of grad.

    The first is scale * (grad - mean(grad) - x' * mean(grad * x')) in training, else scale * grad.
    """
    total = grad.sum(axis=(0, 2), dtype=np.float64)
    centred = rows - _per_channel(mean, rows)
    slope = np.einsum("ncl,ncl->c", grad, centred) * invstd
    if not need_x:
        return None, slope, total
    if not training:
        return grad * _per_channel(scale, rows), slope, total
    count = max(1, rows.shape[0] * rows.shape[2])
    centred *= _per_channel(-slope * invstd / count, rows)
    centred += grad
    centred -= _per_channel(total / count, rows)
    centred *= _per_channel(scale, rows)
    return centred, slope, total


def _backward_compiled(
    grad: NDArray, rows: NDArray, mean: NDArray, invstd: NDArray, scale: NDArray, training: bool,
    need_x: bool,
) -> tuple[NDArray | None, NDArray, NDArray]:  # fmt: skip
    """`_backward` by twins."""
    centre, factor = _vector(mean, rows), _vector(scale, rows)
    sums = _sums("products", grad, rows, vectors=(centre,))
    (total, slope), (share, tilt) = (
        np.empty((2, len(centre))),
        np.empty((2, len(centre)), rows.dtype),
    )
    fast: Any = _twins(rows)
    count = rows.shape[0] * rows.shape[2]
    fast.slopes(total, slope, share, tilt, *sums, _vector(invstd, rows), count)
    if not need_x:
        return None, slope, total
    if not training:
        nothing = np.zeros(len(factor), rows.dtype)
        return _each("normalise", grad, vectors=(nothing, factor, nothing)), slope, total
    vectors = centre, share, tilt, factor
    return _each("backward", grad, rows, vectors=vectors), slope, total


# -- calls of twins


def _twins(rows: NDArray) -> Twins | None:
    return twins("batch_norm", rows.dtype) if rows.size >= SMALL else None


def _sums(
    name: str, *arrays: NDArray, vectors: tuple[NDArray, ...] = ()
) -> tuple[NDArray, NDArray]:
    """Two sums of each channel of each image (N, C), or of each channel (1, C) if L is 1."""
    batch, channels, length = arrays[0].shape
    fast = _twins(arrays[0])
    first, second = np.empty((2, 1 if length == 1 else batch, channels))
    if length == 1:
        twin, flat = getattr(fast, name + "_flat"), [a.reshape(batch, channels) for a in arrays]
        split(
            lambda start, stop: twin(first, second, *flat, *vectors, start, stop),
            channels, max(16, GRAIN * channels // arrays[0].size),
        )  # fmt: skip
    else:
        _by_image(getattr(fast, name), [first, second, *arrays], vectors)
    return first, second


def _each(name: str, *arrays: NDArray, vectors: tuple[NDArray, ...]) -> NDArray:
    """What a twin makes of each number of some arrays (N, C, L) and of the vectors, by channel."""
    out = np.empty_like(arrays[0])
    everything = [out, *arrays]
    if out.shape[2] == 1:
        name, everything = name + "_flat", [a.reshape(a.shape[:2]) for a in everything]
    _by_image(getattr(_twins(out), name), everything, vectors)
    return out


def _by_image(
    twin: Callable[..., None], arrays: list[NDArray], vectors: tuple[NDArray, ...]
) -> None:
    """Call a twin for all images; several threads share those of large arrays."""
    batch, size = len(arrays[-1]), arrays[-1].size
    if size < 2 * GRAIN:
        twin(*arrays, *vectors)
        return
    split(
        lambda start, stop: twin(*(a[start:stop] for a in arrays), *vectors),
        batch, max(1, GRAIN * batch // size),
    )  # fmt: skip


def _vector(values: NDArray | None, rows: NDArray, default: float = 0) -> NDArray:
    """One value for each channel as twins take them; the default where there is none."""
    if values is None:
        return np.full(rows.shape[1], default, rows.dtype)
    return np.ascontiguousarray(values, rows.dtype).reshape(-1)


# -- arrays by channel


def _rows(x: NDArray) -> NDArray:
    """(N, C, *size) as (N, C, L), contiguous, half precision widened."""
    return np.ascontiguousarray(widen(x).reshape(*x.shape[:2], prod(x.shape[2:])))


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
