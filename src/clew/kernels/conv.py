"""Convolution (cross-correlation) in one, two or three dimensions, and its gradients.

The output and two gradients are three contractions of one picture: im2col columns (K x L) of the
input, a weight (O x K), an output (O x L). The output sums over K; the input's gradient sums over
O; the weight's gradient sums over L. `windows` explains the two memory layouts, of which the
number of channels chooses one. Imports NumPy and sibling kernels.

The gradient of the input is a convolution of the output's gradient: `windows.phases`. Only where
the output has many times the input's channels, as in a first layer, the columns of the input are
made and added up instead.

Shapes: x (N, C, *size), w (O, C / groups, *kernel), bias (O,), the output and its gradient
(N, O, *out). The other arguments hold one int per spatial dimension.
"""

from math import prod
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..threads import split
from . import depthwise, onednn
from .conv_shapes import check_conv
from .half import narrow, widen
from .product import add_product, add_products, product
from .windows import (
    BLOCK_POSITIONS,
    Ints,
    Windows,
    block_shape,
    columns_first,
    columns_last,
    fold_first,
    phases,
    to_first,
    to_last,
)

# From this many channels on, a run of them is long enough to be copied fast (measured).
MANY_CHANNELS = 8

# The gradient of images of so few channels is added up from columns faster than oneDNN, which fills
# them up to sixteen, finds it (measured).
FEW_CHANNELS = 4

# An image of fewer positions makes a pointwise convolution a product of too few columns (measured).
FEW_POSITIONS = 64

# What it costs to copy an element of the columns, and to add one to an image, in multiply-adds of
# a matrix product (measured).
COPY_COST, ADD_COST = 6, 40

# The batch is split into at most so many pieces, of at least so many multiply-adds each, which
# take one thread about a sixth of a millisecond (Note [Threads]). An element of the input or the
# output costs as much as some of them, which is most of what a convolution of few channels costs.
PIECES, PIECE, ELEMENT_COST = 8, 1 << 23, 48


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
    x_wide, w_wide, b_wide = widen(x), widen(w), None if bias is None else widen(bias)
    out = np.empty((x.shape[0], w.shape[0], *windows.out), x_wide.dtype)
    run_forward(x_wide, w_wide, b_wide, out, windows, groups)
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
    run_backward(grad_wide, w_wide, None, out, windows, groups)
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
    engine = _engine(x_wide, w_shape, windows, groups)
    sums = OrderedSum()

    def run(start: int, stop: int) -> None:
        some_grad, some_x = grad_wide[start:stop], x_wide[start:stop]
        part = np.empty(w_shape, grad_wide.dtype)
        if not (engine and engine.backward_weight(some_grad, some_x, part, windows, groups)):
            part[...] = 0
            _backward_weight(some_grad, some_x, part, windows, groups)
        sums.add(start, stop, part)

    split(run, len(x), _grain(len(x), w_shape, windows))
    return narrow(sums.total, grad.dtype)


class OrderedSum:
    """The sum of what pieces of the batch found, in their order, whichever is ready first.

    So it does not depend on the number of threads, and no more parts wait than there are threads.
    """

    def __init__(self) -> None:
        self.total: Any = None
        self._end = 0
        self._waiting: dict[int, tuple[int, NDArray]] = {}
        self._lock = Lock()

    def add(self, start: int, stop: int, part: NDArray) -> None:
        """Add what the piece from `start` to `stop` found."""
        with self._lock:
            self._waiting[start] = stop, part
            while self._end in self._waiting:
                self._end, ready = self._waiting.pop(self._end)
                if self.total is None:
                    self.total = ready
                else:
                    self.total += ready


def conv_backward_bias(grad: NDArray) -> NDArray:
    """Gradient of the convolution's bias, shape (O,)."""
    rows = widen(grad).reshape(*grad.shape[:2], prod(grad.shape[2:]))
    return narrow(rows.sum(axis=0).sum(axis=1), grad.dtype)  # twice as fast as the other way


def run_forward(
    x: NDArray, w: NDArray, bias: NDArray | None, out: NDArray, windows: Windows, groups: int
) -> None:
    """Write the convolution of `x` with `w`, plus `bias`, into the contiguous `out`."""
    engine = _engine(x, w.shape, windows, groups)

    def run(start: int, stop: int) -> None:
        part, to = x[start:stop], out[start:stop]
        if not (engine and engine.correlate(part, w, bias, to, windows, groups)):
            correlate(part, w, bias, to, windows, groups)

    split(run, len(x), _grain(len(x), w.shape, windows))


def run_backward(
    grad: NDArray, w: NDArray, bias: NDArray | None, out: NDArray, windows: Windows, groups: int
) -> None:
    """Write the adjoint of a convolution, plus `bias`, into the contiguous `out`."""
    engine = None
    if w.shape[1] > FEW_CHANNELS or _gathers(len(w) // groups, w.shape[1], windows):
        engine = _engine(grad, w.shape, windows, groups)

    def run(start: int, stop: int) -> None:
        part, to = grad[start:stop], out[start:stop]
        if engine and engine.correlate_back(part, w, to, windows, groups):
            if bias is not None:
                to += bias.reshape(-1, *(1,) * len(windows.out))
        else:
            correlate_back(part, w, bias, to, windows, groups)

    split(run, len(grad), _grain(len(grad), w.shape, windows))


def _engine(
    array: NDArray, w_shape: Ints, windows: Windows, groups: int
) -> "onednn.Convolutions | None":
    """oneDNN, where it does better than a matrix product; see Note [oneDNN]."""
    if array.dtype != np.float32 or 0 in array.shape or 0 in w_shape:
        return None
    pointwise = prod(windows.kernel) == 1 and prod(windows.out) >= FEW_POSITIONS
    if windows.inside and (windows.kernel == windows.size or pointwise):
        return None  # a matrix product of what lies in memory
    return onednn.convolutions()


def _grain(batch: int, w_shape: Ints, windows: Windows) -> int:
    """How many samples a piece of the batch has at least."""
    each = prod(w_shape) + ELEMENT_COST * sum(w_shape[:2])
    positions = max(BLOCK_POSITIONS, PIECE // max(1, each))
    return max(-(-positions // max(1, prod(windows.out))), -(-batch // PIECES))


def correlate(
    x: NDArray, w: NDArray, bias: NDArray | None, out: NDArray, windows: Windows, groups: int
) -> None:
    """Write the convolution of `x` with `w`, plus `bias`, into `out`, of any strides."""
    x, w, windows = _simplest(x, w, windows)
    if depthwise.suits(w.shape, groups):
        depthwise.correlate(x, w, bias, out, windows)
    elif _is_first(w.shape[1], windows, groups):
        _correlate_first(x, w, bias, out, windows, groups)
    else:
        _correlate_last(x, w, bias, out, windows)


def _simplest(x: NDArray, w: NDArray, windows: Windows) -> tuple[NDArray, NDArray, Windows]:
    """The same convolution as one whose columns are the image itself, where that is so.

    A kernel of one element sees every s-th element of the image; a kernel as large as the image
    is a kernel of one element on images of more channels.
    """
    ones = (1,) * len(windows.kernel)
    if windows.trivial or not windows.inside:
        return x, w, windows
    if windows.kernel == ones:
        steps = (slice(0, o * s, s) for o, s in zip(windows.out, windows.stride))
        return x[:, :, *steps], w, Windows.over(windows.out, ones, ones, windows.padding, ones)
    if windows.kernel == windows.size:
        x, w = (a.reshape(len(a), prod(a.shape[1:]), *ones) for a in (x, w))
        return x, w, Windows.over(ones, ones, ones, windows.padding, ones)
    return x, w, windows


def _is_first(channels: int, windows: Windows, groups: int) -> bool:
    """Whether the channels-first layout is the faster one."""
    if windows.trivial and prod(windows.out) >= BLOCK_POSITIONS // 8:
        return True  # nothing is copied
    return channels < MANY_CHANNELS or groups > 1


def _correlate_first(
    x: NDArray, w: NDArray, bias: NDArray | None, out: NDArray, windows: Windows, groups: int
) -> None:
    weight = w.reshape(groups, len(w) // groups, prod(w.shape[1:]))
    for block, columns in columns_first(x, windows):
        columns = columns.reshape(len(columns), groups, weight.shape[2], columns.shape[2])
        target = out[block]
        shape = (len(columns), *weight.shape[:2], columns.shape[3])
        into = target.reshape(shape) if target.flags.c_contiguous else None
        found = product(np.matmul, weight, columns, into)
        if bias is not None:
            found += bias.reshape(*weight.shape[:2], 1)
        if into is None:
            target[...] = found.reshape(target.shape)


def _correlate_last(
    x: NDArray, w: NDArray, bias: NDArray | None, out: NDArray, windows: Windows
) -> None:
    weight = _weight_last(w)
    buffer: NDArray | None = None
    for block, columns in columns_last(x, windows):
        if buffer is None:
            buffer = np.empty((len(columns), len(w)), columns.dtype)
        rows = product(np.matmul, columns, weight, buffer[: len(columns)])
        if bias is not None:
            rows += bias
        target = to_last(out[block])
        target[...] = rows.reshape(target.shape)


def _weight_last(w: NDArray) -> NDArray:
    """The weight as a matrix (K * C, O), copied along the axis that is the denser one in memory."""
    depth = prod(w.shape[1:])
    if w.strides[0] < w.strides[1]:
        return w.transpose(*range(2, w.ndim), 1, 0).reshape(depth, len(w))
    return to_last(w).reshape(len(w), depth).T


def correlate_back(
    grad: NDArray, w: NDArray, bias: NDArray | None, out: NDArray, windows: Windows, groups: int
) -> None:
    """Write the adjoint of `correlate` applied to `grad`, plus `bias`, into `out`."""
    if windows.kernel == windows.size and windows.inside:
        # One window: its columns are the image, and a pointwise convolution of more channels.
        ones = (1,) * len(windows.kernel)
        out, w = (a.reshape(len(a), prod(a.shape[1:]), *ones) for a in (out, w))
        bias = None if bias is None else bias.repeat(prod(windows.kernel))
        windows = Windows.over(ones, ones, ones, windows.padding, ones)
    if not _gathers(len(w) // groups, w.shape[1], windows):
        _fold(grad, w, bias, out, windows, groups)
        return
    mirrored = _mirror(w, groups)
    for phase in phases(windows):
        image = out[:, :, *phase.image]
        if 0 in phase.windows.kernel:
            image[...] = 0 if bias is None else bias.reshape(-1, *(1,) * len(windows.out))
            continue
        kernel = np.flip(mirrored[:, :, *phase.taps], tuple(range(2, w.ndim)))
        correlate(grad[:, :, *phase.grad], kernel, bias, image, phase.windows, groups)


def _gathers(outputs: int, inputs: int, windows: Windows) -> bool:
    """Whether the input's gradient costs less as a convolution of the output's gradient.

    Both cost so many multiply-adds for each kernel position, and copy or add up the columns.
    """
    positions = prod(windows.size) / prod(windows.stride)
    gather = positions * outputs * (inputs + COPY_COST)
    return gather <= prod(windows.out) * inputs * (outputs + ADD_COST)


def _mirror(w: NDArray, groups: int) -> NDArray:
    """`w` with input and output channels exchanged: (C, O / groups, *kernel)."""
    kernel = w.shape[2:]
    w = w.reshape(groups, len(w) // groups, *w.shape[1:]).swapaxes(1, 2)
    return w.reshape(groups * w.shape[1], w.shape[2], *kernel)


def _fold(
    grad: NDArray, w: NDArray, bias: NDArray | None, out: NDArray, windows: Windows, groups: int
) -> None:
    """`correlate_back` by columns of the image."""
    weight = w.reshape(groups, len(w) // groups, prod(w.shape[1:])).mT
    length = prod(windows.out)
    samples = max(1, block_shape(len(grad), windows, groups * weight.shape[1] * grad.itemsize)[0])
    for start in range(0, len(grad), samples):
        rows = grad[start : start + samples]
        rows = rows.reshape(len(rows), groups, weight.shape[2], length)
        # With one output channel it is an outer product, for which matmul has no fast path.
        outer = weight.shape[2] == 1
        columns = weight * rows if outer else product(np.matmul, weight, rows)
        fold_first(columns, out[start : start + samples], windows)
    if bias is not None:
        out += bias.reshape(-1, *(1,) * len(windows.out))


def _backward_weight(
    grad: NDArray, x: NDArray, out: NDArray, windows: Windows, groups: int
) -> None:
    """Add the gradient of the weight to `out`, which is contiguous."""
    x, out, windows = _simplest(x, out, windows)
    if depthwise.suits(out.shape, groups):
        depthwise.backward_weight(grad, x, out, windows)
    elif _is_first(out.shape[1], windows, groups):
        _backward_weight_first(grad, x, out, windows, groups)
    else:
        _backward_weight_last(grad, x, out, windows)


def _backward_weight_first(
    grad: NDArray, x: NDArray, out: NDArray, windows: Windows, groups: int
) -> None:
    depth, width = prod(out.shape[1:]), len(out) // groups
    total = out.reshape(groups, width, depth)
    for block, columns in columns_first(x, windows):
        number, _, length = columns.shape
        rows = grad[block].reshape(number, groups, width, length)
        columns = columns.reshape(number, groups, depth, length).mT
        add_products(rows, columns, total)


def _backward_weight_last(grad: NDArray, x: NDArray, out: NDArray, windows: Windows) -> None:
    total = np.zeros((len(out), prod(out.shape[1:])), out.dtype)
    for block, columns in columns_last(x, windows):
        # Positions of one image stay together, so that long runs are copied.
        rows = grad[block].swapaxes(0, 1).reshape(len(out), len(columns))
        add_product(rows, columns, total)
    out += to_first(total.reshape(len(out), *windows.kernel, out.shape[1]))
