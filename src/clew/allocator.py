"""Memory that arrays let go of is kept for the next ones.  Layer 1: imports nothing of clew.

Note [Freed memory]
    A training step makes and drops the same large arrays again and again.  The C library gives a
    large block back to the system when it is freed, and the next array pays a page fault for each
    4 kB of a fresh one: up to half the time of arithmetic on large arrays.  glibc keeps freed
    blocks if it is told to: ``M_MMAP_MAX=0`` puts large blocks onto its heap as well, and
    ``M_TRIM_THRESHOLD`` says how many bytes may lie free at the heap's end before they go back to
    the system.  So this pool has no code that runs for an array, and serves the whole process.

    The limit bounds what lies free at the heap's end.  What lies free between blocks in use is
    beyond it: it waits for the next arrays, or for `give_back`.  A thread's own heaps hold 64 MB
    at most; larger blocks of threads come from the system as before.

    The settings are made when clew computes for the first time, not when it is imported: a program
    that looks at PyTorch's graphs with clew keeps the allocator that it had.
"""

from __future__ import annotations

import ctypes
import os
import warnings
from typing import Any, NamedTuple

MEGABYTE = 10**6
DEFAULT_LIMIT = 1000 * MEGABYTE
LARGEST_LIMIT = 2**31 - 1
"""What mallopt takes, an int."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4
_GLIBC_DEFAULTS = ((_MMAP_MAX, 65536), (_MMAP_THRESHOLD, 128 * 1024), (_TRIM_THRESHOLD, 128 * 1024))


class Pool(NamedTuple):
    """What the C library's allocator holds now.

    Attributes:
        limit: how many bytes may lie free at the heap's end, once clew has computed something; 0
            where freed memory is not kept.
        free: the bytes that lie free in the allocator, for the next arrays; None if unknown.
        used: the bytes of blocks in use, of the whole process; None if unknown.
    """

    limit: int
    free: int | None
    used: int | None


class _Mallinfo2(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
            "fordblks", "keepcost",
        )
    ]  # fmt: skip


def _find_glibc() -> Any:
    """The C library if it is glibc, else None: others have no such settings, or other meanings."""
    try:
        library = ctypes.CDLL(None)
    except (OSError, TypeError):  # Windows
        return None
    names = ("gnu_get_libc_version", "mallopt", "malloc_trim")
    return library if all(hasattr(library, name) for name in names) else None


def available() -> bool:
    """Whether freed memory can be kept here: the C library is glibc."""
    return _find_glibc() is not None


_limit: int | None = None
"""The limit that is in force; None before the settings were made."""


def wanted_limit() -> int:
    """The limit in bytes that ``CLEW_POOL`` asks for, in MB (0: keep nothing); 1 GB without it."""
    text = os.environ.get("CLEW_POOL", "")
    if not text:
        return DEFAULT_LIMIT
    try:
        return _checked(int(text) * MEGABYTE)
    except ValueError:
        warnings.warn(
            f"CLEW_POOL={text} is no number of MB from 0 to {LARGEST_LIMIT // MEGABYTE}; "
            f"{DEFAULT_LIMIT // MEGABYTE} is used",
            RuntimeWarning,
            stacklevel=2,
        )
        return DEFAULT_LIMIT


def start() -> None:
    """Make the settings that ``CLEW_POOL`` asks for, unless there are any; Note [Freed memory]."""
    global _limit
    if _limit is None:
        _limit = 0
        limit = wanted_limit()
        if limit:
            set_pool(limit)


def set_pool(limit: int) -> None:
    """Keep up to `limit` bytes of freed memory for the next arrays; 0 gives it back at once.

    Does nothing where the C library is not glibc (macOS, Windows, Alpine).

    Raises:
        ValueError: the limit is negative or above 2**31 - 1.
    """
    global _limit
    _checked(limit)
    library = _find_glibc()
    if library is None:
        _limit = 0
        return
    _limit = limit
    if limit:
        library.mallopt(_MMAP_MAX, 0)
        library.mallopt(_TRIM_THRESHOLD, limit)
        return
    for option, value in _GLIBC_DEFAULTS:
        library.mallopt(option, value)
    library.malloc_trim(0)


def _checked(limit: int) -> int:
    if not 0 <= limit <= LARGEST_LIMIT:
        raise ValueError(f"the pool's limit must be from 0 to {LARGEST_LIMIT} bytes, not {limit}")
    return limit


def pool() -> Pool:
    """What the C library's allocator holds now; of clew's arrays and of all else in the process."""
    library = _find_glibc()
    if _limit is not None:
        limit = _limit
    else:
        limit = wanted_limit() if available() else 0
    if library is None or not hasattr(library, "mallinfo2"):  # since glibc 2.33
        return Pool(limit, None, None)
    library.mallinfo2.restype = _Mallinfo2
    info = library.mallinfo2()
    return Pool(limit, info.fordblks, info.uordblks + info.hblkhd)


def give_back() -> int:
    """Give freed memory back to the system; how many bytes smaller the process is now.

    The limit stays as it is, so what is freed from now on is kept again.
    """
    library = _find_glibc()
    if library is None:
        return 0
    before = _resident()
    library.malloc_trim(0)
    return max(before - _resident(), 0)


def _resident() -> int:
    """The bytes of the process that are in memory; 0 where ``/proc`` is not there."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
