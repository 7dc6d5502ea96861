"""The DataLoader with worker processes: order, seeds, errors, shutdown."""

import os
import random
import signal
import time
import warnings

import numpy as np
import pytest

import clew
from engines import ENGINES, outcome, same, seed, state

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


class Items:
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return i, float(i)


class Facts(Items):
    """Samples are what the worker knows and draws."""

    def __init__(self, n, engine_name):
        super().__init__(n)
        self.engine_name = engine_name

    def __getitem__(self, i):
        engine = ENGINES[self.engine_name]
        info = engine.utils.data.get_worker_info()
        words = state(engine)[:200]
        return (
            *(info.id, info.num_workers, info.seed, len(info.dataset)),
            *(random.random(), np.random.rand(), words),  # noqa: NPY002
        )


class Failing(Items):
    def __getitem__(self, i):
        if i == 2:
            raise KeyError("sample 2")
        return i


class Dying(Items):
    def __getitem__(self, i):
        os.kill(os.getpid(), signal.SIGKILL)


class Sleeping(Items):
    def __getitem__(self, i):
        time.sleep(30)


class OddError(Exception):
    def __init__(self, one, two):
        super().__init__(one, two)


class OddFailing(Items):
    def __getitem__(self, i):
        raise OddError(1, 2)


class LocalFailing(Items):
    def __getitem__(self, i):
        class Local(Exception):
            pass

        raise Local("cannot be pickled")


class Unpicklable(Items):
    def __getitem__(self, i):
        return lambda: i


def name_of(e):
    return "clew" if e is clew else "torch"


def last_line(result):
    """An error's type and the first and last line of its text."""
    if isinstance(result, tuple) and isinstance(result[1], str):
        lines = result[1].strip().splitlines()
        return result[0], lines[0], lines[-1]
    return result


LOADERS = {
    "two": lambda d, n: d.DataLoader(Items(11), batch_size=3, num_workers=2, shuffle=True),
    "one": lambda d, n: d.DataLoader(Items(5), batch_size=2, num_workers=1),
    "more than batches": lambda d, n: d.DataLoader(Items(2), batch_size=2, num_workers=2),
    "prefetch": lambda d, n: d.DataLoader(Items(9), num_workers=2, prefetch_factor=1),
    "facts": lambda d, n: d.DataLoader(Facts(4, n), None, num_workers=2),
    "no batches": lambda d, n: d.DataLoader(Items(4), batch_size=None, num_workers=1),
    "persistent": lambda d, n: d.DataLoader(
        Items(5), 2, shuffle=True, num_workers=2, persistent_workers=True
    ),
    "persistent facts": lambda d, n: d.DataLoader(
        Facts(4, n), None, num_workers=2, persistent_workers=True
    ),
}


@pytest.mark.parametrize("name", LOADERS)
def test_batches_and_state_equal_torch(name):
    def run(e):
        seed(e, 13)
        loader = LOADERS[name](e.utils.data, name_of(e))
        return list(loader), list(loader), state(e)

    same(run)


def test_workers_split_a_stream_as_in_torch():
    def run(e):
        class Stream(e.utils.data.IterableDataset):
            def __iter__(self):
                info = e.utils.data.get_worker_info()
                return iter(range(info.id * 10, info.id * 10 + 3))

        loader = e.utils.data.DataLoader(Stream(), batch_size=2, num_workers=2)
        return sorted(str(b.tolist()) for b in loader)

    same(run)


def test_init_function_sees_the_dataset_of_the_worker():
    def run(e):
        def cut(worker_id):
            e.utils.data.get_worker_info().dataset.n = 100 + worker_id

        class Size(Items):
            def __getitem__(self, i):
                return self.n

        return list(e.utils.data.DataLoader(Size(4), num_workers=2, worker_init_fn=cut))

    same(run)


@pytest.mark.parametrize("dataset", [Failing, OddFailing])
def test_errors_of_a_worker_arrive_as_in_torch(dataset):
    def run(e):
        return last_line(
            outcome(lambda e: list(e.utils.data.DataLoader(dataset(4), num_workers=1)), e)
        )

    same(run)


def test_loading_goes_on_after_an_error():
    iterator = iter(clew.utils.data.DataLoader(Failing(5), num_workers=2))
    seen = []
    for _ in range(5):
        try:
            seen.append(next(iterator).tolist())
        except KeyError:
            seen.append("error")
    assert seen == [[0], [1], "error", [3], [4]]
    assert next(iterator, None) is None


def test_error_in_the_init_function_arrives():
    def fail(worker_id):
        raise ValueError("bad start")

    loader = clew.utils.data.DataLoader(Items(2), num_workers=1, worker_init_fn=fail)
    with pytest.raises(ValueError, match=r"(?s)in DataLoader worker process 0.*bad start"):
        list(loader)


@pytest.mark.parametrize("dataset", [LocalFailing, Unpicklable])
def test_what_cannot_be_pickled_is_reported(dataset):
    loader = clew.utils.data.DataLoader(dataset(2), None, num_workers=1)
    with pytest.raises(Exception, match="in DataLoader worker process 0") as caught:
        list(loader)
    assert "pickle" in str(caught.value)


def test_death_of_a_worker_is_noticed():
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(clew.utils.data.DataLoader(Dying(2), num_workers=1))


def test_timeout():
    loader = clew.utils.data.DataLoader(Sleeping(1), num_workers=1, timeout=0.1)
    iterator = iter(loader)
    process = iterator._workers[0].process
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.1 seconds"):
        next(iterator)
    process.kill()  # it sleeps


def test_workers_end_with_the_pass_and_with_the_iterator():
    loader = clew.utils.data.DataLoader(Items(8), num_workers=2)
    iterator = iter(loader)
    processes = [w.process for w in iterator._workers]
    list(iterator)
    assert not any(p.is_alive() for p in processes)
    iterator = iter(loader)
    processes = [w.process for w in iterator._workers]
    next(iterator)
    del iterator
    assert not any(p.is_alive() for p in processes)


def test_persistent_workers_stay():
    loader = clew.utils.data.DataLoader(Items(4), num_workers=2, persistent_workers=True)
    list(loader)
    processes = [w.process for w in loader._iterator._workers]
    next(iter(loader))  # a pass that is given up
    assert len(list(loader)) == 4
    assert [w.process for w in loader._iterator._workers] == processes
    assert all(p.is_alive() for p in processes)
    del loader
    assert not any(p.is_alive() for p in processes)


def test_any_order_gives_every_batch():
    loader = clew.utils.data.DataLoader(Items(20), num_workers=2, in_order=False)
    assert sorted(int(i) for i, _ in loader) == list(range(20))


def test_spawned_workers():
    loader = clew.utils.data.DataLoader(
        clew.utils.data.TensorDataset(clew.arange(3)), num_workers=1,
        multiprocessing_context="spawn",
    )  # fmt: skip
    assert [x.tolist() for (x,) in loader] == [[0], [1], [2]]


def test_large_batches_pass_the_pipes():
    class Big(Items):
        def __getitem__(self, i):
            return clew.full((300_000,), float(i))

    loader = clew.utils.data.DataLoader(Big(6), None, num_workers=2)
    assert [x[-1].item() for x in loader] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_there_is_no_worker_info_in_this_process():
    assert clew.utils.data.get_worker_info() is None


def test_iterators_cannot_be_pickled():
    import pickle

    with pytest.raises(NotImplementedError, match="cannot be pickled"):
        pickle.dumps(iter(clew.utils.data.DataLoader([1])))


def test_no_warning_for_as_many_workers_as_processors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clew.utils.data.DataLoader([1], num_workers=1)
