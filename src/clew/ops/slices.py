"""Reading and writing whole slices that a vector of indices names: the index_* family."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from clew.dtypes import scalar_name
from clew.kernels import gather as kernel
from clew.kernels import rows
from clew.op import op
from clew.ops.index import INTEGERS
from clew.ops.layout import copy_alike
from clew.ops.rules import wrap_dim
from clew.ops.scatter import once_for_zeros, reduce_grads
from clew.ops.strided import refuse_outside
from clew.storage import Geometry, flat_storage, geometry, refuse_overlap


@op("index_select(self, index; dim)", order="self, dim, index", tensors_only=True, jvp="linear")
def index_select(x: Any, index: Any, *, dim: int) -> Any:
    """The slices that `index` names along `dim`."""
    d = wrap_dim(dim, x.ndim)
    if index.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if index.dtype not in INTEGERS:
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if x.ndim == 0 and index.size != 1:
        raise RuntimeError(
            f"index_select(): Index to scalar can have only 1 value, got {index.size} value(s)"
        )
    if x.ndim > 1 and index.size and not x.shape[d]:
        raise RuntimeError("index_select(): self indexing axis dim should be positive")
    if rows.first_outside(index, x.shape[d] if x.ndim else 1) is not None:
        raise IndexError("index out of range in self")
    return rows.take_slices(x, d, index.reshape(-1)) if x.ndim else x.copy()


@index_select.grad("self")
def _(F: Any, grad: Any, self_shape: Any, index: Any, *, dim: int) -> Any:
    return F.index_select_backward(grad, index, size=self_shape, dim=dim)


@op("index_select_backward(self, index; size, dim)", publish=(), node="IndexAddBackward0",
    jvp="linear")  # fmt: skip
def index_select_backward(grad: Any, index: Any, *, size: Any, dim: int) -> Any:
    """Zeros of `size` with slices added where `index` points: the adjoint of `index_select`."""
    if not size:
        return grad.copy()
    return rows.index_add(np.zeros(size, grad.dtype), dim, index, grad)


@index_select_backward.grad("self")
def _(F: Any, grad: Any, index: Any, *, dim: int) -> Any:
    return F.index_select(grad, dim, index)


@op("index_add(self, index, source; dim, *, alpha=1)", order="self, dim, index, source",
    inplace=True, tensors_only=True, jvp="linear")  # fmt: skip
def index_add(x: Any, index: Any, source: Any, *, dim: int, alpha: Any) -> Any:
    """`self` with ``alpha`` times slice i of `source` added to slice ``index[i]`` along `dim`."""
    if alpha != 1:
        source = np.multiply(source, np.asarray(alpha).astype(x.dtype))
    return rows.index_add(x, wrap_dim(dim, x.ndim), index, source)


@index_add.grad("self")
def _(F: Any, grad: Any) -> Any:
    return grad


@index_add.grad("source")
def _(F: Any, grad: Any, index: Any, source: Any, *, dim: int, alpha: Any) -> Any:
    part = _as_source(F, F.index_select(grad, dim, index), source)
    return part if alpha == 1 else part * alpha


def _as_source(F: Any, part: Any, source: Any) -> Any:
    """The gradient of a source that may lack a dimension of size one."""
    shape = tuple(source.shape)
    return F.expand(part, shape) if shape else F.reshape(part, shape)


def _write_slices(x: Any, index: Any, source: Any, *, dim: int) -> None:
    d = wrap_dim(dim, x.ndim)
    _check_copy(x, index, source, d)
    refuse_overlap(x, source, same=False)
    if x.ndim:
        x[(slice(None),) * d + (index.reshape(-1),)] = source
    else:
        x[...] = source.reshape(())


@op("index_copy(self, index, source; dim)", order="self, dim, index, source", inplace=True,
    write=_write_slices, tensors_only=True, jvp="linear")  # fmt: skip
def index_copy(x: Any, index: Any, source: Any, *, dim: int) -> Any:
    """`self` with slice i of `source` in place of slice ``index[i]`` along `dim`."""
    out = copy_alike(x)
    _write_slices(out, index, source, dim=dim)
    return out


@index_copy.grad("self")
def _(F: Any, grad: Any, index: Any, *, dim: int) -> Any:
    return F.index_fill_value(grad, dim, index, 0)


@index_copy.grad("source")
def _(F: Any, grad: Any, index: Any, source: Any, *, dim: int) -> Any:
    return _as_source(F, F.index_select(grad, dim, index), source)


def _check_copy(x: Any, index: Any, source: Any, d: int) -> None:
    name = "index_copy_()"
    if index.ndim > 1:
        raise IndexError(f"{name}: Index should have dimension 1 or 0 (got {index.ndim})")
    if x.dtype != source.dtype:
        raise RuntimeError(
            f"{name}: self and source expected to have the same dtype, but got (self) "
            f"{scalar_name(x.dtype)} and (source) {scalar_name(source.dtype)}"
        )
    if index.dtype != np.int64:
        raise RuntimeError(
            f"{name}: Expected a long tensor for index, but got {scalar_name(index.dtype)}"
        )
    if source.ndim == 0 and index.size != 1:
        raise IndexError(
            f"{name}: When source is scalar, index should have one element (got {index.size})"
        )
    if source.ndim and x.ndim and source.ndim != x.ndim:
        raise IndexError(
            f"{name}: When source and destination are not scalars, their dimensionality must "
            f"match. Source dimensionality ({source.ndim}), destination dimensionality ({x.ndim})"
        )
    of_x, of_source = x.shape[:d] + x.shape[d + 1 :], source.shape[:d] + source.shape[d + 1 :]
    if of_x != of_source:
        raise RuntimeError(
            f"{name}: Source/destination tensor must have same slice shapes. Destination slice "
            f"shape: {' '.join(map(str, of_x))} at dimension {d} and source slice shape: "
            f"{' '.join(map(str, of_source))} at dimension 0."
        )
    if source.ndim and index.size != source.shape[d]:
        raise IndexError(
            f"{name}: Number of indices ({index.size}) should be equal to source.size(dim) "
            f"({source.shape[d]})"
        )
    n = x.shape[d] if x.ndim else 1
    outside = index[(index < 0) | (index >= n)]
    if outside.size:
        raise IndexError(
            f"{name}: index {outside.flat[0]} is out of bounds for dimension {d} with size {n}"
        )


def _fill_slices(x: Any, index: Any, value: Any, d: int) -> None:
    if index.dtype != np.int64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    if not x.size and index.size:
        # PyTorch looks at `x` as if it had a slice for each index, before it looks at the index.
        size, stride, offset = geometry(x)
        wide = Geometry(
            (*size[:d], index.size, *size[d + 1 :]), (*stride[:d], 0, *stride[d + 1 :]), offset
        )
        refuse_outside(wide, flat_storage(x))
        if not math.prod(wide.size):
            return
    n = x.shape[d] if x.ndim else 1
    outside = index[(index < -n) | (index >= n)]
    if outside.size:
        raise IndexError(
            f"index {outside.flat[0]} is out of bounds for dimension {d} with size {n}"
        )
    if x.ndim:
        x[(slice(None),) * d + (index.reshape(-1),)] = value
    elif index.size:
        x[...] = value


def _write_fill(x: Any, index: Any, *, dim: int, value: Any) -> None:
    _fill_slices(x, index, value, wrap_dim(dim, x.ndim))


@op("index_fill_value(self, index; dim, value)", order="self, dim, index, value", publish=(),
    inplace=True, write=_write_fill, label="index_fill", node="IndexFillBackward0",
    tensors_only=True)  # fmt: skip
def index_fill_value(x: Any, index: Any, *, dim: int, value: Any) -> Any:
    """`self` with a number in the slices that `index` names along `dim`."""
    out = copy_alike(x)
    _write_fill(out, index, dim=dim, value=value)
    return out


@index_fill_value.grad("self")
def _(F: Any, grad: Any, index: Any, *, dim: int) -> Any:
    return F.index_fill_value(grad, dim, index, 0)


def _write_fill_tensor(x: Any, index: Any, value: Any, *, dim: int) -> None:
    if value.ndim:
        raise RuntimeError(
            "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{value.ndim} dimension(s)."
        )
    _fill_slices(x, index, value, wrap_dim(dim, x.ndim))


@op("index_fill(self, index, value; dim)", order="self, dim, index, value", publish=(),
    inplace=True, write=_write_fill_tensor, node="IndexFillBackward1", jvp="linear")  # fmt: skip
def index_fill(x: Any, index: Any, value: Any, *, dim: int) -> Any:
    """`self` with a 0-d tensor in the slices that `index` names along `dim`."""
    out = copy_alike(x)
    _write_fill_tensor(out, index, value, dim=dim)
    return out


@index_fill.grad("self")
def _(F: Any, grad: Any, index: Any, *, dim: int) -> Any:
    return F.index_fill_value(grad, dim, index, 0)


@index_fill.grad("value")
def _(F: Any, grad: Any, index: Any, *, dim: int) -> Any:
    filled = F.index_fill_value(F.zeros_like(grad), dim, index, 1)
    return F.sum_all(F.where(filled == 1, grad, 0))


@op("index_reduce(self, index, source; dim, reduce, *, include_self=True)",
    order="self, dim, index, source, reduce", inplace=True, tensors_only=True)  # fmt: skip
def index_reduce(
    x: Any, index: Any, source: Any, *, dim: int, reduce: str, include_self: bool
) -> Any:
    """`self` combined with the slices of `source` that `index` sends to each slice along `dim`.

    `reduce` is prod, mean, amax or amin; `include_self` is as in `scatter_reduce`.
    """
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(
            "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got "
            f"{reduce}."
        )
    if x.dtype != source.dtype:
        raise RuntimeError(
            f"index_reduce_(): self ({scalar_name(x.dtype)}) and source "
            f"({scalar_name(source.dtype)}) must have the same scalar type"
        )
    d = wrap_dim(dim, x.ndim)
    shape = [1] * source.ndim
    if source.ndim:
        shape[d] = -1
    full = np.broadcast_to(index.reshape(shape), source.shape)
    return kernel.scatter_reduce(x, d, full, source, reduce, include_self)


@index_reduce.grad("self", "source")
def _(
    F: Any, grad: Any, self: Any, index: Any, source: Any, result: Any, *,
    dim: int, reduce: str, include_self: bool, need: Any,
) -> Any:  # fmt: skip
    shape = tuple(source.shape)
    column = [1] * len(shape)
    if shape:
        column[dim] = -1
    full = F.expand(F.reshape(index, tuple(column)), shape)
    of_self, of_source = reduce_grads(
        F, grad, self, full, source, result, dim, reduce, include_self
    )
    if reduce == "prod":
        of_source = once_for_zeros(
            F, of_source, source, full, result, dim, "index_reduce", "source"
        )
    return [of_self, of_source]
