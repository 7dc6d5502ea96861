"""Windows as columns, and back.  May import the core of clew, `clew.nn.functional`, `module`."""

from __future__ import annotations

from typing import Any

from clew.nn import functional as F
from clew.nn.modules.module import Module
from clew.tensor import Tensor

__all__ = ["Fold", "Unfold"]


class Unfold(Module):
    """The windows of (N, C, *) as the columns of (N, C * window, number of windows)."""

    __constants__ = ("kernel_size", "dilation", "padding", "stride")

    def __init__(
        self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
            f"stride={self.stride}"
        )


class Fold(Module):
    """Columns added up at the places that `Unfold` takes them from."""

    __constants__ = ("output_size", "kernel_size", "dilation", "padding", "stride")

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0,
        stride: Any = 1,
    ) -> None:  # fmt: skip
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, "
            f"dilation={self.dilation}, padding={self.padding}, stride={self.stride}"
        )
