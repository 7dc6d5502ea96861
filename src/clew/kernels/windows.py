"""Sliding windows over N-d images: padding, im2col and its adjoint, in two memory layouts.

Images are (N, C, *size). An im2col array holds one column of kernel inputs per output position:

* *channels first*, (N, C * K, L): position inside the image varies fastest, so that the product
  with a weight (O, C * K) is the output as PyTorch lays it out. Best for few channels.
* *channels last*, (N * L, K * C): channels vary fastest, so that copying moves long runs of
  memory and all samples share one matrix product. Best for many channels.

K is the number of kernel positions and L the number of output positions. Imports NumPy only.

Note [Blocks]
    im2col arrays are made for a block at a time, in one buffer that stays in the cache and costs
    no fresh memory: some samples or, if one has too many output positions, some of its rows. How
    the batch is cut depends on the shapes alone, so results do not depend on the number of threads.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from math import gcd, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

Ints = tuple[int, ...]
Index = tuple[Any, ...]

# The size of a block's buffer, small enough for a cache, and the output positions that it has at
# least, below which a matrix product spends its time on reading the weight (measured).
BLOCK_BYTES = 1 << 20
BLOCK_POSITIONS = 512


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
    def reach(self) -> Ints:
        """What the windows cover, padding included."""
        return tuple(
            (o - 1) * s + d * (k - 1) + 1
            for k, s, d, o in zip(self.kernel, self.stride, self.dilation, self.out)
        )

    @property
    def inside(self) -> bool:
        """Whether no window meets padding."""
        return not any(self.padding) and all(r <= n for r, n in zip(self.reach, self.size))

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


class Phase(NamedTuple):
    """A part of the adjoint of a strided convolution; see `phases`."""

    image: Index  # the elements of the image that it makes
    taps: Index  # the kernel positions that reach them
    grad: Index  # the part of the output that these see
    windows: Windows  # over that part, for the kernel's part flipped in space


@lru_cache(maxsize=256)
def phases(windows: Windows) -> tuple[Phase, ...]:
    """The adjoint of a convolution as convolutions of stride 1, which together make the image.

    At a stride s the elements i of the image fall into s classes, by the rest of i + padding
    modulo s. The kernel position t meets a class if t * dilation has the same rest; so each class
    is a convolution of the output with every s-th position of the kernel, in reverse order.
    """
    sides = [[_side(side, rest) for rest in range(side[2])] for side in zip(*windows)]
    found = []
    for parts in product(*sides):
        image, taps, grad, geometry = zip(*parts)
        if all(part.start < n for part, n in zip(image, windows.size)):
            found.append(Phase(image, taps, grad, Windows(*zip(*geometry))))
    return tuple(found)


def _side(side: Ints, rest: int) -> tuple[slice, slice, slice, Ints]:
    """One dimension of a phase; the last entry is one of its `Windows`."""
    n, k, s, p, d, o = side
    first = (rest - p) % s
    image = slice(first, n, s)
    common = gcd(s, d)
    taps = slice(0, 0)
    if rest % common == 0:
        taps = slice(next(t for t in range(s // common) if t * d % s == rest), k, s // common)
    count = len(range(*taps.indices(k)))
    # The first window ends at the output that the first tap takes to `first`.
    start = (first + p - taps.start * d) // s - (count - 1) * (d // common)
    grad = slice(max(0, start), o)
    size, out = max(0, o - grad.start), len(range(*image.indices(n)))
    return image, taps, grad, (size, count, 1, max(0, -start), d // common, out)


def block_shape(batch: int, windows: Windows, bytes_per_position: int) -> tuple[int, int]:
    """How many samples and rows (of the first dimension) a block has; see Note [Blocks]."""
    rows, row = windows.out[0], max(1, prod(windows.out[1:]))
    positions = max(1, BLOCK_POSITIONS, BLOCK_BYTES // max(1, bytes_per_position))
    if positions < rows * row:
        return min(1, batch), max(1, positions // row)
    return min(batch, positions // max(1, rows * row)), rows


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


def columns_first(
    x: NDArray, windows: Windows, whole: bool = False
) -> Iterator[tuple[Index, NDArray]]:
    """Blocks of the output and their im2col, channels first: (n, C * K, L of the block).

    A block is an index of the output (N, O, *out); its array is valid until the next is asked
    for. There is one block for the `whole` batch on request.
    """
    batch, channels = x.shape[:2]
    depth = channels * prod(windows.kernel)
    samples, rows = block_shape(batch, windows, depth * x.itemsize)
    if whole or windows.trivial:
        samples, rows = (batch if whole else samples), windows.out[0]
    padded = None if windows.inside else np.zeros((samples, channels, *windows.reach), x.dtype)
    frame, seen = _overlap(windows)
    columns = np.empty((samples, depth, prod(windows.out[1:]) * rows), x.dtype)
    for start in range(0, batch, max(1, samples)):
        part = slice(start, min(start + samples, batch))
        images, number = x[part], part.stop - start
        if windows.trivial:
            yield (part, slice(None), slice(None)), images.reshape(number, channels, -1)
            continue
        if padded is not None:
            padded[:number, :, *frame] = images[:, :, *seen]
            images = padded[:number]
        view = view_first(images, windows)
        for row in range(0, windows.out[0], rows):
            some = slice(row, row + rows)
            piece = view[:, :, *(slice(None),) * len(windows.kernel), some]
            block = columns.reshape(-1)[: piece.size].reshape(piece.shape)
            block[...] = piece
            yield (part, slice(None), some), block.reshape(number, depth, -1)


def columns_last(x: NDArray, windows: Windows) -> Iterator[tuple[Index, NDArray]]:
    """Blocks of the output and their im2col, channels last: (n * L, K * C); see `columns_first`."""
    batch, channels = x.shape[:2]
    depth = channels * prod(windows.kernel)
    samples, rows = block_shape(batch, windows, depth * x.itemsize)
    padded = np.zeros((samples, *windows.reach, channels), x.dtype)
    frame, seen = _overlap(windows)
    dims = len(windows.out)
    view = view_first(to_first(padded), windows)
    view = view.transpose(0, *range(2 + dims, 2 + 2 * dims), *range(2, 2 + dims), 1)
    columns = np.empty((samples * rows * prod(windows.out[1:]), depth), x.dtype)
    for start in range(0, batch, max(1, samples)):
        part = slice(start, min(start + samples, batch))
        number = part.stop - start
        padded[:number, *frame] = to_last(x[part])[:, *seen]
        for row in range(0, windows.out[0], rows):
            some = slice(row, row + rows)
            piece = view[:number, some]
            block = columns[: prod(piece.shape[: 1 + dims])]
            block.reshape(piece.shape)[...] = piece
            yield (part, slice(None), some), block


def pad_to_reach(x: NDArray, windows: Windows) -> NDArray:
    """`x` (N, C, *size) with the padding that the windows cover; `x` itself if that is none."""
    if windows.inside:
        return x
    frame, seen = _overlap(windows)
    padded = np.zeros((*x.shape[:2], *windows.reach), x.dtype)
    padded[:, :, *frame] = x[:, :, *seen]
    return padded


@lru_cache(maxsize=256)
def _overlap(windows: Windows) -> tuple[Index, Index]:
    """Where in what the windows cover the image lies, and which part of the image that is."""
    frame, seen = [], []
    for n, p, r in zip(windows.size, windows.padding, windows.reach):
        end = max(p, min(p + n, r))
        frame.append(slice(p, end))
        seen.append(slice(0, end - p))
    return tuple(frame), tuple(seen)


def unfold_first(x: NDArray, windows: Windows) -> NDArray:
    """im2col of the whole batch, channels first: (N, C, *size) to (N, C * K, L)."""
    for _, columns in columns_first(x, windows, whole=True):
        return columns
    return np.empty((0, x.shape[1] * prod(windows.kernel), prod(windows.out)), x.dtype)


def fold_first(columns: NDArray, out: NDArray, windows: Windows) -> None:
    """The adjoint of `unfold_first`: adds (N, C * K, L) up and writes it to `out` (N, C, *size)."""
    batch, channels = out.shape[:2]
    columns = columns.reshape(batch, channels, *windows.kernel, *windows.out)
    image = np.zeros((batch, channels, *windows.padded), columns.dtype)
    for position, inputs in windows.positions():
        image[(..., *inputs)] += columns[(slice(None), slice(None), *position)]
    out[...] = image[(..., *windows.interior)]
