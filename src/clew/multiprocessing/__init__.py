"""``clew.multiprocessing``: Python's multiprocessing, with tensors sent by shared memory.  Layer 5.

A drop-in for ``multiprocessing`` with the same names.  A tensor that is put in a queue or given to
a process is moved to shared memory, in place, and both processes then see the same elements;
gradients are not sent.  ``spawn`` runs a function in several processes and raises what one of
them raised.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing import *  # noqa: F403

from clew.multiprocessing import reductions
from clew.multiprocessing.spawning import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    *multiprocessing.__all__,
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]

_STRATEGY = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """The ways in which tensors can be shared: one."""
    return {_STRATEGY}


def get_sharing_strategy() -> str:
    """The way in which tensors are shared."""
    return _STRATEGY


def set_sharing_strategy(new_strategy: str) -> None:
    """Accepts the strategy that clew has.

    Raises:
        AssertionError: another one.
    """
    if new_strategy != _STRATEGY:
        raise AssertionError(f"Invalid sharing strategy '{new_strategy}', clew has '{_STRATEGY}'")


def init_reductions() -> None:
    """Teach multiprocessing's pickler how tensors are sent; importing this package does it."""
    reductions.register()


init_reductions()
