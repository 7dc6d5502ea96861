"""Depthwise convolution: each channel of the input by itself makes a few channels of the output.

There is nothing to sum over channels, so no matrix product: a kernel position multiplies the
whole image, shifted. Samples and channels are taken in blocks that stay in the cache. Imports
NumPy and sibling kernels.

Shapes: x (N, C, *size), w (C * M, 1, *kernel), bias (C * M,), output and its gradient
(N, C * M, *out).
"""

from collections.abc import Iterator
from math import prod

import numpy as np
from numpy.typing import NDArray

from .windows import Index, Ints, Windows, pad_to_reach

# With this many output channels for one input channel a matrix product is faster (measured).
MANY_OUTPUTS = 4

# The size of a block of the output: it, its input and a product stay in the cache together.
BLOCK_BYTES = 1 << 18


def suits(w_shape: Ints, groups: int) -> bool:
    """Whether a convolution with this weight is one for the functions below."""
    return groups > 1 and w_shape[1] == 1 and w_shape[0] // groups < MANY_OUTPUTS


def correlate(x: NDArray, w: NDArray, bias: NDArray | None, out: NDArray, windows: Windows) -> None:
    """Write the convolution of `x` with `w`, plus `bias`, into `out`, of any strides."""
    channels, each = x.shape[1], len(w) // x.shape[1]
    w = w.reshape(channels, each, *windows.kernel)
    for part, some in _blocks(len(x), channels, each * prod(windows.out) * x.itemsize):
        images = pad_to_reach(x[part, some], windows)[:, :, None]
        made = out[part, some.start * each : some.stop * each]
        sums = np.zeros((*images.shape[:2], each, *windows.out), out.dtype)
        if bias is not None:
            sums += _spread(bias.reshape(channels, each)[some], windows)
        product = np.empty_like(sums)
        for position, inputs in windows.positions():
            np.multiply(images[..., *inputs], _spread(w[some, :, *position], windows), out=product)
            sums += product
        made[...] = sums.reshape(made.shape)


def backward_weight(grad: NDArray, x: NDArray, out: NDArray, windows: Windows) -> None:
    """Add the gradient of the weight to `out`, which is contiguous."""
    channels, each = x.shape[1], len(out) // x.shape[1]
    out = out.reshape(channels, each, *windows.kernel)
    length = prod(windows.out)
    for part, some in _blocks(len(x), channels, each * length * x.itemsize):
        images = pad_to_reach(x[part, some], windows)[:, :, None]
        seen = grad[part, some.start * each : some.stop * each]
        shape = (len(seen), images.shape[1], each)
        seen = seen.reshape(*shape, *windows.out)
        product = np.empty(seen.shape, out.dtype)
        for position, inputs in windows.positions():
            np.multiply(images[..., *inputs], seen, out=product)
            out[some, :, *position] += product.reshape(*shape, length).sum(axis=3).sum(axis=0)


def _blocks(batch: int, channels: int, bytes_per_plane: int) -> Iterator[tuple[slice, slice]]:
    """Blocks of samples and channels; see Note [Blocks] in `windows`."""
    planes = max(1, BLOCK_BYTES // max(1, bytes_per_plane))
    samples = max(1, planes // channels)
    for i in range(0, batch, samples):
        for c in range(0, channels, planes):
            yield slice(i, i + samples), slice(c, min(c + planes, channels))


def _spread(values: NDArray, windows: Windows) -> NDArray:
    """Values of (C, M) as they meet (N, C, M, *out)."""
    where: Index = (..., *(None,) * len(windows.out))
    return values[where]
