"""Running sums, products and extrema along a dimension.

Floats are accumulated in double precision, as PyTorch does on the CPU, halves in single.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from clew.dtypes import scalar_name
from clew.kernels.reduce import running
from clew.op import op
from clew.ops.layout import contiguous
from clew.ops.rules import conj, is_complex, numpy_dtype, wrap_dim
from clew.packing import INDICES, SHAPE

_WIDER = {"float16": np.float32, "bfloat16": np.float32, "float32": np.float64,
          "complex64": np.complex128}  # fmt: skip


def _accumulate(function: Any, x: Any, dim: int, dtype: Any) -> Any:
    """`function` (`np.cumsum` or `np.cumprod`) in the type that PyTorch gives the result."""
    dim = wrap_dim(dim, x.ndim)
    kind = numpy_dtype(dtype) if dtype is not None else x.dtype
    if dtype is None and kind.kind in "biu":
        kind = np.dtype(np.int64)
    if x.ndim == 0:
        return x.astype(kind)
    fast = running(x, dim, function.__name__) if x.dtype == kind else None
    if fast is not None:
        return fast
    return function(x, axis=dim, dtype=_WIDER.get(kind.name, kind)).astype(kind, copy=False)


# -- sums


@op("cumsum(self; dim, *, dtype=None)", inplace=True, jvp="linear")
@contiguous
def cumsum(x: Any, *, dim: int, dtype: Any) -> Any:
    """The sums of the first one, two, ... slices along `dim`; of integers in int64."""
    return _accumulate(np.cumsum, x, dim, dtype)


@cumsum.grad("self")
def _(F: Any, grad: Any, *, dim: int) -> Any:
    return grad if _is_one_slice(grad, dim) else F.cumsum_reversed(grad, dim=dim)


def _is_one_slice(x: Any, dim: int) -> bool:
    """Whether along `dim` there is nothing to add up or multiply."""
    size = math.prod(x.shape)
    return size < 2 or x.shape[dim] == 1


@op("cumsum_reversed(self; dim)", publish=(), jvp="linear")
def cumsum_reversed(x: Any, *, dim: int) -> Any:
    """`cumsum` from the end: the adjoint of `cumsum`."""
    if x.ndim == 0:
        return x.copy()
    return np.flip(_accumulate(np.cumsum, np.flip(x, dim), dim, None), dim).copy()


@cumsum_reversed.grad("self")
def _(F: Any, grad: Any, *, dim: int) -> Any:
    return F.cumsum(grad, dim)


# -- products


@op("cumprod(self; dim, *, dtype=None)", inplace=True)
@contiguous
def cumprod(x: Any, *, dim: int, dtype: Any) -> Any:
    """The products of the first one, two, ... slices along `dim`; of integers in int64."""
    return _accumulate(np.cumprod, x, dim, dtype)


@cumprod.grad("self")
def _(F: Any, grad: Any, self: Any, result: Any, *, dim: int) -> Any:
    if _is_one_slice(self, dim):
        return grad
    return F.cumprod_backward(grad, conj(F, self), conj(F, result), dim=wrap_dim(dim, self.ndim))


@op("cumprod_backward(self, x, products; dim)", publish=())
def cumprod_backward(grad: Any, x: Any, products: Any, *, dim: int) -> Any:
    """The gradient of `cumprod` of `x` with the result `products`.

    Element k is the product of the elements before it times ``s[k]``, where
    ``s[k] = grad[k] + x[k + 1] * s[k + 1]``: no division, so zeros are fine.  Without zeros it is
    ``cumsum_reversed(grad * products) / x``, which takes no loop.
    """
    if np.all(x != 0):
        return cumsum_reversed.forward(grad * products, dim=dim) / x
    before, tails = np.ones_like(products), np.array(grad, products.dtype)
    at = _slices(x.ndim, dim)
    for k in range(1, x.shape[dim]):
        before[at(k)] = products[at(k - 1)]
    for k in range(x.shape[dim] - 2, -1, -1):
        tails[at(k)] += x[at(k + 1)] * tails[at(k + 1)]
    return before * tails


def _slices(ndim: int, dim: int) -> Any:
    def at(k: int) -> tuple[Any, ...]:
        return (*(slice(None),) * dim, k, *(slice(None),) * (ndim - dim - 1))

    return at


@cumprod_backward.grad("self", "x")
def _(F: Any, grad: Any, self: Any, x: Any, *, dim: int, need: Any) -> Any:
    # `grad` is a direction in x.  Along it the products p[k] = p[k - 1] * x[k] change by
    # t[k] = t[k - 1] * x[k] + p[k - 1] * grad[k], which is the derivative wanted for `self`; that
    # for x is this recursion run backward.
    n = x.shape[dim]
    if n == 0:
        return [F.zeros_like(x) if wanted else None for wanted in need]
    xs, directions, weights = (
        [F.select(a, dim, k) for k in range(n)] for a in (x, conj(F, grad), self)
    )
    products, changes = [F.ones_like(xs[0])], [F.zeros_like(xs[0])]
    for k in range(n):
        changes.append(changes[k] * xs[k] + products[k] * directions[k])
        products.append(products[k] * xs[k])
    of_change = of_product = F.zeros_like(xs[0])
    parts: list[Any] = []
    for k in reversed(range(n)):
        of_change = of_change + weights[k]
        parts.insert(0, of_change * changes[k] + of_product * products[k])
        of_product = of_product * xs[k] + of_change * directions[k]
        of_change = of_change * xs[k]
    of_self = conj(F, F.stack(changes[1:], dim)) if need[0] else None
    return [of_self, conj(F, F.stack(parts, dim)) if need[1] else None]


# -- extrema


def _running_extremum(name: str, ufunc: Any) -> None:
    @contiguous
    def forward(x: Any, *, dim: int) -> Any:
        if x.dtype.kind == "c":
            raise NotImplementedError(
                f"\"{name}_cpu\" not implemented for '{scalar_name(x.dtype)}'"
            )
        if x.size == 0:  # PyTorch does not look at `dim` then
            return x.copy(), np.zeros(x.shape, np.int64)
        dim = wrap_dim(dim, x.ndim)
        if x.ndim == 0:
            return x.copy(), np.zeros((), np.int64)
        values = ufunc.accumulate(x, axis=dim)
        places = np.arange(x.shape[dim]).reshape((-1,) + (1,) * (x.ndim - dim - 1))
        reached = (x == values) | (x != x)
        return values, np.maximum.accumulate(np.where(reached, places, 0), axis=dim)

    def rule(F: Any, grad: Any, self: Any, indices: Any, *, dim: int) -> Any:
        return F.add_values(grad, indices, size=tuple(self.shape), dim=dim)

    op(
        f"{name}(self; dim) -> values, indices", forward, publish=(), no_grad_outputs=(1,),
        packings={"self": SHAPE, "indices": INDICES}, self=rule,
        doc="The extremum so far along `dim` and where it stands.",
    )  # fmt: skip


_running_extremum("cummax", np.maximum)
_running_extremum("cummin", np.minimum)


@op("add_values(self, indices; size, dim)", publish=(), jvp="linear")
def add_values(x: Any, indices: Any, *, size: Any, dim: int) -> Any:
    """Zeros of `size` with the values added where `indices` says, along `dim`."""
    if not size:
        return x.copy()
    out = np.zeros(size, x.dtype)
    where = list(np.indices(indices.shape, sparse=True))
    where[dim] = indices
    np.add.at(out, tuple(where), x)
    return out


@add_values.grad("self")
def _(F: Any, grad: Any, indices: Any, *, dim: int) -> Any:
    return F.take_values(grad, indices, dim=dim, keepdim=True)


# -- sums of exponentials


def _logcumsumexp_jvp(F: Any, self: Any, self_t: Any, result: Any, *, dim: int) -> Any:
    """The sums of ``exp(self) * self_t``, divided by those of ``exp(self)``, without overflow."""
    if not self.shape:
        return self_t
    if is_complex(self):
        return F.exp(F.logcumsumexp(F.log(self_t) + self, dim) - result)
    # As in the rule below: the sums of positive and negative terms, as logarithms.
    size = F.log(F.abs(self_t))
    parts = [
        F.exp(F.logcumsumexp(logs + self, dim) - result)
        for logs in (F.where(self_t > 0, size, _LOWEST), F.where(self_t < 0, size, _LOWEST))
    ]
    return parts[0] - parts[1]


_LOWEST = -6e4
"""Stands for the logarithm of 0: its exponential is 0 in every type, and -inf would breed nan."""


@op("logcumsumexp(self; dim)", jvp=_logcumsumexp_jvp)
@contiguous
def logcumsumexp(x: Any, *, dim: int) -> Any:
    """The logarithm of `cumsum` of the exponentials, without overflow."""
    dim = wrap_dim(dim, x.ndim)
    if x.dtype.kind in "biu":
        raise NotImplementedError(
            f"\"logcumsumexp_out_cpu\" not implemented for '{scalar_name(x.dtype)}'"
        )
    if x.ndim == 0:
        return x.copy()
    if x.dtype.kind == "c":
        top = np.max(x.real, axis=dim, keepdims=True, initial=-np.inf)
        top = np.where(np.isfinite(top), top, 0)
        return np.log(np.cumsum(np.exp(x - top), axis=dim)) + top
    wide = x.astype(_WIDER.get(x.dtype.name, x.dtype))
    return np.logaddexp.accumulate(wide, axis=dim).astype(x.dtype)


@logcumsumexp.grad("self")
def _(F: Any, grad: Any, self: Any, result: Any, *, dim: int) -> Any:
    if not self.shape:
        return grad
    if is_complex(self):
        logs = F.log(F.conj(grad)) - result
        return F.conj(F.exp(F.flip(F.logcumsumexp(F.flip(logs, (dim,)), dim), (dim,)) + self))
    # grad / exp(result) may overflow: its positive and negative part are summed as logarithms.
    size = F.log(F.abs(grad))
    parts = [
        F.exp(F.flip(F.logcumsumexp(F.flip(logs - result, (dim,)), dim), (dim,)) + self)
        for logs in (F.where(grad > 0, size, _LOWEST), F.where(grad < 0, size, _LOWEST))
    ]
    return parts[0] - parts[1]
