"""Resizing images."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from clew.functions.calls import Tensor, call, require_tensors
from clew.functions.pool import adaptive_avg_pool

_OPS = {
    ("nearest", 1): "upsample_nearest1d",
    ("nearest", 2): "upsample_nearest2d",
    ("nearest", 3): "upsample_nearest3d",
    ("nearest-exact", 1): "upsample_nearest_exact1d",
    ("nearest-exact", 2): "upsample_nearest_exact2d",
    ("nearest-exact", 3): "upsample_nearest_exact3d",
    ("linear", 1): "upsample_linear1d",
    ("bilinear", 2): "upsample_linear2d",
    ("trilinear", 3): "upsample_linear3d",
    ("bicubic", 2): "upsample_cubic2d",
    ("bilinear antialias", 2): "upsample_linear_smooth2d",
    ("bicubic antialias", 2): "upsample_cubic_smooth2d",
    ("lanczos antialias", 2): "upsample_lanczos_smooth2d",
}
_DIMS_OF_MODE = {"linear": 3, "bilinear": 4, "trilinear": 5}


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resize images ``(N, C, *size)`` to `size`, or by `scale_factor`.

    Args:
        size, scale_factor: a number for all dimensions, or one for each; one of the two.
        mode: "nearest", "nearest-exact", "area", "linear" (one dimension), "bilinear", "bicubic"
            or "lanczos" (two), "trilinear" (three).
        align_corners: whether the middles of the corner pixels keep their places, for the modes
            made of polynomials.
        recompute_scale_factor: compute with the ratio of the sizes in place of `scale_factor`.
        antialias: smooth what is made smaller; for "bilinear", "bicubic" and "lanczos".

    Raises:
        ValueError: arguments do not go together.
        NotImplementedError: the mode does not take such an input.
    """
    require_tensors("interpolate", input=input)
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear "
            "| bicubic | trilinear"
        )
    out, scales = _sizes(input, size, scale_factor)
    if recompute_scale_factor:
        if size is not None:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        scales = (None,) * len(out)
    if antialias:
        if mode not in ("bilinear", "bicubic", "lanczos") or input.ndim != 4:
            raise ValueError(
                "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and "
                "requires a 4-D tensor as input"
            )
        if mode == "lanczos" and align_corners:
            raise ValueError("Lanczos mode does not support align_corners=True")
        mode += " antialias"
    elif mode == "lanczos" and input.ndim == 4:
        raise ValueError("Lanczos mode requires antialias=True")
    dims = input.ndim - 2
    if mode == "area" and dims in (1, 2, 3):
        return adaptive_avg_pool(dims, input, out)
    if (mode, dims) not in _OPS:
        raise _no_such_mode(mode, input.ndim)
    return call(
        _OPS[mode, dims], input,
        output_size=out, align_corners=bool(align_corners), scales=scales,
    )  # fmt: skip


def _sizes(input: Tensor, size: Any, scale_factor: Any) -> tuple[tuple[int, ...], Any]:
    """The output's size, and the scale factors that were given (None for each otherwise)."""
    space = tuple(input.shape[2:])
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        return _explicit_size(size, space), (None,) * len(space)
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if isinstance(scale_factor, Sequence):
        if len(scale_factor) != len(space):
            raise ValueError(
                "Input and scale_factor must have the same number of spatial dimensions, but got "
                f"input with spatial dimensions of {list(space)} and scale_factor of shape "
                f"{scale_factor}. Please provide input tensor in (N, C, d1, d2, ...,dK) format "
                "and scale_factor in (s1, s2, ...,sK) format."
            )
        scales = tuple(float(s) for s in scale_factor)
    else:
        scales = (float(scale_factor),) * len(space)
    return tuple(int(n * s) for n, s in zip(space, scales)), scales


def _explicit_size(size: Any, space: tuple[int, ...]) -> tuple[int, ...]:
    if not isinstance(size, Sequence):
        return (size.__index__(),) * len(space)
    if len(size) != len(space):
        raise ValueError(
            "Input and output must have the same number of spatial dimensions, but got input with "
            f"spatial dimensions of {list(space)} and output size of {size}. Please provide input "
            "tensor in (N, C, d1, d2, ...,dK) format and output size in (o1, o2, ...,oK) format."
        )
    if not all(hasattr(n, "__index__") for n in size):
        raise TypeError(
            "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, "
            f"int], but got size with types {[type(n) for n in size]}"
        )
    return tuple(n.__index__() for n in size)


def _no_such_mode(mode: str, ndim: int) -> NotImplementedError:
    if mode in _DIMS_OF_MODE and ndim in (3, 4, 5):
        return NotImplementedError(
            f"Got {ndim}D input, but {mode} mode needs {_DIMS_OF_MODE[mode]}D input"
        )
    return NotImplementedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {ndim}D) for the modes: "
        "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact "
        f"(got {mode})"
    )


def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Deprecated in favour of `interpolate`."""
    _warn("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Deprecated in favour of `interpolate`."""
    _warn("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Deprecated in favour of `interpolate`, with ``align_corners=True``."""
    _warn("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def _warn(name: str) -> None:
    warnings.warn(
        f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=3,
    )
