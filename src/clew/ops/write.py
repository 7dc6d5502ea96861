"""Ops that exist for their in-place twins: what `copy_`, `fill_` and `zero_` record."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.op import op


@op("copy(self, source)", node="CopyBackwards", publish=(), inplace=True, domain="overwrite")
def copy(x: Any, source: Any) -> Any:
    """`source` in the shape and type of `self`."""
    source = source.real if source.dtype.kind == "c" and x.dtype.kind != "c" else source
    try:
        return np.broadcast_to(source, x.shape).astype(x.dtype)
    except ValueError:
        raise RuntimeError(
            f"The size of tensor a ({x.shape[-1] if x.ndim else 1}) must match the size of tensor "
            f"b ({source.shape[-1] if source.ndim else 1}) at non-singleton dimension "
            f"{max(x.ndim - 1, 0)}"
        ) from None


@copy.grad("self")
def _(F: Any, grad: Any) -> Any:
    return F.mul(grad, 0)


@copy.grad("source")
def _(F: Any, grad: Any) -> Any:
    return grad


@op("fill(self, value)", publish=("function",), inplace=True, domain="overwrite")
def fill(x: Any, value: Any) -> Any:
    """`self` filled with a number or a 0-d tensor."""
    if getattr(value, "ndim", 0) != 0:
        raise RuntimeError(
            "fill_ only supports 0-dimension value tensor but got tensor with "
            f"{value.ndim} dimensions."
        )
    return np.full_like(x, value)


@fill.grad("self")
def _(F: Any, grad: Any) -> Any:
    return F.mul(grad, 0)


@fill.grad("value")
def _(F: Any, grad: Any) -> Any:
    return F.sum_all(grad)


@op("zero(self)", publish=(), inplace=True, domain="overwrite", self=lambda F, grad: F.mul(grad, 0))
def zero(x: Any) -> Any:
    """Zeros."""
    return np.zeros_like(x)
