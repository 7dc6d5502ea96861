"""Compiled twins of kernels, by numba where it is installed.  Layer 1.

Note [Twins]
    A kernel is a NumPy function, which works everywhere and is the reference.  Where compiled
    code pays, it asks for its twin and leaves only the inner loops to it::

        fast = twins("softmax", x.dtype) if x.size > SMALL else None
        if fast is None:
            ...                                # NumPy
        else:
            fast.softmax(out, x)               # a function of compiled/softmax.py

    A twin is a function decorated with `kernel`, which declares the types of its arguments:
    written arrays first, then what is only read.  It is compiled for one floating type when it is
    first asked for, never anew for other arguments: numba converts numbers and refuses arrays of
    another type, so the caller brings C-contiguous, aligned arrays of that type.  What it does to
    NaN, infinities and denormals is what the reference does; results agree within a few units in
    the last place.

    numba is imported when the first twin is asked for, and compiled code is kept in the user's
    cache directory (`compiled.cache`).  `twins` answers None where numba is missing, was switched
    off (``CLEW_NUMBA=0``, or `switch`), or the type is none of float32 and float64.
"""

from __future__ import annotations

import importlib
import os
import threading
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from clew.kernels.compiled.kernel import Kernel

MODULES = ("softmax",)
"""The modules of this package that hold twins."""

_TYPES = (np.dtype(np.float32), np.dtype(np.float64))

_lock = threading.RLock()
_found: dict[tuple[str, np.dtype], Twins | None] = {}
_wanted = os.environ.get("CLEW_NUMBA", "1") != "0"


class Twins:
    """The twins of one module for one floating type; attributes are compiled when first read."""

    def __init__(self, module: str, dtype: np.dtype) -> None:
        self._module = module
        self._dtype = dtype

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        kernel: Kernel = getattr(
            importlib.import_module(f"clew.kernels.compiled.{self._module}"), name
        )
        with _lock:
            function = self.__dict__.get(name) or kernel.compile(self._dtype)
            self.__dict__[name] = function
        return function


def twins(module: str, dtype: np.dtype) -> Twins | None:
    """The twins in `module` for arrays of `dtype`, or None where NumPy is to be used."""
    try:
        return _found[module, dtype]
    except KeyError:
        return _find(module, dtype)


def _find(module: str, dtype: np.dtype) -> Twins | None:
    usable = _wanted and is_available() and dtype in _TYPES
    found = _found[module, dtype] = Twins(module, dtype) if usable else None
    return found


def is_available() -> bool:
    """Whether numba is installed."""
    return find_spec("numba") is not None


def is_enabled() -> bool:
    """Whether kernels have compiled twins now."""
    return _wanted and is_available()


def switch(on: bool) -> None:
    """Use compiled twins, or NumPy alone, from now on, in all threads."""
    global _wanted
    _wanted = on
    _found.clear()
