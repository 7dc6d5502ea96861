"""Parameters as one vector, and back.  May import the core of clew."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import clew
from clew.nn.base.naming import typename
from clew.tensor import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Any]) -> Any:
    """All elements of the parameters, in order, as one vector (recorded, if they require grad)."""
    return clew.cat([parameter.view(-1) for parameter in parameters])


def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
    """Let the parameters be views of consecutive parts of a vector.

    Raises:
        TypeError: `vec` is no tensor.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {typename(vec)}")
    vector: Any = vec
    start = 0
    for parameter in parameters:
        stop = start + parameter.numel()
        parameter.data = vector[start:stop].view_as(parameter).data
        start = stop
