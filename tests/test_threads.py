"""Work split among threads: the same pieces, nothing lost, nobody left waiting."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import clew
from clew import threads


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = threads.get_num_threads()
    threads.set_num_threads(2)
    yield
    threads.set_num_threads(before)


def pieces(count: int, grain: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    threads.split(lambda start, stop: found.append((start, stop)), count, grain)
    return sorted(found)


@pytest.mark.parametrize("count", [0, 1, 7, 64, 100, 1001])
@pytest.mark.parametrize("grain", [1, 10, 64])
def test_pieces_cover_all_and_do_not_depend_on_threads(count: int, grain: int) -> None:
    found = pieces(count, grain)
    assert [i for start, stop in found for i in range(start, stop)] == list(range(count))
    if count >= grain:
        assert all(stop - start >= grain for start, stop in found)
    for number in (1, 3):
        threads.set_num_threads(number)
        assert pieces(count, grain) == found


def _meet(number: int) -> Any:
    """A function of pieces that returns only when so many threads are in it."""
    barrier = threading.Barrier(number, timeout=20)
    return lambda start, stop: barrier.wait()


def test_threads_run_at_once() -> None:
    threads.split(_meet(2), 2, 1)
    threads.set_num_threads(4)
    threads.split(_meet(4), 4, 1)


def test_pieces_do_not_split_again() -> None:
    inner: list[tuple[int, int]] = []
    barrier = threading.Barrier(2, timeout=20)

    def outer(start: int, stop: int) -> None:
        barrier.wait()
        threads.split(lambda a, b: inner.append((threading.get_ident(), a)), 2, 1)
        barrier.wait()

    threads.split(outer, 2, 1)
    for thread in {thread for thread, _ in inner}:
        assert [a for who, a in inner if who == thread] == [0, 1]
    assert len(inner) == 4


@pytest.mark.parametrize("fails", ["caller", "worker"])
def test_an_exception_reaches_the_caller(fails: str) -> None:
    caller = threading.get_ident()
    barrier = threading.Barrier(2, timeout=20)

    def work(start: int, stop: int) -> None:
        if start < 2:  # the first two pieces are begun by the two threads
            barrier.wait()
            if (threading.get_ident() == caller) == (fails == "caller"):
                raise ValueError("this piece fails")

    for _ in range(3):  # and the pool can be used afterwards
        with pytest.raises(ValueError, match="this piece fails"):
            threads.split(work, 64, 1)
    threads.split(_meet(2), 2, 1)


def test_nothing_is_kept_alive() -> None:
    class Big:
        pass

    big = Big()
    gone = weakref.ref(big)
    gc.disable()
    try:
        with pytest.raises(ZeroDivisionError):
            threads.split(lambda start, stop, big=big: start / 0, 2, 1)  # type: ignore[misc]
        threads.split(lambda start, stop, big=big: None, 2, 1)  # type: ignore[misc]
        del big
        end = time.monotonic() + 10
        while gone() is not None and time.monotonic() < end:
            time.sleep(0.001)
        assert gone() is None
    finally:
        gc.enable()


def test_no_floating_point_warnings_in_workers() -> None:
    barrier = threading.Barrier(2, timeout=20)
    states = []

    def work(start: int, stop: int) -> None:
        barrier.wait()
        states.append(np.geterr()["divide"])

    with np.errstate(all="ignore"):  # as in ops
        threads.split(work, 2, 1)
    assert states == ["ignore", "ignore"]


def _blas() -> list[int]:
    return [p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"]


def test_blas_has_one_thread_while_pieces_run() -> None:
    assert set(_blas()) == {2}
    seen: list[list[int]] = []
    threads.split(lambda start, stop: seen.append(_blas()), 2, 1)
    assert {n for numbers in seen for n in numbers} == {1}
    assert set(_blas()) == {2}


def test_two_callers_at_once() -> None:
    x = np.arange(1 << 14)
    wrong = []

    def caller() -> None:
        for _ in range(50):
            out = np.zeros_like(x)

            def double(start: int, stop: int, out: Any = out) -> None:
                np.multiply(x[start:stop], 2, out=out[start:stop])

            threads.split(double, len(x), 1 << 10)
            if not np.array_equal(out, x * 2):
                wrong.append(1)

    callers = [threading.Thread(target=caller) for _ in range(3)]
    for each in callers:
        each.start()
    for each in callers:
        each.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_forked_program_has_its_own_workers() -> None:
    threads.split(_meet(2), 2, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # BLAS has threads, at which Python 3.12 warns of forks
        child = os.fork()
    if child == 0:
        status = 1
        try:
            threads.split(_meet(2), 2, 1)
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    threads.split(_meet(2), 2, 1)


@pytest.mark.skipif(os.name == "nt", reason="signals are different there")
def test_interrupted() -> None:
    started = threading.Event()
    running: list[int] = []

    def work(start: int, stop: int) -> None:
        running.append(start)
        started.set()
        time.sleep(0.05)
        running.remove(start)

    def interrupt() -> None:
        started.wait(20)
        signal.raise_signal(signal.SIGINT)

    sender = threading.Thread(target=interrupt)
    sender.start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        threads.split(work, 1 << 10, 1)
    assert time.monotonic() - begun < 20  # and not 25 seconds
    sender.join()
    worker_pieces = [start for start in running if start]
    assert len(worker_pieces) <= 1  # what the interrupt stopped in this thread; no other runs on
    threads.split(_meet(2), 2, 1)
    assert set(_blas()) == {2}


def test_numbers_of_threads() -> None:
    assert clew.get_num_threads() == 2
    clew.set_num_threads(3)
    assert clew.get_num_threads() == 3
    with pytest.raises(RuntimeError, match="expects a positive integer"):
        clew.set_num_threads(0)
    with pytest.raises(TypeError, match="expects an int, but got float"):
        clew.set_num_threads(1.0)  # type: ignore[arg-type]
