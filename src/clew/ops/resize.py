"""Resizing images by interpolation, and moving elements between channels and space."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew import kernels
from clew.op import op

# -- interpolation

_NODES = {
    "nearest": "UpsampleNearest{n}D",
    "nearest_exact": "UpsampleNearestExact{n}D",
    "linear": "Upsample{words}{n}D",
    "cubic": "UpsampleBicubic{n}D",
    "linear_smooth": "UpsampleBilinear{n}DAa",
    "cubic_smooth": "UpsampleBicubic{n}DAa",
    "lanczos_smooth": "UpsampleLanczos{n}DAa",
}
_WORDS = {1: "Linear", 2: "Bilinear", 3: "Trilinear"}


def _declare_upsample(mode: str, dims: int) -> None:
    """The op of one mode and number of dimensions, and its gradient, which is the adjoint."""
    name = f"upsample_{mode}{dims}d"
    node = _NODES[mode].format(n=dims, words=_WORDS[dims])
    kernel = mode.replace("_", "-")

    def forward(x: Any, *, output_size: Any, align_corners: bool, scales: Any) -> Any:
        return kernels.interpolate.interpolate(x, output_size, kernel, align_corners, scales)

    def rule(F: Any, grad: Any, self_shape: Any, *, align_corners: bool, scales: Any) -> Any:
        backward = getattr(F, f"{name}_backward")
        return backward(grad, input_size=self_shape, align_corners=align_corners, scales=scales)

    op(
        f"{name}(self; output_size, align_corners, scales)", forward, publish=(),
        node=f"{node}Backward0", self=rule, jvp="linear",
        doc="The image resized to `output_size`.",
    )  # fmt: skip

    def spread(grad: Any, *, input_size: Any, align_corners: bool, scales: Any) -> Any:
        return kernels.interpolate.interpolate_backward(
            grad, input_size, kernel, align_corners, scales
        )

    def again(
        F: Any, grad: Any, grad_output_shape: Any, *, align_corners: bool, scales: Any
    ) -> Any:
        size = grad_output_shape[2:]
        return getattr(F, name)(grad, output_size=size, align_corners=align_corners, scales=scales)

    op(
        f"{name}_backward(grad_output; input_size, align_corners, scales)", spread, publish=(),
        node=f"{node}BackwardBackward0", grad_output=again, jvp="linear",
        doc="Each output's gradient shared out over the inputs that it was made of.",
    )  # fmt: skip


for _mode, _dims in (
    *(("nearest", n) for n in (1, 2, 3)),
    *(("nearest_exact", n) for n in (1, 2, 3)),
    *(("linear", n) for n in (1, 2, 3)),
    ("cubic", 2),
    ("linear_smooth", 2),
    ("cubic_smooth", 2),
    ("lanczos_smooth", 2),
):
    _declare_upsample(_mode, _dims)


# -- between channels and space


def _arranged(parts: Any, shape: tuple[int, ...]) -> Any:
    """A copy of the view `parts`, in its order, under another shape."""
    return np.array(parts, order="C").reshape(shape)


@op("pixel_shuffle(self; upscale_factor)", publish=("function",), jvp="linear")
def pixel_shuffle(x: Any, *, upscale_factor: int) -> Any:
    """``(..., C * r**2, H, W)`` as ``(..., C, H * r, W * r)`` for an upscale factor r.

    Raises:
        RuntimeError: the shape does not fit.
    """
    r = upscale_factor
    if x.ndim < 3:
        raise RuntimeError(
            "pixel_shuffle expects input to have at least 3 dimensions, but got input with "
            f"{x.ndim} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    *batch, channels, height, width = x.shape
    if channels % r**2:
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square "
            f"of upscale_factor, but input.size(-3)={channels} is not divisible by {r**2}"
        )
    parts = x.reshape(*batch, channels // r**2, r, r, height, width)
    n = len(batch)
    moved = parts.transpose(*range(n + 1), n + 3, n + 1, n + 4, n + 2)
    return _arranged(moved, (*batch, channels // r**2, height * r, width * r))


@pixel_shuffle.grad("self")
def _(F: Any, grad: Any, *, upscale_factor: int) -> Any:
    return F.pixel_unshuffle(grad, downscale_factor=upscale_factor)


@op("pixel_unshuffle(self; downscale_factor)", publish=("function",),
    jvp="linear")  # fmt: skip
def pixel_unshuffle(x: Any, *, downscale_factor: int) -> Any:
    """``(..., C, H * r, W * r)`` as ``(..., C * r**2, H, W)`` for a downscale factor r.

    Raises:
        RuntimeError: the shape does not fit.
    """
    r = downscale_factor
    if x.ndim < 3:
        raise RuntimeError(
            "pixel_unshuffle expects input to have at least 3 dimensions, but got input with "
            f"{x.ndim} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    *batch, channels, height, width = x.shape
    for name, n, dim in (("height", height, -2), ("width", width, -1)):
        if n % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but "
                f"input.size({dim})={n} is not divisible by {r}"
            )
    parts = x.reshape(*batch, channels, height // r, r, width // r, r)
    n = len(batch)
    moved = parts.transpose(*range(n + 1), n + 2, n + 4, n + 1, n + 3)
    return _arranged(moved, (*batch, channels * r**2, height // r, width // r))


@pixel_unshuffle.grad("self")
def _(F: Any, grad: Any, *, downscale_factor: int) -> Any:
    return F.pixel_shuffle(grad, upscale_factor=downscale_factor)


@op("channel_shuffle(self; groups)", publish=("function",), aliases=("native_channel_shuffle",),
    jvp="linear")  # fmt: skip
def channel_shuffle(x: Any, *, groups: int) -> Any:
    """The channels of ``(N, C, *size)``, in `groups`, dealt out like cards.

    Raises:
        RuntimeError: the shape does not fit.
    """
    if x.ndim < 3:
        raise RuntimeError(
            f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(x.shape)}"
        )
    if groups <= 0:
        raise RuntimeError(
            f"Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )
    batch, channels, *size = x.shape
    if channels % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {channels} channels and "
            f"{groups} groups."
        )
    parts = x.reshape(batch, groups, channels // groups, *size)
    return _arranged(parts.swapaxes(1, 2), x.shape)


@channel_shuffle.grad("self")
def _(F: Any, grad: Any, self_shape: Any, *, groups: int) -> Any:
    return F.channel_shuffle(grad, groups=self_shape[1] // groups)
