"""``clew.linalg``: linear algebra, PyTorch's ``torch.linalg``."""

from __future__ import annotations

from typing import Any

from clew.dispatch import apply
from clew.functions.linalg import matmul as matmul
from clew.functions.matrix import multi_dot as multi_dot
from clew.functions.matrix import vecdot as vecdot
from clew.functions.norms import matrix_norm as matrix_norm
from clew.functions.norms import norm_of_any as norm
from clew.functions.norms import vector_norm as vector_norm
from clew.op import REGISTRY
from clew.tensor import Tensor


def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Any:
    """The cross products of vectors of three elements along `dim`; the rest is broadcast."""
    return apply(REGISTRY["linalg_cross"], (input, other), {"dim": dim})


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """The diagonals of matrices, a view."""
    attrs = {"offset": offset, "dim1": dim1, "dim2": dim2}
    return apply(REGISTRY["diagonal"], (A,), attrs)
