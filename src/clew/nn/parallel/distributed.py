"""The wrapper for training in several processes, which needs a process group."""

from __future__ import annotations

from typing import Any

from clew.nn.modules.module import Module


class DistributedDataParallel(Module):
    """Raises ValueError, as PyTorch does where no process group was made: clew has none."""

    is_lacking = True  # for tools/compatibility.py

    def __init__(self, module: Module, *args: Any, **kwargs: Any) -> None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group."
        )
