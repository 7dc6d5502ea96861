"""Softmax as function and method: an op behind an optional change of type."""

from __future__ import annotations

from typing import Any

from clew.dispatch import apply
from clew.op import REGISTRY
from clew.publish import composite
from clew.tensor import Tensor


def _along(name: str, self: Tensor, dim: int, dtype: Any) -> Any:
    if not isinstance(self, Tensor):
        raise TypeError(
            f"{name}(): argument 'input' (position 1) must be Tensor, not {type(self).__name__}"
        )
    if dtype is not None and dtype is not self.dtype:
        self = apply(REGISTRY["to_dtype"], (self,), {"dtype": dtype})
    return apply(REGISTRY[name], (self,), {"dim": dim})


@composite(out=True)
def softmax(input: Tensor, dim: int, dtype: Any = None) -> Any:
    """``exp(input) / sum(exp(input))`` along `dim`, computed in `dtype` if that is given."""
    return _along("softmax", input, dim, dtype)


@composite(out=True)
def log_softmax(input: Tensor, dim: int, dtype: Any = None) -> Any:
    """The logarithm of `softmax`, computed without losing digits."""
    return _along("log_softmax", input, dim, dtype)
