"""``clew.accelerator``: ``torch.accelerator`` on a machine without one.  Layer 5."""

from __future__ import annotations

from typing import Any, NoReturn

from clew.device import device


def is_available() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def current_accelerator(check_available: bool = False) -> device | None:
    """None."""
    return None


def _needs_one(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises RuntimeError: there is no accelerator."""
    raise RuntimeError("Cannot access accelerator device when none is available.")


current_device_idx = current_device_index = set_device_idx = set_device_index = _needs_one
current_stream = set_stream = synchronize = _needs_one
empty_cache = memory_stats = memory_allocated = max_memory_allocated = _needs_one
memory_reserved = max_memory_reserved = _needs_one
reset_accumulated_memory_stats = reset_peak_memory_stats = _needs_one
