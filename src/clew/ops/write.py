"""Ops that exist for their in-place twins: what `copy_`, `fill_` and `zero_` record."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.op import op
from clew.ops.rules import broadcast_shape, real_part
from clew.ops.scalars import checked_number
from clew.storage import refuse_overlap


def _write_copy(x: Any, source: Any) -> None:
    if source.shape != x.shape and not _broadcasts(source.shape, x.shape):
        broadcast = list(broadcast_shape(x.shape, source.shape))
        raise RuntimeError(
            f"output with shape {list(x.shape)} doesn't match the broadcast shape {broadcast}"
        )
    refuse_overlap(x, source, same=True)
    if x.size:
        x[...] = real_part(source, x.dtype)


def _broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    return len(shape) <= len(target) and all(
        n in (1, t) for n, t in zip(reversed(shape), reversed(target))
    )


@op("copy(self, source)", node="torch::autograd::CopyBackwards", publish=(), inplace=True,
    write=_write_copy, jvp="linear")  # fmt: skip
def copy(x: Any, source: Any) -> Any:
    """`source` in the shape and type of `self`."""
    out = np.empty_like(x)
    _write_copy(out, source)
    return out


@copy.grad("self")
def _(F: Any, grad: Any) -> Any:
    return F.zeros_like(grad)


@copy.grad("source")
def _(F: Any, grad: Any) -> Any:
    return grad


def _write_fill(x: Any, *, value: Any) -> None:
    x[...] = checked_number(value, x.dtype)


@op("fill(self; value)", publish=(), inplace=True, inplace_node="FillBackward2", write=_write_fill,
    self=lambda F, grad: F.zeros_like(grad))  # fmt: skip
def fill(x: Any, *, value: Any) -> Any:
    """`self` filled with a number."""
    return np.full_like(x, checked_number(value, x.dtype))


def _write_fill_tensor(x: Any, value: Any) -> None:
    if value.ndim:
        raise RuntimeError(
            "fill_ only supports 0-dimension value tensor but got tensor with "
            f"{value.ndim} dimensions."
        )
    if x.size:
        x[...] = real_part(value, x.dtype)


@op("fill_tensor(self, value)", publish=(), inplace=True, label="fill", node="FillBackward1",
    inplace_node="FillBackward3", write=_write_fill_tensor, tensors_only=True,
    jvp="linear")  # fmt: skip
def fill_tensor(x: Any, value: Any) -> Any:
    """`self` filled with a 0-d tensor."""
    out = np.empty_like(x)
    _write_fill_tensor(out, value)
    return out


@fill_tensor.grad("self")
def _(F: Any, grad: Any) -> Any:
    return F.zeros_like(grad)


@fill_tensor.grad("value")
def _(F: Any, grad: Any) -> Any:
    return F.sum_all(grad)


def _no_derivative(F: Any, grad: Any) -> Any:
    raise RuntimeError("derivative for set_ is not implemented")


@op("replaced_memory(self, source)", publish=(), node="torch::autograd::NotImplemented",
    self=_no_derivative, source=_no_derivative)  # fmt: skip
def replaced_memory(x: Any, source: Any) -> Any:
    """What `set_` records."""
    return x


def _write_zero(x: Any) -> None:
    x[...] = 0


@op("zero(self)", publish=(), inplace=True, write=_write_zero,
    self=lambda F, grad: F.zeros_like(grad))  # fmt: skip
def zero(x: Any) -> Any:
    """Zeros."""
    return np.zeros_like(x)
