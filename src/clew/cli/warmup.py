"""`clew warmup`: compile all kernels ahead of time.

Imports the standard library; numba when it runs.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor

from clew.cli.progress import wait_for_all
from clew.inspect.text import bytes_text
from clew.kernels import compiled
from clew.kernels.compiled import cache

_DESCRIPTION = """\
Compile all kernels for float32 and float64 ahead of time, so that no program has to, and remove
those of other versions of clew.  Kernels are kept in your cache directory, or in the folder that
CLEW_CACHE_DIR names:
  clew warmup
  clew warmup --clear       remove them; programs compile what they use as they use it
"""


def main(arguments: list[str]) -> int:
    """Compile what the cache does not hold; return 0, or 1 if it cannot be kept.

    Raises:
        SystemExit: help was asked for, or the command line is wrong (status 2).
    """
    parser = argparse.ArgumentParser(
        prog="clew warmup",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--clear", action="store_true", help="remove all compiled kernels and compile none"
    )
    options = parser.parse_args(arguments)
    if not compiled.is_available():
        print("clew warmup: kernels are compiled by numba: pip install 'clew[fast]'")
        return 1
    try:
        if options.clear:
            print(f"removed {bytes_text(cache.clear())} from {cache.root()}")
            return 0
        _compile_all()
        freed = cache.clear_old()
    except OSError as error:
        print(f"clew warmup: {error}", file=sys.stderr)
        return 1
    files, size = cache.usage()
    print(f"{files} compiled kernels, {bytes_text(size)}, in {cache.folder()}")
    if freed:
        print(f"removed {bytes_text(freed)} of other versions")
    return 0


def _compile_all() -> None:
    """Fill the cache, showing progress.

    Raises:
        OSError: what was compiled cannot be kept.
    """
    wanted = [(kernel, dtype) for kernel in compiled.all_kernels() for dtype in compiled.TYPES]
    tasks = [(k.name, dtype.name) for k, dtype in wanted if not k.is_kept(dtype)]
    if not tasks:
        return
    pool = ProcessPoolExecutor(
        min(os.cpu_count() or 1, len(tasks)), multiprocessing.get_context("spawn")
    )
    with pool:
        wait_for_all([pool.submit(_compile, *task) for task in tasks], pool, "compiling kernels")


def _compile(name: str, dtype: str) -> None:
    """Compile one kernel, in a process of the pool."""
    kernel = next(kernel for kernel in compiled.all_kernels() if kernel.name == name)
    kernel.build(next(t for t in compiled.TYPES if t.name == dtype))
