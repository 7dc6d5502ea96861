"""Depthwise convolution: each channel of the input by itself makes a few channels of the output.

There is nothing to sum over channels, so no matrix product: a kernel position multiplies the
whole image, shifted. Samples and channels are taken in blocks that stay in the cache. Imports
NumPy and sibling kernels.

Shapes: x (N, C, *size), w (C * M, 1, *kernel), bias (C * M,), output and its gradient
(N, C * M, *out).
"""

from collections.abc import Iterator
from math import prod
from operator import mul

import numpy as np
from numpy.typing import NDArray

from .compiled import twins
from .windows import Index, Ints, Windows, pad_to_reach

# With this many output channels for one input channel a matrix product is faster (measured).
MANY_OUTPUTS = 4

# The size of a block of the output: it, its input and a product stay in the cache together.
BLOCK_BYTES = 1 << 18

# The twin begins to pay with so many elements of the output.
SMALL = 1 << 10


def suits(w_shape: Ints, groups: int) -> bool:
    """Whether a convolution with this weight is one for the functions below."""
    return groups > 1 and w_shape[1] == 1 and w_shape[0] // groups < MANY_OUTPUTS


def correlate(x: NDArray, w: NDArray, bias: NDArray | None, out: NDArray, windows: Windows) -> None:
    """Write the convolution of `x` with `w`, plus `bias`, into `out`, of any strides."""
    channels, each = x.shape[1], len(w) // x.shape[1]
    w = w.reshape(channels, each, *windows.kernel)
    unit = all(s == 1 for s in windows.stride)
    size, add = (windows.reach, _add_long_rows) if unit else (windows.out, _add_windows)
    for part, some in _blocks(len(x), channels, each * prod(windows.out) * x.itemsize):
        images = pad_to_reach(x[part, some], windows)[:, :, None]
        sums = np.zeros((*images.shape[:2], each, *size), out.dtype)
        if bias is not None:
            sums += _spread(bias.reshape(channels, each)[some], windows)
        add(sums, images, w[some], windows)
        made = out[part, some.start * each : some.stop * each]
        made[...] = sums[:, :, :, *map(slice, windows.out)].reshape(made.shape)


def _add_windows(sums: NDArray, images: NDArray, w: NDArray, windows: Windows) -> None:
    """Add the products of each kernel position to `sums` (n, c, M, *out)."""
    product = np.empty_like(sums)
    for position, inputs in windows.positions():
        np.multiply(images[..., *inputs], _spread(w[:, :, *position], windows), out=product)
        sums += product


def _add_long_rows(sums: NDArray, images: NDArray, w: NDArray, windows: Windows) -> None:
    """The same at stride 1, to `sums` (n, c, M, *reach), of which what lies behind *out is waste.

    An output and what a kernel position multiplies for it are then equally far apart everywhere,
    if rows have the image's length; so all rows of a plane are one.
    """
    steps = [prod(windows.reach[i + 1 :]) for i in range(len(windows.reach))]
    length = 1 + sum((o - 1) * step for o, step in zip(windows.out, steps))
    strides = [d * step for d, step in zip(windows.dilation, steps)]
    starts = [sum(map(mul, position, strides)) for position in np.ndindex(windows.kernel)]
    samples, channels, each = sums.shape[:3]
    fast = twins("depthwise", sums.dtype) if sums.size > SMALL else None
    if fast is not None:
        planes = (samples * channels, each, prod(windows.reach))
        fast.add_shifted(
            sums.reshape(planes), np.ascontiguousarray(images).reshape(planes[0], planes[2]),
            np.ascontiguousarray(w).reshape(channels, each, -1), np.array(starts), length,
        )  # fmt: skip
        return
    rows = sums.reshape(samples, channels, each, -1)[..., :length]
    images = np.ascontiguousarray(images).reshape(samples, channels, 1, -1)
    product = np.empty_like(rows)
    for start, factors in zip(starts, np.moveaxis(w.reshape(channels, each, -1), 2, 0)):
        np.multiply(images[..., start : start + length], factors[..., None], out=product)
        rows += product


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
