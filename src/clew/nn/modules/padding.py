"""Padding as modules.  May import the core of clew, `clew.nn.functional` and `module`.

The padding is one number for all sides, or a tuple: left, right, then (in two dimensions) top,
bottom, then (in three) front, back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew.nn import functional as F
from clew.nn.modules.module import Module
from clew.nn.modules.utils import _ntuple, _pair, _quadruple
from clew.tensor import Tensor

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]

_sextuple = _ntuple(6, "_sextuple")


class _PadNd(Module):
    """Padding by values of the input itself."""

    __constants__ = ("padding",)
    _sizes: Callable[[Any], tuple[int, ...]]

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = self._sizes(padding)

    def extra_repr(self) -> str:
        return str(self.padding)


class _CircularPadNd(_PadNd):
    """Pads as if the input were repeated.

    Raises:
        ValueError: the input has another number of dimensions.
    """

    def forward(self, input: Tensor) -> Tensor:
        inner = len(self.padding) // 2
        if input.ndim not in (inner + 1, inner + 2):
            raise ValueError(
                f"expected {inner + 1}D or {inner + 2}D input (got {input.ndim}D input)"
            )
        return F.pad(input, self.padding, "circular")


class CircularPad1d(_CircularPadNd):
    __doc__ = _CircularPadNd.__doc__
    _sizes = staticmethod(_pair)


class CircularPad2d(_CircularPadNd):
    __doc__ = _CircularPadNd.__doc__
    _sizes = staticmethod(_quadruple)


class CircularPad3d(_CircularPadNd):
    __doc__ = _CircularPadNd.__doc__
    _sizes = staticmethod(_sextuple)


class _ReflectionPadNd(_PadNd):
    """Pads with the input mirrored at its edge, which is not repeated."""

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "reflect")


class ReflectionPad1d(_ReflectionPadNd):
    __doc__ = _ReflectionPadNd.__doc__
    _sizes = staticmethod(_pair)


class ReflectionPad2d(_ReflectionPadNd):
    __doc__ = _ReflectionPadNd.__doc__
    _sizes = staticmethod(_quadruple)


class ReflectionPad3d(_ReflectionPadNd):
    __doc__ = _ReflectionPadNd.__doc__
    _sizes = staticmethod(_sextuple)


class _ReplicationPadNd(_PadNd):
    """Pads with the values at the edge."""

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "replicate")


class ReplicationPad1d(_ReplicationPadNd):
    __doc__ = _ReplicationPadNd.__doc__
    _sizes = staticmethod(_pair)


class ReplicationPad2d(_ReplicationPadNd):
    __doc__ = _ReplicationPadNd.__doc__
    _sizes = staticmethod(_quadruple)


class ReplicationPad3d(_ReplicationPadNd):
    __doc__ = _ReplicationPadNd.__doc__
    _sizes = staticmethod(_sextuple)


class _ConstantPadNd(Module):
    """Pads with one value."""

    __constants__ = ("padding", "value")
    _sizes: Callable[[Any], tuple[int, ...]]

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__()
        self.value = value
        self.padding = self._sizes(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    __doc__ = _ConstantPadNd.__doc__
    _sizes = staticmethod(_pair)


class ConstantPad2d(_ConstantPadNd):
    __doc__ = _ConstantPadNd.__doc__
    _sizes = staticmethod(_quadruple)


class ConstantPad3d(_ConstantPadNd):
    __doc__ = _ConstantPadNd.__doc__
    _sizes = staticmethod(_sextuple)


class _ZeroPadNd(_ConstantPadNd):
    """Pads with zeros."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return str(self.padding)


class ZeroPad1d(_ZeroPadNd, ConstantPad1d):
    __doc__ = _ZeroPadNd.__doc__


class ZeroPad2d(_ZeroPadNd, ConstantPad2d):
    __doc__ = _ZeroPadNd.__doc__


class ZeroPad3d(_ZeroPadNd, ConstantPad3d):
    __doc__ = _ZeroPadNd.__doc__
