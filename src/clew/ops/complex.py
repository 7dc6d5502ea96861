"""Complex numbers: their parts, as views and as functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew import dtypes
from clew.op import op
from clew.ops.rules import broadcast_shape, is_complex
from clew.storage import element_strides, geometry, restrided


@op("view_as_real(self)", view=True, publish=("function",), tensors_only=True, jvp="linear")
def view_as_real(x: Any) -> Any:
    """The real and the imaginary parts along a new last dimension: the same memory.

    Raises:
        RuntimeError: the tensor is not complex.
    """
    if x.dtype.kind != "c":
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return restrided(x.real, (*x.shape, 2), (*x.strides, x.itemsize // 2))


@view_as_real.grad("self")
def _(F: Any, grad: Any) -> Any:
    return F.view_as_complex(F.in_order(grad))


@op("view_as_complex(self)", view=True, publish=("function",), tensors_only=True, jvp="linear")
def view_as_complex(x: Any) -> Any:
    """Complex numbers whose parts stand along the last dimension, of size 2: the same memory.

    Raises:
        RuntimeError: the tensor is not floating or has no such dimension, or its parts do not lie
            in memory as those of complex numbers do.
    """
    if x.dtype not in (np.float32, np.float64):
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a "
            f"tensor of scalar type: {dtypes.scalar_name(x.dtype)}"
        )
    if x.ndim == 0:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if x.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    strides = element_strides(x)
    if strides[-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(s % 2 and n > 1 for n, s in zip(x.shape[:-1], strides)):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if geometry(x).offset % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    return x.view(np.complex64 if x.dtype == np.float32 else np.complex128)[..., 0]


@view_as_complex.grad("self")
def _(F: Any, grad: Any) -> Any:
    return F.view_as_real(F.in_order(grad))


@op("imag(self)", publish=(), jvp="linear", self=lambda F, grad: grad * 1j)
def imag(x: Any) -> Any:
    """The imaginary part, copied."""
    return np.imag(x).copy()


@op("conj_physical(self)", tensors_only=True, inplace=True, jvp="linear",
    self=lambda F, grad: F.conj_physical(grad))  # fmt: skip
def conj_physical(x: Any) -> Any:
    """The complex conjugate, computed at once."""
    return np.conjugate(x)


@op("angle(self)", jvp="elementwise", tensors_only=True)
def angle(x: Any) -> Any:
    """The angle of each number in the complex plane, in (-pi, pi]; nan of nan."""
    if x.dtype.kind == "c":
        return np.angle(x)
    if x.dtype.kind not in "fV":
        x = x.astype(dtypes.get_default_dtype().numpy)
    below = np.where(x < 0, np.asarray(np.pi, x.dtype), np.asarray(0, x.dtype))
    return np.where(np.isnan(x), x, below)


@angle.grad("self")
def _(F: Any, grad: Any, self: Any) -> Any:
    if not is_complex(self):
        return F.zeros_like(self)
    size = F.abs(self)
    return F.where(F.eq(size, 0), 0, ((grad * self) / F.pow_scalar(size, 2)) * 1j)


def _check_parts(first: Any, second: Any) -> None:
    kinds = [dtypes.scalar_name(x.dtype) for x in (first, second)]
    if any(kind not in ("Float", "Double") for kind in kinds):
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {kinds[0]} and "
            f"{kinds[1]}"
        )
    if kinds[0] != kinds[1]:
        raise RuntimeError(
            f"Expected object of scalar type {kinds[0]} but got scalar type {kinds[1]} for second "
            "argument"
        )


@op("complex(real, imag)", publish=("function",), tensors_only=True, jvp="linear",
    mixes=True)  # fmt: skip
def complex_(real: Any, imag: Any) -> Any:
    """Complex numbers from their real and imaginary parts.

    Raises:
        RuntimeError: the parts are not both float32 or both float64.
    """
    _check_parts(real, imag)
    shape = broadcast_shape(real.shape, imag.shape)
    out = np.empty(shape, np.complex64 if real.dtype == np.float32 else np.complex128)
    out.real, out.imag = real, imag
    return out


@complex_.grad("real")
def _(F: Any, grad: Any) -> Any:
    return F.real(grad)


@complex_.grad("imag")
def _(F: Any, grad: Any) -> Any:
    return F.imag(grad)


@op("polar(abs, angle)", publish=("function",), tensors_only=True, mixes=True)
def polar(abs: Any, angle: Any) -> Any:
    """Complex numbers from their absolute values and angles.

    Raises:
        RuntimeError: these are not both float32 or both float64.
    """
    _check_parts(abs, angle)
    return complex_.forward(abs * np.cos(angle), abs * np.sin(angle))


@polar.grad("abs")
def _(F: Any, grad: Any, result: Any) -> Any:
    return F.real(F.conj(grad) * F.sgn(result))


@polar.grad("angle")
def _(F: Any, grad: Any, result: Any) -> Any:
    return F.real(F.conj(grad) * (result * 1j))
