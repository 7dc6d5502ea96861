"""The sampler that gives each of several processes its part of a dataset."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterator
from typing import Any

from clew import rng
from clew.utils.data.sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """Every `num_replicas`-th index, from `rank` on, of one order that all processes share.

    Args:
        dataset: anything with a length.
        num_replicas: how many processes there are; by default asked of `clew.distributed`.
        rank: which of them this one is; by default asked of `clew.distributed`.
        shuffle: visit in random order, another one in each epoch that `set_epoch` announces.
        seed: the seed of that order; all processes must give the same.
        drop_last: drop what is left over, instead of repeating samples so that all get as many.

    Raises:
        ValueError: there is no such rank.
        RuntimeError: the processes are to be asked for, and clew has no distributed package.
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None:
            num_replicas = _distributed().get_world_size()
        if rank is None:
            rank = _distributed().get_rank()
        if not 0 <= rank < num_replicas:
            raise ValueError(
                f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]"
            )
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        exact = len(dataset) / num_replicas
        self.num_samples = math.floor(exact) if drop_last else math.ceil(exact)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[int]:
        n = len(self.dataset)
        if self.shuffle:
            generator = rng.Generator().manual_seed(self.seed + self.epoch)
            indices = rng.randperm(n, generator=generator).tolist()
        else:
            indices = list(range(n))
        if not self.drop_last:
            indices *= math.ceil(self.total_size / max(n, 1))
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Announce an epoch, which with `shuffle` has an order of its own."""
        self.epoch = epoch


def _distributed() -> Any:
    distributed = importlib.import_module("clew.distributed")
    if not distributed.is_available():
        raise RuntimeError("Requires distributed package to be available")
    return distributed
