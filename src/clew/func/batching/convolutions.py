"""Batching rules of convolutions and attention.

With shared weights examples are more images; with weights of their own they are more groups of
channels, of which each sees its own weights.
"""

from __future__ import annotations

from typing import Any

from clew.dispatch import apply
from clew.func.batching.rules import Call, reshaped, rule, run
from clew.op import Op
from clew.ops.conv import Geometry


def _as_images(x: Any) -> Any:
    """``(B, N, C, ...)`` as ``(B * N, C, ...)``."""
    batch, images, *rest = x._array.shape
    return reshaped(x, batch * images, *rest)


def _as_groups(x: Any) -> Any:
    """``(B, N, C, ...)`` as ``(N, B * C, ...)``."""
    batch, images, channels, *rest = x._array.shape
    order = (1, 0, *range(2, x._array.ndim))
    return reshaped(run("permute", x, dims=order), images, batch * channels, *rest)


def _of_images(x: Any, batch: int) -> Any:
    images, *rest = x._array.shape
    return reshaped(x, batch, images // batch if batch else images, *rest)


def _of_groups(x: Any, batch: int) -> Any:
    images, channels, *rest = x._array.shape
    split = reshaped(x, images, batch, channels // batch, *rest)
    turned = run("permute", split, dims=(1, 0, *range(2, split._array.ndim)))
    # Each example's result is to be contiguous, as that of the op is: users take views of it.
    return run("clone", turned, memory_format="contiguous")


def _weights(call: Call, i: int) -> Any:
    """Weights of all examples one after the other."""
    return _as_images(call.full(i))


@rule("convolution")
def convolution(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Convolve images with weights."""
    if not call.is_batched(1) and not call.is_batched(2):
        found = apply(op, (_as_images(call.front(0)), *call.values[1:]), attrs)
        return _of_images(found, call.size)
    bias = call.full(2)
    bias = None if bias is None else reshaped(bias, call.size * bias._array.shape[1])
    if not call.is_batched(0) and attrs["groups"] == 1 and not attrs["transposed"]:
        found = apply(op, (call.values[0], _weights(call, 1), bias), attrs)
    else:
        grouped = {**attrs, "groups": attrs["groups"] * call.size}
        found = apply(op, (_as_groups(call.full(0)), _weights(call, 1), bias), grouped)
    return _of_groups(found, call.size)


@rule("convolution_backward_input")
def backward_input(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """The gradient of the images."""
    images, channels, *rest = attrs["size"]
    geometry: Geometry = attrs["geometry"]
    if not call.is_batched(1):
        size = (call.size * images, channels, *rest)
        found = apply(op, (_as_images(call.front(0)), call.values[1]), {**attrs, "size": size})
        return _of_images(found, call.size)
    whole = {
        "size": (images, call.size * channels, *rest),
        "geometry": geometry._replace(groups=geometry.groups * call.size),
    }
    return _of_groups(apply(op, (_as_groups(call.full(0)), _weights(call, 1)), whole), call.size)


@rule("convolution_backward_weight")
def backward_weight(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """The gradient of each example's weights."""
    first, *rest = attrs["size"]
    geometry: Geometry = attrs["geometry"]
    whole = {
        "size": (call.size * first, *rest),
        "geometry": geometry._replace(groups=geometry.groups * call.size),
    }
    found = apply(op, (_as_groups(call.full(0)), _as_groups(call.full(1))), whole)
    return reshaped(found, call.size, first, *rest)


@rule("scaled_dot_product_flash_attention_for_cpu",
      "scaled_dot_product_flash_attention_for_cpu_backward")  # fmt: skip
def attention(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Examples are more entries of the first dimension; a mask is spread over them."""
    at = op.inputs.index("attn_mask")
    entries = call.shape(op.inputs.index("query"))[0]
    values = []
    for i in range(len(call)):
        x = call.full(i)
        if x is not None and i == at:
            batch, *shape = x._array.shape
            shape = [1] * (4 - len(shape)) + shape
            x = run("expand", reshaped(x, batch, *shape), size=(batch, entries, *shape[1:]))
        values.append(None if x is None else _as_images(x))
    found = apply(op, values, attrs)
    return tuple(None if x is None else _of_images(x, call.size) for x in found)


@rule("causal_mask")
def causal_mask(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """A mask from the last two dimensions."""
    return apply(op, (call.front(0),), attrs)
