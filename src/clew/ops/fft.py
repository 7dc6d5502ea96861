"""Discrete Fourier transforms over one or more dimensions.

Three ops, by what is real: complex to complex, real to complex, complex to real. NumPy's pocketfft
computes them, float32 in single precision.

Note [Layout of transforms]
    PyTorch's transforms write each vector in one piece: the transformed dimensions lie innermost
    in memory, the others outside them by the strides that they had.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.op import op

_FORWARD: Any = ("backward", "ortho", "forward")
_INVERSE: Any = ("forward", "ortho", "backward")
"""NumPy's name for a `normalization` (0 none, 1 by the root of the size, 2 by the size)."""


def _by_stride(x: Any, dims: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(dims, key=lambda d: -x.strides[d]))


def _laid_out(out: Any, x: Any, dims: tuple[int, ...]) -> Any:
    """`out`, the transform of `x`, with `dims` innermost; see Note [Layout of transforms]."""
    order = (*_by_stride(x, tuple(d for d in range(x.ndim) if d not in dims)), *dims)
    return np.ascontiguousarray(out.transpose(order)).transpose(np.argsort(order))


def _wrapped(dim: Any, ndim: int) -> tuple[int, ...]:
    return tuple(d % ndim for d in dim)


@op("fft_c2c(self; dim, normalization, forward)", publish=(), tensors_only=True,
    node="FftC2CBackward0", jvp="linear")  # fmt: skip
def fft_c2c(x: Any, *, dim: Any, normalization: int, forward: bool) -> Any:
    """The transform of complex numbers over `dim`, or its inverse, scaled by `normalization`."""
    if not dim:
        return x.copy()
    dims = _by_stride(x, _wrapped(dim, x.ndim))
    if forward:
        return _laid_out(np.fft.fftn(x, axes=dims, norm=_FORWARD[normalization]), x, dims)
    return _laid_out(np.fft.ifftn(x, axes=dims, norm=_INVERSE[normalization]), x, dims)


@fft_c2c.grad("self")
def _(F: Any, grad: Any, *, dim: Any, normalization: int, forward: bool) -> Any:
    return F.fft_c2c(grad, dim, normalization, not forward)


@op("fft_r2c(self; dim, normalization, onesided)", publish=(), tensors_only=True,
    node="FftR2CBackward0", jvp="linear")  # fmt: skip
def fft_r2c(x: Any, *, dim: Any, normalization: int, onesided: bool) -> Any:
    """The transform of real numbers over `dim`, of which `onesided` leaves out the mirrored half.

    That is the second half along the last of `dim`.
    """
    *others, last = _wrapped(dim, x.ndim)
    dims = (*_by_stride(x, tuple(others)), last)
    transform = np.fft.rfftn if onesided else np.fft.fftn
    return _laid_out(transform(x, axes=dims, norm=_FORWARD[normalization]), x, dims)


@fft_r2c.grad("self")
def _(
    F: Any, grad: Any, self: Any, self_shape: Any,
    *, dim: Any, normalization: int, onesided: bool,
) -> Any:  # fmt: skip
    if onesided:
        last = dim[-1] % len(self_shape)
        half = self_shape[last] // 2 + 1
        grad = F.slice_backward(grad, self_shape, last, 0, half, 1)
    return F.real(F.fft_c2c(grad, dim, normalization, False))


@op("fft_c2r(self; dim, normalization, last_dim_size)", publish=(), tensors_only=True,
    node="FftC2RBackward0", jvp="linear")  # fmt: skip
def fft_c2r(x: Any, *, dim: Any, normalization: int, last_dim_size: int) -> Any:
    """The inverse transform to `last_dim_size` real numbers along the last of `dim`.

    `self` holds the first half along that dimension; the other is its mirrored conjugate.
    """
    *others, last = _wrapped(dim, x.ndim)
    if others:
        x = fft_c2c.forward(x, dim=others, normalization=normalization, forward=False)
    out = np.fft.irfft(x, last_dim_size, axis=last, norm=_INVERSE[normalization])
    return _laid_out(out, x, (last,))


@fft_c2r.grad("self")
def _(
    F: Any, grad: Any, self_shape: Any, *, dim: Any, normalization: int, last_dim_size: int
) -> Any:
    half = F.fft_r2c(grad, dim, normalization, True)
    last = dim[-1] % len(self_shape)
    # All but the first number, and the middle one of an even size, stand for two.
    end = last_dim_size - self_shape[last] + 1
    twice = F.slice(half, last, 1, end, 1)
    return half + F.slice_backward(twice, self_shape, last, 1, end, 1)
