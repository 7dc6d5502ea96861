"""The modules that every operation passes, compiled ahead of time where the user asked for it.

Layer 0: imports the standard library only, for ``import clew`` begins here.

Note [Compiled core]
    The modules in `MODULES` are plain Python, and run as that.  ``clew compile`` makes extension
    modules of the same files with Cython, which a ``.pxd`` file beside each tells the types; that
    is all it is given.  They lie in a folder named by a digest of these sources, of where they are
    and of the version of Python, so whatever else is installed or edited later does not find them
    and runs as Python.
    ``import clew`` puts that folder in front of the package's own, on its ``__path__``.

    A field of a class is fast to reach where the type of the variable is known.  So what holds a
    tensor or something else has another name where it is known to be a tensor, and those names
    stand in the ``.pxd``.  An integer has a C type there only if it counts or numbers things: a
    mask has a bit for each of any number of inputs.

    Compiled functions have no frame, so frames cannot be counted: see `frames`.
"""

from __future__ import annotations

import hashlib
import os
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

SOURCE = Path(os.path.abspath(__file__)).parent
"""Where clew's Python files are."""

MODULES = (
    "autograd.algebra", "autograd.engine", "autograd.modes", "autograd.node", "autograd.saved",
    "dispatch", "fields", "op", "plan", "recording", "site", "storage",
)  # fmt: skip
"""What is compiled, without ``clew.``."""

ROOT = SOURCE / "_compiled"
"""What `folder` is in."""


def sources() -> list[Path]:
    """The files that are compiled, those that tell the types, and the one that says how."""
    paths = [SOURCE.joinpath(*module.split(".")) for module in MODULES]
    found = [path.with_suffix(suffix) for path in paths for suffix in (".py", ".pxd")]
    return [*found, SOURCE / "cli" / "compile.py"]


def folder() -> Path:
    """Where the compiled modules of these sources and this Python belong."""
    digest = hashlib.sha256(f"{EXTENSION_SUFFIXES[0]} {SOURCE}".encode())
    for path in sources():
        digest.update(path.read_bytes())
    return ROOT / digest.hexdigest()[:16]


def is_wanted() -> bool:
    """Whether compiled modules are used where there are some: ``CLEW_COMPILED=0`` forbids it."""
    return os.environ.get("CLEW_COMPILED", "") != "0"


def is_used() -> bool:
    """Whether this program runs compiled modules."""
    return _used


def frames(count: int) -> int:
    """How many frames there are of `count` functions that may be compiled: none, if they are.

    For who looks for a frame outside of clew: to begin with too few does no harm.
    """
    return 0 if _used else count


def path_of(package: str) -> list[str]:
    """What goes in front of the ``__path__`` of a package of clew: one folder or none."""
    return [str(_found.joinpath(*package.split(".")))] if _found is not None else []


def _find() -> Path | None:
    if not is_wanted() or not ROOT.is_dir():
        return None
    found = folder()
    return found if found.is_dir() else None


_found = _find()
_used = _found is not None
