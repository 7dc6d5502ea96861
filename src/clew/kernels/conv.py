"""Convolution (cross-correlation) in one, two or three dimensions, and its gradients.

The output and two gradients are three contractions of one picture: im2col columns (K x L) of the
input, a weight (O x K), an output (O x L). The output sums over K; the input's gradient sums over
O and folds the columns back; the weight's gradient sums over L. `windows` explains the two memory
layouts, of which the number of input channels chooses one. Imports NumPy and sibling kernels.

Shapes: x (N, C, *size), w (O, C / groups, *kernel), bias (O,), the output and its gradient
(N, O, *out). The other arguments hold one int per spatial dimension.
"""

from math import prod

import numpy as np
from numpy.typing import NDArray

from .conv_shapes import check_conv
from .half import narrow, widen
from .windows import (
    Ints,
    Windows,
    blocks,
    fold_first,
    fold_last,
    to_first,
    to_last,
    unfold_first,
    unfold_last,
)

# From this many channels on, a run of them is long enough to be copied fast (measured).
MANY_CHANNELS = 8


def conv_forward(
    x: NDArray,
    w: NDArray,
    bias: NDArray | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> NDArray:
    """Convolve `x` with `w` and add `bias`.

    Raises RuntimeError, with PyTorch's text, if the shapes or parameters do not fit together.
    """
    check_conv(x.shape, w.shape, bias, stride, padding, dilation, groups)
    windows = Windows.over(x.shape[2:], w.shape[2:], stride, padding, dilation)
    dtype = x.dtype
    x, w = widen(x), widen(w)
    out = np.empty((x.shape[0], w.shape[0], *windows.out), x.dtype)
    if _group_by_group(w.shape, groups):
        for x_part, w_part, out_part in zip(
            np.split(x, groups, axis=1), np.split(w, groups), np.split(out, groups, axis=1)
        ):
            _forward(x_part, w_part, out_part, windows, 1)
    else:
        _forward(x, w, out, windows, groups)
    if bias is not None:
        out += widen(bias).reshape(-1, *(1,) * len(windows.out))
    return narrow(out, dtype)


def conv_backward_input(
    grad: NDArray,
    w: NDArray,
    x_shape: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> NDArray:
    """Gradient of the convolution's input, shape `x_shape`."""
    windows = Windows.over(x_shape[2:], w.shape[2:], stride, padding, dilation)
    dtype = grad.dtype
    grad, w = widen(grad), widen(w)
    out = np.empty(x_shape, grad.dtype)
    if _group_by_group(w.shape, groups):
        for grad_part, w_part, out_part in zip(
            np.split(grad, groups, axis=1), np.split(w, groups), np.split(out, groups, axis=1)
        ):
            _backward_input(grad_part, w_part, out_part, windows, 1)
    else:
        _backward_input(grad, w, out, windows, groups)
    return narrow(out, dtype)


def conv_backward_weight(
    grad: NDArray,
    x: NDArray,
    w_shape: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> NDArray:
    """Gradient of the convolution's weight, shape `w_shape`."""
    windows = Windows.over(x.shape[2:], w_shape[2:], stride, padding, dilation)
    dtype = grad.dtype
    grad, x = widen(grad), widen(x)
    out = np.zeros(w_shape, grad.dtype)
    if _group_by_group(w_shape, groups):
        for grad_part, x_part, out_part in zip(
            np.split(grad, groups, axis=1), np.split(x, groups, axis=1), np.split(out, groups)
        ):
            _backward_weight(grad_part, x_part, out_part, windows, 1)
    else:
        _backward_weight(grad, x, out, windows, groups)
    return narrow(out, dtype)


def conv_backward_bias(grad: NDArray) -> NDArray:
    """Gradient of the convolution's bias, shape (O,)."""
    return narrow(widen(grad).sum(axis=(0, *range(2, grad.ndim))), grad.dtype)


def _group_by_group(w_shape: Ints, groups: int) -> bool:
    """Whether each group is large enough to be a convolution of its own."""
    return groups > 1 and w_shape[1] >= MANY_CHANNELS


def _channels_first(channels: int, windows: Windows) -> bool:
    return channels < MANY_CHANNELS or windows.trivial


def _forward(x: NDArray, w: NDArray, out: NDArray, windows: Windows, groups: int) -> None:
    """Write the convolution of `x` with `w` into `out`."""
    batch, (out_channels, channels) = x.shape[0], w.shape[:2]
    depth, length = channels * prod(windows.kernel), prod(windows.out)
    first = _channels_first(channels, windows)
    if first:
        weight = w.reshape(groups, out_channels // groups, depth)
        target = out.reshape(batch, groups, out_channels // groups, length)
    else:
        weight = to_last(w).reshape(out_channels, depth).T
    for part in blocks(batch, groups * depth * length * x.itemsize):
        if first:
            columns = unfold_first(x[part], windows)
            columns = columns.reshape(-1 if columns.size else 0, groups, depth, length)
            np.matmul(weight, columns, out=target[part])
        else:
            product = unfold_last(x[part], windows) @ weight
            out[part] = to_first(product.reshape(-1, *windows.out, out_channels))
