"""oneDNN, by the old name that PyTorch has for it: an extra for convolutions and matrix products.

``clew.backends.mkldnn.enabled`` can be read and set: with False, both are NumPy's.  So they are
with the environment's ``CLEW_ONEDNN=0``.  Results of the two agree within a few units in the last
place.  The other flags change nothing.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager

from clew.kernels import onednn

enabled: bool
"""Whether oneDNN may be used; set it to change that, for all threads."""

deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """Whether oneDNN is installed and can be loaded."""
    return onednn.is_available()


@contextmanager
def flags(
    enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True
) -> Iterator[None]:
    """A scope in which the flags have these values."""
    module = sys.modules[__name__]
    values = {"enabled": enabled, "deterministic": deterministic, "allow_tf32": allow_tf32}
    before = {name: getattr(module, name) for name in values}
    try:
        for name, value in values.items():
            setattr(module, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


class _Module(types.ModuleType):
    """This module, with an attribute that is computed."""

    @property
    def enabled(self) -> bool:
        return onednn.is_wanted()

    @enabled.setter
    def enabled(self, on: bool) -> None:
        onednn.switch(on)


sys.modules[__name__].__class__ = _Module
