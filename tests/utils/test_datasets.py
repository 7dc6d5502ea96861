"""Datasets and `random_split` give what PyTorch's give, errors included."""

import pytest

from clew import rng
from engines import generator, same, seed, state


def pair(e):
    return e.arange(10).float(), e.arange(10) * 2


class Squares:
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return i * i


class Batched(Squares):
    def __getitems__(self, indices):
        return [i * i for i in indices]


class Short(Squares):
    def __getitems__(self, indices):
        return [0]


def stream(e, n):
    class Stream(e.utils.data.IterableDataset):
        def __iter__(self):
            return iter(range(n))

        def __len__(self):
            return n

    return Stream()


def data(e):
    return e.utils.data


CALLS = {
    "tensor item": lambda e: data(e).TensorDataset(*pair(e))[3],
    "tensor slice": lambda e: data(e).TensorDataset(*pair(e))[2:4],
    "tensor length": lambda e: len(data(e).TensorDataset(*pair(e))),
    "tensor sizes": lambda e: data(e).TensorDataset(e.zeros(2), e.zeros(3)),
    "stack tuple": lambda e: data(e).StackDataset(Squares(4), Batched(4)).__getitems__([1, 3]),
    "stack dict": lambda e: data(e).StackDataset(a=Squares(4), b=Batched(4)).__getitems__([1, 3]),
    "stack item": lambda e: data(e).StackDataset(a=Squares(4))[2],
    "stack sizes": lambda e: data(e).StackDataset(Squares(4), Squares(5)),
    "stack both": lambda e: data(e).StackDataset(Squares(4), a=Squares(4)),
    "stack none": lambda e: data(e).StackDataset(),
    "stack short": lambda e: data(e).StackDataset(Short(4)).__getitems__([0, 1]),
    "concat": lambda e: [data(e).ConcatDataset([Squares(2), Squares(3)])[i] for i in range(-5, 5)],
    "concat sizes": lambda e: data(e).ConcatDataset([Squares(2), Squares(3)]).cumulative_sizes,
    "concat low": lambda e: data(e).ConcatDataset([Squares(2), Squares(3)])[-6],
    "concat none": lambda e: data(e).ConcatDataset([]),
    "concat stream": lambda e: data(e).ConcatDataset([stream(e, 2)]),
    "chain": lambda e: list(stream(e, 2) + stream(e, 3)),
    "chain length": lambda e: len(data(e).ChainDataset([stream(e, 2), stream(e, 3)])),
    "chain map": lambda e: list(data(e).ChainDataset([Squares(2)])),
    "add": lambda e: len(data(e).TensorDataset(e.ones(2)) + data(e).TensorDataset(e.ones(3))),
    "subset": lambda e: data(e).Subset(Squares(9), [4, 2, 7])[1],
    "subset list": lambda e: data(e).Subset(e.arange(9), [4, 2, 7])[[0, 2]],
    "subset many": lambda e: data(e).Subset(Batched(9), [4, 2, 7]).__getitems__([0, 2]),
    "no getitem": lambda e: data(e).Dataset()[0],
    "split": lambda e: parts(e, 10, [7, 3]),
    "split fractions": lambda e: parts(e, 11, [0.5, 0.3, 0.2]),
    "split wrong": lambda e: parts(e, 10, [7, 4]),
    "split fraction wrong": lambda e: parts(e, 10, [1.5, -0.5]),
    "split generator": lambda e: parts(e, 30, [10, 20], generator=generator(e, 42)),
}


def parts(e, n, lengths, **options):
    seed(e, 3)
    return [s.indices for s in data(e).random_split(range(n), lengths, **options)]


@pytest.mark.parametrize("name", CALLS)
def test_same_as_torch(name):
    same(CALLS[name])


def test_subset_that_overrides_only_getitem_is_refused_as_in_torch():
    def make(e):
        class Mine(e.utils.data.Subset):
            def __getitem__(self, i):
                return -1

        return Mine(Squares(3), [0])

    same(make)


def test_empty_part_warns_as_in_torch():
    def make(e):
        with pytest.warns(UserWarning) as caught:
            lengths = [len(s) for s in data(e).random_split(range(2), [0.9, 0.05, 0.05])]
        return lengths, [str(w.message) for w in caught]

    same(make)


def test_random_split_draws_what_torch_draws():
    def drawn(e):
        seed(e, 5)
        data(e).random_split(range(100), [50, 50])
        return state(e)

    same(drawn)


def test_old_name_of_cumulative_sizes_warns():
    import clew

    dataset = clew.utils.data.ConcatDataset([Squares(2)])
    with pytest.warns(FutureWarning, match="renamed to `cumulative_sizes`"):
        assert dataset.cummulative_sizes == [2]


def test_generic_aliases_exist():
    import clew

    assert clew.utils.data.Dataset[int].__origin__ is clew.utils.data.Dataset
    assert clew.utils.data.DataLoader[int].__origin__ is clew.utils.data.DataLoader
    assert rng.default_generator is not None
