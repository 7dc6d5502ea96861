"""Transposed convolution: the adjoint of a convolution, so made of the convolution's kernels.

The output is the gradient of a convolution's input; its gradients are therefore a convolution
and the gradient of a convolution's weight, with input and gradient in each other's place.
Imports NumPy and sibling kernels.

Shapes: x (N, C, *size), w (C, O / groups, *kernel), bias (O,), output and its gradient
(N, O, *out). The other arguments hold one int per spatial dimension.
"""

import numpy as np
from numpy.typing import NDArray

from .conv import conv_backward_weight, run_backward, run_forward
from .conv_shapes import check_conv_transpose, conv_transpose_shape
from .half import narrow, widen
from .windows import Ints, Windows


def conv_transpose_forward(
    x: NDArray,
    w: NDArray,
    bias: NDArray | None,
    stride: Ints,
    padding: Ints,
    output_padding: Ints,
    dilation: Ints,
    groups: int,
) -> NDArray:
    """Transposed convolution of `x` with `w`, plus `bias`.

    Raises RuntimeError, with PyTorch's text, if the shapes or parameters do not fit together.
    """
    check_conv_transpose(x.shape, w.shape, bias, stride, padding, output_padding, dilation, groups)
    shape = conv_transpose_shape(
        x.shape, w.shape, stride, padding, output_padding, dilation, groups
    )
    windows = Windows(shape[2:], w.shape[2:], stride, padding, dilation, x.shape[2:])
    x_wide, w_wide, b_wide = widen(x), widen(w), None if bias is None else widen(bias)
    out = np.empty(shape, x_wide.dtype)
    run_backward(x_wide, w_wide, b_wide, out, windows, groups)
    return narrow(out, x.dtype)


def conv_transpose_backward_input(
    grad: NDArray,
    w: NDArray,
    x_shape: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> NDArray:
    """Gradient of the transposed convolution's input, shape `x_shape`."""
    # Output padding as large as the stride makes room for more windows, which no input made.
    windows = Windows(grad.shape[2:], w.shape[2:], stride, padding, dilation, x_shape[2:])
    grad_wide, w_wide = widen(grad), widen(w)
    out = np.empty(x_shape, grad_wide.dtype)
    run_forward(grad_wide, w_wide, None, out, windows, groups)
    return narrow(out, grad.dtype)


def conv_transpose_backward_weight(
    grad: NDArray,
    x: NDArray,
    w_shape: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> NDArray:
    """Gradient of the transposed convolution's weight, shape `w_shape`."""
    return conv_backward_weight(x, grad, w_shape, stride, padding, dilation, groups)
