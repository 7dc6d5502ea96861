"""cuDNN: not there.  The flags can be set and read, and change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

enabled = True
benchmark = False
benchmark_limit: int | None = None
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """False."""
    return False


def version() -> int | None:
    """None."""
    return None


@contextmanager
def flags(**values: Any) -> Iterator[None]:
    """A scope in which flags have other values.

    Raises:
        TypeError: there is no such flag.
    """
    names = ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32")
    unknown = [name for name in values if name not in names]
    if unknown:
        raise TypeError(f"flags() got an unexpected keyword argument '{unknown[0]}'")
    before = {name: globals()[name] for name in values}
    globals().update(values)
    try:
        yield
    finally:
        globals().update(before)
