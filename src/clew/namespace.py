"""The ``F`` of rules.  Layer 2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew.op import REGISTRY, Op


class Namespace:
    """Every op as a function, made by `make` when first asked for; the ``F`` of rules."""

    def __init__(self, make: Callable[[Op], Callable[..., Any]]) -> None:
        self._make = make

    def __getattr__(self, name: str) -> Any:
        found = REGISTRY.get(name)
        if found is None:
            raise AttributeError(f"clew has no op named {name!r}")
        function = self._make(found)
        setattr(self, name, function)
        return function

    def replace(self, **functions: Callable[..., Any]) -> None:
        """Let rules call these functions instead of the ops of their names."""
        self.__dict__.update(functions)
