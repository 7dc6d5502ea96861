"""Batching rules of ops that join tensors, and of those that put one into another."""

from __future__ import annotations

from typing import Any

from clew.dispatch import apply
from clew.func.batching.kinds import aligned, shifted
from clew.func.batching.rules import Call, looped, padded, rule, run
from clew.op import Op
from clew.ops.rules import wrap_dim
from clew.tensor import Tensor


@rule("cat")
def cat(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Joined in each example; vectors of no elements are left out, as ever."""
    indices = range(len(call))
    ndim = max(call.ndim(i) for i in indices)
    kept = [i for i in indices if call.shape(i) != (0,) or ndim == 1] or list(indices)
    dim = wrap_dim(attrs["dim"], ndim)
    return apply(op, [call.full(i) for i in kept], {**attrs, "dim": dim + 1})


@rule("stack")
def stack(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Joined along a new dimension of each example."""
    dim = wrap_dim(attrs["dim"], call.ndim(0) + 1)
    return apply(op, [call.full(i) for i in range(len(call))], {"dim": dim + 1})


@rule("block_diag", "index_reduce", "as_strided_scatter")
def in_turn(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """One example after the other, as PyTorch does without a warning."""
    return looped(op, call, attrs)


@rule("select_scatter", "slice_scatter", "diagonal_scatter")
def scatter(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """A part of each example replaced."""
    part = call.full(1) if isinstance(call.values[1], Tensor) else call.values[1]
    return apply(op, (call.full(0), part), shifted(attrs, call.size, call.ndim(0)))


@rule("searchsorted")
def searchsorted(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Each example's values in its own sequence; in a shared one all values at once."""
    if not call.is_batched(0) and call.ndim(0) == 1 and call.values[2] is None:
        return apply(op, (call.values[0], call.front(1), None), attrs)
    if call.ndim(0) != call.ndim(1):
        return looped(op, call, attrs)
    return apply(op, [call.full(i) for i in range(len(call))], attrs)


@rule("isin")
def isin(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Elements looked up in a set; sets of each example's own one after the other."""
    if call.is_batched(1):
        return looped(op, call, attrs)
    return apply(op, (call.front(0), call.values[1]), attrs)


@rule("isclose")
def isclose(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Element by element; types must agree and are not promoted."""
    ndim = max(call.ndim(0), call.ndim(1))
    values = [padded(call.front(i), ndim) if call.is_batched(i) else call.values[i] for i in (0, 1)]
    return apply(op, values, attrs)


@rule("masked_fill_tensor")
def masked_fill_tensor(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """A number of each example's own, where its mask is true."""
    if call.ndim(2) or not call.is_batched(2):
        ndim = max(call.ndim(0), call.ndim(1))
        x, mask = (padded(call.full(i), ndim) for i in (0, 1))
        return apply(op, (x, mask, call.values[2]), attrs)
    x, mask, value = aligned(call.as_types(0, 2))
    return run("where", mask, value, x)


@rule("fill_tensor")
def fill_tensor(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Each example filled with its number."""
    x, value = aligned(call.as_types(0, 1))
    return run("expand", value, size=(call.size, *call.shape(0))) if call.is_batched(1) else run(
        "fill_tensor", x, value
    )  # fmt: skip


@rule("where", "clamp_tensors")
def where(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Element by element, of which some inputs may be absent."""
    return apply(op, aligned(call), attrs)
