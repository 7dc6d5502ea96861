"""oneDNN: not used.  The flags can be set and read, and change nothing."""

from __future__ import annotations

enabled = False
deterministic = False


def is_available() -> bool:
    """False."""
    return False
