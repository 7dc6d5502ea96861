"""PyTorch's ``torch.utils``: data loading, checkpointing, hooks.  Layer 5.

Submodules are imported when they are first used.
"""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    """Import a submodule when it is first used."""
    if not name.startswith("_"):
        try:
            return importlib.import_module(f"clew.utils.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"clew.utils.{name}":
                raise
    raise AttributeError(f"module 'clew.utils' has no attribute '{name}': clew lacks it (yet)")
