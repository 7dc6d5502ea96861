"""Pooling.  Sizes are an int for all dimensions alike, or a sequence of one for each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import prod
from typing import Any

from clew.functions import pool as published
from clew.functions.calls import Tensor, call
from clew.functions.pool import Sizes, max_pool1d, max_pool2d, max_pool3d
from clew.nn.functional.activation import relu

# -- averages


def avg_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The means of windows over the last two dimensions.

    `count_include_pad`: whether padding counts as elements; `divisor_override` divides the sums
    instead of the count.

    Raises:
        RuntimeError: shapes or parameters do not fit.
    """
    return published.avg_pool(
        2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def avg_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """`avg_pool2d` over the last three dimensions."""
    return published.avg_pool(
        3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def _lp_pool(
    n: int, input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes, ceil_mode: bool
) -> Tensor:
    """The p-norm of each window, from the mean of the p-th powers."""
    if abs(norm_type) == math.inf:
        pool = (max_pool1d, max_pool2d, max_pool3d)[n - 1]
        sign = 1 if norm_type > 0 else -1
        return sign * pool(sign * input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    means = published.avg_pool(
        n, input.pow(norm_type), kernel_size, stride, 0, ceil_mode, True, None
    )
    kernel = published.sizes(kernel_size, f"lp_pool{n}d", "kernel_size", n)
    return (means.sign() * relu(means.abs())).mul(prod(kernel)).pow(1.0 / norm_type)


def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: Sizes,
    stride: Sizes = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The p-norms of windows over the last dimension, with p = `norm_type`."""
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: Sizes,
    stride: Sizes = None,
    ceil_mode: bool = False,
) -> Tensor:
    """`lp_pool1d` over the last two dimensions."""
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: Sizes,
    stride: Sizes = None,
    ceil_mode: bool = False,
) -> Tensor:
    """`lp_pool1d` over the last three dimensions."""
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


# -- windows that share out the image


def _with_defaults(output_size: Any, input: Tensor) -> Any:
    """The size, with that of the input where it says None."""
    if not isinstance(output_size, Sequence):
        return output_size
    if input.ndim <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    known = input.shape[input.ndim - len(output_size) :]
    return tuple(k if n is None else n for n, k in zip(output_size, known))


def adaptive_avg_pool2d(input: Tensor, output_size: Sizes) -> Tensor:
    """The means of windows that share out the last two dimensions; None keeps a size.

    Raises:
        RuntimeError: shapes do not fit.
    """
    return published.adaptive_avg_pool(2, input, _with_defaults(output_size, input))


def adaptive_avg_pool3d(input: Tensor, output_size: Sizes) -> Tensor:
    """`adaptive_avg_pool2d` over the last three dimensions."""
    return published.adaptive_avg_pool(3, input, _with_defaults(output_size, input))


def adaptive_max_pool1d(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
    """The maxima of windows that share out the last dimension.

    `return_indices`: also return where they stand.

    Raises:
        RuntimeError: shapes do not fit.
    """
    result = published.adaptive_max_pool(1, input, output_size)
    return result if return_indices else result[0]


def adaptive_max_pool2d(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
    """`adaptive_max_pool1d` over the last two dimensions; None keeps a size."""
    result = published.adaptive_max_pool(2, input, _with_defaults(output_size, input))
    return result if return_indices else result[0]


def adaptive_max_pool3d(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
    """`adaptive_max_pool1d` over the last three dimensions; None keeps a size."""
    result = published.adaptive_max_pool(3, input, _with_defaults(output_size, input))
    return result if return_indices else result[0]


# -- the way back from a maximum


def _unpooled_size(
    input: Tensor,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    output_size: Sequence[int] | None,
) -> Any:
    n = len(kernel)
    smallest = [
        (size - 1) * s + k - 2 * p
        for size, s, k, p in zip(input.shape[input.ndim - n :], stride, kernel, padding)
    ]
    if output_size is None:
        return tuple(smallest)
    if len(output_size) == n + 2:
        output_size = output_size[2:]
    if len(output_size) != n:
        raise ValueError(
            f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a "
            f"length of '{len(output_size)}'"
        )
    for d, (size, s) in enumerate(zip(smallest, stride)):
        if not size - s < output_size[d] < size + s:
            raise ValueError(
                f'invalid output_size "{output_size}" (dim {d} must be between {size - s} and '
                f"{size + s})"
            )
    return tuple(output_size)


def _max_unpool(
    n: int,
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    output_size: Any,
) -> Tensor:
    name = f"max_unpool{n}d"
    kernel = published.sizes(kernel_size, name, "kernel_size", n)
    steps = kernel if stride is None else published.sizes(stride, name, "stride", n)
    margin = published.sizes(padding, name, "padding", n)
    size = _unpooled_size(input, kernel, steps, margin, output_size)
    if n > 1:
        return call(name, input, indices, output_size=size)
    columns = input.unsqueeze(-1), indices.unsqueeze(-1)
    return call("max_unpool2d", *columns, output_size=(*size, 1)).squeeze(-1)


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes = None,
    padding: Sizes = 0,
    output_size: Any = None,
) -> Tensor:
    """Zeros with the maxima put back where `max_pool1d` found them.

    `output_size` says which of the sizes that pool to the input's is meant.

    Raises:
        ValueError: `output_size` is none of them.
        RuntimeError: shapes, types or indices do not fit.
    """
    return _max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes = None,
    padding: Sizes = 0,
    output_size: Any = None,
) -> Tensor:
    """`max_unpool1d` over two dimensions."""
    return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes = None,
    padding: Sizes = 0,
    output_size: Any = None,
) -> Tensor:
    """`max_unpool1d` over three dimensions."""
    return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)


# -- with the places of the maxima


def _declare_with_indices(n: int) -> Any:
    def max_pool(
        input: Tensor,
        kernel_size: Sizes,
        stride: Sizes = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        return published.max_pool(
            n, input, kernel_size, stride, padding, dilation, ceil_mode, indices=True
        )

    max_pool.__name__ = max_pool.__qualname__ = f"max_pool{n}d_with_indices"
    max_pool.__doc__ = f"`max_pool{n}d` with ``return_indices=True``."
    return max_pool


max_pool1d_with_indices = _declare_with_indices(1)
max_pool2d_with_indices = _declare_with_indices(2)
max_pool3d_with_indices = _declare_with_indices(3)


def _declare_adaptive_with_indices(n: int) -> Any:
    def adaptive_max_pool(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
        return published.adaptive_max_pool(n, input, _with_defaults(output_size, input))

    name = f"adaptive_max_pool{n}d"
    adaptive_max_pool.__name__ = adaptive_max_pool.__qualname__ = f"{name}_with_indices"
    adaptive_max_pool.__doc__ = f"`{name}` with ``return_indices=True``."
    return adaptive_max_pool


adaptive_max_pool1d_with_indices = _declare_adaptive_with_indices(1)
adaptive_max_pool2d_with_indices = _declare_adaptive_with_indices(2)
adaptive_max_pool3d_with_indices = _declare_adaptive_with_indices(3)
