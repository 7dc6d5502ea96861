"""Bags of rows of a table, summed, averaged or maximised.

Its derivative is composed of ops: of each row the gradient is that of its bag.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clew import kernels
from clew.dtypes import legacy_type
from clew.op import op

SUM, MEAN, MAX = range(3)
"""The modes, by PyTorch's numbers."""


@op("embedding_bag_of_rows(weight, indices, offsets, per_sample_weights=None; mode, "
    "scale_grad_by_freq, sparse, padding_idx) -> output, offset2bag, bag_size, max_indices",
    publish=(), node="EmbeddingBagBackward0", no_grad_outputs=(1, 2, 3),
    tensors_only=True)  # fmt: skip
def embedding_bag(
    table: Any, indices: Any, offsets: Any, weights: Any, *,
    mode: int, scale_grad_by_freq: bool, sparse: bool, padding_idx: int,
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """For each bag the sum, mean or maximum of the rows of `weight` that its indices name.

    Bag i holds the indices from ``offsets[i]`` up to the next offset.  Also the bag of each
    index, the size of each bag (padding left out), and for maxima the row that holds each.

    Raises:
        RuntimeError: types do not fit, offsets are out of order or an index is no row.
    """
    _check(table, indices, offsets, weights)
    bag = kernels.bags.bag_numbers(offsets, len(indices))
    counted = bag if padding_idx < 0 else bag[indices != padding_idx]
    sizes = np.bincount(counted, minlength=len(offsets)).astype(np.int64)
    if mode == MAX:
        out, place = kernels.bags.bag_maxima(table, indices, bag, len(offsets), padding_idx)
        return out, bag, sizes, place
    out = kernels.bags.bag_sums(table, indices, bag, sizes, weights, padding_idx, mode == MEAN)
    return out, bag, sizes, np.zeros(0, np.int64)


def _check(table: Any, indices: Any, offsets: Any, weights: Any) -> None:
    for name, array in (("indices", indices), ("offsets", offsets)):
        if array.dtype not in (np.int64, np.int32):
            raise RuntimeError(
                f"Expected tensor for argument #1 '{name}' to have one of the following scalar "
                f"types: Long, Int; but got torch.{legacy_type(array.dtype)} instead (while "
                "checking arguments for embedding_bag)"
            )
    if weights is not None and weights.dtype != table.dtype:
        names = legacy_type(table.dtype), legacy_type(weights.dtype)
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for "
            "argument #1 'per_sample_weights'; but type torch.{} does not equal torch.{} (while "
            "checking arguments for embedding_bag)".format(*names)
        )
    if offsets.size and offsets[0] != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
            f"position 0. However, got {offsets[0]}"
        )
    if offsets.size and offsets[-1] > indices.size:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {indices.size} but got "
            f"offsets[-1] of {offsets[-1]}"
        )
    outside = np.flatnonzero(np.logical_or(indices < 0, indices >= len(table)))
    if outside.size:
        raise RuntimeError(
            f"Index {outside[0]} of input takes value {indices[outside[0]]} which is not in the "
            f"valid range [0, {len(table)})"
        )


@embedding_bag.grad("weight")
def _(
    F: Any, grad: Any, weight_shape: Any, indices: Any, per_sample_weights: Any, offset2bag: Any,
    bag_size: Any, max_indices: Any, *, mode: int, scale_grad_by_freq: bool, padding_idx: int,
) -> Any:  # fmt: skip
    if mode == MAX:
        filled = F.unsqueeze(F.gt(bag_size, 0), 1)
        return F.gather_backward(F.where(filled, grad, 0), max_indices, size=weight_shape, dim=0)
    if mode == MEAN:
        sizes = F.cast_like(F.clamp(bag_size, min=1), grad)
        grad = grad / F.unsqueeze(sizes, 1)
    rows = F.embedding(grad, offset2bag)
    if per_sample_weights is not None:
        rows = rows * F.unsqueeze(per_sample_weights, 1)
    return F.embedding_dense_backward(
        rows, indices, num_weights=weight_shape[0], padding_idx=padding_idx,
        scale_grad_by_freq=scale_grad_by_freq,
    )  # fmt: skip


@embedding_bag.grad("per_sample_weights")
def _(F: Any, grad: Any, weight: Any, indices: Any, offset2bag: Any, *, padding_idx: int) -> Any:
    products = F.sum(F.embedding(grad, offset2bag) * F.embedding(weight, indices), 1)
    return F.where(F.eq(indices, padding_idx), 0, products)
