"""``clew.jit``: TorchScript, which clew does not have.  Imports nothing of clew.

What only marks code for TorchScript works; what compiles it raises.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

__all__ = [
    "annotate",
    "export",
    "ignore",
    "is_scripting",
    "is_tracing",
    "load",
    "save",
    "script",
    "script_if_tracing",
    "trace",
    "unused",
]

_F = TypeVar("_F", bound=Callable[..., Any])


def _refuse(what: str, instead: str) -> NoReturn:
    raise NotImplementedError(f"clew has no TorchScript, so no torch.jit.{what}: {instead}")


def script(obj: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError."""
    _refuse("script", "use the function or module itself, which computes the same")


def trace(func: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError."""
    _refuse("trace", "use the function or module itself, which computes the same")


def load(f: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError."""
    _refuse("load", "save the model's state_dict with torch.save, and load that")


def save(m: Any, f: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError."""
    _refuse("save", "save the model's state_dict with torch.save")


def is_scripting() -> bool:
    """False."""
    return False


def is_tracing() -> bool:
    """False."""
    return False


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Mark a method that TorchScript is to leave to Python, where all of clew runs."""
    if drop is True:
        warnings.warn(
            "ignore(True) has been deprecated. TorchScript will now drop the function call on "
            "compilation. Use torch.jit.unused now. {}",
            FutureWarning,
            stacklevel=2,
        )
    return drop if callable(drop) else lambda function: function


def unused(fn: _F) -> _F:
    """Mark a method that TorchScript is not to compile."""
    return fn


def export(fn: _F) -> _F:
    """Mark a method that TorchScript is to compile too."""
    return fn


def script_if_tracing(fn: _F) -> _F:
    """Mark a function that is to be compiled when it is traced, which never happens here."""
    return fn


def annotate(the_type: Any, the_value: Any) -> Any:
    """`the_value`; the type is for TorchScript."""
    return the_value
