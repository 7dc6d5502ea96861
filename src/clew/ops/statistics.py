"""Variances, norms, and other reductions of numbers."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from clew.dtypes import scalar_name
from clew.op import op
from clew.ops.layout import contiguous
from clew.ops.rules import conj, count, keep_dims, numpy_dtype, wrap_dims
from clew.promotion import floating

# -- variance


def degrees_of_freedom(shape: tuple[int, ...], dim: Any, correction: float) -> float:
    """What the squared deviations are divided by; at least 0."""
    return max(count(shape, dim) - correction, 0)


def _single(x: Any) -> Any:
    """Halves are computed with in single precision."""
    return x.astype(np.float32) if x.dtype.itemsize == 2 else x


def _moments(x: Any, dim: Any, correction: float, keepdim: bool, name: str) -> tuple[Any, Any]:
    if x.dtype.kind not in "fcV":
        verb = "std and var only support" if "_" not in name else f"{name} only support"
        raise RuntimeError(f"{verb} floating point and complex dtypes")
    axes = wrap_dims(dim, x.ndim)
    wide = _single(x)
    mean = np.true_divide(np.sum(wide, axis=axes, keepdims=True), count(x.shape, dim))
    mean = mean.astype(wide.dtype, copy=False)
    deviation = np.asarray(wide - mean)
    if x.dtype.kind == "c":
        squares = deviation.real * deviation.real + deviation.imag * deviation.imag
    else:
        squares = np.multiply(deviation, deviation, out=deviation)
    n = degrees_of_freedom(x.shape, dim, correction)
    variance = np.true_divide(np.sum(squares, axis=axes, keepdims=keepdim), n, dtype=squares.dtype)
    return variance, mean if keepdim else np.squeeze(mean, axes)


def _rounded(value: Any, x: Any) -> Any:
    """A result that was computed in single precision, in the type of `x`."""
    return np.asarray(value).astype(x.dtype) if x.dtype.itemsize == 2 else value


def _of_variance(F: Any, grad: Any, x: Any, dim: Any, correction: float, keepdim: bool) -> Any:
    shape = tuple(x.shape)
    n = count(shape, dim) - correction
    whole = grad if dim is None or len(shape) < 2 else keep_dims(F, grad, shape, dim, keepdim)
    mean = F.mean_all(x) if dim is None else F.mean(x, dim, keepdim=True)
    if n <= 0 and (dim is None or not shape):
        return whole * F.where(F.eq(x, mean), float("nan"), inf)
    return F.mul(whole * (2.0 / n if n else inf), F.sub(x, mean))


def _of_deviation(
    F: Any, grad: Any, x: Any, result: Any, dim: Any, correction: float, keepdim: bool
) -> Any:
    # The derivative of the square root at 0 is infinite; 0 is taken instead.
    half = F.masked_out(F.div(grad, result * 2), F.eq(result, 0))
    return _of_variance(F, half, x, dim, correction, keepdim)


@op("var(self; dim=None, correction=1, keepdim=False)", publish=())
@contiguous
def var(x: Any, *, dim: Any, correction: float, keepdim: bool) -> Any:
    """The squared deviations from the mean, summed and divided by ``n - correction``."""
    return _rounded(_moments(x, dim, correction, keepdim, "var")[0], x)


@var.grad("self")
def _(F: Any, grad: Any, self: Any, *, dim: Any, correction: float, keepdim: bool) -> Any:
    return _of_variance(F, grad, self, dim, correction, keepdim)


@op("std(self; dim=None, correction=1, keepdim=False)", publish=())
@contiguous
def std(x: Any, *, dim: Any, correction: float, keepdim: bool) -> Any:
    """The square root of `var`."""
    return _rounded(np.sqrt(_moments(x, dim, correction, keepdim, "std")[0]), x)


@std.grad("self")
def _(
    F: Any, grad: Any, self: Any, result: Any, *, dim: Any, correction: float, keepdim: bool
) -> Any:
    return _of_deviation(F, grad, self, result, dim, correction, keepdim)


@op("var_mean(self; dim=None, correction=1, keepdim=False) -> result0, result1", publish=())
@contiguous
def var_mean(x: Any, *, dim: Any, correction: float, keepdim: bool) -> Any:
    """`var` and the mean."""
    variance, mean = _moments(x, dim, correction, keepdim, "var_mean")
    return _rounded(variance, x), _rounded(mean, x)


def _of_mean(F: Any, grad: Any, x: Any, dim: Any, keepdim: bool) -> Any:
    shape = tuple(x.shape)
    whole = F.expand(keep_dims(F, grad, shape, dim, keepdim), shape)
    return whole / max(count(shape, dim), 1)


@var_mean.grad("self")
def _(F: Any, grads: Any, self: Any, *, dim: Any, correction: float, keepdim: bool) -> Any:
    of_var, of_mean = grads
    parts = []
    if of_var is not None:
        parts.append(_of_variance(F, of_var, self, dim, correction, keepdim))
    if of_mean is not None:
        parts.append(_of_mean(F, of_mean, self, dim, keepdim))
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


@op("std_mean(self; dim=None, correction=1, keepdim=False) -> result0, result1", publish=())
@contiguous
def std_mean(x: Any, *, dim: Any, correction: float, keepdim: bool) -> Any:
    """`std` and the mean."""
    variance, mean = _moments(x, dim, correction, keepdim, "std_mean")
    return _rounded(np.sqrt(variance), x), _rounded(mean, x)


@std_mean.grad("self")
def _(
    F: Any, grads: Any, self: Any, result0: Any, *, dim: Any, correction: float, keepdim: bool
) -> Any:
    of_std, of_mean = grads
    parts = []
    if of_std is not None:
        parts.append(_of_deviation(F, of_std, self, result0, dim, correction, keepdim))
    if of_mean is not None:
        parts.append(_of_mean(F, of_mean, self, dim, keepdim))
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


# -- sums of exponentials


@op("logsumexp(self; dim, keepdim=False)")
@contiguous
def logsumexp(x: Any, *, dim: Any, keepdim: bool) -> Any:
    """The logarithm of the sum of the exponentials, without overflow."""
    (x,) = floating([x])
    axes = wrap_dims(dim, x.ndim)
    wide = _single(x)
    if wide.size == 0:
        return np.log(np.sum(np.exp(wide), axis=axes, keepdims=keepdim)).astype(x.dtype)
    top = np.max(wide.real, axis=axes, keepdims=True)
    top = np.where(np.isinf(top), top.dtype.type(0), top)
    total = np.log(np.sum(np.exp(wide - top), axis=axes, keepdims=True)) + top
    return _rounded(total if keepdim else np.squeeze(total, axes), x)


@logsumexp.grad("self")
def _(F: Any, grad: Any, self: Any, result: Any, *, dim: Any, keepdim: bool) -> Any:
    shape = tuple(self.shape)
    share = F.exp(F.sub(self, keep_dims(F, result, shape, dim, keepdim)))
    return F.mul(keep_dims(F, grad, shape, dim, keepdim), conj(F, share))


# -- sums that leave out nan, and counts


@op("nansum(self; dim=None, keepdim=False, *, dtype=None)")
@contiguous
def nansum(x: Any, *, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """The sum over `dim` of what is not nan."""
    if x.dtype.kind == "c":
        raise RuntimeError("nansum on CPU does not support complex inputs")
    if dtype is not None:
        x = x.astype(numpy_dtype(dtype))
    axes = wrap_dims(dim, x.ndim)
    if x.dtype.kind in "biu":
        return np.sum(x, axis=axes, keepdims=keepdim, dtype=np.int64 if dtype is None else x.dtype)
    wide = _single(x)
    known = np.where(np.isnan(wide), wide.dtype.type(0), wide)
    return _rounded(np.sum(known, axis=axes, keepdims=keepdim), x)


@nansum.grad("self")
def _(F: Any, grad: Any, self: Any, *, dim: Any, keepdim: bool) -> Any:
    shape = tuple(self.shape)
    whole = grad if dim is None else keep_dims(F, grad, shape, dim, keepdim)
    return F.mul(F.expand(whole, shape), F.logical_not(F.isnan(self)))


@op("count_nonzero(self; dim=None)")
@contiguous
def count_nonzero(x: Any, *, dim: Any) -> Any:
    """How many elements are not zero."""
    return np.asarray(np.count_nonzero(x, axis=wrap_dims(dim, x.ndim)), np.int64)


@op("aminmax(self; *, dim=None, keepdim=False) -> min, max", publish=())
@contiguous
def aminmax(x: Any, *, dim: Any, keepdim: bool) -> Any:
    """The smallest and the largest element, of all or along `dim`."""
    if x.dtype.kind == "c":
        raise NotImplementedError(f"\"aminmax_cpu\" not implemented for '{scalar_name(x.dtype)}'")
    if dim is None:
        if x.size == 0:
            raise RuntimeError(
                "aminmax(): cannot compute aminmax over an empty dimension as the operation has "
                "no identity."
            )
        axes = tuple(range(x.ndim))
    else:
        axes = wrap_dims(dim, x.ndim)
        if x.ndim and x.shape[axes[0]] == 0:
            raise IndexError(f"aminmax: Expected reduction dim {axes[0]} to have non-zero size.")
    return np.min(x, axis=axes, keepdims=keepdim), np.max(x, axis=axes, keepdims=keepdim)


@aminmax.grad("self")
def _(F: Any, grads: Any, self: Any, min: Any, max: Any, *, dim: Any, keepdim: bool) -> Any:
    shape = tuple(self.shape)
    parts = []
    for grad, extremum in zip(grads, (min, max)):
        if grad is not None:
            mask = F.cast_like(F.eq(self, keep_dims(F, extremum, shape, dim, keepdim)), self)
            share = mask / F.sum(mask, dim, keepdim=True)
            parts.append(keep_dims(F, grad, shape, dim, keepdim) * share)
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]
