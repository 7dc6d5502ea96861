"""Reading images at the places of a grid, under PyTorch's native name."""

from __future__ import annotations

from clew.functions.calls import Tensor, call, require_tensors
from clew.publish import composite


@composite(method=False)
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """The image `input` read at the places of `grid`; modes by number.

    Modes are 0 bilinear, 1 nearest, 2 bicubic; padding is 0 zeros, 1 border, 2 reflection.

    Raises:
        RuntimeError: shapes or types do not fit.
    """
    require_tensors("grid_sampler", input=input, grid=grid)
    name = "grid_sampler_3d" if input.ndim == 5 else "grid_sampler_2d"
    if input.ndim not in (4, 5):
        dims = input.ndim - 2
        if grid.ndim and grid.size(-1) != dims:
            raise RuntimeError(
                f"grid_sampler(): expected grid to have size {dims} in last dimension, but got "
                f"grid with sizes {list(grid.shape)}"
            )
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but "
            f"got input with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    return call(
        name, input, grid, interpolation_mode=interpolation_mode, padding_mode=padding_mode,
        align_corners=align_corners,
    )  # fmt: skip
