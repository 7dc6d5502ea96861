"""Batching rules of batch, layer, group and RMS norm.

Weights of each example's own are applied after the normalisation, which then has none; their
gradients are sums over the example only, so they too are computed here and not by the kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.autograd.modes import no_grad
from clew.autograd.transforms import all_values
from clew.dispatch import apply, apply_inplace
from clew.func.batching.rules import Call, padded, reshaped, rule, run, total
from clew.op import REGISTRY, Op

_NOT_BATCHED = (
    "Batch norm got a batched tensor as input while the running_mean or running_var, which will be "
    "updated in place, were not batched.\nIf you are using a module and do not need eval mode, "
    "please set `track_running_stats` to be False.If you are using a prebuilt module and do not "
    "need eval mode, please see the functorch website for resources on how to patch your module to "
    "work with vmap"
)


def _sum(x: Any, dims: tuple[int, ...]) -> Any:
    return run("sum", x, dim=dims, keepdim=False, dtype=None) if dims else x


# -- over trailing dimensions


@rule("native_layer_norm", "fused_rms_norm")
def trailing(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Layer norm and RMS norm."""
    count = len(op.inputs)
    if not any(call.is_batched(i) for i in range(1, count)):
        return apply(op, (call.front(0), *call.values[1:]), attrs)
    out, *statistics = apply(op, (call.full(0), *(None,) * (count - 1)), attrs)
    ndim = call.ndim(0)
    out = run("mul", out, padded(call.full(1), ndim)) if call.values[1] is not None else out
    if count > 2 and call.values[2] is not None:
        out = run("add", out, padded(call.full(2), ndim))
    return (out, *statistics)


@rule("native_layer_norm_backward")
def layer_norm_backward(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Gradients of layer norm."""
    grad, x, _, mean, rstd = (call.full(i) for i in range(5))
    dims = tuple(range(1, call.ndim(1) - len(attrs["normalized_shape"]) + 1))
    need = attrs["need"]
    of_input = _of_input(op, call, attrs, (grad, x, mean, rstd)) if need[0] else None
    of_weight = of_bias = None
    if need[1]:
        normalised = run("mul", run("sub", x, mean), rstd)
        of_weight = _sum(run("mul", grad, normalised), dims)
    if need[2]:
        of_bias = _sum(grad, dims)
    return of_input, of_weight, of_bias


def _of_input(op: Op, call: Call, attrs: dict[str, Any], full: tuple[Any, ...]) -> Any:
    grad, x, *statistics = full
    weight = call.values[2]
    if call.is_batched(2):
        grad = run("mul", grad, padded(call.front(2), call.ndim(1)))
        weight = None
    need = (True, *(False,) * (len(attrs["need"]) - 1))
    return apply(op, (grad, x, weight, *statistics), {**attrs, "need": need})[0]


@rule("fused_rms_norm_backward")
def rms_norm_backward(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Gradients of RMS norm."""
    grad, x, _, rstd = (call.full(i) for i in range(4))
    dims = tuple(range(1, call.ndim(1) - len(attrs["normalized_shape"]) + 1))
    need = attrs["need"]
    of_input = _of_input(op, call, attrs, (grad, x, rstd)) if need[0] else None
    of_weight = _sum(run("mul", grad, run("mul", x, rstd)), dims) if need[1] else None
    return of_input, of_weight


# -- groups of channels


def _folded(x: Any) -> Any:
    batch, entries, *rest = x._array.shape
    return reshaped(x, batch * entries, *rest)


def _unfolded(x: Any, batch: int) -> Any:
    entries, *rest = x._array.shape
    return reshaped(x, batch, entries // batch if batch else entries, *rest)


def _per_channel(call: Call, i: int, ndim: int) -> Any:
    """``(B, C)`` so that it broadcasts to ``(B, N, C, ...)``, with `ndim` dimensions."""
    value = call.full(i)
    batch, channels = value._array.shape
    return reshaped(value, batch, 1, channels, *(1,) * (ndim - 3))


@rule("native_group_norm")
def group_norm(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Group norm; examples are more entries."""
    x = call.full(0)
    own = call.is_batched(1) or call.is_batched(2)
    weights = (None, None) if own else call.values[1:]
    found = [_unfolded(r, call.size) for r in apply(op, (_folded(x), *weights), attrs)]
    ndim = x._array.ndim
    if own and call.values[1] is not None:
        found[0] = run("mul", found[0], _per_channel(call, 1, ndim))
    if own and call.values[2] is not None:
        found[0] = run("add", found[0], _per_channel(call, 2, ndim))
    return tuple(found)


@rule("native_group_norm_backward")
def group_norm_backward(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Gradients of group norm."""
    grad, x, _, mean, rstd = (call.full(i) for i in range(5))
    need, ndim = attrs["need"], x._array.ndim
    dims = (1, *range(3, ndim))
    of_input = of_weight = of_bias = None
    if need[0]:
        weight, g = call.values[2], grad
        if call.is_batched(2):
            weight, g = None, run("mul", grad, _per_channel(call, 2, ndim))
        values = (_folded(g), _folded(x), weight, _folded(mean), _folded(rstd))
        found = apply(op, values, {**attrs, "need": (True, False, False)})[0]
        of_input = _unfolded(found, call.size)
    if need[1]:
        groups = attrs["group"]
        each = total(x._array.shape[2:]) // groups
        split = (*x._array.shape[:2], groups, each)
        column = (*mean._array.shape[:2], groups, 1)
        rows = x.reshape(split)
        centred = run("sub", rows, mean.reshape(column))
        normalised = run("mul", centred, rstd.reshape(column)).reshape(x._array.shape)
        of_weight = _sum(run("mul", grad, normalised), dims)
    if need[2]:
        of_bias = _sum(grad, dims)
    return of_input, of_weight, of_bias


# -- channels over the batch


def _as_channels(x: Any) -> Any:
    """``(B, N, C, ...)`` as ``(N, B * C, ...)``."""
    batch, entries, channels, *rest = x._array.shape
    turned = run("permute", x, dims=(1, 0, *range(2, x._array.ndim)))
    return reshaped(turned, entries, batch * channels, *rest)


def _of_channels(x: Any, batch: int) -> Any:
    entries, channels, *rest = x._array.shape
    split = reshaped(x, entries, batch, channels // batch, *rest)
    return run("permute", split, dims=(1, 0, *range(2, split._array.ndim)))


def _vector(call: Call, i: int) -> Any:
    value = call.full(i)
    return None if value is None else reshaped(value, value._array.size)


def _vectors(x: Any, batch: int) -> Any:
    return None if x is None else reshaped(x, batch, x._array.size // batch)


@rule("native_batch_norm")
def batch_norm(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Batch norm; examples are more channels."""
    moving = attrs["training"] and call.values[3] is not None
    if moving and not (call.is_batched(3) and call.is_batched(4)):
        raise RuntimeError(_NOT_BATCHED)
    vectors = [_vector(call, i) for i in range(1, 5)]
    out, *statistics = apply(op, (_as_channels(call.full(0)), *vectors), attrs)
    if moving:
        for i in (3, 4):
            rows, kept = _vectors(vectors[i - 1], call.size), call.front(i)
            if not np.shares_memory(all_values(rows), all_values(kept)):
                with no_grad():  # as the kernel itself writes
                    apply_inplace(REGISTRY["copy"], kept, (rows,))
    return (_of_channels(out, call.size), *(_vectors(s, call.size) for s in statistics))


@rule("native_batch_norm_backward")
def batch_norm_backward(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Gradients of batch norm."""
    vectors = [_vector(call, i) for i in range(2, 7)]
    values = (_as_channels(call.full(0)), _as_channels(call.full(1)), *vectors)
    of_input, *others = apply(op, values, attrs)
    of_input = None if of_input is None else _of_channels(of_input, call.size)
    return (of_input, *(_vectors(x, call.size) for x in others))
