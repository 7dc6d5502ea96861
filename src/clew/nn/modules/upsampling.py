"""Making images larger.  May import the core of clew, `clew.nn.functional` and `module`."""

from __future__ import annotations

from typing import Any

from clew.nn import functional as F
from clew.nn.modules.module import Module
from clew.tensor import Tensor

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


class Upsample(Module):
    """Interpolates to another size.

    Args:
        size: the output's size, or
        scale_factor: its ratio to the input's; one of the two.
        mode: "nearest", "linear", "bilinear", "bicubic", "trilinear".
        align_corners: whether the corners' centres, and not their edges, coincide.
        recompute_scale_factor: use the ratio of the rounded sizes.
    """

    __constants__ = (
        "size", "scale_factor", "mode", "align_corners", "name", "recompute_scale_factor"
    )  # fmt: skip

    def __init__(
        self, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
        align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        self.scale_factor: Any
        if isinstance(scale_factor, tuple):
            self.scale_factor = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )  # fmt: skip

    def extra_repr(self) -> str:
        if self.scale_factor is not None:
            return f"scale_factor={self.scale_factor!r}, mode={self.mode!r}"
        return f"size={self.size!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """`Upsample` in two dimensions, by the nearest element."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """`Upsample` in two dimensions, linearly, with corners aligned."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
