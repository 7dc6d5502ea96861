"""The process that fetches batches for a DataLoader.

Note [Worker protocol]
    Each worker has two pipes.  Down the first come tasks ``(position, index)``, `RESUME` (begin
    the dataset anew) and None (stop); up the second go, in the order of the tasks, ``(position,
    kind, payload)``: a batch, a failure or the end of the worker's stream.  What goes up is
    pickled in the worker's own thread, so that a failure to pickle is reported like any other, and
    sent by a second thread, so that the next batch is fetched meanwhile.  A pipe that ends tells
    the loader that the worker has died; the parent's sentinel tells the worker the reverse.
"""

from __future__ import annotations

import contextlib
import queue
import random
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import connection, parent_process
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

from clew import rng
from clew.threads import set_num_threads
from clew.utils.data._utils.fetch import Collate, make_fetcher

RESUME = "resume"

BATCH, FAILURE, END, RESUMED = "batch", "failure", "end", "resumed"
"""What a worker sends."""


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """What `get_worker_info` tells in a worker.

    Attributes:
        id: the worker's number.
        num_workers: how many workers there are.
        seed: what the worker's generators were seeded with.
        dataset: this process's copy of the dataset.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """In a DataLoader's worker process, facts about the worker; elsewhere None."""
    return _info


@dataclass(frozen=True)
class Failure:
    """An exception on its way to the loader's process.

    Attributes:
        kind: its type.
        trace: its traceback as text.
        where: in which process it was raised.
    """

    kind: type[BaseException]
    trace: str
    where: str

    @classmethod
    def current(cls, worker_id: int) -> Failure:
        """The exception that is being handled."""
        kind = sys.exc_info()[0]
        assert kind is not None
        return cls(kind, traceback.format_exc(), f"in DataLoader worker process {worker_id}")

    def reraise(self) -> None:
        """Raise an exception of the same type, with the worker's traceback in its text."""
        text = f"Caught {self.kind.__name__} {self.where}.\nOriginal {self.trace}"
        if self.kind is KeyError:
            raise KeyError(_Verbatim(text))
        try:
            error = self.kind(text)
        except Exception:  # a type that wants other arguments
            raise RuntimeError(text) from None
        raise error


class _Verbatim(str):
    """Text that KeyError prints as it is, and not its repr."""

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class Job:
    """What a worker needs to know from the start."""

    worker_id: int
    num_workers: int
    base_seed: int
    dataset: Any
    stream: bool
    batched: bool
    collate_fn: Collate
    drop_last: bool
    init_fn: Callable[[int], Any] | None


def run(job: Job, tasks: Any, results: Any) -> None:
    """A worker's whole life; see Note [Worker protocol]."""
    set_num_threads(1)  # the workers share the processors
    _seed_everything(job)
    sender = _Sender(results)
    watched = [tasks, parent_process().sentinel]  # type: ignore[union-attr]
    # An interrupt reaches the loader too; the end of the pipe says that it is gone.
    with contextlib.suppress(KeyboardInterrupt, EOFError):
        _Worker(job, sender).serve(tasks, watched)
    sender.close()


def _seed_everything(job: Job) -> None:
    """Seed the generators as PyTorch does, and announce the worker to `get_worker_info`."""
    global _info
    seed = job.base_seed + job.worker_id
    random.seed(seed)
    rng.manual_seed(seed)
    words = [job.worker_id, job.base_seed & 0xFFFFFFFF, job.base_seed >> 32]
    np.random.seed(np.random.SeedSequence(words).generate_state(4))  # noqa: NPY002
    _info = WorkerInfo(job.worker_id, job.num_workers, seed, job.dataset)


class _Worker:
    """Fetches batch after batch."""

    def __init__(self, job: Job, sender: _Sender) -> None:
        self.job = job
        self.sender = sender
        self.fetcher: Any = None
        self.failure: Failure | None = None
        self.ended = False

    def serve(self, tasks: Any, watched: list[Any]) -> None:
        """Work until told to stop, or until the parent is gone."""
        try:
            if self.job.init_fn is not None:
                self.job.init_fn(self.job.worker_id)
            self.start()
        except Exception:
            self.failure = Failure.current(self.job.worker_id)
        while tasks in connection.wait(watched):
            task = tasks.recv()
            if task is None:
                return
            if task == RESUME:
                self.start()
                self.sender.send(None, RESUMED, None)
            elif not self.ended:
                self.answer(*task)

    def start(self) -> None:
        """Begin the dataset (anew)."""
        job = self.job
        self.ended = False
        self.fetcher = make_fetcher(
            job.stream, job.dataset, job.batched, job.collate_fn, job.drop_last
        )

    def answer(self, position: int, index: Any) -> None:
        """Fetch one batch and send it, or what went wrong."""
        failure, self.failure = self.failure, None
        if failure is None:
            try:
                self.sender.send(position, BATCH, self.fetcher.fetch(index))
                return
            except Exception as error:
                if self.job.stream and isinstance(error, StopIteration):
                    self.ended = True
                    self.sender.send(position, END, None)
                    return
                failure = Failure.current(self.job.worker_id)
        try:
            self.sender.send(position, FAILURE, failure)
        except Exception:  # a type of exception that cannot be pickled
            plain = Failure(RuntimeError, failure.trace, failure.where)
            self.sender.send(position, FAILURE, plain)


class _Sender:
    """Sends in a thread of its own what was pickled in the caller's."""

    def __init__(self, results: Any) -> None:
        self.results = results
        self.waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def send(self, *message: Any) -> None:
        """Pickle now, send soon."""
        self.waiting.put(ForkingPickler.dumps(message))

    def close(self) -> None:
        """Return when everything is sent, or nobody listens any more."""
        self.waiting.put(None)
        self.thread.join()

    def _run(self) -> None:
        try:
            while (data := self.waiting.get()) is not None:
                self.results.send_bytes(data)
        except OSError:  # the loader has stopped listening
            pass
