"""The state of the random numbers: seeds, saved states, and a scope that leaves no trace.

Layer 4: the names of ``torch.random``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from clew.functions.random import (
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from clew.rng import Generator, default_generator

__all__ = [
    "Generator",
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


@contextlib.contextmanager
def fork_rng(
    devices: Iterable[Any] | None = None, enabled: bool = True, **others: Any
) -> Iterator[None]:
    """A scope after which the default generator continues as if nothing had been drawn in it.

    Args:
        devices: without effect; there is one generator, the CPU's.
        enabled: if False, the scope does nothing.
    """
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)
