"""Batching rules of embeddings.

With a table for each example all tables are one long table, in which an example's rows begin at
its number times the rows of one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.dispatch import apply
from clew.func.batching.rules import Call, looped, one_by_one, reshaped, rule, run
from clew.op import Op
from clew.tensor import Tensor


def _numbered(call: Call, position: int, rows: int) -> Any:
    """Indices into one long table."""
    indices = call.full(position)
    kind = indices._array.dtype
    start = np.arange(call.size, dtype=kind) * rows
    start = start.reshape(-1, *(1,) * (indices._array.ndim - 1))
    return run("add", indices, Tensor._from_array(start))


@rule("embedding")
def embedding(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Rows of a table."""
    if not call.is_batched(0):
        return apply(op, (call.values[0], call.front(1)), attrs)
    table = call.front(0)
    batch, rows, width = table._array.shape
    flat = reshaped(table, batch * rows, width)
    padding = attrs["padding_idx"]
    found = apply(op, (flat, _numbered(call, 1, rows)), {**attrs, "padding_idx": -1})
    if padding < 0 or not found.requires_grad:
        return found
    constant = run("eq", call.full(1), padding).unsqueeze(-1)  # rows that get no gradient
    return run("where", constant, found.detach(), found)


@rule("embedding_dense_backward")
def embedding_dense_backward(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """The gradient of each example's table."""
    rows, padding = attrs["num_weights"], attrs["padding_idx"]
    grad = call.full(0)
    if padding >= 0:
        mask = run("eq", call.full(1), padding).unsqueeze(-1)
        grad = run("masked_fill", grad, mask, value=0)
    whole = {**attrs, "num_weights": rows * call.size, "padding_idx": -1}
    found = apply(op, (grad, _numbered(call, 1, rows)), whole)
    return reshaped(found, call.size, rows, found._array.shape[-1])


@rule("embedding_dense_double_backward")
def embedding_dense_double_backward(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Rows taken, without padding."""
    if attrs["scale_grad_by_freq"]:
        return looped(op, call, attrs)
    if not call.is_batched(0):
        return apply(op, (call.values[0], call.front(1)), attrs)
    table = call.front(0)
    batch, rows, width = table._array.shape
    flat = reshaped(table, batch * rows, width)
    found = apply(op, (flat, _numbered(call, 1, rows)), {**attrs, "padding_idx": -1})
    if attrs["padding_idx"] < 0:
        return found
    mask = run("eq", call.full(1), attrs["padding_idx"]).unsqueeze(-1)
    return run("masked_fill", found, mask, value=0)


@rule("embedding_bag_of_rows", "embedding_renorm")
def bags(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """One example after the other."""
    return one_by_one(op, call, attrs)
