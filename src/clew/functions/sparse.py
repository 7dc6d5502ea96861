"""Making sparse tensors; ``clew.sparse`` is imported when one is made."""

from __future__ import annotations

from typing import Any

from clew import dtypes
from clew.device import require_cpu
from clew.publish import composite
from clew.tensor import Tensor


@composite(method=False)
def sparse_coo_tensor(
    indices: Any, values: Any = None, size: Any = None, *, dtype: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Any:  # fmt: skip
    """A sparse tensor of coordinates and values.

    Args:
        indices: the coordinates, an integer matrix with a row for each sparse dimension and a
            column for each element; elements at the same place add up.  Alone: the size of a
            tensor without elements.
        values: the elements, one a column of `indices`; each may be a tensor.
        size: the shape; by default the smallest that holds all elements.
        dtype: the type of the values.
        device: the CPU.
        pin_memory: ignored: there is no device to copy to.
        requires_grad: whether the values require grad.
        check_invariants: accepted; the parts are always checked.
        is_coalesced: whether the coordinates are sorted and each there once.

    Raises:
        RuntimeError: the parts do not fit each other.
    """
    from clew.functions.create import zeros
    from clew.sparse.coo import from_parts

    require_cpu(device)
    if values is None:
        size, kind = indices, dtype or dtypes.get_default_dtype()
        indices, values = zeros((len(size), 0), dtype=dtypes.int64), zeros(0, dtype=kind)
    return from_parts(indices, values, size, dtype, requires_grad, check_invariants, is_coalesced)


@composite(function=False)
def to_sparse(
    self: Tensor, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None,
    dense_dim: int | None = None,
) -> Any:  # fmt: skip
    """The elements that are not zero, in coordinate format; the values are differentiable.

    Raises:
        NotImplementedError: another layout is asked for.
    """
    from clew.sparse.coo import _only_coo, from_dense

    _only_coo(layout)
    return from_dense(self, sparse_dim)


@composite(function=False)
def to_sparse_coo(self: Tensor) -> Any:
    """`to_sparse`."""
    return to_sparse(self)


@composite(function=False)
def to_dense(self: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Any:
    """This tensor, which is dense."""
    return self if dtype is None else self.to(dtype)


@composite(function=False)
def sparse_mask(self: Tensor, mask: Any) -> Any:
    """The elements at the places of a sparse tensor, as a sparse tensor."""
    from clew.sparse.operations import sparse_mask as masked

    return masked(self, mask)


@composite(method=False)
def spmm(input: Any, mat2: Any) -> Any:
    """The product of a sparse and a dense matrix."""
    from clew.sparse.operations import mm

    return mm(input, mat2)
