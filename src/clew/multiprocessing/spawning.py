"""Running a function in several processes, and raising here what one of them raised."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Sequence
from multiprocessing import connection
from typing import Any


class ProcessException(Exception):
    """A process failed.

    Attributes:
        error_index: which of the processes.
        pid: the number that the system gave it.
    """

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.pid = pid

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """The function raised an exception; the message holds its traceback."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg, error_index, error_pid)


class ProcessExitedException(ProcessException):
    """The process ended with another status than 0, or by a signal."""

    def __init__(
        self,
        msg: str,
        error_index: int,
        error_pid: int,
        exit_code: int,
        signal_name: str | None = None,
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self) -> tuple[Any, ...]:
        details = (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)
        return type(self), details


def _run(function: Callable[..., Any], index: int, args: tuple[Any, ...], error_file: str) -> None:
    """What each process does: call the function, and leave its exception in a file."""
    try:
        function(index, *args)
    except KeyboardInterrupt:
        pass  # the parent was interrupted too, and says so
    except Exception:
        with open(error_file, "wb") as file:
            pickle.dump(traceback.format_exc(), file)
        sys.exit(1)


class ProcessContext:
    """Processes that run; `join` waits for them."""

    def __init__(self, processes: Sequence[Any], error_files: Sequence[str], folder: Any) -> None:
        self._folder = folder
        self.processes = list(processes)
        self.error_files = list(error_files)
        self.sentinels = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """The numbers that the system gave the processes."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until a process has ended, or for `timeout` seconds.

        If one has failed the others are ended: asked to at once, or after `grace_period` seconds.

        Returns:
            Whether all processes have ended.

        Raises:
            ProcessRaisedException: the function raised an exception in one of them.
            ProcessExitedException: one of them was ended otherwise than by returning.
        """
        if not self.sentinels:
            return True
        failed = None
        for sentinel in connection.wait(self.sentinels.keys(), timeout=timeout):
            index = self.sentinels.pop(sentinel)
            process = self.processes[index]
            process.join()
            if process.exitcode != 0:
                failed = index
                break
        if failed is not None:
            self._end_others(grace_period)
            failure = self._failure(failed)
            self._folder.cleanup()
            raise failure
        if not self.sentinels:
            self._folder.cleanup()
        return not self.sentinels

    def _end_others(self, grace_period: float | None) -> None:
        alive = [process for process in self.processes if process.is_alive()]
        if grace_period:
            connection.wait([process.sentinel for process in alive], timeout=grace_period)
        for process in alive:
            if process.is_alive():
                process.terminate()
        for process in alive:
            process.join(30)
            if process.is_alive():
                process.kill()
                process.join()

    def _failure(self, index: int) -> ProcessException:
        process, path = self.processes[index], self.error_files[index]
        if os.path.getsize(path) > 0:
            with open(path, "rb") as file:
                text = pickle.load(file)
            message = f"\n\n-- Process {index} terminated with the following error:\n{text}"
            return ProcessRaisedException(message, index, process.pid)
        code = process.exitcode
        if code < 0:
            name = signal.Signals(-code).name
            message = f"process {index} terminated with signal {name}"
            return ProcessExitedException(message, index, process.pid, code, name)
        message = f"process {index} terminated with exit code {code}"
        return ProcessExitedException(message, index, process.pid, code)


class SpawnContext(ProcessContext):
    """The processes of `spawn`."""


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run ``fn(i, *args)`` in `nprocs` processes, i from 0 on.

    Returns:
        None with `join`, when all have ended; otherwise what waits for them.

    Raises:
        ProcessRaisedException, ProcessExitedException: see `ProcessContext.join`.
    """
    context = multiprocessing.get_context(start_method)
    folder = tempfile.TemporaryDirectory(prefix="processes")
    error_files, processes = [], []
    for index in range(nprocs):
        error_files.append(os.path.join(folder.name, str(index)))
        open(error_files[-1], "wb").close()
        job = (fn, index, args, error_files[-1])
        process = context.Process(target=_run, args=job, daemon=daemon)  # type: ignore[attr-defined]
        process.start()
        processes.append(process)
    running = ProcessContext(processes, error_files, folder)
    if not join:
        return running
    while not running.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """`start_processes` with fresh Python processes; another `start_method` is warned about."""
    if start_method != "spawn":
        warnings.warn(
            f"This method only supports start_method=spawn (got: {start_method}).\nTo use a "
            "different start_method use:\n\t\t torch.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
