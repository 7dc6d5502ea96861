"""Errors of forwards for types that they are not made for.  Layer 2: arrays only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from clew.dtypes import scalar_name


def floating_only(x: Any, kernel: str) -> None:
    """Refuse what is not real floating point.

    Raises:
        NotImplementedError: `x` has another type; `kernel` is named as PyTorch names its own.
    """
    if x.dtype.kind not in "fV":
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(x.dtype)}'")


def single_or_double_only(x: Any, kernel: str) -> None:
    """Refuse all but float32 and float64.

    Raises:
        NotImplementedError: `x` has another type; `kernel` is named as PyTorch names its own.
    """
    if x.dtype.kind != "f" or x.dtype.itemsize < 4:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(x.dtype)}'")


def as_arrays(x: Any, y: Any) -> tuple[Any, Any]:
    """Two operands, one of which may be a number, as arrays of the type of the other."""
    kind = x.dtype if isinstance(x, np.ndarray) else y.dtype
    return np.asarray(x, kind), np.asarray(y, kind)


def real_only(x: Any, kernel: str) -> None:
    """Refuse bools and complex numbers.

    Raises:
        NotImplementedError: `x` has such a type; `kernel` is named as PyTorch names its own.
    """
    if x.dtype.kind in "bc":
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(x.dtype)}'")


def clamp_real_only(x: Any) -> None:
    """Refuse complex numbers as PyTorch's `clamp` does, and what is made of it.

    Raises:
        NotImplementedError: `x` is complex.
    """
    if x.dtype.kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")


def differentiable_once(name: str) -> Callable[..., Any]:
    """The rule of a derivative that has none itself: it raises when a gradient arrives.

    `name` is PyTorch's name of the op, which has no derivative there either.
    """

    def rule(F: Any, grads: Any) -> Any:
        raise RuntimeError(f"derivative for aten::{name} is not implemented")

    return rule
