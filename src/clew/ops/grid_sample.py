"""Reading images at the places of a grid, and the grids of affine maps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from clew import kernels
from clew.dtypes import scalar_name
from clew.kernels.half import narrow, widen
from clew.op import op
from clew.ops.checks import differentiable_once

MODES = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")
"""By PyTorch's numbers."""


class Sampling(NamedTuple):
    """How a grid is read."""

    interpolation_mode: int
    padding_mode: int
    align_corners: bool

    def for_kernel(self) -> tuple[str, str, bool]:
        """The modes by name."""
        return MODES[self.interpolation_mode], PADDINGS[self.padding_mode], self.align_corners


def _declare_grid_sampler(dims: int) -> None:
    """The op for images of `dims` dimensions and two derivatives of it."""
    name = f"grid_sampler_{dims}d"

    def forward(x: Any, grid: Any, **attrs: Any) -> Any:
        sampling = Sampling(**attrs)
        _check(x, grid, dims, sampling)
        return kernels.grid_sample.grid_sample(x, grid, *sampling.for_kernel())

    def rule(
        F: Any, grad: Any, input: Any, grid: Any, *, interpolation_mode: int, padding_mode: int,
        align_corners: bool, need: Any,
    ) -> Any:  # fmt: skip
        sampling = Sampling(interpolation_mode, padding_mode, align_corners)
        backward = getattr(F, f"{name}_backward")
        return backward(grad, input, grid, sampling=sampling, need=tuple(need))

    declared = op(
        f"{name}(input, grid; {', '.join(Sampling._fields)})", forward, publish=(),
        node=f"GridSampler{dims}DBackward0", tensors_only=True,
        doc="The image `input` read at the places of `grid`.",
    )  # fmt: skip
    declared.grad("input", "grid")(rule)

    def backward(grad: Any, x: Any, grid: Any, *, sampling: Sampling, need: Any) -> Any:
        return kernels.grid_sample.grid_sample_backward(grad, x, grid, *sampling.for_kernel(), need)

    def twice(
        F: Any, grads: Any, grad_output: Any, input: Any, grid: Any, *, sampling: Sampling,
        need: Any,
    ) -> Any:  # fmt: skip
        pairs = zip(grads, (input, grid))
        of_input, of_grid = (F.zeros_like(x) if g is None else g for g, x in pairs)
        double_backward = getattr(F, f"{name}_double_backward")
        return double_backward(of_input, of_grid, grad_output, input, grid, sampling=sampling)

    reverse = op(
        f"{name}_backward(grad_output, input, grid; sampling, need) -> of_input, of_grid",
        backward, publish=(), jvp=None, doc="Gradients of image and grid.",
    )  # fmt: skip
    reverse.grad("grad_output", "input", "grid")(twice)

    def double_backward(
        of_input: Any, of_grid: Any, grad: Any, x: Any, grid: Any, *, sampling: Sampling
    ) -> Any:
        return kernels.grid_sample.grid_sample_double_backward(
            of_input, of_grid, grad, x, grid, *sampling.for_kernel()
        )

    double = op(
        f"{name}_double_backward(of_input, of_grid, grad_output, input, grid; sampling) -> "
        "to_grad_output, to_input, to_grid", double_backward, publish=(), jvp=None,
        doc="Gradients of what the gradients were made of; they have none themselves.",
    )  # fmt: skip
    double.grad(*double.inputs)(differentiable_once(double.name))


def _check(x: Any, grid: Any, dims: int, sampling: Sampling) -> None:
    """Raise PyTorch's errors for what does not fit."""
    if x.dtype.kind not in "fV":
        raise NotImplementedError(
            f"\"grid_sampler_{dims}d_cpu\" not implemented for '{scalar_name(x.dtype)}'"
        )
    if grid.dtype != x.dtype:
        raise RuntimeError(
            f"expected scalar type {scalar_name(x.dtype)} but found {scalar_name(grid.dtype)}"
        )
    if len(grid) != len(x):
        raise RuntimeError(
            "grid_sampler(): expected grid and input to have same batch size, but got input with "
            f"sizes {list(x.shape)} and grid with sizes {list(grid.shape)}"
        )
    if grid.shape[-1] != x.ndim - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {x.ndim - 2} in last dimension, but got "
            f"grid with sizes {list(grid.shape)}"
        )
    for d, n in enumerate(x.shape[2:], start=2):
        if n == 0:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input "
                f"has sizes {list(x.shape)} with dimension {d} being empty"
            )
    if grid.ndim != x.ndim:
        raise RuntimeError(
            f"grid_sampler(): expected {dims + 2}D input and grid with same number of dimensions, "
            f"but got input with sizes {list(x.shape)} and grid with sizes {list(grid.shape)}"
        )
    if MODES[sampling.interpolation_mode] == "bicubic" and dims != 2:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")


_declare_grid_sampler(2)
_declare_grid_sampler(3)


# -- affine maps


def _base_grid(size: Any, align_corners: bool, dtype: np.dtype) -> np.ndarray:
    """The places of an image's pixels with a 1 behind each, (pixels, dims + 1)."""
    space = tuple(size[2:])
    axes = []
    for n in space:
        places = np.linspace(-1, 1, n, dtype=dtype) if n > 1 else np.zeros(n, dtype)
        axes.append(places if align_corners or n < 2 else places * ((n - 1) / n))
    mesh = np.meshgrid(*axes, indexing="ij")
    columns = [*reversed(mesh), np.ones(space, dtype)]
    return np.stack(columns, axis=-1).reshape(-1, len(space) + 1).astype(dtype, copy=False)


@op("affine_grid_generator(theta; size, align_corners)", publish=("function",), jvp="linear",
    tensors_only=True)  # fmt: skip
def affine_grid_generator(theta: Any, *, size: Any, align_corners: bool) -> Any:
    """The places of the pixels of images of `size` under affine maps ``(N, dims, dims + 1)``."""
    wide = widen(theta)
    base = _base_grid(size, align_corners, wide.dtype)
    grid = np.matmul(base, wide.mT)
    return narrow(grid.reshape(len(theta), *size[2:], theta.shape[1]), theta.dtype)


@affine_grid_generator.grad("theta")
def _(F: Any, grad: Any, *, size: Any, align_corners: bool) -> Any:
    return F.affine_grid_generator_backward(grad, size=size, align_corners=align_corners)


@op("affine_grid_generator_backward(grad_output; size, align_corners)", publish=(), jvp="linear")
def affine_grid_generator_backward(grad: Any, *, size: Any, align_corners: bool) -> Any:
    """The adjoint of `affine_grid_generator`."""
    wide = widen(grad)
    base = _base_grid(size, align_corners, wide.dtype)
    rows = wide.reshape(len(grad), len(base), grad.shape[-1])
    return narrow(np.matmul(rows.mT, base), grad.dtype)


@affine_grid_generator_backward.grad("grad_output")
def _(F: Any, grad: Any, *, size: Any, align_corners: bool) -> Any:
    return F.affine_grid_generator(grad, size=size, align_corners=align_corners)
