"""Modules without the first values of their parameters.

May import the core of clew and `clew.nn.modules`.
"""

from __future__ import annotations

import inspect
from typing import Any

import clew
from clew.nn.modules.module import Module

__all__ = ["skip_init"]


def skip_init(module_cls: type, *args: Any, **kwargs: Any) -> Any:
    """A module whose parameters are uninitialised memory; no random numbers are used up.

    Args:
        module_cls: the class; its constructor must take `device`.
        args, kwargs: for the constructor.

    Raises:
        RuntimeError: the class is no Module, or does not take `device`.
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    state = clew.get_rng_state()
    try:
        made = module_cls(*args, **kwargs)
    finally:
        clew.set_rng_state(state)
    return made.to_empty(device=kwargs.get("device", "cpu"))
