"""Rows of a table by integer: embedding, its gradient, renormalisation; one-hot vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.dtypes import legacy_type
from clew.kernels import rows as kernels
from clew.kernels.half import widen
from clew.op import op


def _check_indices(indices: Any, function: str) -> None:
    if indices.dtype not in (np.int64, np.int32):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
            f"Long, Int; but got torch.{legacy_type(indices.dtype)} instead (while checking "
            f"arguments for {function})"
        )


def take_rows(table: Any, indices: Any) -> Any:
    """``table[indices]``.

    Raises:
        IndexError: an index is no row.
    """
    if kernels.first_outside(indices, len(table)) is not None:
        raise IndexError("index out of range in self")
    return table.take(indices, axis=0)


@op("embedding(weight, indices; padding_idx=-1, scale_grad_by_freq=False, sparse=False)",
    publish=("function",), jvp="linear")  # fmt: skip
def embedding(
    weight: Any, indices: Any, *, padding_idx: int, scale_grad_by_freq: bool, sparse: bool
) -> Any:
    """The rows of `weight`, a matrix, that `indices` names.

    Row `padding_idx` (-1: none) gets no gradient; `scale_grad_by_freq` divides the gradient of a
    row by how often it is taken.

    Raises:
        IndexError: an index is no row.
        RuntimeError: `weight` is no matrix, or `indices` are not of type int32 or int64.
    """
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    _check_indices(indices, "embedding")
    return take_rows(weight, indices)


@embedding.grad("weight")
def _(
    F: Any, grad: Any, weight_shape: Any, indices: Any, *,
    padding_idx: int, scale_grad_by_freq: bool,
) -> Any:  # fmt: skip
    return F.embedding_dense_backward(
        grad, indices, num_weights=weight_shape[0], padding_idx=padding_idx,
        scale_grad_by_freq=scale_grad_by_freq,
    )  # fmt: skip


@op("embedding_dense_backward(grad_output, indices; num_weights, padding_idx, scale_grad_by_freq)",
    publish=(), jvp="linear")  # fmt: skip
def embedding_dense_backward(
    grad: Any, indices: Any, *, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    """Gradient of the table from that of the rows taken."""
    return kernels.embedding_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq)


@embedding_dense_backward.grad("grad_output")
def _(F: Any, grad: Any, indices: Any, *, padding_idx: int, scale_grad_by_freq: bool) -> Any:
    return F.embedding_dense_double_backward(
        grad, indices, padding_idx=padding_idx, scale_grad_by_freq=scale_grad_by_freq
    )


@op("embedding_dense_double_backward(self, indices; padding_idx, scale_grad_by_freq)",
    publish=(), jvp="linear")  # fmt: skip
def embedding_dense_double_backward(
    x: Any, indices: Any, *, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    """The adjoint of `embedding_dense_backward`: rows taken, without padding, scaled."""
    out = x.take(indices, axis=0)
    if padding_idx >= 0:
        out[indices == padding_idx] = 0
    if scale_grad_by_freq:
        counts = np.bincount(indices.reshape(-1), minlength=len(x))
        out /= counts[indices].astype(out.dtype)[..., None]
    return out


@embedding_dense_double_backward.grad("self")
def _(
    F: Any, grad: Any, self_shape: Any, indices: Any, *, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    return F.embedding_dense_backward(
        grad, indices, num_weights=self_shape[0], padding_idx=padding_idx,
        scale_grad_by_freq=scale_grad_by_freq,
    )  # fmt: skip


@op("embedding_renorm(self, indices; max_norm, norm_type)", publish=(), inplace=True)
def embedding_renorm(table: Any, indices: Any, *, max_norm: float, norm_type: float) -> Any:
    """`self` with the named rows shrunk to norm `max_norm` where they are longer."""
    _check_indices(indices, "embedding_renorm_")
    out = table.copy()
    named = np.unique(indices)
    chosen = widen(take_rows(table, named))
    norms = np.linalg.norm(chosen, ord=norm_type, axis=1, keepdims=True)
    # PyTorch's guard against division by zero.
    shrunk = chosen * (max_norm / (norms + norms.dtype.type(1e-7)))
    out[named] = np.where(norms > max_norm, shrunk, chosen)
    return out


@op("one_hot(self; num_classes=-1)", publish=())
def one_hot(x: Any, *, num_classes: int) -> Any:
    """A 1 in the place that each element names, in a new last dimension.

    Raises:
        RuntimeError: the tensor is not of int64, or an element is no class.
    """
    if x.dtype != np.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if x.size == 0:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return np.zeros((*x.shape, num_classes), np.int64)
    if x.min() < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes == -1:
        num_classes = int(x.max()) + 1
    elif num_classes <= x.max():
        raise RuntimeError("Class values must be smaller than num_classes.")
    out = np.zeros((x.size, num_classes), np.int64)
    out[np.arange(x.size), x.reshape(-1)] = 1
    return out.reshape(*x.shape, num_classes)
