"""Tables of vectors, looked up by integer."""

from __future__ import annotations

from clew.dispatch import apply_inplace
from clew.functions.calls import Tensor, call, require_tensors
from clew.functions.embedding_bag import refuse_sparse
from clew.op import REGISTRY


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of `weight` that `input` names.

    Args:
        input: indices, int64 or int32, of any shape.
        weight: ``(rows, length)``.
        padding_idx: a row that gets no gradient.
        max_norm: the rows named are shrunk to this norm first, in place, where they are longer.
        norm_type: the p of that norm.
        scale_grad_by_freq: divide a row's gradient by how often it is named.
        sparse: not available where a gradient is recorded: clew has no sparse tensors.

    Raises:
        IndexError: an index is no row.
        RuntimeError: shapes or types do not fit.
    """
    require_tensors("embedding", weight=weight, indices=input)
    padding_idx = -1 if padding_idx is None else _wrap_row(padding_idx, weight)
    refuse_sparse(sparse, weight)
    if max_norm is not None:
        renormalise(weight, input, max_norm, norm_type)
    return call(
        "embedding", weight, input,
        padding_idx=padding_idx, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse,
    )  # fmt: skip


def _wrap_row(index: int, weight: Tensor) -> int:
    rows = weight.size(0)
    if not -rows <= index < rows:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return index % rows


def renormalise(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    """Shrink the rows named to norm `max_norm`, in place and unrecorded."""
    attrs = {"max_norm": max_norm, "norm_type": norm_type}
    apply_inplace(REGISTRY["embedding_renorm"], weight.detach(), (indices,), attrs)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """A 1 in the place that each element names, in a new last dimension of size `num_classes`.

    Raises:
        RuntimeError: the tensor is not of int64, or an element is no class.
    """
    require_tensors("one_hot", input=tensor)
    return call("one_hot", tensor, num_classes=num_classes)
