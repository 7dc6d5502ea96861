"""OpenMP: not used by clew itself."""

from __future__ import annotations


def is_available() -> bool:
    """False."""
    return False
