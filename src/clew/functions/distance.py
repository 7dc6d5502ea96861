"""Distances and angles between vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew import dtypes
from clew.autograd.modes import no_grad
from clew.functions.calls import Tensor, call, require_tensors
from clew.functions.join import broadcast_tensors
from clew.functions.norms import norm, vector_norm
from clew.publish import composite


@composite(method=False)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Any:
    """The cosine of the angle between vectors along `dim`; norms count as `eps` at least.

    Raises:
        RuntimeError: the tensors' common type is not floating.
    """
    require_tensors("cosine_similarity", x1=x1, x2=x2)
    common = dtypes.result_type([x1._array, x2._array])
    if not common.is_floating_point:
        raise RuntimeError(
            "expected common dtype to be floating point, yet common dtype is "
            f"{dtypes.SCALAR_NAMES[common.name]}"
        )
    units = []
    for x in broadcast_tensors(x1, x2):
        if x.dtype is not common:
            x = call("to_dtype", x, dtype=common)
        length = vector_norm(x, 2, dim, keepdim=True).clone()
        with no_grad():  # the gradient is that of the norm, even where eps stands for it
            length.clamp_(min=eps)
        units.append(x / length)
    return (units[0] * units[1]).sum(dim)


@composite(method=False)
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Any:
    """The p-norm of ``x1 - x2 + eps`` over the last dimension; shapes broadcast."""
    require_tensors("pairwise_distance", x1=x1, x2=x2)
    return norm(x1 - x2 + eps, p, -1, keepdim)


@composite(method=False)
def pdist(input: Tensor, p: float = 2.0) -> Any:
    """The p-norm distances of all pairs of rows of a matrix, (0, 1), (0, 2), ..., (1, 2), ...

    Raises:
        RuntimeError: the input is no floating matrix, or `p` is negative.
    """
    require_tensors("pdist", input=input)
    if input.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    if not input.is_floating_point():
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    first, second = (Tensor._from_array(i) for i in np.triu_indices(input._array.shape[0], 1))
    return vector_norm(input[first] - input[second], p, -1)
