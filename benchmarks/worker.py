"""One engine in a process of its own: commands come on stdin, answers go to stdout, as JSON.

``["make", workload, file]`` prepares a workload (the file holds its first values) and returns a
reason if the engine cannot; ``["give", workload, file]`` writes those values; ``["warm"]`` returns
the losses of the first steps; ``["round"]`` the seconds of a step; ``["saved"]`` the bytes kept
for backward; ``["peak", workload, file]`` the resident memory of the first steps.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from adapters import ADAPTERS
from workloads import WORKLOADS

WARM = 3
"""Steps before any is timed: compilers compile in the first ones."""


class Worker:
    """What the process does."""

    def __init__(self, adapter: Any) -> None:
        self.adapter = adapter
        self.step: Any = None
        self.count = 1

    def give(self, workload: str, file: str) -> None:
        """Write the first values of a workload."""
        np.savez(file, *self.adapter.give(workload))

    def make(self, workload: str, file: str) -> str | None:
        """Prepare a workload; the reason if that cannot be done."""
        self.step = None  # its memory is free before the next takes more
        if workload in self.adapter.cannot:
            return str(self.adapter.cannot[workload])
        with np.load(file) as values:
            self.step = self.adapter.make(workload, list(values.values()))
        self.count = WORKLOADS[workload][1]
        return None

    def warm(self) -> list[float]:
        """The losses of the first steps."""
        return [self.step() for _ in range(WARM)]

    def round(self) -> float:
        """Seconds of one step."""
        start = time.perf_counter()
        for _ in range(self.count):
            self.step()
        return (time.perf_counter() - start) / self.count

    def saved(self) -> int | None:
        """Bytes kept for backward, where that is counted."""
        count = getattr(self.adapter, "saved_bytes", None)
        return None if count is None else count(self.step)

    def peak(self, workload: str, file: str) -> tuple[int, int]:
        """Resident memory, in bytes, of the first steps of a workload.

        Returns:
            By how much the steps push it up: the highest, less what was resident when all was
            prepared, and code was loaded by the same steps before; and the highest of all.
        """
        self.make(workload, file)
        self.warm()
        self.make(workload, file)
        gc.collect()
        _give_back()
        ever = _resident("VmHWM:")
        Path("/proc/self/clear_refs").write_text("5")  # counts the highest anew
        before = _resident("VmRSS:")
        self.warm()
        highest = _resident("VmHWM:")
        return max(0, highest - before), max(highest, ever)


def _resident(field: str) -> int:
    words = Path("/proc/self/status").read_text().split()
    return int(words[words.index(field) + 1]) * 1024


def _give_back() -> None:
    """Have the C library return what is free, so that all begin with what they use."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def main(name: str, threads: int) -> None:
    """Serve an engine until stdin ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever the engine prints goes elsewhere
    module, _ = ADAPTERS[name]

    def answer(value: Any, error: str | None = None) -> None:
        print(json.dumps({"value": value, "error": error}), file=answers, flush=True)

    try:
        worker = Worker(importlib.import_module(f"adapters.{module}").load(threads))
    except ImportError as error:
        answer(None, str(error))
        return
    answer(None)
    for line in sys.stdin:
        command, *arguments = json.loads(line)
        try:
            answer(getattr(worker, command)(*arguments))
        except Exception as error:
            answer(None, f"{type(error).__name__}: {error}".splitlines()[0])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
