"""Reductions: sums, means, products, extrema, norms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from clew.kernels.gather import put_along, take_along
from clew.kernels.half import narrow
from clew.kernels.pointwise import MANY
from clew.kernels.reduce import kept, sums
from clew.op import op
from clew.ops.layout import laid_out_like
from clew.ops.rules import conj, count, keep_dims, numpy_dtype, wrap_dim, wrap_dims
from clew.packing import INDICES
from clew.promotion import Refusal, no_kernel


def _sum(x: Any, axis: Any, keepdims: Any, dtype: Any) -> Any:
    """Sums of integers are int64; halves are added in single precision."""
    if dtype is None and x.size < MANY and x.dtype.char in "fdFD":  # NumPy adds as it is
        return np.add.reduce(x, axis=axis, keepdims=keepdims)
    if dtype is not None:
        x = x.astype(numpy_dtype(dtype), copy=False)
    elif x.dtype.kind in "biu":
        return np.add.reduce(x, axis=axis, keepdims=keepdims, dtype=np.int64)
    if x.dtype.kind not in "fV":
        return np.add.reduce(x, axis=axis, keepdims=keepdims)
    return narrow(_total(x, axis, keepdims), x.dtype)


def _total(x: Any, axis: Any, keepdims: Any) -> Any:
    """The sum of floating or complex numbers; of halves in single precision."""
    total = sums(x, axis)
    if total is None:
        kind = np.float32 if x.dtype.itemsize == 2 else x.dtype
        return np.add.reduce(x, axis=axis, keepdims=keepdims, dtype=kind)
    return total.reshape(kept(x.shape, axis)) if keepdims else total


@op("sum_all(self; *, dtype=None)", node="SumBackward0", publish=(), jvp="linear")
def sum_all(x: Any, *, dtype: Any) -> Any:
    """The sum of all elements."""
    return _sum(x, None, False, dtype)


@sum_all.grad("self")
def _(F: Any, grad: Any, self_shape: Any) -> Any:
    return F.expand(grad, size=self_shape)


@op("sum(self; dim=None, keepdim=False, *, dtype=None)", node="SumBackward1", publish=(),
    jvp="linear")  # fmt: skip
def sum(x: Any, *, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """The sum over `dim`, an int or a tuple of them; over all without."""
    return np.asarray(_sum(x, wrap_dims(dim, x.ndim), keepdim, dtype), order="C")


@sum.grad("self")
def _(F: Any, grad: Any, self_shape: Any, *, dim: Any, keepdim: bool) -> Any:
    return F.expand(keep_dims(F, grad, self_shape, dim, keepdim), size=self_shape)


@op("sum_to_size(self; size)", publish=(), jvp="linear")
def sum_to_size(x: Any, *, size: Any) -> Any:
    """Sum until the shape is `size`: what undoes broadcasting."""
    extra = x.ndim - len(size)
    axes = tuple(range(extra)) + tuple(
        extra + i for i, n in enumerate(size) if n == 1 and x.shape[extra + i] != 1
    )
    total = sums(x, axes) if axes and x.itemsize > 2 else None
    if total is None:
        total = np.sum(x, axis=axes, keepdims=True, dtype=x.dtype)
    return np.asarray(total.reshape(size), order="C")


@sum_to_size.grad("self")
def _(F: Any, grad: Any, self_shape: Any, *, size: Any) -> Any:
    extra = len(self_shape) - len(size)
    return F.expand(F.reshape(grad, (1,) * extra + tuple(size)), self_shape)


def _mean(x: Any, axis: Any, keepdims: bool, dtype: Any) -> Any:
    if dtype is not None:
        x = x.astype(numpy_dtype(dtype), copy=False)
    if x.dtype.kind not in "fcV":
        from clew.dtypes import scalar_name

        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or "
            f"complex dtype. Got: {scalar_name(x.dtype)}"
        )
    n = x.size if axis is None else math.prod([x.shape[a] for a in axis])
    total = _total(x, axis, keepdims)
    return narrow(np.true_divide(total, n, dtype=total.dtype), x.dtype)


@op("mean_all(self; *, dtype=None)", node="MeanBackward0", publish=(), jvp="linear")
def mean_all(x: Any, *, dtype: Any) -> Any:
    """The mean of all elements."""
    return _mean(x, None, False, dtype)


@mean_all.grad("self")
def _(F: Any, grad: Any, self_shape: Any) -> Any:
    return _spread(F, grad, self_shape, count(self_shape, None))


def _spread(F: Any, grad: Any, shape: Any, n: int) -> Any:
    """``expand(grad, shape) / n``, as PyTorch records it; of large arrays few elements are divided
    (small ones may be seen and written to, so they lie as PyTorch's)."""
    if grad.__class__ is np.ndarray:
        if math.prod(shape) >= MANY:
            return F.expand(grad / n, size=shape)
        if not grad.ndim and grad.itemsize > 2:
            return np.full(shape, grad / n, grad.dtype)
    return F.div(F.expand(grad, size=shape), n)


@op("mean(self; dim=None, keepdim=False, *, dtype=None)", node="MeanBackward1", publish=(),
    jvp="linear")  # fmt: skip
def mean(x: Any, *, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """The mean over `dim`, an int or a tuple of them; over all without."""
    return np.asarray(_mean(x, wrap_dims(dim, x.ndim), keepdim, dtype), order="C")


@mean.grad("self")
def _(F: Any, grad: Any, self_shape: Any, *, dim: Any, keepdim: bool) -> Any:
    each = keep_dims(F, grad, self_shape, dim, keepdim)
    return _spread(F, each, self_shape, max(count(self_shape, dim), 1))


# -- extrema


def _no_empty(x: Any, name: str) -> None:
    if x.size == 0:
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
            "reduction dim with the 'dim' argument."
        )


def _extremum_of_all(name: str, function: Any) -> Any:
    refusal = no_kernel(f"{name}_all")

    def forward(x: Any) -> Any:
        _no_empty(x, name)
        refusal.check(x)
        return function(x)

    def rule(F: Any, grad: Any, self: Any, result: Any) -> Any:
        return _evenly(F, grad, self, result)

    return op(
        f"{name}_all(self)", forward, doc=f"The {name} of all elements.", publish=(),
        node=f"{name.capitalize()}Backward1", self=rule,
    )  # fmt: skip


def _evenly(F: Any, grad: Any, x: Any, extremum: Any) -> Any:
    """The gradient of an extremum, shared evenly by the elements that reach it."""
    mask = F.logical_or(F.eq(x, extremum), F.logical_and(F.isnan(x), F.isnan(extremum)))
    return F.masked_fill_tensor(F.zeros_like(x), mask, F.div(grad, F.sum_all(mask)))


max_all = _extremum_of_all("max", np.max)
min_all = _extremum_of_all("min", np.min)


def _extremum_with_index(name: str, argument: Any) -> Any:
    refusal = Refusal(f"{name}(): does not support complex input", RuntimeError)

    def forward(x: Any, *, dim: int, keepdim: bool) -> Any:
        refusal.check(x)
        d = wrap_dim(dim, x.ndim)
        if x.ndim == 0:
            return x.copy(), np.zeros((), np.int64)
        if x.shape[d] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")
        index = argument(x, axis=d, keepdims=True)
        values = take_along(x, d, index)
        if not keepdim:
            shape = x.shape[:d] + x.shape[d + 1 :]
            values, index = values.reshape(shape), index.reshape(shape)
        return np.asarray(values, order="C"), np.asarray(index, np.int64, order="C")

    def rule(F: Any, grad: Any, self_shape: Any, indices: Any, *, dim: int, keepdim: bool) -> Any:
        return F.put_values(grad, indices, size=self_shape, dim=dim, keepdim=keepdim)

    return op(
        f"{name}_dim(self; dim, keepdim=False) -> values, indices", forward, publish=(),
        doc=f"The {name} along `dim` and where it stands.", node=f"{name.capitalize()}Backward0",
        no_grad_outputs=(1,), self=rule, packings={"indices": INDICES},
    )  # fmt: skip


max_dim = _extremum_with_index("max", np.argmax)
min_dim = _extremum_with_index("min", np.argmin)


@op("put_values(self, indices; size, dim, keepdim)", publish=(), jvp="linear")
def put_values(x: Any, indices: Any, *, size: Any, dim: int, keepdim: bool) -> Any:
    """Zeros of `size` with the values put where `indices` says, along `dim`."""
    out = np.zeros(size, x.dtype)
    if not size:
        return x.reshape(())
    dim = wrap_dim(dim, out.ndim)
    if not keepdim:
        shape = (*size[:dim], 1, *size[dim + 1 :])
        x, indices = x.reshape(shape), indices.reshape(shape)
    put_along(out, dim, indices, x)
    return out


@put_values.grad("self")
def _(F: Any, grad: Any, indices: Any, *, dim: int, keepdim: bool) -> Any:
    return F.take_values(grad, indices, dim=dim, keepdim=keepdim)


@op("take_values(self, indices; dim, keepdim)", publish=(), jvp="linear")
def take_values(x: Any, indices: Any, *, dim: int, keepdim: bool) -> Any:
    """The values that `indices` names along `dim`."""
    if x.ndim == 0:
        return x.copy()
    if keepdim:
        return np.take_along_axis(x, indices, dim)
    return np.squeeze(np.take_along_axis(x, np.expand_dims(indices, dim), dim), dim)


@take_values.grad("self")
def _(F: Any, grad: Any, self_shape: Any, indices: Any, *, dim: int, keepdim: bool) -> Any:
    if keepdim:  # then there may be several along `dim`, and some the same
        return F.add_values(grad, indices, size=self_shape, dim=dim)
    return F.put_values(grad, indices, size=self_shape, dim=dim, keepdim=False)


def _extrema(name: str, function: Any) -> Any:
    refusal = no_kernel(f"{name[1:]}_values_cpu")

    def forward(x: Any, *, dim: Any, keepdim: bool) -> Any:
        dims = wrap_dims(dim, x.ndim)
        for d in dim if isinstance(dim, (tuple, list)) else (dim,):
            if d is not None and x.ndim and x.shape[d] == 0:
                raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")
        if dim in ((), None):
            _no_empty(x, name)
        refusal.check(x)
        return np.asarray(function(x, axis=dims, keepdims=keepdim), order="C")

    def rule(F: Any, grad: Any, self: Any, result: Any, *, dim: Any, keepdim: bool) -> Any:
        shape = tuple(self.shape)
        if not keepdim:
            dims = wrap_dims(dim, len(shape))
            kept = tuple(1 if i in dims else n for i, n in enumerate(shape))
            grad, result = F.reshape(grad, kept), F.reshape(result, kept)
        mask = F.eq(self, result)
        return F.mul(F.div(grad, F.sum(mask, dim, keepdim=True)), mask)

    return op(
        f"{name}(self; dim=(), keepdim=False)", forward, self=rule,
        doc=f"The extremum over `dim`; equal elements share the gradient (see `{name}`).",
    )  # fmt: skip


amax = _extrema("amax", np.max)
amin = _extrema("amin", np.min)


def _index_of(name: str, function: Any) -> Any:
    def forward(x: Any, *, dim: Any, keepdim: bool) -> Any:
        if x.dtype.kind in "bc":
            what = "complex" if x.dtype.kind == "c" else "bool"
            raise RuntimeError(f"{name}(): does not support {what} input")
        if dim is None:
            if x.size == 0:
                raise IndexError(
                    f"{name}(): Expected reduction dim to be specified for input.numel() == 0. "
                    "Specify the reduction dim with the 'dim' argument."
                )
            index = np.asarray(function(x))
            return index.reshape((1,) * x.ndim) if keepdim else index
        d = wrap_dim(dim, x.ndim)
        if x.ndim == 0:
            return np.zeros((), np.int64)
        if x.shape[d] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")
        return np.asarray(function(x, axis=d, keepdims=keepdim))

    return op(f"{name}(self; dim=None, keepdim=False)", forward, doc="Where the extremum stands.")


argmax = _index_of("argmax", np.argmax)
argmin = _index_of("argmin", np.argmin)


# -- any, all, counting


def _logical(name: str, function: Any) -> Any:
    def forward(x: Any, *, dim: Any, keepdim: bool) -> Any:
        # Other than in sums, no dimensions are none.
        axes = () if isinstance(dim, Sequence) and not dim else wrap_dims(dim, x.ndim)
        result = np.asarray(function(x, axis=axes, keepdims=keepdim), order="C")
        return result.astype(np.uint8) if x.dtype == np.uint8 else result

    return op(f"{name}(self; dim=None, keepdim=False)", forward, doc=f"Whether {name} are true.")


any_ = _logical("any", np.any)
all_ = _logical("all", np.all)


# -- products


@op("prod_all(self; *, dtype=None)", node="ProdBackward0", publish=())
def prod_all(x: Any, *, dtype: Any) -> Any:
    """The product of all elements."""
    return _prod(x, None, False, dtype)


@prod_all.grad("self")
def _(F: Any, grad: Any, self: Any, result: Any) -> Any:
    if not self.shape:
        return F.clone(grad, memory_format=None)
    flat = F.reshape(self, (-1,))
    others = F.reshape(F.products_of_others(flat, result, dim=0), tuple(self.shape))
    product = grad * conj(F, others)
    if self.__class__ is np.ndarray and np.count_nonzero(self) != self.size - 1:
        return laid_out_like(self, product)  # as PyTorch's, which then computes with `self` itself
    return product


@op("prod(self; dim, keepdim=False, *, dtype=None)", node="ProdBackward1", publish=())
def prod(x: Any, *, dim: int, keepdim: bool, dtype: Any) -> Any:
    """The product along `dim`."""
    product = _prod(x, wrap_dim(dim, x.ndim) if x.ndim else None, keepdim, dtype)
    return np.asarray(product, order="C")


@prod.grad("self")
def _(F: Any, grad: Any, self: Any, result: Any, *, dim: int, keepdim: bool) -> Any:
    shape = tuple(self.shape)
    if not shape:
        return F.clone(grad, memory_format=None)
    whole, product = (keep_dims(F, x, shape, dim, keepdim) for x in (grad, result))
    values = getattr(self, "_array", self)
    if shape[dim] == 1 and values.__class__ is np.ndarray and not values.all():
        return whole  # laid out as it is, as PyTorch has it where it cannot divide by `self`
    return F.mul(whole, conj(F, F.products_of_others(self, product, dim=dim)))


def _prod(x: Any, axis: Any, keepdims: bool, dtype: Any) -> Any:
    if dtype is not None:
        x = x.astype(numpy_dtype(dtype), copy=False)
    kind = np.int64 if x.dtype.kind in "biu" else x.dtype
    return np.prod(x, axis=axis, keepdims=keepdims, dtype=kind)


@op("products_of_others(self, product=None; dim)", publish=())
def products_of_others(x: Any, product: Any = None, *, dim: int) -> Any:
    """For each element the product of the others along `dim`.

    It is the `product` of all divided by the element, if that is given and no element is zero.
    That is a number for each example, if it has fewer dimensions.
    """
    if product is not None and np.all(x):
        return product.reshape(product.shape + (1,) * (x.ndim - product.ndim)) / x
    before, after = np.ones_like(x), np.ones_like(x)
    n = x.shape[dim]
    ahead: list[Any] = [slice(None)] * x.ndim
    behind: list[Any] = [slice(None)] * x.ndim
    for i in range(1, n):
        ahead[dim], behind[dim] = i, i - 1
        before[tuple(ahead)] = before[tuple(behind)] * x[tuple(behind)]
        ahead[dim], behind[dim] = n - 1 - i, n - i
        after[tuple(ahead)] = after[tuple(behind)] * x[tuple(behind)]
    return before * after


@products_of_others.grad("self")
def _(F: Any, grad: Any, self: Any, *, dim: int) -> Any:
    # d(prod of all but i)/dx_j is the product of all but i and j.
    n = self.shape[dim]
    total = F.zeros_like(self)
    for i in range(n):
        chosen = F.one_slice(F.zeros_like(self), i, dim=dim, value=1)
        rest = F.where(F.eq(chosen, 1), F.ones_like(self), self)
        others = F.products_of_others(rest, dim=dim) * (1 - chosen)
        total = total + conj(F, others) * F.sum(grad * chosen, dim, keepdim=True)
    return total


@op("one_slice(self; index, dim, value)", publish=())
def one_slice(x: Any, *, index: int, dim: int, value: Any) -> Any:
    """A copy of `self` with one slice along `dim` set to a constant; serves rules only."""
    out = x.copy()
    where: list[Any] = [slice(None)] * x.ndim
    where[dim] = index
    out[tuple(where)] = value
    return out
