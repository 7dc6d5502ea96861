"""What rules of derivatives do on Tensors, where PyTorch composes it of operations with nodes.

On arrays each of these is one op, which is faster.  A backward that is recorded shows PyTorch's
nodes: importing this module puts the compositions into `TENSORS`, in the place of the ops.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from clew.dispatch import ARRAYS, TENSORS, apply, apply_inplace
from clew.op import REGISTRY
from clew.ops.layout import zeros_in_order
from clew.ops.rules import is_complex, wrap_dim
from clew.tensor import Tensor


def _zeros(like: Any, size: Any) -> Tensor:
    made: Tensor = TENSORS.full(like, size=tuple(size), value=0)
    return made


def _put_values(x: Any, indices: Any, *, size: Any, dim: int, keepdim: bool) -> Any:
    if size and not keepdim:
        x, indices = TENSORS.unsqueeze(x, dim), TENSORS.unsqueeze(indices, dim)
    return TENSORS.scatter(_zeros(x, size), dim, indices, x)


def _add_values(x: Any, indices: Any, *, size: Any, dim: int) -> Any:
    return TENSORS.scatter_add(_zeros(x, size), dim, indices, x)


def _cumsum_reversed(x: Any, *, dim: int) -> Any:
    if x._array.size <= 1 or x._array.shape[wrap_dim(dim, x._array.ndim)] == 1:
        return x
    flipped = TENSORS.flip(x, (dim,))
    return TENSORS.flip(TENSORS.cumsum(flipped, dim), (dim,))


def _index_select_backward(x: Any, index: Any, *, size: Any, dim: int) -> Any:
    return TENSORS.index_add(_zeros(x, size), dim, index, x)


def _gather_backward(x: Any, index: Any, *, size: Any, dim: int) -> Any:
    return TENSORS.scatter_add(_zeros(x, size), dim, index, x)


def _masked_select_backward(x: Any, mask: Any, *, size: Any, stride: Any) -> Any:
    zeros = Tensor._from_array(zeros_in_order(size, stride, x._array.dtype))
    return apply_inplace(REGISTRY["masked_scatter"], zeros, (mask, x))


_INDEX_PUT_IMPL = copy.copy(REGISTRY["index_put"])
_INDEX_PUT_IMPL.node_name, _INDEX_PUT_IMPL.node_class = "IndexPutImplBackward0", None
_INDEX_PUT_IMPL.plans = {}


def _index_backward(x: Any, indices: Any, *, size: Any) -> Any:
    return apply(_INDEX_PUT_IMPL, (_zeros(x, size), x, *indices), {"accumulate": True})


def _silu_backward(grad: Any, x: Any) -> Any:
    s = TENSORS.sigmoid(x)
    return grad * s * (1 + x * (1 - s))


def _mish_backward(grad: Any, x: Any) -> Any:
    t, s = TENSORS.tanh(TENSORS.log1p(TENSORS.exp(x))), TENSORS.sigmoid(x)
    return grad * (t + x * s * (1 - t * t))


def _sum_to_size(x: Any, *, size: Any) -> Any:
    got, size = x._array.shape, tuple(size)
    if got == size:
        return x
    if not size:
        return TENSORS.sum_all(x, dtype=None)
    extra = len(got) - len(size)
    dims = [d for d, n in enumerate(got) if d < extra or (size[d - extra] == 1 and n != 1)]
    x = TENSORS.sum(x, dim=tuple(dims), keepdim=True, dtype=None)
    return TENSORS.view(x, size=size) if extra else x


def _real(x: Any) -> Any:
    if not is_complex(x):
        return x
    return TENSORS.select(TENSORS.view_as_real(x), dim=-1, index=0)


def _in_order(x: Any) -> Any:
    array = x._array
    done = not isinstance(array, np.ndarray) or array.flags.c_contiguous
    return x if done else TENSORS.clone(x, memory_format="contiguous")


TENSORS.replace(
    put_values=_put_values,
    add_values=_add_values,
    cumsum_reversed=_cumsum_reversed,
    index_select_backward=_index_select_backward,
    gather_backward=_gather_backward,
    masked_select_backward=_masked_select_backward,
    index_backward=_index_backward,
    silu_backward=_silu_backward,
    mish_backward=_mish_backward,
    sum_to_size=_sum_to_size,
    real=_real,
    in_order=_in_order,
)

# The first power is the array itself, for rules do not write to what they are given.
_power_of_arrays = ARRAYS.pow_scalar
ARRAYS.replace(
    pow_scalar=lambda x, exponent: x if exponent == 1 else _power_of_arrays(x, exponent=exponent)
)
