"""`clew info`: versions, BLAS and its threads, and which extras are there.

Imports the standard library and NumPy; rich when it prints.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import os
import platform
import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Extra:
    """An optional part of the installation."""

    name: str
    packages: tuple[str, ...]
    enables: str


EXTRAS = (
    Extra("fast", ("numba", "platformdirs"), "compiled kernels"),
    Extra("compile", ("cython", "setuptools"), "`clew compile`: shorter small operations"),
    Extra("onednn", ("onednn-cpu-gomp",), "convolutions, matrix products by PyTorch's library"),
    Extra("see", ("pygraphviz",), "graph pictures where Graphviz's dot is not installed"),
    Extra("mpi", ("mpi4py",), "data parallelism over processes, which is to come"),
    Extra("examples", ("scikit-learn", "gymnasium", "pillow"), "the data that the examples use"),
)
"""The extras of pyproject.toml that give clew something more to do."""

_REQUIRED = ("numpy", "ml_dtypes", "safetensors", "rich")
_THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


def main(arguments: list[str]) -> int:
    """Print what is installed; return 0.

    Raises:
        SystemExit: help was asked for, or an argument given (status 2).
    """
    parser = argparse.ArgumentParser(
        prog="clew info",
        description="Show versions, BLAS threads, and which extras are installed.",
        allow_abbrev=False,
    )
    parser.parse_args(arguments)
    from rich.console import Console

    # Paths and `clew[fast]` hold square brackets, which would be read as markup.
    console = Console(highlight=False, markup=False, emoji=False)
    console.print(_versions_table())
    console.print(_extras_table())
    return 0


def version_of(package: str) -> str | None:
    """The installed version of a distribution, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def blas() -> str:
    """The BLAS that NumPy was built with."""
    import numpy as np

    build = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"{build.get('name', 'unknown')} {build.get('version', '')}".strip()


def blas_threads() -> str:
    """How many threads BLAS uses, and how that is known."""
    importlib.import_module("numpy")  # threadpoolctl looks at what is loaded
    try:
        pools = importlib.import_module("threadpoolctl").threadpool_info()
    except ImportError:
        for variable in _THREAD_VARIABLES:
            if variable in os.environ:
                return f"{os.environ[variable]} ({variable})"
        return f"one per core, {os.cpu_count()} (none of {', '.join(_THREAD_VARIABLES)} is set)"
    return ", ".join(str(pool["num_threads"]) for pool in pools if pool["user_api"] == "blas")


def freed_memory() -> str:
    """Whether freed memory is kept for the next arrays, and how much; see ``clew.memory.pool``."""
    from clew.allocator import available, pool
    from clew.inspect.text import bytes_text

    if not available():
        return "given back at once (the C library is not glibc)"
    limit = pool().limit
    if not limit:
        return "given back at once (CLEW_POOL=0)"
    return f"up to {bytes_text(limit)} kept for the next arrays (CLEW_POOL, in MB)"


def kernels() -> str:
    """Whether kernels are compiled, and where those are kept."""
    from clew.inspect.text import bytes_text
    from clew.kernels import compiled
    from clew.kernels.compiled import cache

    if not compiled.is_enabled():
        why = "CLEW_NUMBA=0" if compiled.is_available() else "numba is not installed"
        return f"NumPy's ({why})"
    count, size = cache.usage()
    return f"compiled by numba; {count} are kept, {bytes_text(size)}, in {cache.folder()}"


def _versions_table() -> Table:
    table = _table()
    table.add_column("", no_wrap=True)
    table.add_column("")
    table.add_row("clew", version_of("clew"))
    table.add_row("Python", f"{platform.python_version()}, {sys.executable}")
    for package in _REQUIRED:
        table.add_row(package, version_of(package) or "missing")
    table.add_row("BLAS", blas())
    table.add_row("BLAS threads", blas_threads())
    table.add_row("kernels", kernels())
    table.add_row("freed memory", freed_memory())
    table.add_row("torch", version_of("torch") or "not installed (--engine torch needs it)")
    table.add_row("dot", shutil.which("dot") or "not installed (Graphviz's program)")
    return table


def _extras_table() -> Table:
    table = _table(header=True)
    table.add_column("extra", no_wrap=True)
    table.add_column("what it enables")
    table.add_column("installed")
    for extra in EXTRAS:
        versions = {package: version_of(package) for package in extra.packages}
        if all(versions.values()):
            status = ", ".join(f"{package} {version}" for package, version in versions.items())
        else:
            status = f"no: pip install 'clew[{extra.name}]'"
        table.add_row(extra.name, extra.enables, status)
    return table


def _table(header: bool = False) -> Table:
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_header=header)
