"""Pooling: the maximum, mean or norm over windows.

May import the core of clew, `clew.nn.functional` and `module`.

Windows are given as in convolutions: one number for all dimensions, or a tuple; the stride is by
default the window's size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew.nn import functional as F
from clew.nn.modules.module import Module
from clew.nn.modules.utils import _pair, _single, _triple
from clew.tensor import Tensor

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]


class _MaxPoolNd(Module):
    """The maximum of each window.

    Args:
        kernel_size: the window's size.
        stride: the window's steps; by default its size.
        padding: on both sides, with values that never are the maximum.
        dilation: the distance between the window's elements.
        return_indices: give the maxima's places in the flattened input too (for `MaxUnpool`).
        ceil_mode: count a last window that is not full.
    """

    __constants__ = (
        "kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"
    )  # fmt: skip
    _pool: Callable[..., Any]

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        return_indices: bool = False, ceil_mode: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        return self._pool(
            input, self.kernel_size, self.stride, self.padding, self.dilation,
            ceil_mode=self.ceil_mode, return_indices=self.return_indices,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd):
    __doc__ = _MaxPoolNd.__doc__
    _pool = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPoolNd):
    __doc__ = _MaxPoolNd.__doc__
    _pool = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPoolNd):
    __doc__ = _MaxPoolNd.__doc__
    _pool = staticmethod(F.max_pool3d)


class _MaxUnpoolNd(Module):
    """Puts maxima back to the places that a `MaxPool` found them in, zeros elsewhere."""

    _sizes: Callable[[Any], tuple[int, ...]]
    _unpool: Callable[..., Tensor]

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = self._sizes(kernel_size)
        self.stride = self._sizes(kernel_size if stride is None else stride)
        self.padding = self._sizes(padding)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        return self._unpool(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    __doc__ = _MaxUnpoolNd.__doc__
    _sizes = staticmethod(_single)
    _unpool = staticmethod(F.max_unpool1d)


class MaxUnpool2d(_MaxUnpoolNd):
    __doc__ = _MaxUnpoolNd.__doc__
    _sizes = staticmethod(_pair)
    _unpool = staticmethod(F.max_unpool2d)


class MaxUnpool3d(_MaxUnpoolNd):
    __doc__ = _MaxUnpoolNd.__doc__
    _sizes = staticmethod(_triple)
    _unpool = staticmethod(F.max_unpool3d)


class _AvgPoolNd(Module):
    """What the mean pools show."""

    __constants__: tuple[str, ...] = (
        "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"
    )  # fmt: skip

    kernel_size: Any
    stride: Any
    padding: Any

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """The mean of each window.

    Args:
        kernel_size: the window's size.
        stride: the window's steps; by default its size.
        padding: on both sides, with zeros.
        ceil_mode: count a last window that is not full.
        count_include_pad: whether the padding counts as elements.
    """

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = _single(kernel_size if stride is None else stride)
        self.padding = _single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
            self.count_include_pad,
        )  # fmt: skip


class _AvgPoolOverridable(_AvgPoolNd):
    """The mean of each window.

    Args:
        kernel_size: the window's size.
        stride: the window's steps; by default its size.
        padding: on both sides, with zeros.
        ceil_mode: count a last window that is not full.
        count_include_pad: whether the padding counts as elements.
        divisor_override: divide by this instead of the number of elements.
    """

    __constants__ = (*_AvgPoolNd.__constants__, "divisor_override")
    _pool: Callable[..., Tensor]

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
            self.count_include_pad, self.divisor_override,
        )  # fmt: skip


class AvgPool2d(_AvgPoolOverridable):
    __doc__ = _AvgPoolOverridable.__doc__
    _pool = staticmethod(F.avg_pool2d)


class AvgPool3d(_AvgPoolOverridable):
    __doc__ = _AvgPoolOverridable.__doc__
    _pool = staticmethod(F.avg_pool3d)


class _FractionalMaxPoolNd(Module):
    """The maximum of windows whose places are drawn at random so that the output has a given size.

    Args:
        kernel_size: the windows' size.
        output_size: the output's size, or
        output_ratio: its ratio to the input's; one of the two.
        return_indices: give the maxima's places too.

    Raises:
        ValueError: neither size nor ratio is given, or both; or a ratio is not in (0, 1).

    Source: Graham 2014.
    """

    __constants__ = ("kernel_size", "return_indices", "output_size", "output_ratio")
    _sizes: Callable[[Any], tuple[Any, ...]]
    _pool: Callable[..., Any]

    def __init__(
        self, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
        return_indices: bool = False, _random_samples: Tensor | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = self._sizes(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else self._sizes(output_size)
        self.output_ratio = None if output_ratio is None else self._sizes(output_ratio)
        if output_size is None and output_ratio is None:
            raise ValueError(
                f"{self._get_name()} requires specifying either an output size, or a pooling ratio"
            )
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Any:
        return self._pool(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
            _random_samples=self._random_samples,
        )  # fmt: skip


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    __doc__ = _FractionalMaxPoolNd.__doc__
    _sizes = staticmethod(_pair)
    _pool = staticmethod(F.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    __doc__ = _FractionalMaxPoolNd.__doc__
    _sizes = staticmethod(_triple)
    _pool = staticmethod(F.fractional_max_pool3d)

    def __init__(
        self, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
        return_indices: bool = False, _random_samples: Tensor | None = None,
    ) -> None:  # fmt: skip
        if any(k <= 0 for k in _triple(kernel_size)):
            raise ValueError(f"kernel_size must be greater than 0, but got {kernel_size}")
        super().__init__(kernel_size, output_size, output_ratio, return_indices, _random_samples)


class _LPPoolNd(Module):
    """The norm of order `norm_type` of each window."""

    __constants__ = ("norm_type", "kernel_size", "stride", "ceil_mode")
    _pool: Callable[..., Tensor]

    def __init__(
        self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPoolNd):
    __doc__ = _LPPoolNd.__doc__
    _pool = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPoolNd):
    __doc__ = _LPPoolNd.__doc__
    _pool = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPoolNd):
    __doc__ = _LPPoolNd.__doc__
    _pool = staticmethod(F.lp_pool3d)


class _AdaptiveMaxPoolNd(Module):
    """The maximum of windows that divide the input into an output of a given size.

    Args:
        output_size: the output's size; None in a tuple keeps that of the input.
        return_indices: give the maxima's places too.
    """

    __constants__ = ("output_size", "return_indices")
    _pool: Callable[..., Any]

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        return self._pool(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    __doc__ = _AdaptiveMaxPoolNd.__doc__
    _pool = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    __doc__ = _AdaptiveMaxPoolNd.__doc__
    _pool = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    __doc__ = _AdaptiveMaxPoolNd.__doc__
    _pool = staticmethod(F.adaptive_max_pool3d)


class _AdaptiveAvgPoolNd(Module):
    """The mean of windows that divide the input into an output of a given size.

    Args:
        output_size: the output's size; None in a tuple keeps that of the input.
    """

    __constants__ = ("output_size",)
    _pool: Callable[..., Tensor]

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    __doc__ = _AdaptiveAvgPoolNd.__doc__
    _pool = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    __doc__ = _AdaptiveAvgPoolNd.__doc__
    _pool = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    __doc__ = _AdaptiveAvgPoolNd.__doc__
    _pool = staticmethod(F.adaptive_avg_pool3d)
