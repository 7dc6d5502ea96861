"""The DataLoader in one process: batches, random draws, options and errors are PyTorch's."""

import warnings

import numpy as np
import pytest

import clew
from engines import generator, same, seed, state


def dataset(e):
    return e.utils.data.TensorDataset(e.arange(10).float(), e.arange(10) * 2)


def stream(e, n, length=None):
    class Stream(e.utils.data.IterableDataset):
        def __iter__(self):
            return iter(range(n))

        def __len__(self):
            return length

    return Stream()


class Eager:
    """A sampler that draws as soon as it is iterated."""

    def __init__(self, n, g):
        self.n, self.g = n, g

    def __iter__(self):
        order = list(range(self.n))
        np.random.default_rng(self.g).shuffle(order)
        self.g += 1
        return iter(order)

    def __len__(self):
        return self.n


LOADERS = {
    "plain": lambda d, e: d.DataLoader(dataset(e)),
    "batches": lambda d, e: d.DataLoader(dataset(e), batch_size=4),
    "drop_last": lambda d, e: d.DataLoader(dataset(e), batch_size=4, drop_last=True),
    "shuffle": lambda d, e: d.DataLoader(dataset(e), batch_size=4, shuffle=True),
    "generator": lambda d, e: d.DataLoader(
        dataset(e), batch_size=3, shuffle=True, generator=generator(e, 8)
    ),
    "sampler": lambda d, e: d.DataLoader(dataset(e), 3, sampler=d.RandomSampler(range(10), True)),
    "list sampler": lambda d, e: d.DataLoader(dataset(e), 2, sampler=[3, 1, 2]),
    "own sampler": lambda d, e: d.DataLoader(dataset(e), 2, sampler=Eager(10, 1)),
    "batch_sampler": lambda d, e: d.DataLoader(dataset(e), batch_sampler=[[1, 2], [3]]),
    "no batches": lambda d, e: d.DataLoader(dataset(e), batch_size=None, shuffle=True),
    "collate": lambda d, e: d.DataLoader(dataset(e), 4, collate_fn=len),
    "subset": lambda d, e: d.DataLoader(d.Subset(dataset(e), [4, 2, 0]), 2, shuffle=True),
    "list": lambda d, e: d.DataLoader([1.0, 2.0, 3.0], 2),
    "dicts": lambda d, e: d.DataLoader([{"x": i, "y": str(i)} for i in range(3)], 2),
    "stream": lambda d, e: d.DataLoader(stream(e, 7, 7), batch_size=3),
    "stream drop": lambda d, e: d.DataLoader(stream(e, 7, 7), batch_size=3, drop_last=True),
    "stream one by one": lambda d, e: d.DataLoader(stream(e, 3, 3), batch_size=None),
}


@pytest.mark.parametrize("name", LOADERS)
def test_batches_lengths_and_state_equal_torch(name):
    def run(e):
        seed(e, 21)
        loader = LOADERS[name](e.utils.data, e)
        return list(loader), len(loader), list(loader), state(e)

    same(run)


def test_state_moves_when_torch_moves_it():
    def run(e):
        seed(e, 4)
        states = [state(e)]
        iterator = iter(e.utils.data.DataLoader(dataset(e), batch_size=5, shuffle=True))
        states.append(state(e))
        states += [state(e) for _ in iterator]
        return states

    same(run)


def test_a_broken_length_warns_as_in_torch():
    def run(e):
        loader = e.utils.data.DataLoader(stream(e, 3, 2), batch_size=None)
        len(loader)
        with pytest.warns(UserWarning) as caught:
            list(loader)
        return [str(w.message).split(" object at ")[-1][14:] for w in caught]

    same(run)


def test_pin_memory_warns_as_in_torch():
    def run(e):
        loader = e.utils.data.DataLoader([1, 2], pin_memory=True)
        with pytest.warns(UserWarning) as caught:
            batches = list(loader)
        return batches, [str(w.message) for w in caught]

    same(run)


def test_many_workers_warn_as_in_torch():
    def run(e):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            e.utils.data.DataLoader([1], num_workers=10_000)
        return [str(w.message) for w in caught]

    same(run)


ATTRIBUTES = (
    "batch_size", "num_workers", "prefetch_factor", "drop_last", "timeout", "persistent_workers",
    "pin_memory", "in_order", "generator", "multiprocessing_context", "worker_init_fn",
)  # fmt: skip


def test_attributes_equal_torch():
    def run(e):
        loader = e.utils.data.DataLoader(dataset(e), 4)
        kinds = [type(getattr(loader, n)).__name__ for n in ("sampler", "batch_sampler")]
        return [getattr(loader, n) for n in ATTRIBUTES], kinds, loader.collate_fn.__name__

    same(run)


BAD = {
    "workers": lambda d, e: d.DataLoader([1], num_workers=-1),
    "timeout": lambda d, e: d.DataLoader([1], timeout=-1),
    "prefetch": lambda d, e: d.DataLoader([1], prefetch_factor=2),
    "prefetch negative": lambda d, e: d.DataLoader([1], num_workers=1, prefetch_factor=-2),
    "persistent": lambda d, e: d.DataLoader([1], persistent_workers=True),
    "stream shuffle": lambda d, e: d.DataLoader(stream(e, 2), shuffle=True),
    "stream sampler": lambda d, e: d.DataLoader(stream(e, 2), sampler=[0]),
    "stream batch_sampler": lambda d, e: d.DataLoader(stream(e, 2), batch_sampler=[[0]]),
    "sampler shuffle": lambda d, e: d.DataLoader([1], sampler=[0], shuffle=True),
    "batch_sampler size": lambda d, e: d.DataLoader([1], batch_size=2, batch_sampler=[[0]]),
    "drop_last": lambda d, e: d.DataLoader([1], batch_size=None, drop_last=True),
    "batch_size": lambda d, e: d.DataLoader([1], batch_size=0),
    "context": lambda d, e: d.DataLoader([1], multiprocessing_context="fork"),
    "context name": lambda d, e: d.DataLoader([1], num_workers=1, multiprocessing_context="x"),
    "context type": lambda d, e: d.DataLoader([1], num_workers=1, multiprocessing_context=3),
    "set": lambda d, e: setattr(d.DataLoader([1]), "batch_size", 3),
    "set dataset": lambda d, e: setattr(d.DataLoader([1]), "dataset", [2]),
    "serial timeout": lambda d, e: iter(d.DataLoader([1], timeout=1)),
    "empty shuffle": lambda d, e: d.DataLoader([], shuffle=True),
    "not collatable": lambda d, e: list(d.DataLoader([None])),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_options_raise_as_torch(name):
    same(lambda e: BAD[name](e.utils.data, e))


def test_stop_iteration_stays():
    iterator = iter(clew.utils.data.DataLoader([1, 2], batch_size=2))
    next(iterator)
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(iterator)


def test_rows_at_once_are_the_stacked_samples(monkeypatch):
    """Without the short way, the batches are the same."""
    from clew.utils.data._utils import fetch

    def batches():
        seed(clew, 2)
        d = clew.utils.data
        tensors = clew.arange(40.0).reshape(10, 2, 2)[:, ::2], clew.arange(10)
        whole = d.TensorDataset(*tensors)
        loaders = [
            d.DataLoader(whole, 3, shuffle=True),
            d.DataLoader(d.Subset(d.Subset(whole, [5, 1, 3, 9]), [0, 2, 3]), 2),
        ]
        return [
            (t.tolist(), str(t.dtype), t.shape, t.stride())
            for loader in loaders
            for batch in loader
            for t in batch
        ]

    fast = batches()
    monkeypatch.setattr(fetch, "rows_at_once", lambda dataset, indices: None)
    assert fast == batches()


def test_rows_are_not_taken_at_once_where_it_would_show():
    from clew.utils.data._utils.fetch import rows_at_once

    class Mine(clew.utils.data.TensorDataset):
        pass

    whole = clew.utils.data.TensorDataset(clew.arange(4))
    recorded = clew.utils.data.TensorDataset(clew.ones(4, requires_grad=True))
    assert rows_at_once(whole, [0, 1])[0].tolist() == [0, 1]
    for dataset, indices in [
        (Mine(clew.arange(4)), [0]),
        (recorded, [0]),
        (clew.utils.data.TensorDataset(clew.nn.Parameter(clew.ones(4), False)), [0]),
        (whole, [True]),
        (whole, [7]),
        (whole, []),
    ]:
        assert rows_at_once(dataset, indices) is None


def test_bad_index_raises_as_in_torch():
    same(lambda e: list(e.utils.data.DataLoader(dataset(e), 2, sampler=[1, 99])))
