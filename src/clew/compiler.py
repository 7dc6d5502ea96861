"""``clew.compiler``: questions and marks for ``torch.compile``, which clew does not have.

Imports nothing of clew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["disable", "is_compiling", "is_dynamo_compiling", "is_exporting", "reset"]


def is_compiling() -> bool:
    """False."""
    return False


def is_dynamo_compiling() -> bool:
    """False."""
    return False


def is_exporting() -> bool:
    """False."""
    return False


def disable(fn: Callable[..., Any] | None = None, recursive: bool = True, **options: Any) -> Any:
    """Mark a function that is not to be compiled: it stays as it is."""
    return fn if fn is not None else lambda function: function


def reset() -> None:
    """Does nothing: nothing was compiled."""
