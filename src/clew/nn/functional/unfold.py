"""Sliding blocks of images as columns, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clew.functions.calls import Tensor, call, require_tensors


def _pair(value: Any, name: str) -> tuple[int, int]:
    """Two ints; a single one counts for both.

    Raises:
        RuntimeError: these are not two.
    """
    if not isinstance(value, Sequence):
        return value.__index__(), value.__index__()
    if len(value) != 2:
        raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(value)}")
    return value[0].__index__(), value[1].__index__()


def _blocks(kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> dict[str, Any]:
    return {
        "kernel_size": _pair(kernel_size, "kernel_size"),
        "dilation": _pair(dilation, "dilation"),
        "padding": _pair(padding, "padding"),
        "stride": _pair(stride, "stride"),
    }


def unfold(
    input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """The sliding blocks of ``(N, C, H, W)`` as columns ``(N, C * kernel, L)``.

    Sizes are an int or a pair.  The batch dimension may be missing.

    Raises:
        RuntimeError: shapes or parameters do not fit.
    """
    require_tensors("im2col", input=input)
    return call("im2col", input, **_blocks(kernel_size, dilation, padding, stride))


def fold(
    input: Tensor,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Tensor:
    """Columns ``(N, C * kernel, L)`` added up to images ``(N, C, *output_size)``.

    Sizes are an int or a pair.  The batch dimension may be missing.

    Raises:
        RuntimeError: shapes or parameters do not fit.
    """
    require_tensors("col2im", input=input)
    blocks = _blocks(kernel_size, dilation, padding, stride)
    return call("col2im", input, output_size=_pair(output_size, "output_size"), **blocks)
