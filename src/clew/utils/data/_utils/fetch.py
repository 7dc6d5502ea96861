"""From indices to a batch: what a loader or worker does with each item of the index sampler.

Note [Rows at once]
    Batches of a `TensorDataset` (or a `Subset` of one) that `default_collate` would stack are
    rows of a few arrays.  Taking the rows at once gives what stacking the samples one by one
    gives, many times sooner; only a program that looks at each sample could tell, so a dataset,
    tensor or collate function that is not exactly clew's takes the ordinary way, and so does what
    autograd must record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew.tensor import Tensor
from clew.utils.data._utils import collate
from clew.utils.data.dataset import Subset, TensorDataset

Collate = Callable[[Any], Any]


class MapFetcher:
    """Looks samples up by index."""

    def __init__(self, dataset: Any, batched: bool, collate_fn: Collate, drop_last: bool) -> None:
        self.dataset = dataset
        self.batched = batched
        self.collate_fn = collate_fn

    def fetch(self, index: Any) -> Any:
        """The sample at `index`, or the batch at the indices in it."""
        if not self.batched:
            return self.collate_fn(self.dataset[index])
        if self.collate_fn is collate.default_collate:
            batch = rows_at_once(self.dataset, index)
            if batch is not None:
                return batch
        if getattr(self.dataset, "__getitems__", None):
            return self.collate_fn(self.dataset.__getitems__(index))
        return self.collate_fn([self.dataset[i] for i in index])


def rows_at_once(dataset: Any, indices: Any) -> list[Tensor] | None:
    """The batch, or None where it must be made sample by sample; see Note [Rows at once]."""
    try:
        while type(dataset) is Subset:
            indices = [dataset.indices[i] for i in indices]
            dataset = dataset.dataset
        if (
            type(dataset) is not TensorDataset
            or collate.default_collate_fn_map.get(Tensor) is not collate.collate_tensor_fn
            or not indices
            or any(type(i) is not int for i in indices)
            or any(type(t) is not Tensor or t.requires_grad for t in dataset.tensors)
        ):
            return None
        return [Tensor._from_array(t._array.take(indices, 0)) for t in dataset.tensors]
    except (IndexError, TypeError):  # the ordinary way says what is wrong
        return None


class StreamFetcher:
    """Takes samples from an iterator; the indices only say how many."""

    def __init__(self, dataset: Any, batched: bool, collate_fn: Collate, drop_last: bool) -> None:
        self.stream = iter(dataset)
        self.batched = batched
        self.collate_fn = collate_fn
        self.drop_last = drop_last
        self.ended = False

    def fetch(self, index: Any) -> Any:
        """The next sample, or the next batch.

        Raises:
            StopIteration: the stream has ended.
        """
        if not self.batched:
            return self.collate_fn(next(self.stream))
        if self.ended:
            raise StopIteration
        samples = [sample for _, sample in zip(index, self.stream)]
        self.ended = len(samples) < len(index)
        if not samples or (self.drop_last and self.ended):
            raise StopIteration
        return self.collate_fn(samples)


def make_fetcher(
    stream: bool, dataset: Any, batched: bool, collate_fn: Collate, drop_last: bool
) -> MapFetcher | StreamFetcher:
    """The fetcher of a dataset that is a stream, or of one with indices."""
    kind = StreamFetcher if stream else MapFetcher
    return kind(dataset, batched, collate_fn, drop_last)
