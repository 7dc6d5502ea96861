"""Switches of the whole library, in one place.  Imports nothing of clew.

Read them as ``config.switches.provenance``; assigning takes effect at once, in every thread.
"""

from __future__ import annotations

import warnings


class Switches:
    """The switches and their defaults."""

    __slots__ = ("provenance", "warn_always")

    def __init__(self) -> None:
        self.provenance = True
        """Record the user's line on each node and each in-place write."""
        self.warn_always = False
        """Repeat the warnings that are otherwise given once per process."""


switches = Switches()


def set_warn_always(enabled: bool) -> None:
    """Whether warnings that are otherwise given once per process are repeated."""
    switches.warn_always = enabled


def is_warn_always_enabled() -> bool:
    """Whether warnings that are otherwise given once per process are repeated."""
    return switches.warn_always


_warned: set[str] = set()


def warn_once(key: str, text: str, stacklevel: int) -> None:
    """Warn of something once in a process, or each time under ``set_warn_always(True)``."""
    if key not in _warned or switches.warn_always:
        _warned.add(key)
        warnings.warn(text, UserWarning, stacklevel=stacklevel + 1)
