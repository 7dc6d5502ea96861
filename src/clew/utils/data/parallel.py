"""Iterating over a DataLoader whose batches come from worker processes.

See Note [Worker protocol] in ``_utils/worker.py``.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
import weakref
from multiprocessing import connection
from multiprocessing.reduction import ForkingPickler
from typing import Any

from clew.utils.data._utils import worker
from clew.utils.data.dataloader import DataLoader, LoaderIterator

_PATIENCE = 5.0  # seconds that a worker has for its last batch when the loader stops


class _Worker:
    """The loader's side of one worker process.

    Attributes:
        owed: how many tasks it has not answered.
        active: whether it still takes tasks: its stream has not ended.
    """

    def __init__(self, context: Any, job: worker.Job) -> None:
        task_reader, self.tasks = context.Pipe(duplex=False)
        self.results, result_writer = context.Pipe(duplex=False)
        self.process = context.Process(
            target=worker.run, args=(job, task_reader, result_writer), daemon=True
        )
        self.process.start()
        # With these ends only in the worker's hands, its death ends both pipes.
        task_reader.close()
        result_writer.close()
        self.owed = 0
        self.active = True

    def send(self, task: Any) -> None:
        """Hand over a task.

        Raises:
            RuntimeError: the worker has died.
        """
        try:
            self.tasks.send(task)
        except OSError as error:
            raise self._death() from error

    def receive(self) -> Any:
        """The next answer; waits for it.

        Raises:
            RuntimeError: the worker has died.
        """
        try:
            return ForkingPickler.loads(self.results.recv_bytes())
        except (EOFError, OSError) as error:
            raise self._death() from error

    def _death(self) -> RuntimeError:
        self.process.join(_PATIENCE)
        return RuntimeError(
            f"DataLoader worker (pid(s) {self.process.pid}) exited unexpectedly"
            f" (exit code {self.process.exitcode})"
        )

    def stop(self) -> None:
        """Ask the worker to end; nobody listens to it from now on."""
        with contextlib.suppress(OSError):
            self.tasks.send(None)
        self.tasks.close()
        self.results.close()


class ParallelIterator(LoaderIterator):
    """Gives tasks to the workers in turn and collects the batches.

    Tasks are numbered in the order of the sampler; `_owner` maps those that are out to their
    workers, first the oldest.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        if not loader.prefetch_factor:
            raise AssertionError(
                "prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter"
            )
        self._most_owed = loader.prefetch_factor * loader.num_workers
        self._in_order = loader.in_order
        self._timeout = loader.timeout
        self._persistent = loader.persistent_workers
        self._workers: list[_Worker] = []
        context = loader.multiprocessing_context or multiprocessing.get_context()
        # At the end of the pass, of this object or of the program, whichever comes first.
        self._finalizer = weakref.finalize(self, _shut_down, self._workers, os.getpid())
        for i in range(loader.num_workers):
            self._workers.append(_Worker(context, self._job(loader, i)))
        self._begin()

    def _job(self, loader: DataLoader[Any], worker_id: int) -> worker.Job:
        return worker.Job(
            worker_id=worker_id,
            num_workers=loader.num_workers,
            base_seed=self._base_seed,
            dataset=loader.dataset,
            stream=loader._is_stream,
            batched=loader.batch_sampler is not None,
            collate_fn=loader.collate_fn,
            drop_last=loader.drop_last,
            init_fn=loader.worker_init_fn,
        )

    def restart(self, loader: DataLoader[Any]) -> None:
        """Begin another pass with the same workers."""
        for each in self._workers:
            each.send(worker.RESUME)
        for each in self._workers:
            while each.receive()[1] != worker.RESUMED:
                pass  # a batch of the last pass that nobody took
            each.owed = 0
            each.active = True
        self._promised = loader._promised
        self._given = 0
        self._begin()

    def _begin(self) -> None:
        # Again, as in PyTorch: a sampler that draws as soon as it is iterated draws twice.
        self._indices = iter(self._index_sampler)
        self._sent = 0
        self._turn = 0
        self._owner: dict[int, _Worker] = {}
        for _ in range(self._most_owed):
            self._hand_out()

    def _hand_out(self) -> None:
        """Give the next task, if there is one, to the next active worker, if there is one."""
        try:
            index = next(self._indices)
        except StopIteration:
            return
        chosen = self._next_worker()
        if chosen is None:
            return
        chosen.send((self._sent, index))
        chosen.owed += 1
        self._owner[self._sent] = chosen
        self._sent += 1

    def _next_worker(self) -> _Worker | None:
        active = sum(each.active for each in self._workers)
        for _ in self._workers:
            candidate = self._workers[self._turn]
            self._turn = (self._turn + 1) % len(self._workers)
            if candidate.active and (self._in_order or candidate.owed < self._most_owed // active):
                return candidate
        return None

    def _next_batch(self) -> Any:
        while self._owner:
            answering = self._await_answer()
            position, kind, payload = answering.receive()
            del self._owner[position]
            answering.owed -= 1
            if kind == worker.END:
                answering.active = False
                # What this worker was still to do, it leaves undone.
                self._owner = {p: w for p, w in self._owner.items() if w is not answering}
                answering.owed = 0
                self._hand_out()
                continue
            self._hand_out()
            if kind == worker.FAILURE:
                payload.reraise()
            return payload
        if not self._persistent:
            self._finalizer()
        raise StopIteration

    def _await_answer(self) -> _Worker:
        """The worker with the next batch: the oldest task's, or any if order does not matter."""
        if self._in_order:
            waiting = [next(iter(self._owner.values()))]
        else:
            waiting = list(dict.fromkeys(self._owner.values()))
        ready = connection.wait([each.results for each in waiting], self._timeout or None)
        if not ready:
            raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
        return next(each for each in waiting if each.results in ready)


def _shut_down(workers: list[_Worker], owner: int) -> None:
    """Stop the workers; in a process that was forked from their `owner`, do nothing."""
    if os.getpid() != owner:
        return
    for each in workers:
        each.stop()
    patience_ends = time.monotonic() + _PATIENCE
    for each in workers:
        each.process.join(max(0.0, patience_ends - time.monotonic()))
        if each.process.is_alive():
            each.process.terminate()
            each.process.join()
