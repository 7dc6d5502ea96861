"""Pooling under PyTorch's names, which are those of ``nn.functional`` too.

As in PyTorch, pooling of one dimension is that of two, of which the first has size 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clew.functions.calls import Tensor, call, require_tensors
from clew.publish import composite

Sizes = Any
"""An int for all dimensions alike, or a sequence of one for each."""

_WORDS = {2: "two", 3: "three"}


def sizes(value: Sizes, function: str, argument: str, n: int) -> tuple[int, ...]:
    """One int for each of `n` dimensions.

    Raises:
        RuntimeError: the sequence has neither one element nor `n`.
        TypeError: these are no ints.
    """
    try:
        values = tuple(v.__index__() for v in value) if isinstance(value, Sequence) else None
        if values is None:
            return (value.__index__(),) * n
    except AttributeError:
        raise TypeError(
            f"{function}(): argument '{argument}' must be tuple of ints, not {type(value).__name__}"
        ) from None
    if len(values) == 1:
        return values * n
    if len(values) == n:
        return values
    if n == 1 and "max" not in function:
        raise RuntimeError(
            f"{function}() argument '{argument}' should contain one int (got {len(values)})"
        )
    if n == 1:
        raise RuntimeError(
            f"{function}() {argument} must be an int, list of ints or tuple of ints of size 1 but "
            f"got size {len(values)}"
        )
    omitted = "be omitted, " if argument == "stride" else "be "
    raise RuntimeError(
        f"{function}: {argument} must either {omitted}a single int, or a tuple of {_WORDS[n]} ints"
    )


def _stride(stride: Sizes, kernel: tuple[int, ...], function: str) -> tuple[int, ...]:
    """The stride, which without a value is the kernel's size."""
    if stride is None or stride == ():
        return kernel
    return sizes(stride, function, "stride", len(kernel))


def _flat(x: Any) -> Any:
    """``(..., L)`` as ``(..., 1, L)``."""
    return x.unsqueeze(-2)


# -- maxima


def max_pool(
    n: int,
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
    indices: bool,
) -> Any:
    """Max pooling over `n` dimensions: values and, for `indices`, their places in the plane.

    Raises:
        RuntimeError: shapes or parameters do not fit.
    """
    name = f"max_pool{n}d"
    require_tensors(name, input=input)
    kernel = sizes(kernel_size, name, "kernel_size", n)
    attrs: dict[str, Any] = {
        "kernel_size": kernel,
        "stride": _stride(stride, kernel, name),
        "padding": sizes(padding, name, "padding", n),
        "dilation": sizes(dilation, name, "dilation", n),
    }
    op_name = f"max_pool{max(n, 2)}d_with_{'indices' if indices else 'places'}"
    if n > 1:
        results = call(op_name, input, ceil_mode=ceil_mode, **attrs)
    else:
        flat = {key: (int(key != "padding"), *value) for key, value in attrs.items()}
        results = call(op_name, _flat(input), ceil_mode=ceil_mode, **flat)
        results = [result.squeeze(-2) for result in results[: 1 + indices]]
    return tuple(results) if indices else results[0]


def _check_max_pool1d(
    input: Tensor, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes
) -> None:
    """The errors of max pooling of one dimension, which PyTorch words otherwise."""
    name = "max_pool1d"
    require_tensors(name, input=input)
    shape = list(input.shape)
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise RuntimeError(
            f"{name}: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for "
            f"input, but got:{shape}"
        )
    kernel = sizes(kernel_size, name, "kernel_size", 1)
    (k,), (step,) = kernel, _stride(stride, kernel, name)
    (margin,), (gap,) = sizes(padding, name, "padding", 1), sizes(dilation, name, "dilation", 1)
    for argument, value in (("kernel_size", k), ("stride", step), ("dilation", gap)):
        if value <= 0:
            raise RuntimeError(f"{name}() {argument} must be greater than zero, but got {value}")
    if margin < 0:
        raise RuntimeError(f"{name}() padding must be non-negative, but got {margin}")
    if margin > k // 2:
        raise RuntimeError(
            f"{name}() padding should be at most half of kernel size, but got "
            f"padding={margin} and kernel_size={k}"
        )
    room = shape[-1] + 2 * margin - gap * (k - 1) - 1
    if room < 0:
        raise RuntimeError(f"{name}() Invalid computed output size: {room // step + 1}")


def _declare_max_pool(n: int) -> Any:
    def max_pool_nd(
        input: Tensor,
        kernel_size: Sizes,
        stride: Sizes = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        if n == 1 and not return_indices:
            _check_max_pool1d(input, kernel_size, stride, padding, dilation)
        return max_pool(
            n, input, kernel_size, stride, padding, dilation, ceil_mode, bool(return_indices)
        )

    max_pool_nd.__name__ = max_pool_nd.__qualname__ = f"max_pool{n}d"
    max_pool_nd.__doc__ = f"""The maxima of windows over the last {n} dimension(s).

    Args:
        input: ``(N, C, *size)`` or ``(C, *size)``.
        kernel_size, stride, padding, dilation: an int or one for each dimension; without a
            stride it is the kernel's size.
        ceil_mode: also take windows that the image ends within.
        return_indices: also return where the maxima stand, counted within the plane.

    Raises:
        RuntimeError: shapes or parameters do not fit.
    """
    return composite(method=False)(max_pool_nd)


max_pool1d, max_pool2d, max_pool3d = map(_declare_max_pool, (1, 2, 3))


@composite(method=False)
def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
) -> Any:
    """`max_pool1d`, with the places of the maxima."""
    return max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, indices=True)


# -- averages


def avg_pool(
    n: int,
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Any:
    """Average pooling over `n` dimensions.

    Raises:
        RuntimeError: shapes or parameters do not fit.
    """
    name = f"avg_pool{n}d"
    require_tensors(name, input=input)
    attrs: dict[str, Any] = {
        "ceil_mode": ceil_mode,
        "count_include_pad": count_include_pad,
        "divisor_override": divisor_override,
    }
    kernel = sizes(kernel_size, name, "kernel_size", n)
    steps = _stride(stride, kernel, name)
    margin = sizes(padding, name, "padding", n)
    if n > 1:
        return call(name, input, kernel_size=kernel, stride=steps, padding=margin, **attrs)
    if input.ndim not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {input.ndim}-dimensional tensor for argument #1 "
            "'self' (while checking arguments for avg_pool1d)"
        )
    lines = {"kernel_size": (1, *kernel), "stride": (1, *steps), "padding": (0, *margin)}
    return call("avg_pool2d", _flat(input), **lines, **attrs).squeeze(-2)


@composite(method=False)
def avg_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:
    """The means of windows over the last dimension.

    Args:
        input: ``(N, C, L)`` or ``(C, L)``.
        count_include_pad: whether padding counts as elements.
        kernel_size, stride, padding, ceil_mode: as for `max_pool1d`.

    Raises:
        RuntimeError: shapes or parameters do not fit.
    """
    return avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


# -- windows that share out the image


def output_sizes(value: Sizes, function: str, n: int) -> tuple[int, ...]:
    """The size of an adaptive pooling's output.

    Raises:
        RuntimeError: there is not one number for each dimension.
        TypeError: these are no ints.
    """
    if not isinstance(value, Sequence):
        return sizes(value, function, "output_size", n)
    if len(value) != n:
        if n == 1:
            raise RuntimeError(
                f"{function}() argument 'output_size' should contain one int (got {len(value)})"
            )
        if "max" in function:
            raise RuntimeError(f"{function}(): internal error: output_size.size() must be {n}")
        raise RuntimeError(f"{function}: output_size must be {n}")
    return tuple(v.__index__() for v in value)


def adaptive_avg_pool(n: int, input: Tensor, output_size: Sizes) -> Any:
    """Average pooling over windows that share out the last `n` dimensions."""
    name = f"adaptive_avg_pool{n}d"
    require_tensors(name, input=input)
    size = output_sizes(output_size, name, n)
    if n == 1:
        if input.ndim not in (2, 3):
            raise RuntimeError(
                f"Expected 2 to 3 dimensions, but got {input.ndim}-dimensional tensor for "
                "argument #1 'self' (while checking arguments for adaptive_avg_pool1d)"
            )
        return adaptive_avg_pool(2, _flat(input), (1, *size)).squeeze(-2)
    if all(s == 1 for s in size) and input.ndim > n and input.numel():
        return input.mean(tuple(range(-1, -n - 1, -1)), keepdim=True)
    return call(name, input, output_size=size)


def adaptive_max_pool(n: int, input: Tensor, output_size: Sizes) -> Any:
    """Max pooling over windows that share out the last `n` dimensions: values and places."""
    name = f"adaptive_max_pool{n}d"
    require_tensors(name, input=input)
    size = output_sizes(output_size, name, n)
    if n > 1:
        return call(name, input, output_size=size)
    if input.ndim not in (2, 3):
        raise RuntimeError(
            f"adaptive_max_pool1d(): Expected 2D or 3D tensor, but got: {list(input.shape)}"
        )
    values, indices = call("adaptive_max_pool2d", _flat(input), output_size=(1, *size))
    return values.squeeze(-2), indices.squeeze(-2)


@composite(method=False)
def adaptive_avg_pool1d(input: Tensor, output_size: Sizes) -> Any:
    """The means of `output_size` windows that share out the last dimension.

    Raises:
        RuntimeError: shapes do not fit.
    """
    return adaptive_avg_pool(1, input, output_size)


@composite(method=False)
def adaptive_max_pool1d(input: Tensor, output_size: Sizes) -> Any:
    """The maxima of `output_size` windows that share out the last dimension, and their places.

    Raises:
        RuntimeError: shapes do not fit.
    """
    return adaptive_max_pool(1, input, output_size)
