"""Where compiled twins are kept between programs.  Layer 1; imports numba.

numba writes one file for each kernel, type and processor, under a temporary name which it then
renames, so that two programs may do it at once.  Here is which folder that is, and what happens if
it cannot be read or written: the kernel is compiled for this program alone.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from platformdirs import user_cache_dir

SILENT = False
"""Whether compiling is not announced, because somebody shows its progress."""

_announced: set[str] = set()


def folder() -> Path:
    """The folder of this version's compiled kernels; ``CLEW_CACHE_DIR`` sets the one above."""
    above = os.environ.get("CLEW_CACHE_DIR") or user_cache_dir("clew", appauthor=False)
    return Path(above) / "kernels" / _stamp()


@functools.cache
def _stamp() -> str:
    """Changes whenever the source of any twin does: they call one another's functions."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def announce(text: str) -> None:
    """Say something on the standard error, once in a program."""
    if not SILENT and text not in _announced:
        _announced.add(text)
        print(f"clew: {text}", file=sys.stderr, flush=True)


class _Locator(_CacheLocator):
    """Tells numba the folder."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._line = function.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        return str(folder())

    def get_source_stamp(self) -> str:
        return _stamp()

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator:
        return cls(py_func)


class _Implementation(CompileResultCacheImpl):
    _locator_classes = (_Locator,)


class Cache(FunctionCache):
    """numba's cache of one function, which never fails, and announces what it does not hold."""

    _impl_class = _Implementation

    def __init__(self, function: Callable[..., Any], what: str) -> None:
        super().__init__(function)
        self._what = what

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function, or None."""
        found = None
        with contextlib.suppress(Exception):  # a damaged file, of which numba may raise anything
            found = super().load_overload(sig, target_context)
        if found is None:
            announce(
                "compiling kernels as they are first used, about a second each and once on this "
                "machine; `clew warmup` compiles all ahead of time"
            )
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the compiled function, if it can be kept."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            announce(
                f"compiled kernels cannot be kept in {folder()} ({error.strerror or error}); "
                "CLEW_CACHE_DIR names another folder"
            )
