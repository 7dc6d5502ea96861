"""Choosing between values elementwise: where, clamp, masks."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from clew.kernels.pointwise import MANY
from clew.kernels.select import SELECTABLE, choose, keep_where, limited
from clew.op import op
from clew.ops.checks import clamp_real_only
from clew.ops.layout import copy_alike, in_order_of_operands
from clew.ops.scalars import checked_number
from clew.packing import two_kinds
from clew.promotion import arithmetic, no_kernel
from clew.rng.target import range_of


@op("where(condition, self, other)", publish=(), jvp="linear", mixes=True)
def where(condition: Any, x: Any, y: Any) -> Any:
    """`self` where `condition`, else `other`."""
    if condition.dtype != np.bool_:
        condition = condition.astype(np.bool_)
    # The rules below choose between a gradient and 0.
    if y.__class__ is int and y == 0 and isinstance(x, np.ndarray):
        return keep_where(condition, x)
    if x.__class__ is int and x == 0 and isinstance(y, np.ndarray):
        return keep_where(np.logical_not(condition), y)
    x, y = arithmetic([x, y]) if isinstance(x, np.ndarray) or isinstance(y, np.ndarray) else (x, y)
    if getattr(x, "dtype", None) in SELECTABLE and x.dtype == getattr(y, "dtype", None):
        return choose(condition, x, y)
    return np.where(condition, x, y)


@where.grad("self")
def _(F: Any, grad: Any, condition: Any) -> Any:
    return F.where(condition, grad, 0)


@where.grad("other")
def _(F: Any, grad: Any, condition: Any) -> Any:
    return F.where(condition, 0, grad)


def _inside(x: Any, *, min: Any = None, max: Any = None) -> Any:
    if min is None:
        return np.less_equal(x, max)
    inside = np.greater_equal(x, min)
    return inside if max is None else np.logical_and(inside, np.less_equal(x, max))


_KEPT_BY_CLAMP = two_kinds(_inside)


@op(
    "clamp(self; min=None, max=None)",
    node="ClampBackward1",
    inplace=True,
    publish=(),
    domain="off_kinks",
    packings={"self": _KEPT_BY_CLAMP},
)
def clamp(x: Any, *, min: Any, max: Any) -> Any:
    """Limit to ``[min, max]``; None is no limit, and `max` wins over `min`."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    clamp_real_only(x)
    if x.size >= MANY and x.dtype.kind == "f" and _are_limits(min, max):
        return limited(x, low=-inf if min is None else min, high=inf if max is None else max)
    if min is not None:
        x = np.maximum(*arithmetic([x, min]))
    return x if max is None else np.minimum(*arithmetic([x, max]))


def _are_limits(*limits: Any) -> bool:
    """Whether all are numbers that limit something, which NaN does not."""
    return all(n is None or (n.__class__ in (int, float) and n == n) for n in limits)


@clamp.grad("self")
def _(F: Any, grad: Any, self: Any, *, min: Any, max: Any) -> Any:
    if self.dtype == np.bool_:  # Note [Packings]
        return F.where(self, grad, 0)
    inside = F.ge(self, min) if min is not None else F.le(self, max)
    if min is not None and max is not None:
        inside = F.logical_and(inside, F.le(self, max))
    return F.where(inside, grad, 0)


@op("clamp_tensors(self, min=None, max=None)", node="ClampBackward0", publish=(),
    promote="arithmetic", inplace=True, label="clamp", domain="off_kinks")  # fmt: skip
def clamp_tensors(x: Any, low: Any, high: Any) -> Any:
    """`clamp` with tensors as limits."""
    clamp_real_only(x)
    if low is not None:
        x = np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


@clamp_tensors.grad("self", "min", "max")
def _(F: Any, grad: Any, self: Any, min: Any, max: Any, *, need: Any) -> Any:
    inside = low_wins = high_wins = None
    if min is not None and max is not None:
        inside = F.logical_and(F.ge(self, min), F.le(self, max))
        low_wins, high_wins = F.logical_and(F.lt(self, min), F.lt(min, max)), F.gt(self, max)
        high_wins = F.logical_or(high_wins, F.lt(max, min))
    elif min is not None:
        inside, low_wins = F.ge(self, min), F.lt(self, min)
    else:
        inside, high_wins = F.le(self, max), F.gt(self, max)
    masks = (inside, low_wins, high_wins)
    return [
        F.where(mask, grad, 0) if wanted and mask is not None else None
        for wanted, mask in zip(need, masks)
    ]


_ONE_LIMIT: dict[str, Any] = {"publish": (), "inplace": True, "domain": "off_kinks"}


@op("clamp_min(self; min)", packings={"self": _KEPT_BY_CLAMP}, **_ONE_LIMIT)
def clamp_min(x: Any, *, min: Any) -> Any:
    """Limit from below."""
    clamp_real_only(x)
    if x.size >= MANY and x.dtype.kind == "f" and _are_limits(min):
        return limited(x, low=min, high=inf)
    return np.maximum(*arithmetic([x, min]))


@clamp_min.grad("self")
def _(F: Any, grad: Any, self: Any, *, min: Any) -> Any:
    return F.where(self if self.dtype == np.bool_ else F.ge(self, min), grad, 0)


@op("clamp_max(self; max)", packings={"self": _KEPT_BY_CLAMP}, **_ONE_LIMIT)
def clamp_max(x: Any, *, max: Any) -> Any:
    """Limit from above."""
    clamp_real_only(x)
    if x.size >= MANY and x.dtype.kind == "f" and _are_limits(max):
        return limited(x, low=-inf, high=max)
    return np.minimum(*arithmetic([x, max]))


@clamp_max.grad("self")
def _(F: Any, grad: Any, self: Any, *, max: Any) -> Any:
    return F.where(self if self.dtype == np.bool_ else F.le(self, max), grad, 0)


op(
    "clamp_min_tensor(self, min)", np.maximum, doc="Limit from below.", promote="arithmetic",
    complex=no_kernel("maximum_cpu"),
    tensors_only=True, node="ClampMinBackward1", label="clamp_min",
    self=lambda F, grad, self, min: F.where(F.ge(self, min), grad, 0),
    min=lambda F, grad, self, min: F.where(F.lt(self, min), grad, 0), **_ONE_LIMIT,
)  # fmt: skip
op(
    "clamp_max_tensor(self, max)", np.minimum, doc="Limit from above.", promote="arithmetic",
    complex=no_kernel("minimum_cpu"),
    tensors_only=True, node="ClampMaxBackward1", label="clamp_max",
    self=lambda F, grad, self, max: F.where(F.le(self, max), grad, 0),
    max=lambda F, grad, self, max: F.where(F.gt(self, max), grad, 0), **_ONE_LIMIT,
)  # fmt: skip


def _filling(x: Any, mask: Any, value: Any) -> Any:
    """What `masked_fill` writes, in the type of `x`."""
    if mask.dtype != np.bool_:
        raise RuntimeError(
            f"masked_fill_ only supports boolean masks, but got mask with dtype "
            f"{range_of(mask.dtype).c_name}"
        )
    if isinstance(value, np.ndarray):
        if value.ndim:
            raise RuntimeError(
                "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                f"{value.ndim} dimension(s)."
            )
        value = value.item()
    return np.asarray(checked_number(value, x.dtype), x.dtype)


def _fill_where(x: Any, mask: Any, value: Any) -> None:
    filling = _filling(x, mask, value)
    try:
        np.copyto(x, filling, where=mask)
    except ValueError:
        raise RuntimeError(
            f"output with shape {list(x.shape)} doesn't match the broadcast shape "
            f"{list(np.broadcast_shapes(x.shape, mask.shape))}"
        ) from None


@op("masked_fill_tensor(self, mask, value)", inplace=True, publish=(), label="masked_fill",
    node="MaskedFillBackward1", write=_fill_where)  # fmt: skip
def masked_fill_tensor(x: Any, mask: Any, value: Any) -> Any:
    """`self` with a 0-d tensor where `mask` is true."""
    return np.asarray(np.where(mask, _filling(x, mask, value), x), order="C")


@masked_fill_tensor.grad("self")
def _(F: Any, grad: Any, mask: Any) -> Any:
    return F.masked_fill(grad, mask, 0)


@masked_fill_tensor.grad("value")
def _(F: Any, grad: Any, mask: Any) -> Any:
    return F.sum_all(F.masked_select(grad, mask))


def _fill_where_number(x: Any, mask: Any, *, value: Any) -> None:
    _fill_where(x, mask, value)


@op("masked_fill(self, mask; value)", jvp="elementwise", inplace=True, publish=(),
    write=_fill_where_number)  # fmt: skip
def masked_fill(x: Any, mask: Any, *, value: Any) -> Any:
    """`self` with a number where `mask` is true."""
    if value.__class__ is int and value == 0 and mask.dtype == np.bool_ and x.flags.c_contiguous:
        return np.asarray(keep_where(np.logical_not(mask), x), order="C")  # as rules do
    return np.asarray(np.where(mask, _filling(x, mask, value), x), order="C")


@masked_fill.grad("self")
def _(F: Any, grad: Any, mask: Any) -> Any:
    return F.masked_fill(grad, mask, 0)


@op("masked_out(self, mask)", node="MaskedFillBackward0", jvp="linear", publish=())
def masked_out(x: Any, mask: Any) -> Any:
    """`self` with 0 where `mask` is true, laid out as it is; what `masked_fill_` makes of it."""
    kept = keep_where(np.logical_not(mask), x)
    return in_order_of_operands(kept, (x,))


@masked_out.grad("self")
def _(F: Any, grad: Any, mask: Any) -> Any:
    return F.masked_fill(grad, mask, 0)


@op("nan_to_num(self; nan=None, posinf=None, neginf=None)", inplace=True, domain="real")
def nan_to_num(x: Any, *, nan: Any, posinf: Any, neginf: Any) -> Any:
    """Replace NaN and infinities by numbers; by default 0 and the largest finite values."""
    if x.dtype.kind in "biu":
        return x.copy()
    nan = 0.0 if nan is None else nan
    return np.nan_to_num(copy_alike(x), copy=False, nan=nan, posinf=posinf, neginf=neginf)


@nan_to_num.grad("self")
def _(F: Any, grad: Any, self: Any) -> Any:
    return F.mul(grad, F.isfinite(self))
