"""PyTorch's ``torch.sparse``: tensors of which only the elements that are not zero are kept.

Layer 4; imported when first used.  See Note [Sparse tensors] in ``sparse/coo.py``.
"""

from __future__ import annotations

from typing import Any

import clew
from clew.sparse import operations
from clew.sparse.coo import SparseTensor, from_dense, from_parts
from clew.tensor import Tensor

__all__ = ["addmm", "log_softmax", "mm", "softmax", "sum"]


def mm(sparse: Any, dense: Any) -> Any:
    """The product of two matrices, at least one of them sparse; gradients reach both.

    Shapes are (n, m) and (m, k).  Sparse times sparse is sparse.
    """
    return operations.mm(sparse, dense)


def addmm(mat: Tensor, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """``beta * mat + alpha * (mat1 @ mat2)``, `mat1` sparse."""
    return operations.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sum(input: Any, dim: Any = None, dtype: Any = None) -> Any:
    """The sum of all elements, or over `dim`: sparse while a sparse dimension is left."""
    return operations.sum(input, dim, dtype=dtype)


def softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """The softmax along `dim`, where elements that are not there count as minus infinity."""
    return operations.softmax(input, dim, dtype)


def log_softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """The logarithm of `softmax`."""
    return operations.softmax(input, dim, dtype, logarithm=True)


def _legacy(name: str, dtype: Any) -> Any:
    def make(indices: Any, values: Any, size: Any = None) -> SparseTensor:
        return from_parts(indices, values, size, dtype)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"A sparse tensor of {dtype}: `sparse_coo_tensor` as it was once called."
    return make


FloatTensor = _legacy("FloatTensor", clew.float32)
DoubleTensor = _legacy("DoubleTensor", clew.float64)
HalfTensor = _legacy("HalfTensor", clew.float16)
IntTensor = _legacy("IntTensor", clew.int32)
LongTensor = _legacy("LongTensor", clew.int64)
