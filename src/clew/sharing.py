"""Arrays in memory that several processes see.  Layer 1: NumPy and the standard library.

The memory is an anonymous file that each process maps; another process gets it by a duplicate of
the file's descriptor, so nothing has a name that could be left behind: it is gone when the last
process lets go.  (PyTorch calls this the "file_descriptor" strategy.)
"""

from __future__ import annotations

import mmap
import os
import tempfile
from typing import Any

import numpy as np

from clew.storage import root


class SharedMemory(mmap.mmap):
    """A mapped file, with a descriptor of it to give to other processes."""

    descriptor: int

    @classmethod
    def map(cls, descriptor: int, nbytes: int) -> SharedMemory:
        """Map a file of at least `nbytes`; the object owns the descriptor from now on."""
        memory = cls(descriptor, max(nbytes, 1))
        memory.descriptor = descriptor
        return memory

    def __del__(self) -> None:
        descriptor = self.__dict__.pop("descriptor", None)
        if descriptor is not None:
            os.close(descriptor)


def shared_array(nbytes: int) -> np.ndarray:
    """Bytes in new shared memory, all zero."""
    memory = SharedMemory.map(_anonymous_file(max(nbytes, 1)), nbytes)
    return np.frombuffer(memory, np.uint8, nbytes)


def attached_array(descriptor: int, nbytes: int) -> np.ndarray:
    """The bytes behind a descriptor that another process has given."""
    return np.frombuffer(SharedMemory.map(descriptor, nbytes), np.uint8, nbytes)


def shared_memory(array: np.ndarray) -> SharedMemory | None:
    """The shared memory that `array` lies in, or None if it lies in the process's own."""
    base: Any = root(array).base
    if isinstance(base, memoryview):
        base = base.obj
    return base if isinstance(base, SharedMemory) else None


def _anonymous_file(nbytes: int) -> int:
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("clew")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.truncate(descriptor, nbytes)
    return descriptor
