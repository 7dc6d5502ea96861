"""Functions that compute with the values of tensors, outside of all ops and without a gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from clew.autograd.transforms import note_new, stack
from clew.tensor import Tensor


def of_values(function: Callable[..., Any], *tensors: Tensor) -> Any:
    """``function(*arrays)`` as a tensor; inside `vmap` for each example, with its own values."""
    level = next((x for x in reversed(stack.levels) if hasattr(x, "of_values")), None)
    if level is not None:
        found = level.of_values(function, tensors)
        note_new(found)
        return found
    return Tensor._from_array(np.asarray(function(*[x._array for x in tensors])))


def refuse_values(text: str, *tensors: Tensor) -> None:
    """Raise this text if a tensor is an example of `vmap`, which has no values.

    Raises:
        RuntimeError: one is.
    """
    if not all(isinstance(x._array, np.ndarray) for x in tensors):
        raise RuntimeError(text)


def refuse_batch(tensor: Tensor, name: str) -> None:
    """Refuse an example of `vmap` where the result's shape depends on values.

    Raises:
        RuntimeError: it is one.
    """
    refuse_values(
        "vmap: We do not support batching operators that can output dynamic shape. Attempted "
        f"to vmap over aten::{name}. Please file an issue at "
        "https://github.com/pytorch/pytorch/issues if you need this feature.",
        tensor,
    )
