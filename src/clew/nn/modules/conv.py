"""Convolutions and transposed convolutions in one, two and three dimensions.

May import the core of clew, `clew.nn.functional`, `clew.nn.init`, `clew.nn.parameter`, `module`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import clew
from clew.nn import functional as F
from clew.nn import init
from clew.nn.modules.module import Module
from clew.nn.modules.utils import _pair, _reverse_repeat_tuple, _single, _triple
from clew.nn.parameter import Parameter
from clew.tensor import Tensor

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
]

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """Weight, bias and geometry of a convolution; sizes are tuples here."""

    __constants__ = (
        "stride", "padding", "dilation", "groups", "padding_mode", "output_padding",
        "in_channels", "out_channels", "kernel_size",
    )  # fmt: skip

    bias: Any

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: tuple[int, ...],
        stride: tuple[int, ...], padding: Any, dilation: tuple[int, ...], transposed: bool,
        output_padding: tuple[int, ...], groups: int, bias: bool, padding_mode: str,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        _check_groups(in_channels, out_channels, groups)
        _check_padding(padding, padding_mode, stride)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._padding_for_pad()
        self.weight = Parameter(clew.empty(self._weight_shape(), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(clew.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _weight_shape(self) -> tuple[int, ...]:
        first, second = self.out_channels, self.in_channels
        if self.transposed:
            first, second = second, first
        return (first, second // self.groups, *self.kernel_size)

    def _padding_for_pad(self) -> Any:
        """The padding as ``F.pad`` takes it: last dimension first, both sides of each."""
        if not isinstance(self.padding, str):
            return _reverse_repeat_tuple(self.padding, 2)
        padding: list[int] = []
        for dilation, size in zip(reversed(self.dilation), reversed(self.kernel_size)):
            total = dilation * (size - 1) if self.padding == "same" else 0
            padding += (total // 2, total - total // 2)
        return padding

    def reset_parameters(self) -> None:
        """Draw weight and bias from (-1 / sqrt(fan_in), 1 / sqrt(fan_in))."""
        # This slope makes the bound of kaiming_uniform_ just that.
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        ndim = len(self.kernel_size)
        parts = [
            f"{self.in_channels}, {self.out_channels}",
            f"kernel_size={self.kernel_size}, stride={self.stride}",
        ]
        if self.padding != (0,) * ndim:
            parts.append(f"padding={self.padding}")
        if self.dilation != (1,) * ndim:
            parts.append(f"dilation={self.dilation}")
        if self.output_padding != (0,) * ndim:
            parts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


def _check_groups(in_channels: int, out_channels: int, groups: int) -> None:
    if groups <= 0:
        raise ValueError("groups must be a positive integer")
    if in_channels % groups != 0:
        raise ValueError("in_channels must be divisible by groups")
    if out_channels % groups != 0:
        raise ValueError("out_channels must be divisible by groups")


def _check_padding(padding: Any, mode: str, stride: tuple[int, ...]) -> None:
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            known = {"same", "valid"}
            raise ValueError(f"Invalid padding string {padding!r}, should be one of {known}")
        if padding == "same" and any(s != 1 for s in stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
    if mode not in _PADDING_MODES:
        raise ValueError(
            f"padding_mode must be one of {set(_PADDING_MODES)}, but got padding_mode='{mode}'"
        )


class _Conv(_ConvNd):
    """A convolution.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        kernel_size: the window's size; one number for all dimensions or a tuple.
        stride: the window's steps.
        padding: on both sides: numbers, or "same" or "valid".
        dilation: the distance between the window's elements.
        groups: in how many independent parts the channels are divided.
        bias: whether to add a bias to each output channel.
        padding_mode: "zeros", "reflect", "replicate" or "circular".
        device: the CPU.
        dtype: of the parameters.

    Shapes: weight (out_channels, in_channels / groups, *kernel_size); input (N, C, *) or (C, *).

    Raises:
        ValueError: groups, padding or its mode are not possible.
    """

    _sizes: Callable[[Any], tuple[int, ...]]

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
        padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: bool = True,
        padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        sizes = self._sizes
        super().__init__(
            in_channels, out_channels, sizes(kernel_size), sizes(stride),
            padding if isinstance(padding, str) else sizes(padding), sizes(dilation), False,
            sizes(0), groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The convolution of `input` with another weight and bias but this geometry."""
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = self._sizes(0)
        return self._convolve(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def _convolve(self, *arguments: Any) -> Tensor:
        raise NotImplementedError


class Conv1d(_Conv):
    __doc__ = _Conv.__doc__
    _sizes = staticmethod(_single)

    def _convolve(self, *arguments: Any) -> Tensor:
        return F.conv1d(*arguments)


class Conv2d(_Conv):
    __doc__ = _Conv.__doc__
    _sizes = staticmethod(_pair)

    def _convolve(self, *arguments: Any) -> Tensor:
        return F.conv2d(*arguments)


class Conv3d(_Conv):
    __doc__ = _Conv.__doc__
    _sizes = staticmethod(_triple)

    def _convolve(self, *arguments: Any) -> Tensor:
        return F.conv3d(*arguments)


class _ConvTransposeNd(_ConvNd):
    """A transposed convolution: the gradient of a convolution with respect to its input.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        kernel_size: the window's size; one number for all dimensions or a tuple.
        stride: the distance between the windows in the output.
        padding: how much of the output is cut off on both sides.
        output_padding: how much is added on one side, where several sizes are possible.
        groups: in how many independent parts the channels are divided.
        bias: whether to add a bias to each output channel.
        dilation: the distance between the window's elements.
        padding_mode: "zeros".
        device: the CPU.
        dtype: of the parameters.

    Shapes: weight (in_channels, out_channels / groups, *kernel_size); input (N, C, *) or (C, *).

    Raises:
        ValueError: groups or the padding's mode are not possible.
    """

    _sizes: Callable[[Any], tuple[int, ...]]

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
        padding: Any = 0, output_padding: Any = 0, groups: int = 1, bias: bool = True,
        dilation: Any = 1, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        sizes = self._sizes
        super().__init__(
            in_channels, out_channels, sizes(kernel_size), sizes(stride), sizes(padding),
            sizes(dilation), True, sizes(output_padding), groups, bias, padding_mode, device,
            dtype,
        )  # fmt: skip

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """The transposed convolution; `output_size` chooses where several are possible."""
        return self._convolve(
            input, self.weight, self.bias, self.stride, self.padding,
            self._output_padding(input, output_size), self.groups, self.dilation,
        )  # fmt: skip

    def _output_padding(self, input: Any, output_size: Sequence[int] | None) -> tuple[int, ...]:
        """What to add on one side to reach the output size.

        Raises:
            ValueError: it cannot be reached.
        """
        if output_size is None:
            return self.output_padding
        ndim = len(self.kernel_size)
        leading = 2 if input.dim() == ndim + 2 else 1
        if len(output_size) == leading + ndim:
            output_size = output_size[leading:]
        if len(output_size) != ndim:
            raise ValueError(
                f"ConvTranspose{ndim}D: for {input.dim()}D input, output_size must have {ndim} or "
                f"{leading + ndim} elements (got {len(output_size)})"
            )
        smallest = [
            (n - 1) * s - 2 * p + d * (k - 1) + 1
            for n, s, p, d, k in zip(
                input.shape[leading:], self.stride, self.padding, self.dilation, self.kernel_size
            )
        ]
        largest = [n + s - 1 for n, s in zip(smallest, self.stride)]
        if any(not low <= n <= high for low, n, high in zip(smallest, output_size, largest)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from "
                f"{smallest} to {largest} (for an input of {input.shape[2:]})"
            )
        return tuple(n - low for n, low in zip(output_size, smallest))

    def _convolve(self, *arguments: Any) -> Tensor:
        raise NotImplementedError


class ConvTranspose1d(_ConvTransposeNd):
    __doc__ = _ConvTransposeNd.__doc__
    _sizes = staticmethod(_single)

    def _convolve(self, *arguments: Any) -> Tensor:
        return F.conv_transpose1d(*arguments)


class ConvTranspose2d(_ConvTransposeNd):
    __doc__ = _ConvTransposeNd.__doc__
    _sizes = staticmethod(_pair)

    def _convolve(self, *arguments: Any) -> Tensor:
        return F.conv_transpose2d(*arguments)


class ConvTranspose3d(_ConvTransposeNd):
    __doc__ = _ConvTransposeNd.__doc__
    _sizes = staticmethod(_triple)

    def _convolve(self, *arguments: Any) -> Tensor:
        return F.conv_transpose3d(*arguments)
