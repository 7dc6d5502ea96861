"""Fractional max pooling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew import kernels
from clew.dtypes import scalar_name
from clew.kernels.half import widen
from clew.op import op
from clew.ops.checks import floating_only
from clew.packing import INDICES, SHAPE

if TYPE_CHECKING:
    from clew.kernels.windows import Ints

_AXES = ("time", "height", "width")


def _declare(dims: int) -> None:
    name = f"fractional_max_pool{dims}d"

    def forward(x: Any, samples: Any, *, kernel_size: Ints, output_size: Ints) -> Any:
        floating_only(x, f"{name}_out_frame")
        _check(x, samples, name, kernel_size, output_size)
        return kernels.fractional_pool.fractional_max_pool(
            x, widen(samples), kernel_size, output_size
        )

    def rule(F: Any, grad: Any, self: Any, result1: Any) -> Any:
        return F.add_in_planes(grad, result1, size=tuple(self.shape), dims=dims)

    op(
        f"{name}(self, random_samples; kernel_size, output_size) -> result0, result1", forward,
        publish=(), node=f"FractionalMaxPool{dims}DBackward0", no_grad_outputs=(1,), self=rule,
        tensors_only=True, packings={"self": SHAPE, "result1": INDICES},
        doc="The maxima of windows at random steps, and their places.",
    )  # fmt: skip


def _check(x: Any, samples: Any, name: str, kernel: Ints, out: Ints) -> None:
    """Raise PyTorch's errors for what does not fit."""
    dims = len(kernel)
    name = name + "_out" if dims == 3 else name
    if x.ndim not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"{name}(): Expected {dims + 1}D or {dims + 2}D tensor, but got: {list(x.shape)}"
        )
    for dim in range(x.ndim - dims - 1, x.ndim):
        if x.shape[dim] == 0:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but "
                f"got{list(x.shape)} with dimension {dim} being empty."
            )
    spare = 1 if dims == 3 else 0  # PyTorch wants one element more in three dimensions
    for axis, n, k, o in zip(_AXES[-dims:], x.shape[-dims:], kernel, out):
        if o + k - 1 + spare > n:
            raise RuntimeError(f"{name}(): pool {axis} {k} too large relative to input {axis} {n}")
    if samples.ndim != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {samples.ndim}")
    if samples.dtype != x.dtype:
        raise RuntimeError(
            "Expect _random_samples to have the same dtype as input; got "
            f"{scalar_name(samples.dtype)} and {scalar_name(x.dtype)}"
        )
    batch = 1 if x.ndim == dims + 1 else len(x)
    channels = x.shape[-dims - 1]
    if len(samples) < batch:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if samples.shape[1] != channels:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if samples.shape[2] != dims:
        raise RuntimeError(
            f"Expect _random_samples.size(2) equals to {dims}; got {samples.shape[2]}."
        )


_declare(2)
_declare(3)
