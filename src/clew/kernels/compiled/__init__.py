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
    first asked for, never anew for other arguments.  Nothing checks arrays but tests (Note
    [Loading twins]): the caller brings C-contiguous, aligned arrays of the declared types, and
    numbers.  What a twin does to NaN, infinities and denormals is what the reference does;
    results agree within a few units in the last place.  Any module of this package may hold twins;
    their tests stand in ``tests/kernels/test_*_twins.py``, left out where there are none.

    numba is imported when the first twin is asked for, and compiled code is kept in the user's
    cache directory (Note [Cache of twins]).  `twins` answers None where numba is missing or
    does not work, was switched off (``CLEW_NUMBA=0``, or `switch`), or the type is none of float32
    and float64.

Note [Twin or reference]
    Which of the two runs depends on the arguments of the call alone: its size and type.  A twin
    costs a program some 0.15 s once, for the import of numba, and it would be cheaper for short
    programs to start with NumPy and go over to twins after some work.  But then the same call
    would give other last digits later in the program, and a training run repeated in a process
    would not repeat itself.  So `SMALL` in a kernel is set such that small programs never ask.
"""

from __future__ import annotations

import importlib
import os
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from clew.kernels.compiled.kernel import Kernel

TYPES = (np.dtype(np.float32), np.dtype(np.float64))
"""The floating types that twins are compiled for."""

_lock = threading.RLock()
_found: dict[tuple[str, np.dtype], Twins | None] = {}
_wanted = os.environ.get("CLEW_NUMBA", "1") != "0"


class Twins:
    """The twins of one module for one floating type; attributes are compiled when first read."""

    def __init__(self, module: str, dtype: np.dtype) -> None:
        self._module = importlib.import_module(f"{__name__}.{module}")
        self._dtype = dtype

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        kernel: Kernel = getattr(self._module, name)
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
    found = None
    if is_enabled() and dtype in TYPES:
        try:
            found = Twins(module, dtype)
        except ImportError as error:  # numba refuses versions of NumPy that it does not know
            from clew.kernels.compiled import cache

            cache.announce(f"kernels are NumPy's, since numba cannot be imported: {error}")
    _found[module, dtype] = found
    return found


def all_kernels() -> list[Kernel]:
    """Every twin there is, in order of names; imports numba."""
    import pkgutil

    from clew.kernels.compiled.kernel import Kernel

    found = []
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        found += [value for value in vars(module).values() if isinstance(value, Kernel)]
    return sorted(set(found), key=lambda kernel: kernel.name)


def is_available() -> bool:
    """Whether numba is installed, with all that the extra ``fast`` brings."""
    from importlib.util import find_spec

    return find_spec("numba") is not None and find_spec("platformdirs") is not None


def is_enabled() -> bool:
    """Whether kernels have compiled twins now."""
    return _wanted and is_available()


def is_wanted() -> bool:
    """Whether compiled twins are switched on, be numba there or not."""
    return _wanted


def switch(on: bool) -> None:
    """Use compiled twins, or NumPy alone, from now on, in all threads."""
    global _wanted
    _wanted = on
    _found.clear()
