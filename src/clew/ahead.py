"""The modules that every operation passes, compiled ahead of time where the user asked for it.

Layer 0: imports little of the standard library, for ``import clew`` begins here.

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

import os
from importlib.machinery import EXTENSION_SUFFIXES

SOURCE = os.path.dirname(os.path.abspath(__file__))
"""Where clew's Python files are."""

MODULES = (
    "autograd.algebra", "autograd.engine", "autograd.modes", "autograd.node", "autograd.saved",
    "dispatch", "fields", "op", "plan", "recording", "site", "storage",
)  # fmt: skip
"""What is compiled, without ``clew.``."""

ROOT = os.path.join(SOURCE, "_compiled")
"""What `folder` is in."""


def source_of(module: str) -> str:
    """The file of a module."""
    return os.path.join(SOURCE, *module.split(".")) + ".py"


def sources() -> list[str]:
    """The files that are compiled, those that tell the types, and the one that says how."""
    files = [source_of(module) for module in MODULES]
    return [*files, *[file.removesuffix("py") + "pxd" for file in files], source_of("cli.compile")]


def folder() -> str:
    """Where the compiled modules of these sources and this Python belong."""
    import hashlib

    digest = hashlib.sha256(f"{EXTENSION_SUFFIXES[0]} {SOURCE}".encode())
    for path in sources():
        with open(path, "rb") as file:
            digest.update(file.read())
    return os.path.join(ROOT, digest.hexdigest()[:16])


def is_wanted() -> bool:
    """Whether compiled modules are used where there are some: ``CLEW_COMPILED=0`` forbids it."""
    return os.environ.get("CLEW_COMPILED", "") != "0"


def is_used() -> bool:
    """Whether this program runs compiled modules."""
    return _found is not None


def frames(count: int) -> int:
    """How many frames there are of `count` functions that may be compiled: none, if they are.

    For who looks for a frame outside of clew: to begin with too few does no harm.
    """
    return 0 if _found is not None else count


def path_of(package: str) -> list[str]:
    """What goes in front of the ``__path__`` of a package of clew: one folder or none."""
    return [os.path.join(_found, *package.split("."))] if _found is not None else []


def _find() -> str | None:
    if not is_wanted() or not os.path.isdir(ROOT):
        return None
    found = folder()
    return found if os.path.isdir(found) else None


_found = _find()
