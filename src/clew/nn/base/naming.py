"""How messages name the type of a value.  May import the core of clew."""

from __future__ import annotations

from typing import Any

from clew.tensor import Tensor


def typename(value: Any) -> str:
    """A tensor's type as in ``torch.FloatTensor``; else the full name of a class, or of a value's.

    Builtins go without their module.
    """
    if isinstance(value, Tensor):
        return str(value.type())
    named = value if hasattr(value, "__qualname__") else type(value)
    module = named.__module__ or ""
    return named.__qualname__ if module in ("", "builtins") else f"{module}.{named.__qualname__}"


def indent(text: str, by: int) -> str:
    """The text with all lines but the first moved `by` spaces to the right."""
    first, *rest = text.split("\n")
    return "\n".join([first, *((" " * by + line if line.strip() else "") for line in rest)])
