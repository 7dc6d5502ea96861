"""Reading and writing along one dimension, element by element: gather and the scatter family."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.kernels import gather as kernel
from clew.op import op
from clew.ops.layout import copy_alike
from clew.ops.rules import wrap_dim

# -- an index of as many dimensions as the tensor


@op("gather(self, index; dim, sparse_grad=False)", order="self, dim, index",
    tensors_only=True, jvp="linear")  # fmt: skip
def gather(x: Any, index: Any, *, dim: int, sparse_grad: bool) -> Any:
    """The elements that `index` names along `dim`, in the shape of `index`."""
    return kernel.gather(x, wrap_dim(dim, x.ndim), index)


@gather.grad("self")
def _(F: Any, grad: Any, self: Any, index: Any, *, dim: int) -> Any:
    return F.gather_backward(grad, index, size=tuple(self.shape), dim=dim)


@op("gather_backward(self, index; size, dim)", publish=(), node="ScatterAddBackward0",
    jvp="linear")  # fmt: skip
def gather_backward(grad: Any, index: Any, *, size: Any, dim: int) -> Any:
    """Zeros of `size` with `grad` added where `index` points: the adjoint of `gather`."""
    return kernel.gather_backward(grad, size, wrap_dim(dim, len(size)), index)


@gather_backward.grad("self")
def _(F: Any, grad: Any, index: Any, *, dim: int) -> Any:
    return F.gather(grad, dim, index)


@op("scatter(self, index, src; dim)", order="self, dim, index, src", publish=(), inplace=True,
    tensors_only=True, jvp="linear")  # fmt: skip
def scatter(x: Any, index: Any, src: Any, *, dim: int) -> Any:
    """`self` with the elements of `src` where `index` points along `dim`."""
    return kernel.scatter(x, wrap_dim(dim, x.ndim), index, src)


@scatter.grad("self")
def _(F: Any, grad: Any, index: Any, *, dim: int) -> Any:
    return F.scatter_value(grad, dim, index, 0)


@scatter.grad("src")
def _(F: Any, grad: Any, index: Any, *, dim: int) -> Any:
    return F.gather(grad, dim, index)


@op("scatter_value(self, index; dim, value)", order="self, dim, index, value", publish=(),
    inplace=True, label="scatter", tensors_only=True, node="ScatterBackward1")  # fmt: skip
def scatter_value(x: Any, index: Any, *, dim: int, value: Any) -> Any:
    """`self` with a number where `index` points along `dim`."""
    return kernel.scatter(x, wrap_dim(dim, x.ndim), index, value)


@scatter_value.grad("self")
def _(F: Any, grad: Any, index: Any, *, dim: int) -> Any:
    return F.scatter_value(grad, dim, index, 0)


@op("scatter_combine(self, index, src; dim, reduce)", publish=(), inplace=True, label="scatter",
    node="torch::autograd::NotImplemented")  # fmt: skip
def scatter_combine(x: Any, index: Any, src: Any, *, dim: int, reduce: str) -> Any:
    """`self` with `src` (a tensor or a number) added or multiplied in where `index` points."""
    if reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    if not isinstance(src, np.ndarray):
        src = np.full(index.shape, src, x.dtype)
    name = "sum" if reduce == "add" else "prod"
    return kernel.scatter_reduce(x, wrap_dim(dim, x.ndim), index, src, name, True)


@scatter_combine.grad("self", "src")
def _(F: Any, grad: Any, *, need: Any) -> Any:
    raise RuntimeError("derivative for aten::scatter is not implemented")


@op("scatter_add(self, index, src; dim)", order="self, dim, index, src", inplace=True,
    tensors_only=True, jvp="linear")  # fmt: skip
def scatter_add(x: Any, index: Any, src: Any, *, dim: int) -> Any:
    """`self` with the elements of `src` added where `index` points along `dim`."""
    return kernel.scatter_add(x, wrap_dim(dim, x.ndim), index, src)


@scatter_add.grad("self")
def _(F: Any, grad: Any) -> Any:
    return grad


@scatter_add.grad("src")
def _(F: Any, grad: Any, index: Any, *, dim: int) -> Any:
    return F.gather(grad, dim, index)


@op("scatter_reduce(self, index, src; dim, reduce, *, include_self=True)",
    order="self, dim, index, src, reduce", inplace=True, tensors_only=True)  # fmt: skip
def scatter_reduce(
    x: Any, index: Any, src: Any, *, dim: int, reduce: str, include_self: bool
) -> Any:
    """`self` combined with the elements of `src` that `index` sends to each place along `dim`.

    `reduce` is sum, prod, mean, amax or amin; without `include_self` the old value of a place that
    receives something does not count.
    """
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    return kernel.scatter_reduce(x, wrap_dim(dim, x.ndim), index, src, reduce, include_self)


@scatter_reduce.grad("self", "src")
def _(
    F: Any, grad: Any, self: Any, index: Any, src: Any, result: Any, *,
    dim: int, reduce: str, include_self: bool, need: Any,
) -> Any:  # fmt: skip
    of_self, of_src = reduce_grads(F, grad, self, index, src, result, dim, reduce, include_self)
    if reduce == "prod":
        of_src = once_for_zeros(F, of_src, src, index, result, dim, "scatter_reduce", "src")
    return [of_self, of_src]


def once_for_zeros(
    F: Any, of_src: Any, src: Any, index: Any, result: Any, dim: int, name: str, source: str
) -> Any:
    """The gradient of a product's factors, which can be differentiated again only where at most
    one of the factors of a place is zero."""
    is_zero = F.cast_like(src == 0, of_src)
    zeros = F.scatter_add(F.zeros_like(result), dim, index, is_zero)
    text = (
        f"{name}(): Double backward is unsupported for {source} when >1 zeros in {source} are "
        "scattered to the same position in self"
    )
    return F.differentiable_once(of_src, zeros > 1, message=text)


@op("differentiable_once(self, refused; message)", publish=(), jvp="linear", node="Error")
def differentiable_once(x: Any, refused: Any, *, message: str) -> Any:
    """`self`, whose gradient raises if `refused` holds anywhere."""
    return copy_alike(x)


@differentiable_once.grad("self")
def _(F: Any, grad: Any, refused: Any, *, message: str) -> Any:
    return F.refuse_where(grad, refused, message=message)


@op("refuse_where(self, refused; message)", publish=(), jvp="linear",
    self=lambda F, grad: grad)  # fmt: skip
def refuse_where(x: Any, refused: Any, *, message: str) -> Any:
    """`self`.

    Raises:
        RuntimeError: `refused` holds somewhere.
    """
    if np.any(refused):
        raise RuntimeError(message)
    return copy_alike(x)


def reduce_grads(
    F: Any, grad: Any, self: Any, index: Any, src: Any, result: Any,
    dim: int, reduce: str, include_self: bool,
) -> list[Any]:  # fmt: skip
    """The gradients of `scatter_reduce` for `self` and `src`."""
    rule = {"sum": _sum_grads, "mean": _mean_grads, "prod": _prod_grads}.get(reduce, _tie_grads)
    of_self, of_src = rule(F, grad, self, index, src, result, dim, include_self)
    if not include_self:
        of_self = F.scatter_value(of_self, dim, index, 0)
    return [of_self, of_src]


def _sum_grads(
    F: Any, grad: Any, self: Any, index: Any, src: Any, result: Any, dim: int, include_self: bool
) -> tuple[Any, Any]:
    return grad, F.gather(grad, dim, index)


def _mean_grads(
    F: Any, grad: Any, self: Any, index: Any, src: Any, result: Any, dim: int, include_self: bool
) -> tuple[Any, Any]:
    start = F.ones_like(grad) if include_self else F.zeros_like(grad)
    count = F.scatter_add(start, dim, index, F.ones_like(src))
    share = grad / F.where(count == 0, 1, count)
    return share, F.gather(share, dim, index)


def _prod_grads(
    F: Any, grad: Any, self: Any, index: Any, src: Any, result: Any, dim: int, include_self: bool
) -> tuple[Any, Any]:
    """The product of the others: a division, except where the factor itself is zero."""

    def product(of_self: Any, of_src: Any) -> Any:
        return F.scatter_reduce(of_self, dim, index, of_src, "prod", include_self=include_self)

    whole_self = F.where(self == 0, 1, self)
    of_self = grad * product(whole_self, src) / whole_self
    is_zero = src == 0
    zeros = F.scatter_add(F.zeros_like(self), dim, index, F.cast_like(is_zero, src))
    only_zero = F.logical_and(is_zero, F.gather(zeros, dim, index) == 1)
    of_others = F.gather(grad * product(self, F.where(only_zero, 1, src)), dim, index)
    divided = F.gather(grad * result, dim, index) / F.where(is_zero, 1, src)
    return of_self, F.where(only_zero, of_others, divided)


def _tie_grads(
    F: Any, grad: Any, self: Any, index: Any, src: Any, result: Any, dim: int, include_self: bool
) -> tuple[Any, Any]:
    """Of a largest or smallest value: shared evenly among all that are equal to it."""
    self_wins = F.cast_like(self == result, grad)
    src_wins = F.cast_like(src == F.gather(result, dim, index), grad)
    share = grad / F.scatter_add(self_wins, dim, index, src_wins)
    return self_wins * share, src_wins * F.gather(share, dim, index)
