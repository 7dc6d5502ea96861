"""Sliding blocks of images as columns, and columns added up to images: each other's adjoint."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from clew import kernels
from clew.dtypes import scalar_name
from clew.kernels.half import narrow, widen
from clew.op import op

if TYPE_CHECKING:
    from clew.kernels.windows import Ints, Windows


class Blocks(NamedTuple):
    """How the blocks lie; two ints each."""

    kernel_size: Ints
    dilation: Ints
    padding: Ints
    stride: Ints


def _windows(size: Ints, blocks: Blocks) -> Windows:
    """The windows over an image of `size`.

    Raises:
        RuntimeError: the blocks are none.
    """
    for name, values in (
        ("kernel size", blocks.kernel_size),
        ("stride", blocks.stride),
        ("dilation", blocks.dilation),
    ):
        if any(v <= 0 for v in values):
            word = name.replace(" size", "")
            raise RuntimeError(
                f"{name} should be greater than zero, but got {word}_height: {values[0]} "
                f"{word}_width: {values[1]}"
            )
    if any(p < 0 for p in blocks.padding):
        height, width = blocks.padding
        raise RuntimeError(
            f"padding should be non-negative, but got pad_height: {height} pad_width: {width}"
        )
    return kernels.windows.Windows.over(
        size, blocks.kernel_size, blocks.stride, blocks.padding, blocks.dilation
    )


def _check_floating(x: Any, kernel: str) -> None:
    if x.dtype.kind not in "fVc":
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(x.dtype)}'")


@op(f"im2col(self; {', '.join(Blocks._fields)})", publish=(), node="Im2ColBackward0", jvp="linear")
def im2col(x: Any, **blocks: Any) -> Any:
    """The blocks of ``(N, C, H, W)`` or ``(C, H, W)`` as columns ``([N,] C * kernel, L)``.

    Raises:
        RuntimeError: the image has another number of dimensions, or holds no block.
    """
    _check_floating(x, "im2col_out_cpu")
    if x.ndim not in (3, 4) or 0 in x.shape[-3:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(x.shape)}"
        )
    b = Blocks(**blocks)
    windows = _windows(x.shape[-2:], b)
    if any(n < 1 for n in windows.out):
        raise RuntimeError(
            f"Given input with spatial size {x.shape[-2:]}, kernel_size={b.kernel_size}, "
            f"dilation={b.dilation}, padding={b.padding}, calculated shape of the array of "
            f"sliding blocks as {windows.out}, but its components must be at least one."
        )
    images = x.reshape(-1, *x.shape[-3:]) if x.size else x
    columns = kernels.windows.unfold_first(images, windows)
    if np.may_share_memory(columns, x):
        columns = columns.copy()
    return columns.reshape(*x.shape[:-3], *columns.shape[1:])


@im2col.grad("self")
def _(
    F: Any, grad: Any, self_shape: Any, *, kernel_size: Ints, dilation: Ints, padding: Ints,
    stride: Ints,
) -> Any:  # fmt: skip
    blocks = Blocks(kernel_size, dilation, padding, stride)
    return F.col2im(grad, output_size=self_shape[-2:], **blocks._asdict())


@op(f"col2im(self; output_size, {', '.join(Blocks._fields)})", publish=(), node="Col2ImBackward0",
    jvp="linear")  # fmt: skip
def col2im(x: Any, *, output_size: Ints, **blocks: Any) -> Any:
    """Columns ``([N,] C * kernel, L)`` added up to ``([N,] C, *output_size)``.

    Raises:
        RuntimeError: the columns are not those of such an image.
    """
    _check_floating(x, "col2im_out_cpu")
    if x.ndim not in (2, 3) or 0 in x.shape[-2:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and "
            f"non-zero dimensions for input, but got: {list(x.shape)}"
        )
    b = Blocks(**blocks)
    windows = _windows(output_size, b)
    rows, length = x.shape[-2:]
    if rows % prod(b.kernel_size):
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, "
            f"but got input.size(1)={rows} and kernel_size={b.kernel_size}."
        )
    if length != prod(windows.out):
        height, width = windows.out
        raise RuntimeError(
            f"Given output_size={output_size}, kernel_size={b.kernel_size}, "
            f"dilation={b.dilation}, padding={b.padding}, stride={b.stride}, expected size of "
            f"input's dimension 2 to match the calculated number of sliding blocks {height} * "
            f"{width} = {height * width}, but got input.size(2)={length}."
        )
    columns = widen(x).reshape(-1, rows, length) if x.size else widen(x)
    out = np.empty((len(columns), rows // prod(b.kernel_size), *output_size), columns.dtype)
    kernels.windows.fold_first(columns, out, windows)
    return narrow(out.reshape(*x.shape[:-2], *out.shape[1:]), x.dtype)


@col2im.grad("self")
def _(F: Any, grad: Any, *, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Any:
    return F.im2col(grad, **Blocks(kernel_size, dilation, padding, stride)._asdict())
