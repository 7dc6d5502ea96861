"""Average pooling and its gradient. Imports NumPy and sibling kernels.

A window's sum is taken one dimension after another, so the cost grows with the sides of the
kernel and not with their product. Shapes: x (N, C, *size) or (C, *size); the output the same
with *out. Half precision is computed in float32.
"""

from math import prod

import numpy as np
from numpy.typing import NDArray

from .half import narrow, widen
from .pool_shapes import pool_windows
from .windows import Ints, Windows, pad_first


def avg_pool(
    x: NDArray,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> NDArray:
    """Means of the windows; `divisor_override` divides the sums instead of the count.

    Raises RuntimeError, with PyTorch's text, if the shapes or parameters do not fit together.
    """
    windows = _windows(x.shape, kernel, stride, padding, ceil_mode, divisor_override)
    lead = x.shape[: x.ndim - len(kernel)]
    sums = pad_first(widen(x).reshape(1, prod(lead), *windows.size), windows)
    for axis, (k, s, o) in enumerate(zip(kernel, stride, windows.out), start=2):
        sums = _sum_windows(sums, axis, k, s, o)
    divisor = divisor_override or _counts(windows, count_include_pad)
    if x.dtype.kind in "iu":
        means = np.trunc(sums / divisor)
    else:
        means = sums / np.asarray(divisor, sums.dtype)
    return narrow(means.reshape(*lead, *windows.out), x.dtype)


def avg_pool_backward(
    grad: NDArray,
    x_shape: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> NDArray:
    """Gradient of the input, shape `x_shape`."""
    windows = _windows(x_shape, kernel, stride, padding, ceil_mode, divisor_override)
    divisor = divisor_override or _counts(windows, count_include_pad)
    wide = widen(grad)
    spread = wide / np.asarray(divisor, wide.dtype)
    spread = spread.reshape(prod(x_shape[: -len(kernel)]), *windows.out)
    if stride == kernel and windows.inside:
        return narrow(_fill_tiles(spread, windows).reshape(x_shape), grad.dtype)
    for axis, (k, s, n) in enumerate(zip(kernel, stride, windows.padded), start=1):
        spread = _spread_windows(spread, axis, k, s, n)
    inside = np.ascontiguousarray(spread[(slice(None), *windows.interior)])
    return narrow(inside.reshape(x_shape), grad.dtype)


def _windows(
    x_shape: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    divisor_override: int | None,
) -> Windows:
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    return pool_windows(x_shape, kernel, stride, padding, (1,) * len(kernel), ceil_mode)


def _sum_windows(x: NDArray, axis: int, kernel: int, stride: int, out: int) -> NDArray:
    """Sums of the windows along one axis."""
    before = (slice(None),) * axis
    sums = x[(*before, slice(0, out * stride, stride))].copy()
    for i in range(1, kernel):
        sums += x[(*before, slice(i, i + out * stride, stride))]
    return sums


def _spread_windows(grad: NDArray, axis: int, kernel: int, stride: int, size: int) -> NDArray:
    """The adjoint of `_sum_windows`: each element goes to all inputs of its window."""
    before = (slice(None),) * axis
    out = grad.shape[axis]
    spread = np.zeros((*grad.shape[:axis], size, *grad.shape[axis + 1 :]), grad.dtype)
    for i in range(kernel):
        spread[(*before, slice(i, i + out * stride, stride))] += grad
    return spread


def _fill_tiles(grad: NDArray, windows: Windows) -> NDArray:
    """`_spread_windows` along all axes, for windows that lie side by side."""
    out = np.zeros((len(grad), *windows.size), grad.dtype)
    for _, inputs in windows.positions():
        out[:, *inputs] = grad
    return out


def _counts(windows: Windows, count_include_pad: bool) -> NDArray:
    """How many elements each window averages, shape (*out).

    Padding counts on request; what `ceil_mode` reaches behind the padding never does.
    """
    counts = np.ones((), np.int64)
    for n, k, s, p, _, o in zip(*windows):
        start = np.arange(o) * s - p
        end = np.minimum(start + k, n + p)
        if not count_include_pad:
            start, end = np.maximum(start, 0), np.minimum(end, n)
        counts = counts[..., None] * (end - start)
    return counts
