"""Reading images at the places of a grid, and the grids of affine maps."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from clew.functions.calls import Tensor, call
from clew.functions.grid_sample import grid_sampler
from clew.ops.grid_sample import MODES, PADDINGS


def _aligned(align_corners: bool | None) -> bool:
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since "
            "1.3.0. Please specify align_corners=True if the old behavior is desired. See the "
            "documentation of grid_sample for details.",
            stacklevel=3,
        )
    return bool(align_corners)


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Read images ``(N, C, *size)`` at the places of a grid ``(N, *out, dims)``.

    Args:
        input: images of two or three spatial dimensions.
        grid: places, of which the first coordinate is that of the last dimension; -1 and 1 are the
            ends of the image.
        mode: "bilinear", "nearest" or "bicubic" (two dimensions only).
        padding_mode: what is outside: "zeros", "border" (the nearest pixel), "reflection".
        align_corners: whether -1 and 1 are the middles of the outermost pixels, or their edges.

    Raises:
        ValueError: there is no such mode.
        RuntimeError: shapes or types do not fit.
    """
    if mode not in MODES:
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', "
            f"but got: '{mode}'"
        )
    if padding_mode not in PADDINGS:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: '{padding_mode}'"
        )
    aligned = _aligned(align_corners)
    return grid_sampler(input, grid, MODES.index(mode), PADDINGS.index(padding_mode), aligned)


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The places of the pixels of images of `size` under the affine maps `theta`.

    Shapes: theta ``(N, 2, 3)`` for a size ``(N, C, H, W)``, the result ``(N, H, W, 2)``; or
    ``(N, 3, 4)`` for ``(N, C, D, H, W)``, the result ``(N, D, H, W, 3)``.

    Raises:
        ValueError: shapes or types do not fit.
        NotImplementedError: the size has another length.
    """
    aligned = _aligned(align_corners)
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    dims = len(size) - 2
    if dims not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
            f"respectively. Got size {size}."
        )
    if theta.dim() != 3 or tuple(theta.shape[-2:]) != (dims, dims + 1):
        raise ValueError(
            f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1} for size "
            f"{size}. Got {theta.shape}."
        )
    if aligned and min(size[2:]) == 1:
        warnings.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when "
            "align_corners=True. This is not an intended use case of affine_grid. See the "
            "documentation of affine_grid for details.",
            stacklevel=2,
        )
    elif min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    attrs = {"size": tuple(size), "align_corners": aligned}
    return call("affine_grid_generator", theta, **attrs)
