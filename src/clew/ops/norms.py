"""Norms of vectors, and distances."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from clew.dtypes import can_cast, of_numpy, scalar_name
from clew.kernels.half import narrow, widen
from clew.kernels.product import product
from clew.kernels.reduce import kept, sums
from clew.op import op
from clew.ops.layout import contiguous
from clew.ops.rules import keep_dims, numpy_dtype, wrap_dim, wrap_dims
from clew.promotion import arithmetic

# -- the norm of vectors


def _norm(x: Any, ord: float, axes: tuple[int, ...], keepdims: bool) -> Any:
    """The `ord`-norm over `axes`: the `ord`-th root of the sum of powers, and its limits."""
    if ord == 2 and x.dtype.kind == "f":
        squares = sums(x, axes, squares=True)
        if squares is None:
            squares = np.sum(np.multiply(x, x), axis=axes, keepdims=keepdims)
        elif keepdims:
            squares = squares.reshape(kept(x.shape, axes))
        return np.sqrt(squares)
    size = np.abs(x)
    if ord == 2:
        return np.sqrt(np.sum(size * size, axis=axes, keepdims=keepdims))
    if ord == 1:
        return np.sum(size, axis=axes, keepdims=keepdims)
    if ord == 0:
        return np.sum(size != 0, axis=axes, keepdims=keepdims, dtype=size.dtype)
    if ord == inf:
        return np.max(size, axis=axes, keepdims=keepdims, initial=0)
    if ord == -inf:
        return np.min(size, axis=axes, keepdims=keepdims, initial=inf)
    return np.sum(size**ord, axis=axes, keepdims=keepdims) ** size.dtype.type(1 / ord)


def _norm_type(x: Any, dtype: Any) -> np.dtype:
    """The type to compute in.

    Raises:
        RuntimeError: `x` is neither floating nor complex, or does not fit into `dtype`.
    """
    name = "linalg.vector_norm"
    if x.dtype.kind not in "fcV":
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got "
            f"{scalar_name(x.dtype)}"
        )
    if dtype is None:
        return x.dtype
    wanted = numpy_dtype(dtype)
    if wanted.kind not in "fcV":
        raise RuntimeError(
            f"{name}: dtype should be floating point or complex, but got {scalar_name(wanted)}"
        )
    if (x.dtype.kind == "c") != (wanted.kind == "c"):
        kind = "complex" if x.dtype.kind == "c" else "real"
        raise RuntimeError(
            f"{name}: dtype should be {kind} for {kind} inputs, but got {scalar_name(wanted)}"
        )
    if wanted.itemsize < x.dtype.itemsize or not can_cast(of_numpy(x.dtype), of_numpy(wanted)):
        raise RuntimeError(
            f"{name}: the dtype of the input ({scalar_name(x.dtype)}) should be convertible "
            f"without narrowing to the specified dtype ({scalar_name(wanted)})"
        )
    return wanted


def _refuse_empty(x: Any, ord: float, axes: tuple[int, ...]) -> None:
    if x.size or (ord >= 0 and ord != inf):
        return
    if len(axes) == x.ndim:
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {ord:g} norm on an empty tensor because the "
            "operation does not have an identity"
        )
    for d in axes:
        if x.shape[d] == 0:
            raise RuntimeError(
                f"linalg.vector_norm cannot compute the {ord:g} norm on the dimension {d}because "
                "this dimension is empty and the operation does not have an identity"
            )


@op("linalg_vector_norm(self; ord=2, dim=None, keepdim=False, *, dtype=None)", publish=())
@contiguous
def linalg_vector_norm(x: Any, *, ord: float, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """The norm over `dim` (over all without), of any order."""
    kind = _norm_type(x, dtype)
    axes = wrap_dims(dim, x.ndim)
    _refuse_empty(x, ord, axes)
    wide = x.astype(np.float32 if kind.itemsize == 2 else kind, copy=False)
    result = np.asarray(_norm(wide, float(ord), axes, keepdim))
    return result.astype(kind) if kind.itemsize == 2 else result


def of_norm(F: Any, grad: Any, x: Any, ord: float, norm: Any, dim: Any, keepdim: bool) -> Any:
    """The gradient of a norm of `x`; where the norm is 0, the gradient taken is 0."""
    shape = tuple(x.shape)
    if dim is not None:
        grad, norm = (keep_dims(F, x, shape, dim, keepdim) for x in (grad, norm))
    if ord == 0:
        return None
    if ord == 1:
        return F.mul(F.sgn(x), grad)
    if ord == 2:
        return F.mul(grad, F.masked_out(F.div(x, norm), F.eq(norm, 0)))
    size = F.abs(x)
    if ord in (inf, -inf):
        # The largest elements, nan among them, share the gradient.
        mask = F.cast_like(F.logical_or(F.eq(size, norm), F.isnan(size)), size)
        return F.mul(F.sgn(x), F.mul(F.div(grad, F.sum(mask, dim, keepdim=True)), mask))
    if ord < 1:
        powers = F.masked_out(F.pow_scalar(size, ord - 1), F.eq(x, 0))
        return F.mul(F.mul(F.mul(F.sgn(x), powers), grad), F.pow_scalar(norm, 1 - ord))
    scale = F.masked_out(F.div(grad, F.pow_scalar(norm, ord - 1)), F.eq(norm, 0))
    if ord < 2:
        return F.mul(F.mul(F.sgn(x), F.pow_scalar(size, ord - 1)), scale)
    return F.mul(F.mul(x, F.pow_scalar(size, ord - 2)), scale)


@linalg_vector_norm.grad("self")
def _(F: Any, grad: Any, self: Any, result: Any, *, ord: float, dim: Any, keepdim: bool) -> Any:
    return of_norm(F, grad, self, ord, result, dim, keepdim)


# -- distances


@op("dist(self, other; p=2)")
def dist(x: Any, y: Any, *, p: float) -> Any:
    """The `p`-norm of the difference."""
    difference = np.subtract(*arithmetic([x, y]))
    if difference.dtype.kind not in "fcV":
        raise RuntimeError(
            "norm(): input dtype should be either floating point or complex. Got "
            f"{scalar_name(difference.dtype)} instead."
        )
    return linalg_vector_norm.forward(difference, ord=p, dim=None, keepdim=False, dtype=None)


@dist.grad("self", "other")
def _(F: Any, grad: Any, self: Any, other: Any, result: Any, *, p: float, need: Any) -> Any:
    of_self = of_norm(F, grad, self - other, p, result, None, False)
    if of_self is None:
        return [None, None]
    return [of_self if need[0] else None, -of_self if need[1] else None]


@op("renorm(self; p, dim, maxnorm)", inplace=True)
@contiguous
def renorm(x: Any, *, p: float, dim: int, maxnorm: float) -> Any:
    """The slices along `dim` whose `p`-norm exceeds `maxnorm`, scaled down to it.

    Raises:
        RuntimeError: there are fewer than two dimensions, or `p` is not positive.
    """
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    if x.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {x.ndim} dimensions")
    norm = linalg_vector_norm.forward(
        widen(x), ord=p, dim=_others(dim, x.ndim), keepdim=True, dtype=None
    )
    shrunk = maxnorm / (norm + norm.dtype.type(1e-7))
    return x * narrow(np.where(norm > maxnorm, shrunk, norm.dtype.type(1)), x.dtype)


def _others(dim: int, ndim: int) -> tuple[int, ...]:
    kept = wrap_dim(dim, ndim)
    return tuple(d for d in range(ndim) if d != kept)


@renorm.grad("self")
def _(F: Any, grad: Any, self: Any, *, p: float, dim: int, maxnorm: float) -> Any:
    dims = _others(dim, self.ndim)
    norm = F.linalg_vector_norm(self, p, dims, True)
    inverse = 1 / (norm + 1e-7)
    along = F.sum(F.real(F.mul(F.conj(self), grad)), dims, True)
    through_norm = of_norm(F, along, self, p, norm, dims, True)
    scaled = F.mul(maxnorm * inverse, F.sub(grad, F.mul(inverse, through_norm)))
    return F.where(F.gt(norm, maxnorm), scaled, grad)


@op("cdist(x1, x2; p)", node="CdistBackward0", publish=())
def cdist(x: Any, y: Any, *, p: float) -> Any:
    """The `p`-norm of the difference of each row of `x` and each row of `y`, ``(..., n, m)``.

    Raises:
        NotImplementedError: the rows are not of float32 or float64.
    """
    if x.dtype not in (np.float32, np.float64):
        raise NotImplementedError(f"\"cdist\" not implemented for '{scalar_name(x.dtype)}'")
    if p == 2 and max(x.shape[-2], y.shape[-2]) > 25:
        squares = np.sum(x * x, -1)[..., :, None] + np.sum(y * y, -1)[..., None, :]
        squares -= 2 * product(np.matmul, x, np.swapaxes(y, -1, -2))
        return np.sqrt(np.maximum(squares, 0))
    difference = x[..., :, None, :] - y[..., None, :, :]
    return _norm(difference, float(p), (-1,), False)


@cdist.grad("x1", "x2")
def _(F: Any, grad: Any, x1: Any, x2: Any, result: Any, *, p: float, need: Any) -> Any:
    difference = F.unsqueeze(x1, -2) - F.unsqueeze(x2, -3)
    each = of_norm(F, grad, difference, p, result, (-1,), False)
    if each is None:
        return [F.zeros_like(x) if n else None for x, n in zip((x1, x2), need)]
    of_first = F.sum(each, (-2,)) if need[0] else None
    return [of_first, -F.sum(each, (-3,)) if need[1] else None]
