"""Softmax and its kin.  A missing `dim` is guessed, with a warning, as PyTorch does."""

from __future__ import annotations

import warnings
from typing import Any

from clew.functions import softmax as published
from clew.functions.calls import Tensor
from clew.functions.create import empty_like, zeros_like


def _guess_dim(name: str, ndim: int, stacklevel: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
        "dim=X as an argument.",
        stacklevel=stacklevel + 1,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """``exp(input) / sum(exp(input))`` along `dim`."""
    if dim is None:
        dim = _guess_dim("softmax", input.ndim, _stacklevel)
    return published.softmax(input, dim, dtype)


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """`softmax` of ``-input``."""
    if dim is None:
        dim = _guess_dim("softmin", input.ndim, _stacklevel)
    return published.softmax(-input, dim, dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """The logarithm of `softmax`."""
    if dim is None:
        dim = _guess_dim("log_softmax", input.ndim, _stacklevel)
    return published.log_softmax(input, dim, dtype)


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A sample of the Gumbel-softmax distribution (Jang et al., 2017) of temperature `tau`.

    With `hard` the result is one-hot, and its gradient that of the soft sample.
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    noise = -empty_like(logits).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    chosen = zeros_like(logits).scatter_(dim, index, 1.0)
    return chosen - soft.detach() + soft
