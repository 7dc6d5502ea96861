"""Samplers: in which order the samples of a dataset are visited.

Each draws from the generators exactly what PyTorch's draws, at the same moment.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from clew import rng
from clew.dtypes import float64
from clew.functions.create import as_tensor
from clew.tensor import Tensor

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

_T_co = TypeVar("_T_co", covariant=True)

_CHUNK = 32  # how many indices a RandomSampler with replacement draws at a time


def draw_seed(generator: rng.Generator | None) -> int:
    """A seed from a generator (None: the default one), as ``random_()`` of an int64 tensor."""
    return int(rng.random_(np.empty((), np.int64), generator=generator))


class Sampler(Generic[_T_co]):
    """Base of all samplers: ``__iter__`` gives indices (or lists of them, for batches)."""

    def __iter__(self) -> Iterator[_T_co]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """All indices in order."""

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Indices at random, without replacement (a permutation, then another) or with it.

    Args:
        data_source: anything with a length.
        replacement: draw each index from all.
        num_samples: how many; by default as many as there are samples.
        generator: the source; by default a new generator, seeded from the default one.

    Raises:
        TypeError: `replacement` is no bool.
        ValueError: `num_samples` is no positive int.
    """

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: rng.Generator | None = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        _check_positive("num_samples", self.num_samples, isinstance(self.num_samples, int))

    @property
    def num_samples(self) -> int:
        """How many indices one pass gives."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n = len(self.data_source)
        generator = self.generator
        if generator is None:
            generator = rng.Generator().manual_seed(draw_seed(None))
        if self.replacement:
            for start in range(0, self.num_samples, _CHUNK):
                count = min(_CHUNK, self.num_samples - start)
                yield from rng.randint(0, n, (count,), generator=generator).tolist()
            return
        for _ in range(self.num_samples // n):
            yield from rng.randperm(n, generator=generator).tolist()
        yield from rng.randperm(n, generator=generator).tolist()[: self.num_samples % n]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: rng.Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in rng.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices with probabilities in proportion to weights.

    Args:
        weights: one for each index; they need not sum up to 1.
        num_samples: how many indices to draw.
        replacement: whether an index can come more than once.
        generator: the source; by default the default generator.

    Raises:
        ValueError: `num_samples` is no positive int, `replacement` no bool, or the weights are not
            one-dimensional.
    """

    weights: Tensor

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: rng.Generator | None = None,
    ) -> None:
        _check_positive("num_samples", num_samples, _is_int(num_samples))
        _check_bool("replacement", replacement)
        self.weights = as_tensor(weights, dtype=float64)
        if self.weights.ndim != 1:
            raise ValueError(
                "weights should be a 1d sequence but given weights have shape "
                f"{tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        weights = self.weights._array
        yield from rng.multinomial(
            weights, self.num_samples, self.replacement, self.generator
        ).tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of `batch_size` indices of another sampler.

    Args:
        sampler: any iterable of indices.
        batch_size: the length of the lists.
        drop_last: leave out a last, shorter list.

    Raises:
        ValueError: `batch_size` is no positive int, or `drop_last` no bool.
    """

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool) -> None:
        _check_positive("batch_size", batch_size, _is_int(batch_size))
        _check_bool("drop_last", drop_last)
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if self.drop_last and len(batch) < self.batch_size:
                return
            yield batch

    def __len__(self) -> int:
        size = len(self.sampler)  # type: ignore[arg-type]
        return size // self.batch_size if self.drop_last else -(-size // self.batch_size)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_positive(name: str, value: Any, is_int: bool) -> None:
    if not is_int or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")


def _check_bool(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise ValueError(f"{name} should be a boolean value, but got {name}={value}")
