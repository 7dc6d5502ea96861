"""Convolutions and matrix products by oneDNN, where it is installed.  Layer 1.

Note [oneDNN]
    oneDNN is Intel's library of convolutions and matrix products in machine code, the one that
    PyTorch uses; the extra ``clew[onednn]`` installs it.  `library` calls its C interface through
    ctypes, `convolution` says what a convolution is to it, `product` what a product is.  It is
    loaded when the first convolution or large product asks for it, which takes 0.1 s.

    `conv` decides, from types and shapes alone, which convolutions oneDNN gets: those of float32
    that are no plain matrix product.  Arrays are handed over as they lie in memory; oneDNN
    rearranges them to blocks of channels, and its result back, in memory that lives as long as the
    call.  `kernels.product` decides so for matrix products.

    oneDNN runs in the calling thread, and its OpenMP has one thread meanwhile.  `conv` splits the
    batch, `kernels.product` the rows or columns (Note [Threads]).  So results do not depend on the
    number of threads, where OpenMP's own would divide what is summed up by their number; and
    nothing waits for threads that other programs keep from running, or that a fork left behind.

    Without it, or if ``CLEW_ONEDNN=0`` or `switch` turned it off, or if it cannot be loaded, which
    is said once, convolutions and products are NumPy's.
"""

from __future__ import annotations

import os
import warnings
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from clew.kernels.onednn.convolution import Convolutions
    from clew.kernels.onednn.product import Products

_wanted = os.environ.get("CLEW_ONEDNN", "1") != "0"


def convolutions() -> Convolutions | None:
    """oneDNN's convolutions, or None where NumPy's are to be used."""
    found = _load() if _wanted else None
    return found and found[0]


def products() -> Products | None:
    """oneDNN's matrix products, or None where NumPy's are to be used."""
    found = _load() if _wanted else None
    return found and found[1]


@cache
def _load() -> tuple[Convolutions, Products] | None:
    path = _find()
    if path is None:
        return None
    from clew.kernels.onednn.convolution import Convolutions
    from clew.kernels.onednn.library import Library
    from clew.kernels.onednn.product import Products

    try:
        library = Library(path)
        return Convolutions(library), Products(library)
    except (OSError, AttributeError) as error:
        warnings.warn(
            "oneDNN is installed but cannot be loaded, so convolutions and matrix products are "
            f"NumPy's: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
        return None


def _find() -> Path | None:
    """The file of the library, or None if it is not installed."""
    from importlib.metadata import PackageNotFoundError, files
    from pathlib import Path

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
