"""Indexing with tensors: ``x[indices]``, ``x[indices] = values``, masks, flat positions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from clew.dtypes import scalar_name
from clew.kernels.scatter import add_at
from clew.op import op
from clew.ops.layout import copy_alike, in_order_of, zeros_in_order
from clew.ops.scalars import checked_number
from clew.storage import element_strides, refuse_overlap

INTEGERS = frozenset(map(np.dtype, (np.int64, np.int32)))
"""The types of an index by positions."""

MASKS = frozenset(map(np.dtype, (np.bool_, np.uint8)))
"""The types of an index by yes and no."""

# -- the index itself


def as_key(shape: tuple[int, ...], indices: Sequence[Any]) -> tuple[Any, ...]:
    """The NumPy index of what PyTorch calls `indices`: arrays, None for a whole dimension.

    Raises:
        IndexError: too many indices, a type that cannot index, or a mask of another shape.
    """
    key: list[Any] = []
    dim = 0
    for index in indices:
        if index is None:
            key.append(slice(None))
            dim += 1
            continue
        if index.dtype == np.uint8:
            _warn_uint8_mask()
            index = index.astype(np.bool_)
        if index.dtype == np.bool_:
            _check_mask(index, shape, dim)
            dim += index.ndim
        elif index.dtype in INTEGERS:
            if 0 in shape and 0 not in shape[dim : dim + 1]:
                index = np.zeros_like(index)  # where there is nothing to take, any number will do
            dim += 1
        else:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        key.append(index)
    if dim > len(shape):
        raise IndexError(f"too many indices for tensor of dimension {len(shape)} (got {dim})")
    return tuple(key)


def _warn_uint8_mask() -> None:
    warnings.warn(
        "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
        UserWarning,
        stacklevel=2,
    )


def _check_mask(mask: np.ndarray, shape: tuple[int, ...], dim: int) -> None:
    for i, n in enumerate(mask.shape):
        if dim + i >= len(shape) or shape[dim + i] != n:
            raise IndexError(
                f"The shape of the mask {list(mask.shape)} at index {i} does not match the shape "
                f"of the indexed tensor {list(shape)} at index {dim + i}"
            )


def explain(shape: tuple[int, ...], key: tuple[Any, ...]) -> IndexError:
    """PyTorch's words for what NumPy refused; dimensions count among those that are indexed."""
    dim = 0
    shapes: list[tuple[int, ...]] = []
    outside = ""
    for k in key:
        if isinstance(k, slice):
            dim += 1
        elif k.dtype == np.bool_:
            shapes += [(int(np.count_nonzero(k)),)] * k.ndim
            dim += k.ndim
        else:
            n = shape[dim]
            wrong = k[(k < -n) | (k >= n)]
            if wrong.size and not n:
                return IndexError("index is out of bounds for dimension with size 0")
            if wrong.size and not outside:
                outside = (
                    f"index {int(wrong.flat[0])} is out of bounds for dimension {len(shapes)} with "
                    f"size {n}"
                )
            shapes.append(k.shape)
            dim += 1
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        listed = ", ".join(str(list(s)) for s in shapes)
        return IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {listed}"
        )
    return IndexError(outside)


# -- reading


@op("index(self, *indices)", publish=(), gaps=True, jvp="linear")
def index(x: Any, *indices: Any) -> Any:
    """The elements that integer arrays and masks name, None standing for a whole dimension."""
    key = as_key(x.shape, indices)
    if not x.size:
        _refuse_empty(x, key)
    try:
        return in_order_of(_read(x, key), x, key)
    except IndexError:
        raise explain(x.shape, key) from None


def _refuse_empty(x: np.ndarray, key: tuple[Any, ...]) -> None:
    """Refuse to look something up along a dimension of size 0, though there is nothing to find."""
    looked_up = [(d, k) for d, k in enumerate(key) if not isinstance(k, slice)]
    if (
        all(k.size and k.dtype != np.bool_ for _, k in looked_up)
        and any(not x.shape[d] for d, _ in looked_up)
    ):  # fmt: skip
        raise IndexError("index is out of bounds for dimension with size 0")


def _read(x: np.ndarray, key: tuple[Any, ...]) -> Any:
    """``x[key]`` by the quickest of NumPy's ways."""
    last = key[-1]
    if len(key) == 1 and last.dtype == np.bool_ and last.shape == x.shape:
        return x.reshape(-1).take(np.flatnonzero(last))
    if last.dtype != np.bool_ and all(isinstance(k, slice) for k in key[:-1]):
        return x.take(last, axis=len(key) - 1)
    return x[key]


@index.grad("self")
def _(F: Any, grad: Any, self_shape: Any, indices: Any) -> Any:
    return F.index_backward(grad, indices, size=self_shape)


@op("index_backward(self, *indices; size)", publish=(), gaps=True, node="IndexPutBackward0",
    jvp="linear")  # fmt: skip
def index_backward(grad: Any, *indices: Any, size: Any) -> Any:
    """Zeros of `size` with `grad` added where `indices` point: the adjoint of `index`."""
    out = np.zeros(size, grad.dtype)
    key = as_key(size, indices)
    if all(isinstance(k, slice) or k.dtype == np.bool_ for k in key):
        out[key] = grad
    else:
        add_at(out, key, grad)
    return out


@index_backward.grad("self")
def _(F: Any, grad: Any, indices: Any) -> Any:
    return F.index(grad, indices)


# -- writing


def _write_at(x: Any, values: Any, *indices: Any, accumulate: bool) -> None:
    """``x[indices] = values``, or ``+=``."""
    key = as_key(x.shape, indices)
    if isinstance(values, np.ndarray):
        if not accumulate and is_fill(x, key, values):
            values = checked_number(values.item(), x.dtype)
        else:
            refuse_overlap(x, values, same=False)
            for index in indices:
                if index.__class__ is np.ndarray and index.dtype is x.dtype:
                    refuse_overlap(x, index, same=False)
            if not x.size:
                _refuse_outside(x, key)
            _check_values(x, values)
    else:
        values = checked_number(values, x.dtype, rounds=True)
    try:
        if accumulate:
            add_at(x, key, np.asarray(values))
        else:
            x[key] = values
    except IndexError:
        raise explain(x.shape, key) from None
    except ValueError:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(np.shape(values))} cannot be broadcast "
            f"to indexing result of shape {list(_result_shape(x, key))}"
        ) from None


def _result_shape(x: np.ndarray, key: tuple[Any, ...]) -> tuple[int, ...]:
    shape: tuple[int, ...] = np.broadcast_to(np.empty((), np.bool_), x.shape)[key].shape
    return shape


def _refuse_outside(x: np.ndarray, key: tuple[Any, ...]) -> None:
    try:
        x[key]
    except IndexError:
        raise explain(x.shape, key) from None


def is_fill(x: np.ndarray, key: tuple[Any, ...], values: np.ndarray) -> bool:
    """Whether PyTorch takes this for `masked_fill_`: one number for a mask."""
    one_mask = len(key) == 1 and not isinstance(key[0], slice) and key[0].dtype == np.bool_
    return one_mask and values.size == 1


def _check_values(x: np.ndarray, values: np.ndarray) -> None:
    """Values must have the type of what they are written to."""
    if values.dtype != x.dtype:
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{scalar_name(x.dtype)} for the destination and {scalar_name(values.dtype)} for the "
            "source."
        )


@op("index_put(self, values, *indices; accumulate=False)", inplace=True, write=_write_at,
    order="self, indices, values, accumulate", gaps=True, jvp="linear")  # fmt: skip
def index_put(x: Any, values: Any, *indices: Any, accumulate: bool) -> Any:
    """`self` with `values` where `indices` point, or with them added there."""
    out = copy_alike(x)
    _write_at(out, values, *indices, accumulate=accumulate)
    return out


@index_put.grad("self")
def _(F: Any, grad: Any, indices: Any, *, accumulate: bool) -> Any:
    return grad if accumulate else F.index_put(grad, indices, 0)


@index_put.grad("values")
def _(F: Any, grad: Any, indices: Any) -> Any:
    return F.index(grad, indices)


# -- flat positions


def _flat_places(name: str, x: Any, index: Any) -> Any:
    """`index` as positions in ``x.reshape(-1)``, counted from the front."""
    if index.dtype != np.int64:
        raise RuntimeError(
            f"{name}(): Expected a long tensor for index, but got {scalar_name(index.dtype)}"
        )
    n = x.size
    outside = index[(index < -n) | (index >= n)]
    if outside.size:
        raise IndexError(
            f"out of range: tried to access index {outside.flat[0]} on a tensor of {n} elements."
        )
    return np.where(index < 0, index + n, index)


@op("take(self, index)", tensors_only=True, jvp="linear")
def take(x: Any, index: Any) -> Any:
    """The elements at the flat positions that `index` names, in its shape."""
    if index.size and not x.size:
        raise IndexError("take(): tried to take from an empty tensor")
    return x.reshape(-1).take(_flat_places("take", x, index))


@take.grad("self")
def _(F: Any, grad: Any, self: Any, index: Any) -> Any:
    return F.put(F.zeros_like(self), index, grad, accumulate=True)


def _write_put(x: Any, index: Any, source: Any, *, accumulate: bool) -> None:
    if index.size != source.size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got "
            f"source.numel() = {source.size}, index.numel() = {index.size}"
        )
    if x.dtype != source.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{scalar_name(x.dtype)} and source.dtype = {scalar_name(source.dtype)}"
        )
    refuse_overlap(x, source, same=False)
    flat = x.reshape(-1)
    places, values = _flat_places("put_", x, index).reshape(-1), source.reshape(-1)
    if accumulate:
        np.add.at(flat, places, values)
    else:
        flat[places] = values
    if not x.flags.c_contiguous:
        x[...] = flat.reshape(x.shape)


@op("put(self, index, source; accumulate=False)", tensors_only=True, inplace=True,
    write=_write_put, jvp="linear")  # fmt: skip
def put(x: Any, index: Any, source: Any, *, accumulate: bool) -> Any:
    """`self` with `source` at the flat positions that `index` names, or with it added there."""
    out = copy_alike(x)
    _write_put(out, index, source, accumulate=accumulate)
    return out


@put.grad("self")
def _(F: Any, grad: Any, index: Any, source_shape: Any, *, accumulate: bool) -> Any:
    return grad if accumulate else F.put(grad, index, F.full(grad, size=source_shape, value=0))


@put.grad("source")
def _(F: Any, grad: Any, index: Any, source: Any) -> Any:
    return F.reshape(F.take(grad, index), tuple(source.shape))


# -- masks


def _broadcast(x: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both in their common shape.

    Raises:
        RuntimeError: they have none.
    """
    for dim in range(1, min(x.ndim, mask.ndim) + 1):
        m, n = mask.shape[-dim], x.shape[-dim]
        if m != n and 1 not in (m, n):
            raise RuntimeError(
                f"The size of tensor a ({m}) must match the size of tensor b ({n}) at "
                f"non-singleton dimension {max(x.ndim, mask.ndim) - dim}"
            )
    shape = np.broadcast_shapes(x.shape, mask.shape)
    return np.broadcast_to(x, shape), np.broadcast_to(mask, shape)


@op("masked_select(self, mask)", tensors_only=True, jvp="linear")
def masked_select(x: Any, mask: Any) -> Any:
    """The elements of `self` where `mask` is true, in one dimension; the two broadcast."""
    if mask.dtype != np.bool_:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    x, mask = _broadcast(x, mask)
    return x.reshape(-1).take(np.flatnonzero(mask))


@masked_select.grad("self")
def _(F: Any, grad: Any, self: Any, mask: Any) -> Any:
    size = np.broadcast_shapes(tuple(self.shape), tuple(mask.shape))
    stride: Any = ()  # unless somebody only records what is computed
    if self.__class__ is np.ndarray:
        stride = element_strides(self)
    elif hasattr(self, "stride"):
        stride = self.stride()
    return F.masked_select_backward(grad, mask, size=size, stride=stride)


@op("masked_select_backward(self, mask; size, stride)", publish=(), jvp="linear",
    node="MaskedScatterBackward0")  # fmt: skip
def masked_select_backward(grad: Any, mask: Any, *, size: Any, stride: Any) -> Any:
    """Zeros of `size` with `grad` where `mask` is true: the adjoint of `masked_select`.

    They lie in memory as the input, of these strides, expanded to `size`.
    """
    out = zeros_in_order(size, stride, grad.dtype)
    out[np.broadcast_to(mask, size)] = grad
    return out


@masked_select_backward.grad("self")
def _(F: Any, grad: Any, mask: Any) -> Any:
    return F.masked_select(grad, mask)


def _write_masked(x: Any, mask: Any, source: Any) -> None:
    if x.dtype != source.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got"
            f"{scalar_name(x.dtype)} and {scalar_name(source.dtype)}"
        )
    if mask.dtype != np.bool_:
        raise RuntimeError(
            "masked_scatter_ only supports boolean masks, but got mask with dtype "
            f"{scalar_name(mask.dtype)}"
        )
    if mask.ndim > x.ndim:
        raise RuntimeError(
            f"expand(CPUBoolType{{{list(mask.shape)}}}, size={list(x.shape)}): the number of "
            f"sizes provided ({x.ndim}) must be greater or equal to the number of dimensions in "
            f"the tensor ({mask.ndim})"
        )
    mask = np.broadcast_to(mask, x.shape)
    count = int(np.count_nonzero(mask))
    if source.size < count:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    x[mask] = source.reshape(-1)[:count]


@op("masked_scatter(self, mask, source)", tensors_only=True, inplace=True, write=_write_masked,
    jvp="linear")  # fmt: skip
def masked_scatter(x: Any, mask: Any, source: Any) -> Any:
    """`self` with the elements of `source`, in order, where `mask` is true."""
    x, mask = _broadcast(x, mask)
    out = copy_alike(x)
    _write_masked(out, mask, source)
    return out


@masked_scatter.grad("self")
def _(F: Any, grad: Any, mask: Any) -> Any:
    return F.masked_fill(grad, mask, 0)


@masked_scatter.grad("source")
def _(F: Any, grad: Any, mask: Any, source_shape: Any) -> Any:
    return F.masked_scatter_backward(grad, mask, size=source_shape)


@op("masked_scatter_backward(self, mask; size)", publish=(), jvp="linear")
def masked_scatter_backward(grad: Any, mask: Any, *, size: Any) -> Any:
    """The elements of `grad` where `mask` is true, then zeros, in the shape `size`."""
    out = np.zeros(size, grad.dtype)
    chosen = grad[np.broadcast_to(mask, grad.shape)]
    out.reshape(-1)[: chosen.size] = chosen
    return out


@masked_scatter_backward.grad("self")
def _(F: Any, grad: Any, self_shape: Any, mask: Any) -> Any:
    return F.masked_scatter(F.full(grad, size=self_shape, value=0), mask, grad)
