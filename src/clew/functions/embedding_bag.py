"""Bags of embeddings under PyTorch's name; ``nn.functional`` has it with another signature."""

from __future__ import annotations

from typing import Any

from clew.autograd.modes import is_grad_enabled
from clew.functions.calls import Tensor, call, require_tensors
from clew.publish import composite


@composite(method=False)
def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    """Sums (mode 0), means (1) or maxima (2) of bags of rows of `weight`.

    Args:
        weight: ``(rows, length)``.
        indices: ``(n,)``, of int64 or int32.
        offsets: where each bag starts in `indices`.
        scale_grad_by_freq: divide a row's gradient by how often it is named.
        sparse: not available where a gradient is recorded.
        per_sample_weights: ``(n,)``; each row times its weight, for sums.
        include_last_offset: the last offset says where the last bag ends.
        padding_idx: a row that does not count.

    Returns:
        The results ``(bags, length)``, the bag of each index, the size of each bag, and for maxima
        the row that holds each.

    Raises:
        RuntimeError: shapes or types do not fit.
    """
    require_tensors("embedding_bag", weight=weight, indices=indices, offsets=offsets)
    rows = weight.size(0)
    if padding_idx is None:
        padding_idx = -1
    elif not -rows <= padding_idx < rows:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, {-rows} through {rows - 1}, "
            f"but got {padding_idx}"
        )
    else:
        padding_idx %= rows
    refuse_sparse(sparse, weight)
    if include_last_offset:
        offsets = offsets[:-1]
    return call(
        "embedding_bag_of_rows", weight, indices, offsets, per_sample_weights, mode=mode,
        scale_grad_by_freq=scale_grad_by_freq, sparse=sparse, padding_idx=padding_idx,
    )  # fmt: skip


def refuse_sparse(sparse: bool, weight: Tensor) -> None:
    """Refuse to record what would give a sparse gradient.

    Raises:
        NotImplementedError: it would.
    """
    if sparse and weight.requires_grad and is_grad_enabled():
        raise NotImplementedError(
            "clew has no sparse tensors, so no sparse gradient of an embedding; use sparse=False"
        )
