"""How many threads there are, and how work is split among them.  Layer 1.

Note [Threads]
    A kernel that has much to do splits it into pieces, which its own thread and the workers of
    one small pool take up one after another::

        split(lambda start, stop: np.exp(x[start:stop], out=out[start:stop]), len(x), 1 << 15)

    The pieces depend on the amount of work alone, so results do not depend on the number of
    threads: a sum, say, keeps one partial sum for each piece.  A hand-off costs some 15 us, so a
    piece should take longer than that; and only what releases the GIL gains: NumPy's loops over
    numbers, and compiled twins.

    Pieces never split again, and BLAS has one thread while they run.  Floating-point warnings are
    off in the workers, as in ops (Note [Floating-point warnings]).  An exception ends the split:
    no piece begins after it, those that run are waited for, and the caller raises it; so does
    Ctrl-C.  Workers end before a fork and are started anew when they are needed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections import deque
from collections.abc import Callable
from itertools import pairwise
from queue import SimpleQueue
from typing import Any

import numpy as np


def _default() -> int:
    """``OMP_NUM_THREADS``, or as many as there are processors for this program."""
    wanted = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_number = _default()
_interop = 1


def set_num_threads(number: int) -> None:
    """Let kernels and matrix products use so many threads.

    Raises:
        RuntimeError: the number is not positive.
        TypeError: it is no int.
    """
    global _number
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(f"set_num_threads expects an int, but got {type(number).__name__}")
    if number <= 0:
        raise RuntimeError("set_num_threads expects a positive integer")
    _number = number
    one_blas_thread.use(number)


def get_num_threads() -> int:
    """How many threads kernels and matrix products use."""
    return _number


def set_num_interop_threads(number: int) -> None:
    """Accepted as PyTorch does; clew runs one operation at a time.

    Raises:
        RuntimeError: the number is not positive.
    """
    global _interop
    if number <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    _interop = number


def get_num_interop_threads() -> int:
    """What `set_num_interop_threads` was given."""
    return _interop


# -- splitting


def split(function: Callable[[int, int], Any], count: int, grain: int) -> None:
    """Call ``function(start, stop)`` for pieces of ``range(count)``; see Note [Threads].

    There are a power of two of them, all of about one size, which is at least `grain` (unless
    `count` is less): so two threads, or four, have the same to do.
    """
    pieces = 1 << max(count // grain, 1).bit_length() - 1
    if pieces == 1:
        function(0, count)
        return
    bounds = [count * i // pieces for i in range(pieces + 1)]
    helpers = min(_number, pieces) - 1
    if helpers and not _here.in_piece:
        _run_together(function, bounds, helpers)
        return
    for start, stop in pairwise(bounds):
        function(start, stop)


class _Here(threading.local):
    in_piece = False


_here = _Here()
"""Whether this thread runs a piece."""


class _Job:
    """A function, and those of its pieces that nobody has begun."""

    def __init__(self, function: Callable[[int, int], Any], bounds: list[int]) -> None:
        self.function: Any = function
        self.pieces = deque(pairwise(bounds))
        self.helpers: set[int] = set()
        self.left: SimpleQueue[None] = SimpleQueue()
        self.error: BaseException | None = None

    def take_pieces(self) -> None:
        """Run pieces until none is left; after an exception none is."""
        pieces = self.pieces
        try:
            while pieces:
                try:
                    start, stop = pieces.popleft()
                except IndexError:  # another thread was faster
                    return
                self.function(start, stop)
        except BaseException:
            pieces.clear()
            raise

    def help(self) -> None:
        """`take_pieces` in a worker."""
        # Before the first piece is taken: so whoever finds none left, and no helper here, knows
        # that all have been run.
        self.helpers.add(threading.get_ident())
        try:
            self.take_pieces()
        except BaseException as error:
            self.error = error
        finally:
            self.helpers.discard(threading.get_ident())
            self.left.put(None)

    def wait(self) -> None:
        """Wait for the helpers that still run a piece, also after Ctrl-C."""
        interrupt = None
        while self.helpers:
            try:
                self.left.get()
            except KeyboardInterrupt as error:
                self.pieces.clear()
                interrupt = error
        self.function = None  # a worker that comes too late keeps nothing alive
        if interrupt is not None:
            raise interrupt


def _run_together(function: Callable[[int, int], Any], bounds: list[int], helpers: int) -> None:
    job = _Job(function, bounds)
    _here.in_piece = True
    try:
        with one_blas_thread:
            try:
                _pool.offer(job, helpers)
                job.take_pieces()
            finally:
                job.wait()
    finally:
        _here.in_piece = False
    if job.error is not None:
        try:
            raise job.error
        finally:
            job.error = None  # its traceback leads here: a cycle


class _Pool:
    """Threads that wait for jobs to help with."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._workers: list[threading.Thread] = []
        self._lock = threading.Lock()

    def offer(self, job: _Job, helpers: int) -> None:
        """Ask so many workers to help; those that are busy do not, or come late."""
        if len(self._workers) < helpers:
            self._start(helpers)
        for _ in range(helpers):
            self._jobs.put(job)

    def _start(self, number: int) -> None:
        with self._lock, contextlib.suppress(RuntimeError):  # no more threads: fewer will do
            while len(self._workers) < number:
                worker = threading.Thread(target=self._work, name="clew-worker", daemon=True)
                worker.start()
                self._workers.append(worker)

    def _work(self) -> None:
        _here.in_piece = True
        np.seterr(all="ignore")
        while (job := self._jobs.get()) is not None:
            job.help()

    def stop(self) -> None:
        """End the workers, and wait until they have."""
        if _here.in_piece:
            return  # it would wait for itself
        with self._lock:
            for _ in self._workers:
                self._jobs.put(None)
            for worker in self._workers:
                worker.join()
            self._workers.clear()

    def forget(self) -> None:
        """In a forked program, where no worker is."""
        self.__init__()  # type: ignore[misc]


# -- BLAS


class _Blas:
    """The number of threads of the BLAS that NumPy uses.

    threadpoolctl finds the library when it is first needed.  OpenBLAS's own function is then
    called directly, because threadpoolctl would look it up each time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._setters: list[Callable[[int], Any]] | None = None
        self._libraries: list[Any] = []
        self._gemms: dict[np.dtype, int] = {}
        self._usual = 1
        self._limits = 0

    def _set(self, number: int) -> None:
        for setter in self._found():
            setter(number)

    def _found(self) -> list[Callable[[int], Any]]:
        if self._setters is None:
            from threadpoolctl import ThreadpoolController

            libraries = ThreadpoolController().select(user_api="blas").lib_controllers
            self._usual = max((library.num_threads for library in libraries), default=1)
            self._setters = [_setter(library) for library in libraries]
            self._libraries = [library.dynlib for library in libraries]
        return self._setters

    def address_of_gemm(self, dtype: np.dtype) -> int:
        """Where ``cblas_sgemm``, or for float64 ``cblas_dgemm``, is, if its sizes have 64 bits.

        0 where BLAS has no such function.
        """
        with self._lock:
            if dtype not in self._gemms:
                self._found()
                self._gemms[dtype] = _address_of_gemm(self._libraries, dtype)
        return self._gemms[dtype]

    def use(self, number: int) -> None:
        """Let BLAS use so many threads from now on."""
        with self._lock:
            self._found()
            self._usual = number
            if not self._limits:
                self._set(number)

    def __enter__(self) -> None:
        with self._lock:
            self._limits += 1
            try:
                if self._limits == 1 and self._found() and self._usual > 1:
                    self._set(1)
            except BaseException:  # Ctrl-C
                self._lift()
                raise

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._lift()

    def _lift(self) -> None:
        self._limits -= 1
        if self._limits == 0 and self._usual > 1:
            self._set(self._usual)


def _setter(library: Any) -> Callable[[int], Any]:
    names = [
        f"{prefix}openblas_set_num_threads{suffix}"
        for prefix in ("scipy_", "") for suffix in ("", "64_", "_64")
    ]  # fmt: skip
    direct = [getattr(library.dynlib, name) for name in names if hasattr(library.dynlib, name)]
    return direct[0] if direct else library.set_num_threads


def _address_of_gemm(libraries: list[Any], dtype: np.dtype) -> int:
    letter = {"float32": "s", "float64": "d"}[dtype.name]
    names = [
        f"{prefix}cblas_{letter}gemm{suffix}" for prefix in ("scipy_", "")
        for suffix in ("64_", "_64")
    ]  # fmt: skip
    for library in libraries:
        for name in names:
            if hasattr(library, name):
                return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
    return 0


_pool = _Pool()
one_blas_thread = _Blas()
"""``with one_blas_thread:`` runs a block in which BLAS has one thread, half a microsecond dearer.

Two threads of OpenBLAS wait for one another without giving way: where other programs want the
processors too, a product that takes 0.1 ms was seen to take 90 (Note [Products], ``product.py``).
"""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_pool.stop, after_in_child=_pool.forget)
