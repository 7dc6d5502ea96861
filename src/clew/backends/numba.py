"""Kernels compiled by numba, where it is installed; a backend that PyTorch does not have.

``clew.backends.numba.enabled`` can be read and set: with False, kernels are NumPy's.  So is the
environment's ``CLEW_NUMBA=0``.  Results of the two agree within a few units in the last place.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager

from clew.kernels import compiled

enabled: bool
"""Whether kernels are compiled; set it to change that, for all threads."""


def is_available() -> bool:
    """Whether numba is installed."""
    return compiled.is_available()


@contextmanager
def flags(enabled: bool = True) -> Iterator[None]:
    """A scope in which kernels are compiled, or not."""
    before = compiled.is_wanted()
    compiled.switch(enabled)
    try:
        yield
    finally:
        compiled.switch(before)


class _Module(types.ModuleType):
    """This module, with an attribute that is computed."""

    @property
    def enabled(self) -> bool:
        return compiled.is_enabled()

    @enabled.setter
    def enabled(self, on: bool) -> None:
        compiled.switch(on)


sys.modules[__name__].__class__ = _Module
