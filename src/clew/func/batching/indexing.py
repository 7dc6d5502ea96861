"""Batching rules of indexing with tensors, and of slices and elements that an index names.

Note [Batched indices]
    Where indices differ from example to example, the number of the example becomes an index of
    its own: ``x[n, index[n]]`` for all n at once.  NumPy (and PyTorch) put what several indices
    find where they stand if they stand side by side, else in front; `_Key` knows where the
    dimensions of one example's result end up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from clew.dispatch import apply
from clew.func.batching.kinds import along_dims
from clew.func.batching.rules import Call, looped, moved, padded, reshaped, rule, run, total
from clew.op import REGISTRY, Op
from clew.ops.index import MASKS
from clew.ops.rules import broadcast_shape, wrap_dim
from clew.tensor import Tensor

_MASK = (
    "vmap: We do not support batching operators that can support dynamic shape. Attempting to "
    "batch over indexing with a boolean mask."
)


class _Key:
    """The indices of a batched tensor with its examples in front; see Note [Batched indices].

    Attributes:
        indices: tensors and Nones, for `index` on the batch.
        first: where, in one example's result, the dimensions that the indices made begin.
        found: how many they are.
        split: whether examples come after them in the batch's result (before, otherwise).
        own: whether the indices differ from example to example.
    """

    def __init__(self, call: Call, start: int) -> None:
        positions = range(start, len(call))
        self.own = any(call.is_batched(i) for i in positions)
        masks = [i for i in positions if _is_mask(call.values[i])]
        if any(call.is_batched(i) for i in masks):
            raise RuntimeError(_MASK)
        indices, dims = _expanded(call, positions)
        shapes = [_shape_of(x, d) for x, d in zip(indices, dims) if x is not None]
        self.found = len(broadcast_shape(*shapes))
        named = [i for i, x in enumerate(indices) if x is not None]
        together = named == list(range(named[0], named[-1] + 1))
        self.first = named[0] if together else 0
        self.split = not together and not self.own
        if self.own:
            aligned = [
                None if x is None else x if d is None else padded(_front(x, d), self.found)
                for x, d in zip(indices, dims)
            ]
            number = np.arange(call.size).reshape(-1, *(1,) * self.found)
            indices = [Tensor._from_array(number), *aligned]
        else:
            indices = [None, *indices]
        self.indices = indices

    def to_example_order(self, x: Any) -> Any:
        """What `index` found, with examples in front and each in its own order."""
        order = self._order(x._array.ndim)
        return run("permute", x, dims=tuple(order)) if order else x

    def from_example_order(self, x: Any) -> Any:
        """The opposite."""
        order = self._order(x._array.ndim)
        if not order:
            return x
        inverse = [order.index(d) for d in range(len(order))]
        return run("permute", x, dims=tuple(inverse))

    def _order(self, ndim: int) -> list[int] | None:
        """Which dimensions of the batch's result make up those of the examples."""
        if self.split:
            return [self.found, *range(self.found), *range(self.found + 1, ndim)]
        if self.own and self.first:
            made = range(1, 1 + self.found)
            rest = range(1 + self.found, ndim)
            return [0, *rest[: self.first], *made, *rest[self.first :]]
        return None


def _is_mask(x: Any) -> bool:
    return isinstance(x, Tensor) and x._array.dtype in MASKS


def _shape_of(x: Any, dim: int | None) -> tuple[int, ...]:
    shape: tuple[int, ...] = x._array.shape
    return shape if dim is None else shape[:dim] + shape[dim + 1 :]


def _front(x: Any, dim: int) -> Any:
    return x if dim == 0 else moved(x, dim, 0)


def _expanded(call: Call, positions: Sequence[int]) -> tuple[list[Any], list[Any]]:
    """Indices and their batch dimensions, masks as the positions of what is true."""
    indices: list[Any] = []
    dims: list[Any] = []
    for i in positions:
        x = call.values[i]
        parts = [x]
        if _is_mask(x):
            parts = list(x.bool().nonzero().unbind(1))
        indices += parts
        dims += [call.dims[i]] * len(parts)
    return indices, dims


@rule("index")
def index(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Elements of each example; of a tensor they share, by their own indices."""
    key = _Key(call, 1)
    if call.is_batched(0):
        return key.to_example_order(apply(op, (call.front(0), *key.indices)))
    found = apply(op, (call.values[0], *key.indices[1:]))
    return moved(found, key.first, 0) if key.first else found


@rule("index_backward")
def index_backward(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Zeros for each example, with what was found added."""
    key = _Key(call, 1)
    grad = key.from_example_order(call.full(0))
    return apply(op, (grad, *key.indices), {"size": (call.size, *attrs["size"])})


@rule("index_put")
def index_put(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Each example with values in some places."""
    key = _Key(call, 2)
    values = call.values[1]
    if isinstance(values, Tensor):
        named = sum(x is not None for x in key.indices) - key.own
        ndim = call.ndim(0) - named + key.found
        values = key.from_example_order(padded(call.full(1), ndim))
    return apply(op, (call.full(0), values, *key.indices), attrs)


# -- slices along a dimension


def _at(call: Call, position: int, dim: int) -> Call:
    """The call of an index of one dimension, as that of `index` and the like."""
    indices, dims = [None] * dim + [call.values[position]], [None] * dim + [call.dims[position]]
    return Call(indices, dims, call.size, call.randomness)


def _with_index(call: Call, positions: tuple[int, ...], index_at: int, dim: int) -> Call:
    """A call of these inputs, followed by the indices."""
    at = _at(call, index_at, dim)
    values = [call.values[i] for i in positions] + at.values
    dims = [call.dims[i] for i in positions] + at.dims
    return Call(values, dims, call.size, call.randomness)


@rule("index_select")
def index_select(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Slices of each example."""
    ndim = call.ndim(0)
    if not ndim:
        return looped(op, call, attrs)
    dim = wrap_dim(attrs["dim"], ndim)
    if not call.is_batched(1):
        return apply(op, (call.front(0), call.values[1]), {"dim": dim + 1})
    if not call.ndim(1):
        return run("unsqueeze", index(_INDEX, _with_index(call, (0,), 1, dim), {}), dim=dim + 1)
    return index(_INDEX, _with_index(call, (0,), 1, dim), {})


@rule("index_select_backward")
def index_select_backward(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Zeros for each example, with slices added."""
    size = attrs["size"]
    if not size or not call.ndim(1):
        return looped(op, call, attrs)
    dim = wrap_dim(attrs["dim"], len(size))
    if not call.is_batched(1):
        shifted = {"size": (call.size, *size), "dim": dim + 1}
        return apply(op, (call.front(0), call.values[1]), shifted)
    return index_backward(_INDEX_BACKWARD, _with_index(call, (0,), 1, dim), {"size": size})


@rule("index_add", "index_copy")
def index_add(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Slices written or added into each example."""
    ndim = call.ndim(0)
    if not ndim or not call.ndim(1):
        return looped(op, call, attrs)
    dim = wrap_dim(attrs["dim"], ndim)
    if not call.is_batched(1):
        values = (call.full(0), call.values[1], call.full(2))
        return apply(op, values, {**attrs, "dim": dim + 1})
    alpha = attrs.get("alpha", 1)
    if alpha != 1:
        call = Call(call.values, call.dims, call.size, call.randomness)
        call.values[2] = run("mul", call.values[2], alpha)
    put = {"accumulate": op.name == "index_add"}
    return index_put(_INDEX_PUT, _with_index(call, (0, 2), 1, dim), put)


@rule("index_fill", "index_fill_value")
def index_fill(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Slices of each example filled with a number."""
    ndim = call.ndim(0)
    if not ndim:
        return looped(op, call, attrs)
    dim = wrap_dim(attrs["dim"], ndim)
    shared = not any(call.is_batched(i) for i in range(1, len(call)))
    if shared:
        return apply(op, (call.full(0), *call.values[1:]), {**attrs, "dim": dim + 1})
    value = run("full", call.values[0], size=(), value=attrs["value"]) if "value" in attrs else None
    if value is not None:
        call = Call([*call.values, value], [*call.dims, None], call.size, call.randomness)
    return index_put(_INDEX_PUT, _with_index(call, (0, 2), 1, dim), {"accumulate": False})


@rule("take", "put")
def take(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Elements in the flat order of each example."""
    shape = call.shape(0)
    rows = reshaped(call.full(0), call.size, total(shape))
    flat = Call([rows, *call.values[1:]], [0, *call.dims[1:]], call.size, call.randomness)
    if op.name == "take":
        return index(_INDEX, _with_index(flat, (0,), 1, 0), {})
    source = call.full(2)
    index_shape = call.shape(1)
    flat.values[2], flat.dims[2] = reshaped(source, call.size, *index_shape), 0
    found = index_put(_INDEX_PUT, _with_index(flat, (0, 2), 1, 0), attrs)
    return reshaped(found, call.size, *shape)


@rule("gather", "gather_backward", "scatter", "scatter_add", "scatter_reduce", "scatter_value",
      "scatter_combine")  # fmt: skip
def gather(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Elements along a dimension of each example; all inputs have the same number of them."""
    ranks = {call.ndim(i) for i in range(len(call)) if isinstance(call.values[i], Tensor)}
    if len(ranks) > 1:
        return looped(op, call, attrs)  # numbers and vectors may be mixed
    return along_dims(op, call, attrs)


_INDEX, _INDEX_PUT, _INDEX_BACKWARD = (
    REGISTRY[name] for name in ("index", "index_put", "index_backward")
)
