"""Run a script with seeded generators, on the engine that `torch` means, and stop it in time.

    python driver.py LINES script.py [arguments]

Scripts that do not seed themselves cannot be compared otherwise.  After LINES printed lines the
script ends (0: never), as with Ctrl-C: many of them train for hours.
"""

from __future__ import annotations

import random
import runpy
import sys
from typing import TextIO

import numpy as np
import torch


class _Stop(BaseException):
    """The script has printed what is compared."""


class _Lines:
    """Standard output that ends the program after a number of lines."""

    def __init__(self, stream: TextIO, lines: int) -> None:
        self._stream, self._left = stream, lines

    def write(self, text: str) -> int:
        self._stream.write(text)
        self._left -= text.count("\n")
        if self._left <= 0:
            self._stream.flush()
            raise _Stop
        return len(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


def main() -> None:
    """Seed, put the script in this program's place, and run it."""
    lines, script = int(sys.argv[1]), sys.argv[2]
    sys.argv = sys.argv[2:]
    sys.path[0] = script.rpartition("/")[0] or "."
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002  # the generator that scripts use
    torch.manual_seed(0)
    if lines:
        sys.stdout = _Lines(sys.stdout, lines)
    try:
        runpy.run_path(script, run_name="__main__")
    except _Stop:
        pass
    finally:
        sys.stdout = sys.__stdout__


if __name__ == "__main__":
    main()
