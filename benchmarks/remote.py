"""Engines in processes of their own, as the parent sees them."""

from __future__ import annotations

import json
import os
import select
import subprocess
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

LONGEST = 400.0
"""Seconds that an engine may take for an answer; compilers need some."""


class Failed(Exception):
    """An engine cannot do what was asked for, with the reason."""


class Engine:
    """An engine in a process of its own; see ``worker.py`` for what it can be asked.

    Args:
        name: in `adapters.ADAPTERS`.
        python: the interpreter to run it.
        threads: how many it may use.

    Raises:
        Failed: it cannot be imported.
    """

    def __init__(self, name: str, python: str, threads: int) -> None:
        self.name, self.python, self.threads = name, python, threads
        self._begin()

    def _begin(self) -> None:
        # NumPy's wheels choose the best kernel by themselves; an override slows them.
        environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
        for library in ("OMP", "OPENBLAS", "MKL"):
            environment[f"{library}_NUM_THREADS"] = str(self.threads)
        self.process = subprocess.Popen(
            [self.python, "worker.py", self.name, str(self.threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=environment, cwd=HERE,
        )  # fmt: skip
        try:
            self._answer()
        except Failed:
            self.close()
            raise

    def again(self) -> Engine:
        """The same engine in a fresh process."""
        return Engine(self.name, self.python, self.threads)

    def ask(self, *command: Any) -> Any:
        """Send a command, wait for the answer.

        Raises:
            Failed: the engine raised an error, ended, or took too long; then it is begun anew.
        """
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        try:
            return self._answer()
        except _Gone as error:
            self._begin()
            raise Failed(str(error)) from None

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], LONGEST)
        if not ready:
            self.close()
            raise _Gone(f"no answer in {LONGEST:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            raise _Gone(f"its process ended with {self.process.wait()}")
        answer = json.loads(line)
        if answer["error"] is not None:
            raise Failed(answer["error"])
        return answer["value"]

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()


class _Gone(Failed):
    """The process does not answer any more."""
