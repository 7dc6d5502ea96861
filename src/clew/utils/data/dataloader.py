"""The DataLoader: batches of a dataset, fetched here or in worker processes."""

from __future__ import annotations

import multiprocessing
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.context import BaseContext
from typing import Any, Generic, TypeVar

from clew import rng
from clew.utils.data._utils.collate import default_collate, default_convert
from clew.utils.data._utils.fetch import make_fetcher
from clew.utils.data._utils.worker import get_worker_info
from clew.utils.data.dataset import IterableDataset
from clew.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    draw_seed,
)

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

_T_co = TypeVar("_T_co", covariant=True)

_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
"""Attributes that cannot change any more once the loader exists."""


class _EndlessSampler(Sampler[None]):
    """The sampler of a stream, whose end only the stream knows."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader(Generic[_T_co]):
    """Iterates over a dataset in batches.

    Args:
        dataset: a `Dataset`, anything with ``__getitem__`` and ``__len__``, or an
            `IterableDataset`.
        batch_size: samples in a batch; None for samples one by one, not joined.
        shuffle: visit the samples in random order, another one each time.
        sampler: gives the indices, instead of `shuffle`.
        batch_sampler: gives lists of indices, instead of the three above and `drop_last`.
        num_workers: how many processes fetch batches; 0 for none but this one.
        collate_fn: joins a list of samples; by default `default_collate`, or without batches
            `default_convert`.
        pin_memory: without effect on a CPU (PyTorch warns, and so does clew).
        drop_last: leave out a last, shorter batch.
        timeout: how many seconds to wait for a worker's batch; 0 for ever.
        worker_init_fn: called with the worker's number in each worker.
        multiprocessing_context: how processes are started: a name or a context.
        generator: the source of random orders and of the workers' seeds.
        prefetch_factor: how many batches each worker fetches ahead; by default 2.
        persistent_workers: keep the workers for the next iteration.
        pin_memory_device: without effect.
        in_order: give batches in the order of the sampler, even if a later one is ready sooner.

    Raises:
        ValueError: options that contradict each other.
        TypeError: a `multiprocessing_context` that is none.
    """

    _initialized = False

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: rng.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self._is_stream = isinstance(dataset, IterableDataset)
        if self._is_stream:
            _check_stream(shuffle, sampler, batch_sampler)
        _check_batching(batch_size, shuffle, sampler, batch_sampler, drop_last)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        if sampler is None:
            sampler = self._default_sampler(bool(shuffle), generator)
        if batch_sampler is not None:
            batch_size = None
        elif batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        default = default_convert if batch_sampler is None else default_collate
        self.collate_fn = default if collate_fn is None else collate_fn
        self.persistent_workers = persistent_workers
        self._initialized = True
        self._promised: int | None = None  # the length of a stream, once it was asked for
        self._iterator: Any = None
        self.check_worker_number_rationality()

    def _default_sampler(self, shuffle: bool, generator: rng.Generator | None) -> Sampler[Any]:
        if self._is_stream:
            return _EndlessSampler()
        if shuffle:
            return RandomSampler(self.dataset, generator=generator)
        return SequentialSampler(self.dataset)

    @property
    def multiprocessing_context(self) -> Any:
        """How worker processes are started; None for Python's default."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            if self.num_workers == 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading "
                    f"(num_workers > 0), but got num_workers={self.num_workers}"
                )
            if isinstance(context, str):
                methods = multiprocessing.get_all_start_methods()
                if context not in methods:
                    raise ValueError(
                        "multiprocessing_context option should specify a valid start method in "
                        f"{methods!r}, but got multiprocessing_context={context!r}"
                    )
                context = multiprocessing.get_context(context)
            if not isinstance(context, BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string "
                    f"specifying the start method, but got multiprocessing_context={context}"
                )
        self._context = context

    def __setattr__(self, name: str, value: Any) -> None:
        if self._initialized and name in _FIXED:
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized"
            )
        super().__setattr__(name, value)

    @property
    def _index_sampler(self) -> Any:
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def _get_iterator(self) -> Any:
        if self.num_workers == 0:
            return _SerialIterator(self)
        from clew.utils.data.parallel import ParallelIterator

        self.check_worker_number_rationality()
        return ParallelIterator(self)

    def __iter__(self) -> Any:
        if not (self.persistent_workers and self.num_workers > 0):
            return self._get_iterator()
        if self._iterator is None:
            self._iterator = self._get_iterator()
        else:
            self._iterator.restart(self)
        return self._iterator

    def __len__(self) -> int:
        if not self._is_stream:
            return len(self._index_sampler)
        length = self._promised = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Warn if there are to be more workers than processors."""
        knows_affinity = hasattr(os, "sched_getaffinity")
        available = len(os.sched_getaffinity(0)) if knows_affinity else os.cpu_count()
        if self.num_workers == 0 or (available is not None and self.num_workers <= available):
            return
        if available is None:
            suggestion = (
                "DataLoader is not able to compute a suggested max number of worker in current "
                "system."
            )
        else:
            affinity = "" if knows_affinity else " (`cpuset` is not taken into account)"
            suggestion = (
                f"Our suggested max number of worker in current system is {available}{affinity}, "
                "which is smaller than what this DataLoader is going to create."
            )
        warnings.warn(
            f"This DataLoader will create {self.num_workers} worker processes in total. "
            f"{suggestion} Please be aware that excessive worker creation might get DataLoader "
            "running slow or even freeze, lower the worker number to avoid potential "
            "slowness/freeze if necessary.",
            stacklevel=3,
        )


class LoaderIterator:
    """One pass over a loader: indices, the workers' seed, the count of what was given.

    A subclass writes `_next_batch`.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        if loader.pin_memory:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device "
                "pinned memory won't be used.",
                stacklevel=4,
            )
        # Not the loader: it may hold this object, and workers are to end with the last reference.
        self._dataset = loader.dataset
        self._is_stream = loader._is_stream
        self._promised = loader._promised
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._indices = iter(self._index_sampler)
        self._base_seed = draw_seed(loader.generator)
        self._given = 0

    def _next_batch(self) -> Any:
        raise NotImplementedError

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        batch = self._next_batch()
        self._given += 1
        if self._is_stream and self._promised is not None and self._given > self._promised:
            self._warn_broken_promise()
        return batch

    def _warn_broken_promise(self) -> None:
        workers = (
            "For multiprocessing data-loading, this could be caused by not properly configuring "
            "the IterableDataset replica at each worker. Please see "
            "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for "
            "examples."
        )
        warnings.warn(
            f"Length of IterableDataset {self._dataset} was reported to be {self._promised}"
            f"(when accessing len(dataloader)), but {self._given} samples have been fetched. "
            + (workers if self._num_workers > 0 else ""),
            stacklevel=3,
        )

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled")


class _SerialIterator(LoaderIterator):
    """Fetches batches in the loader's own process."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        if loader.timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        self._fetcher = make_fetcher(
            loader._is_stream,
            loader.dataset,
            loader.batch_sampler is not None,
            loader.collate_fn,
            loader.drop_last,
        )

    def _next_batch(self) -> Any:
        return self._fetcher.fetch(next(self._indices))


def _check_workers(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool
) -> None:
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; "
            "use num_workers=0 to disable multiprocessing."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing."
            "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_stream(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    options = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
    for name, value in options.items():
        if value is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got "
                f"{name}={value}"
            )


def _check_batching(
    batch_size: Any, shuffle: Any, sampler: Any, batch_sampler: Any, drop_last: bool
) -> None:
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and "
                "drop_last"
            )
    elif batch_size is None and drop_last:
        raise ValueError(
            "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
        )
