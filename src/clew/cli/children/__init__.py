"""Lets processes that a program under `clew run` starts afresh mean clew by `torch` too.

Standard library only.  multiprocessing's "spawn" and "forkserver" hand `sys.path` to the new
process and import the program's main file there before anything else.  So this folder is put on
`sys.path` for the run: its `torch.py` is what `import torch` finds in such a process, and turns
the alias on.  The program's own process never gets that far, since the alias answers first.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

FOLDER = os.path.dirname(__file__)


@contextmanager
def torch_means_clew_in_children() -> Iterator[None]:
    """Have this folder on `sys.path`, before any real torch."""
    sys.path.insert(1, FOLDER)
    try:
        yield
    finally:
        with suppress(ValueError):  # the program may rearrange its path
            sys.path.remove(FOLDER)
