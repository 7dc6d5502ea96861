"""Samplers give PyTorch's indices and leave the generators where PyTorch leaves them."""

import pytest

from engines import generator, same, seed, state

SAMPLERS = {
    "sequential": lambda s, e: s.SequentialSampler(range(7)),
    "random": lambda s, e: s.RandomSampler(range(100)),
    "random few": lambda s, e: s.RandomSampler(range(100), num_samples=30),
    "random many": lambda s, e: s.RandomSampler(range(10), num_samples=25),
    "random replacement": lambda s, e: s.RandomSampler(range(10), replacement=True, num_samples=70),
    "random replacement 32": lambda s, e: s.RandomSampler(range(9), True, 32),
    "random generator": lambda s, e: s.RandomSampler(range(10), generator=generator(e, 9)),
    "subset": lambda s, e: s.SubsetRandomSampler([5, 1, 8, 3]),
    "weighted": lambda s, e: s.WeightedRandomSampler([0.1, 0.9, 0.4, 3.0], 20),
    "weighted once": lambda s, e: s.WeightedRandomSampler([0.1, 0.9, 0.4, 3.0], 3, False),
    "weighted tensor": lambda s, e: s.WeightedRandomSampler(e.ones(5), 4),
    "batch": lambda s, e: s.BatchSampler(s.RandomSampler(range(10)), 3, False),
    "batch drop": lambda s, e: s.BatchSampler(s.RandomSampler(range(10)), 3, True),
    "batch of iterable": lambda s, e: s.BatchSampler([4, 5, 6], 2, False),
    "distributed": lambda s, e: s.DistributedSampler(range(10), 3, 1),
    "distributed order": lambda s, e: s.DistributedSampler(range(10), 4, 3, shuffle=False),
    "distributed drop": lambda s, e: s.DistributedSampler(range(10), 4, 3, drop_last=True),
    "distributed few": lambda s, e: s.DistributedSampler(range(2), 5, 4, seed=4),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_indices_length_and_state_equal_torch(name):
    def run(e):
        seed(e, 11)
        sampler = SAMPLERS[name](e.utils.data, e)
        return list(sampler), list(sampler), len(sampler), state(e)

    same(run)


def test_set_epoch_changes_the_order_as_in_torch():
    def run(e):
        sampler = e.utils.data.DistributedSampler(range(20), 2, 0)
        sampler.set_epoch(7)
        return list(sampler)

    same(run)


BAD = {
    "replacement": lambda s: s.RandomSampler(range(3), replacement=1),
    "num_samples": lambda s: s.RandomSampler(range(3), num_samples=0),
    "num_samples type": lambda s: s.RandomSampler(range(3), num_samples=2.5),
    "empty": lambda s: s.RandomSampler([]),
    "weights": lambda s: s.WeightedRandomSampler([[1.0, 2.0]], 2),
    "weighted num": lambda s: s.WeightedRandomSampler([1.0], True),
    "weighted bool": lambda s: s.WeightedRandomSampler([1.0], 1, 0),
    "too many": lambda s: list(s.WeightedRandomSampler([1.0, 2.0], 3, False)),
    "batch size": lambda s: s.BatchSampler([1], 0, False),
    "batch size bool": lambda s: s.BatchSampler([1], True, False),
    "drop_last": lambda s: s.BatchSampler([1], 1, 0),
    "rank": lambda s: s.DistributedSampler([1], 2, 2),
    "base": lambda s: list(s.Sampler()),
    "base argument": lambda s: s.Sampler([1]),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments_raise_as_torch(name):
    same(lambda e: BAD[name](e.utils.data))


def test_processes_are_asked_for_only_where_they_exist():
    import clew

    with pytest.raises(RuntimeError, match="Requires distributed package"):
        clew.utils.data.DistributedSampler([1])
