"""Sliding windows over N-d images: padding, im2col and its adjoint, in two memory layouts.

Images are (N, C, *size). An im2col array holds one column of kernel inputs per output position:

* *channels first*, (N, C * K, L): position inside the image varies fastest, so that the product
  with a weight (O, C * K) is the output as PyTorch lays it out. Best for few channels.
* *channels last*, (N * L, K * C): channels vary fastest, so that copying moves long runs of
  memory and all samples share one matrix product. Best for many channels.

K is the number of kernel positions and L the number of output positions. Imports NumPy only.
"""

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

Ints = tuple[int, ...]
Index = tuple[Any, ...]

# An im2col buffer is filled and used in blocks of about this size: large enough to keep the
# matrix product efficient, small enough to bound the memory of a call.
BLOCK_BYTES = 1 << 23


class Windows(NamedTuple):
    """Where the windows lie: one int per spatial dimension in each field."""

    size: Ints
    kernel: Ints
    stride: Ints
    padding: Ints
    dilation: Ints
    out: Ints

    @classmethod
    def over(
        cls,
        size: Ints,
        kernel: Ints,
        stride: Ints,
        padding: Ints,
        dilation: Ints,
        ceil_mode: bool = False,
    ) -> "Windows":
        """Every window that lies inside the padded image.

        With `ceil_mode` also the one that only starts there, unless it starts in the padding
        behind the image.
        """
        out = []
        for n, k, s, p, d in zip(size, kernel, stride, padding, dilation):
            room = n + 2 * p - d * (k - 1) - 1
            count = (room + s - 1 if ceil_mode else room) // s + 1
            if ceil_mode and (count - 1) * s >= n + p:
                count -= 1
            out.append(count)
        return cls(size, kernel, stride, padding, dilation, tuple(out))

    @property
    def padded(self) -> Ints:
        """Size of the image with its padding, and with what windows need beyond it."""
        return tuple(
            max(n + 2 * p, (o - 1) * s + d * (k - 1) + 1) for n, k, s, p, d, o in zip(*self)
        )

    @property
    def interior(self) -> Index:
        """The image itself inside its padding."""
        return tuple(slice(p, p + n) for n, p in zip(self.size, self.padding))

    @property
    def trivial(self) -> bool:
        """Whether each window is one input element and nothing moves: im2col copies nothing."""
        return self.out == self.size and all(k == 1 for k in self.kernel) and not any(self.padding)

    @property
    def mirrored(self) -> "Windows | None":
        """The windows that lead from the output back to the input, if there are such.

        At other strides than 1 they would have holes.
        """
        padding = tuple(
            d * (k - 1) - p for d, k, p in zip(self.dilation, self.kernel, self.padding)
        )
        if any(s != 1 for s in self.stride) or any(p < 0 for p in padding):
            return None
        back = Windows.over(self.out, self.kernel, self.stride, padding, self.dilation)
        return back if back.out == self.size else None

    def positions(self) -> Iterator[tuple[Index, Index]]:
        """Each position in the kernel with the inputs, in the padded image, that it meets."""
        for position in product(*map(range, self.kernel)):
            starts = [i * d for i, d in zip(position, self.dilation)]
            yield (
                position,
                tuple(
                    slice(start, start + n * s, s)
                    for start, n, s in zip(starts, self.out, self.stride)
                ),
            )


def blocks(batch: int, bytes_per_sample: int) -> Iterator[slice]:
    """Slices of the batch whose buffers stay within `BLOCK_BYTES` (or hold one sample)."""
    step = max(1, BLOCK_BYTES // max(1, bytes_per_sample))
    for start in range(0, batch, step):
        yield slice(start, min(start + step, batch))


def pad_first(x: NDArray, windows: Windows, value: float = 0) -> NDArray:
    """`x` (N, C, *size) with its padding; `x` itself, not a copy, if there is none."""
    if windows.padded == windows.size:
        return x
    padded = np.full((*x.shape[:2], *windows.padded), value, x.dtype)
    padded[(..., *windows.interior)] = x
    return padded


def to_last(x: NDArray) -> NDArray:
    """View of (N, C, *size) as (N, *size, C)."""
    return x.transpose(0, *range(2, x.ndim), 1)


def to_first(x: NDArray) -> NDArray:
    """View of (N, *size, C) as (N, C, *size)."""
    return x.transpose(0, x.ndim - 1, *range(1, x.ndim - 1))


def view_first(padded: NDArray, windows: Windows) -> NDArray:
    """Read-only view (N, C, *kernel, *out) of a padded image (N, C, *padded)."""
    shape = (*padded.shape[:2], *windows.kernel, *windows.out)
    steps = padded.strides[2:]
    strides = (
        *padded.strides[:2],
        *(step * d for step, d in zip(steps, windows.dilation)),
        *(step * s for step, s in zip(steps, windows.stride)),
    )
    return as_strided(padded, shape, strides, writeable=False)


def unfold_first(x: NDArray, windows: Windows) -> NDArray:
    """im2col, channels first: (N, C, *size) to (N, C * K, L)."""
    if windows.trivial:
        return x.reshape(*x.shape[:2], prod(windows.out))
    view = view_first(pad_first(x, windows), windows)
    batch, channels = x.shape[:2]
    columns = np.empty((batch, channels * prod(windows.kernel), prod(windows.out)), x.dtype)
    columns.reshape(view.shape)[...] = view
    return columns


def fold_first(columns: NDArray, out: NDArray, windows: Windows) -> None:
    """The adjoint of `unfold_first`: adds (N, C * K, L) up and writes it to `out` (N, C, *size)."""
    batch, channels = out.shape[:2]
    columns = columns.reshape(batch, channels, *windows.kernel, *windows.out)
    image = np.zeros((batch, channels, *windows.padded), columns.dtype)
    for position, inputs in windows.positions():
        image[(..., *inputs)] += columns[(slice(None), slice(None), *position)]
    out[...] = image[(..., *windows.interior)]


def unfold_last(x: NDArray, windows: Windows) -> NDArray:
    """im2col, channels last: (N, C, *size) to (N * L, K * C)."""
    batch, channels = x.shape[:2]
    padded = np.zeros((batch, *windows.padded, channels), x.dtype)
    padded[(slice(None), *windows.interior)] = to_last(x)
    steps = padded.strides[1:-1]
    view = as_strided(
        padded,
        (batch, *windows.out, *windows.kernel, channels),
        (
            padded.strides[0],
            *(step * s for step, s in zip(steps, windows.stride)),
            *(step * d for step, d in zip(steps, windows.dilation)),
            padded.strides[-1],
        ),
        writeable=False,
    )
    columns = np.empty((batch * prod(windows.out), prod(windows.kernel) * channels), x.dtype)
    columns.reshape(view.shape)[...] = view
    return columns


def fold_last(columns: NDArray, out: NDArray, windows: Windows) -> None:
    """The adjoint of `unfold_last`: adds (N * L, K * C) up and writes it to `out` (N, C, *size)."""
    batch, channels = out.shape[:2]
    columns = columns.reshape(batch, *windows.out, *windows.kernel, channels)
    skip = (slice(None),) * (1 + len(windows.out))
    image = np.zeros((batch, *windows.padded, channels), columns.dtype)
    for position, inputs in windows.positions():
        image[(slice(None), *inputs)] += columns[(*skip, *position)]
    out[...] = to_first(image[(slice(None), *windows.interior)])
