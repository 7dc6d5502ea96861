"""Convolutions by oneDNN, where it is installed.  Layer 1.

Note [oneDNN]
    oneDNN is Intel's library of convolutions in machine code, the one that PyTorch uses; the extra
    ``clew[onednn]`` installs it.  `library` calls its C interface through ctypes, `convolution`
    says what a convolution is to it.  It is loaded when the first convolution asks for it.

    `conv` decides, from types and shapes alone, which convolutions oneDNN gets: those of float32
    that are no plain matrix product.  Arrays are handed over as they lie in memory; oneDNN
    rearranges them to blocks of channels, and its result back, in memory that lives as long as the
    call.  It runs in the calling thread: `conv` splits the batch (Note [Threads]), so that results
    do not depend on the number of threads.

    Without it, or if ``CLEW_ONEDNN=0`` or `switch` turned it off, or if it cannot be loaded, which
    is said once, convolutions are NumPy's.
"""

from __future__ import annotations

import os
import warnings
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.kernels.onednn.convolution import Convolutions

_wanted = os.environ.get("CLEW_ONEDNN", "1") != "0"


def convolutions() -> Convolutions | None:
    """oneDNN's convolutions, or None where NumPy's are to be used."""
    return _load() if _wanted else None


@cache
def _load() -> Convolutions | None:
    path = _find()
    if path is None:
        return None
    from clew.kernels.onednn.convolution import Convolutions
    from clew.kernels.onednn.library import Library

    try:
        return Convolutions(Library(path))
    except (OSError, AttributeError) as error:
        warnings.warn(
            f"oneDNN is installed but cannot be loaded, so convolutions are NumPy's: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
        return None


def _find() -> Path | None:
    """The file of the library, or None if it is not installed."""
    from importlib.metadata import PackageNotFoundError, files

    try:
        installed = files("onednn-cpu-gomp") or []
    except PackageNotFoundError:
        return None
    return next((Path(str(f.locate())) for f in installed if f.name == "libdnnl.so.3"), None)


def is_available() -> bool:
    """Whether oneDNN is installed and can be loaded."""
    return _load() is not None


def is_wanted() -> bool:
    """Whether oneDNN is switched on, be it there or not."""
    return _wanted


def switch(on: bool) -> None:
    """Use oneDNN, or NumPy alone, from now on, in all threads."""
    global _wanted
    _wanted = on
