"""Convolution (cross-correlation) in one, two or three dimensions, and its gradients.

The output and two gradients are three contractions of one picture: im2col columns (K x L) of the
input, a weight (O x K), an output (O x L). The output sums over K; the input's gradient sums over
O and folds the columns back; the weight's gradient sums over L. `windows` explains the two memory
layouts, of which the number of channels chooses one. Imports NumPy and sibling kernels.

Shapes: x (N, C, *size), w (O, C / groups, *kernel), bias (O,), the output and its gradient
(N, O, *out). The other arguments hold one int per spatial dimension.
"""

from collections.abc import Iterator
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
    x_wide, w_wide = widen(x), widen(w)
    out = np.empty((x.shape[0], w.shape[0], *windows.out), x_wide.dtype)
    _forward(x_wide, w_wide, out, windows, groups)
    if bias is not None:
        out += widen(bias).reshape(-1, *(1,) * len(windows.out))
    return narrow(out, x.dtype)


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
    windows = Windows(x_shape[2:], w.shape[2:], stride, padding, dilation, grad.shape[2:])
    grad_wide, w_wide = widen(grad), widen(w)
    out = np.empty(x_shape, grad_wide.dtype)
    _backward_input(grad_wide, w_wide, out, windows, groups)
    return narrow(out, grad.dtype)


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
    windows = Windows(x.shape[2:], w_shape[2:], stride, padding, dilation, grad.shape[2:])
    grad_wide, x_wide = widen(grad), widen(x)
    out = np.zeros(w_shape, grad_wide.dtype)
    _backward_weight(grad_wide, x_wide, out, windows, groups)
    return narrow(out, grad.dtype)


def conv_backward_bias(grad: NDArray) -> NDArray:
    """Gradient of the convolution's bias, shape (O,)."""
    return narrow(widen(grad).sum(axis=(0, *range(2, grad.ndim))), grad.dtype)


def _is_first(channels: int, windows: Windows) -> bool:
    """Whether the channels-first layout is the faster one."""
    return channels < MANY_CHANNELS or windows.trivial


def _blocks(image: NDArray, windows: Windows) -> Iterator[slice]:
    """Blocks of the batch by the size of the image's im2col."""
    positions = prod(windows.kernel) * prod(windows.out)
    return blocks(len(image), image.shape[1] * positions * image.itemsize)


def _forward(x: NDArray, w: NDArray, out: NDArray, windows: Windows, groups: int) -> None:
    """Write the convolution of `x` with `w` into `out`."""
    if _is_first(w.shape[1], windows):
        for part in _blocks(x, windows):
            _forward_first(x[part], w, out[part], windows, groups)
    elif groups == 1:
        weight = to_last(w).reshape(len(w), prod(w.shape[1:]))
        for part in _blocks(x, windows):
            product = unfold_last(x[part], windows) @ weight.T
            out[part] = to_first(product.reshape(len(x[part]), *windows.out, len(w)))
    else:
        for x_group, w_group, out_group in zip(
            np.split(x, groups, axis=1), np.split(w, groups), np.split(out, groups, axis=1)
        ):
            _forward(x_group, w_group, out_group, windows, 1)


def _forward_first(x: NDArray, w: NDArray, out: NDArray, windows: Windows, groups: int) -> None:
    weight = w.reshape(groups, len(w) // groups, prod(w.shape[1:]))
    columns = unfold_first(x, windows)
    length = columns.shape[-1]
    np.matmul(
        weight,
        columns.reshape(len(x), groups, weight.shape[-1], length),
        out=out.reshape(len(x), *weight.shape[:2], length),
    )


def _backward_input(grad: NDArray, w: NDArray, out: NDArray, windows: Windows, groups: int) -> None:
    """Write the gradient of the input into `out`."""
    mirrored = windows.mirrored
    if mirrored and not windows.trivial and _copies_less_than_it_adds(grad, out):
        _forward(grad, _mirror(w, groups), out, mirrored, groups)
    elif _is_first(w.shape[1], windows):
        for part in _blocks(out, windows):
            _backward_input_first(grad[part], w, out[part], windows, groups)
    elif groups == 1:
        weight = to_last(w).reshape(len(w), prod(w.shape[1:]))
        for part in _blocks(out, windows):
            rows = to_last(grad[part]).reshape(len(grad[part]) * prod(windows.out), len(w))
            fold_last(rows @ weight, out[part], windows)
    else:
        for grad_group, w_group, out_group in zip(
            np.split(grad, groups, axis=1), np.split(w, groups), np.split(out, groups, axis=1)
        ):
            _backward_input(grad_group, w_group, out_group, windows, 1)


def _copies_less_than_it_adds(grad: NDArray, out: NDArray) -> bool:
    """Whether convolving `grad` with the mirrored kernel beats folding columns into `out`.

    The first copies an im2col of `grad`, the second adds one of `out` up, at about twice the
    cost for each element.
    """
    return grad.shape[1] * prod(out.shape[2:]) <= 2 * out.shape[1] * prod(grad.shape[2:])


def _mirror(w: NDArray, groups: int) -> NDArray:
    """The kernel of the adjoint: flipped in space, input and output channels exchanged."""
    kernel = w.shape[2:]
    w = w.reshape(groups, len(w) // groups, *w.shape[1:]).swapaxes(1, 2)
    w = w.reshape(groups * w.shape[1], w.shape[2], *kernel)
    return np.ascontiguousarray(np.flip(w, tuple(range(2, w.ndim))))


def _backward_input_first(
    grad: NDArray, w: NDArray, out: NDArray, windows: Windows, groups: int
) -> None:
    weight = w.reshape(groups, len(w) // groups, prod(w.shape[1:]))
    grad = grad.reshape(len(grad), *weight.shape[:2], prod(windows.out))
    # With one output channel it is an outer product, for which matmul has no fast path.
    columns = weight.mT * grad if weight.shape[1] == 1 else weight.mT @ grad
    fold_first(columns, out, windows)


def _backward_weight(
    grad: NDArray, x: NDArray, out: NDArray, windows: Windows, groups: int
) -> None:
    """Add the gradient of the weight to `out`."""
    if _is_first(out.shape[1], windows):
        for part in _blocks(x, windows):
            _backward_weight_first(grad[part], x[part], out, windows, groups)
    elif groups == 1:
        for part in _blocks(x, windows):
            columns = unfold_last(x[part], windows)
            rows = to_last(grad[part]).reshape(len(columns), len(out))
            product = rows.T @ columns
            out += to_first(product.reshape(len(out), *windows.kernel, out.shape[1]))
    else:
        for grad_group, x_group, out_group in zip(
            np.split(grad, groups, axis=1), np.split(x, groups, axis=1), np.split(out, groups)
        ):
            _backward_weight(grad_group, x_group, out_group, windows, 1)


def _backward_weight_first(
    grad: NDArray, x: NDArray, out: NDArray, windows: Windows, groups: int
) -> None:
    depth, width = prod(out.shape[1:]), len(out) // groups
    columns = unfold_first(x, windows)
    length = columns.shape[-1]
    columns = columns.reshape(len(x), groups, depth, length)
    products = grad.reshape(len(grad), groups, width, length) @ columns.mT
    out += products.sum(axis=0).reshape(out.shape)
