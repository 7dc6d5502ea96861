"""Indexing with tensors: ``x[indices]``, ``x[indices] = values``, masks, flat positions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from clew.dtypes import scalar_name
from clew.kernels.scatter import add_at
from clew.op import op

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
        elif index.dtype.name in ("int64", "int32"):
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


@op("index(self, *indices)", publish=(), jvp="linear")
def index(x: Any, *indices: Any) -> Any:
    """The elements that integer arrays and masks name, None standing for a whole dimension."""
    key = as_key(x.shape, indices)
    try:
        return _read(x, key)
    except IndexError:
        raise explain(x.shape, key) from None


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


@op("index_backward(self, *indices; size)", publish=(), node="IndexPutBackward0", jvp="linear")
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
    _check_values(x, values, key)
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


def _check_values(x: np.ndarray, values: Any, key: tuple[Any, ...]) -> None:
    """Values must have the type of what they are written to, but for one number under a mask."""
    if not isinstance(values, np.ndarray) or values.dtype == x.dtype:
        return
    one_mask = len(key) == 1 and not isinstance(key[0], slice) and key[0].dtype == np.bool_
    if not (one_mask and values.size == 1):
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{scalar_name(x.dtype)} for the destination and {scalar_name(values.dtype)} for the source."
        )


@op("index_put(self, values, *indices; accumulate=False)", publish=(), inplace=True,
    write=_write_at, jvp="linear")  # fmt: skip
def index_put(x: Any, values: Any, *indices: Any, accumulate: bool) -> Any:
    """`self` with `values` where `indices` point, or with them added there."""
    out = np.array(x)
    _write_at(out, values, *indices, accumulate=accumulate)
    return out


@index_put.grad("self")
def _(F: Any, grad: Any, indices: Any, *, accumulate: bool) -> Any:
    return grad if accumulate else F.index_put(grad, 0, indices)


@index_put.grad("values")
def _(F: Any, grad: Any, indices: Any) -> Any:
    return F.index(grad, indices)
