"""Bags of embeddings: sums, means or maxima of rows, without the rows themselves."""

from __future__ import annotations

import warnings

from clew import dtypes
from clew.functions.calls import Tensor
from clew.functions.create import arange
from clew.functions.embedding_bag import embedding_bag as published
from clew.nn.functional.embedding import renormalise

_MODES = {"sum": 0, "mean": 1, "max": 2}


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sum, mean or maximum of the rows of `weight` that each bag names.

    Args:
        input: ``(bags, n)``, or all bags one after the other, ``(n,)``, with `offsets`.
        weight: ``(rows, length)``.
        offsets: where each bag starts, for an input of one dimension.
        max_norm: the rows named are shrunk to this norm first, in place, where they are longer.
        norm_type: the p of that norm.
        scale_grad_by_freq: divide a row's gradient by how often it is named; not for maxima.
        mode: "sum", "mean" or "max".
        sparse: not available where a gradient is recorded.
        per_sample_weights: of the input's shape; each row times its weight, for sums.
        include_last_offset: the last offset says where the last bag ends.
        padding_idx: a row that does not count.

    Raises:
        ValueError: shapes or arguments do not go together.
        RuntimeError: types do not fit, or an index is no row.
    """
    if weight.dtype is dtypes.int64 and input.is_floating_point():
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage "
            "`embedding_bag(weight, input, ...)` is deprecated, and should now be "
            "`embedding_bag(input, weight, ...)`.",
            stacklevel=2,
        )
        weight, input = input, weight
    _check(input, weight, offsets, per_sample_weights)
    if input.dim() == 2:
        offsets = arange(0, input.numel(), max(input.size(1), 1), dtype=input.dtype)
        include_last_offset = False
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    _check_mode(mode, scale_grad_by_freq, sparse)
    if max_norm is not None:
        renormalise(weight, input, max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
            f"for mode='sum' (got mode='{mode}'). Please open a feature request on GitHub."
        )
    return published(
        weight, input, offsets, scale_grad_by_freq, _MODES[mode], sparse, per_sample_weights,
        include_last_offset, padding_idx,
    )[0]  # fmt: skip


def _check(
    input: Tensor, weight: Tensor, offsets: Tensor | None, per_sample_weights: Tensor | None
) -> None:
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then "
            f"it must have the same shape as the input ({input.shape})"
        )
    if weight.dim() != 2:
        raise ValueError(
            f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}"
        )
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch "
                f"of fixed length sequences. However, found offsets of type {type(offsets)}"
            )
    elif input.dim() != 1:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}"
        )
    elif offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    elif offsets.dim() != 1:
        raise ValueError("offsets has to be a 1D Tensor")


def _check_mode(mode: str, scale_grad_by_freq: bool, sparse: bool) -> None:
    if mode not in _MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
