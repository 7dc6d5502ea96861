"""Matrix products by oneDNN: right for all layouts, the same on any number of threads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import clew
from clew.backends import mkldnn
from clew.kernels import onednn
from clew.kernels.onednn.library import address
from clew.kernels.product import (
    MANY,
    MANY_OF_EACH,
    PIECE,
    add_product,
    add_products,
    affine,
    product,
)

pytestmark = pytest.mark.skipif(not onednn.is_available(), reason="oneDNN is not installed")


@pytest.fixture(autouse=True)
def switched_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mkldnn, "enabled", True)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The calls that oneDNN gets from now on."""
    fast: Any = onednn.products()
    calls: list[Any] = []
    plain = fast._library.multiply

    def multiply(arguments: Any) -> None:
        calls.append(arguments)
        plain(arguments)

    monkeypatch.setattr(fast._library, "multiply", multiply)
    return calls


def randn(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def layouts(x: Any) -> dict[str, Any]:
    """`x` in memory of several kinds."""
    wider = np.zeros((x.shape[0] + 3, x.shape[1] + 5), x.dtype)
    wider[2:-1, 1:-4] = x
    higher = wider.T.copy()
    return {
        "rows": x,
        "columns": np.asfortranarray(x),
        "part": wider[2:-1, 1:-4],
        "part, transposed": higher[1:-4, 2:-1].T,
        "every other column": np.repeat(x, 2, axis=1)[:, ::2],
        "backwards": x[::-1].copy()[::-1],
    }


FIT = ("rows", "columns", "part", "part, transposed")


@pytest.mark.parametrize("shape", [(33, 257, 130), (7, 300, 700), (800, 90, 30), (250, 300, 260)])
def test_layouts(shape: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    m, k, n = shape
    x, y = randn(m, k), randn(k, n, seed=1)
    exact = x.astype(np.float64) @ y
    bound = 4 * np.abs(x) @ np.abs(y) * np.finfo(np.float32).eps
    calls = counted(monkeypatch)
    for of_x, a in layouts(x).items():
        for of_y, b in layouts(y).items():
            for of_out, out in layouts(np.full((m, n), np.nan, np.float32)).items():
                del calls[:]
                assert product(np.matmul, a, b, out) is out
                assert bool(calls) == all(name in FIT for name in (of_x, of_y, of_out))
                assert (np.abs(out - exact) <= bound).all(), (of_x, of_y, of_out)
                before = out.copy()
                add_product(a, b, out)
                assert (np.abs(out - before - exact) <= bound + 4e-7 * np.abs(before)).all()


def test_a_product_is_added_to_a_row_or_a_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = randn(33, 257), randn(257, 130, seed=1)
    exact = x.astype(np.float64) @ y
    bound = 4 * np.abs(x) @ np.abs(y) * np.finfo(np.float32).eps
    calls = counted(monkeypatch)
    for start in (randn(130), randn(33, 130), randn(130, 33).T):
        before = start.copy()
        for of_y, b in layouts(y).items():
            del calls[:]
            out: Any = affine(x, b, start)
            assert bool(calls) == (of_y in FIT)
            assert (np.abs(out - exact - start) <= bound + 4e-7 * np.abs(start)).all()
        assert (start == before).all()
    assert affine(x, y, randn(33, 1)) is affine(x, y, randn(129)) is None
    assert affine(x, y[:-1], randn(130)) is affine(x[:3], y, randn(130)) is None


@pytest.mark.parametrize("seed", range(40))
def test_threads_change_no_bit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, k, n = (int(2 ** rng.uniform(1, 11)) for _ in range(3))
    if seed % 3 == 0:
        k *= 1 + PIECE // (m * k * n)  # large enough to be split
    names = rng.choice(FIT, 3)
    x, y = layouts(randn(m, k))[names[0]], layouts(randn(k, n, seed=1))[names[1]]
    before = clew.get_num_threads()
    results = []
    try:
        for number in (1, 2, 3, 8):
            clew.set_num_threads(number)
            out = layouts(np.ones((m, n), np.float32))[names[2]]
            add_product(x, y, out)
            results.append((product(np.dot, x, y), out))
    finally:
        clew.set_num_threads(before)
    for one, other in results[1:]:
        np.testing.assert_array_equal(one, results[0][0])
        np.testing.assert_array_equal(other, results[0][1])
    np.testing.assert_allclose(results[0][0], x @ y, rtol=1e-4, atol=1e-5 * k)


@pytest.mark.parametrize("batch", [(1,), (3,), (2, 3)])
@pytest.mark.parametrize("shared", ["", "x", "y"])
def test_batches(batch: tuple[int, ...], shared: str, monkeypatch: pytest.MonkeyPatch) -> None:
    of_x, of_y = (() if name == shared else batch for name in "xy")
    x, y = randn(*of_x, 129, 130), randn(*of_y, 128, 130, seed=1).mT
    assert MANY_OF_EACH <= 129 * 130 * 128
    exact = np.matmul(x.astype(np.float64), y)
    calls = counted(monkeypatch)
    before = clew.get_num_threads()
    results = []
    try:
        for number in (1, 2, 3):
            clew.set_num_threads(number)
            results.append(product(np.matmul, x, y))
    finally:
        clew.set_num_threads(before)
    assert len(calls) == 3 * len(results[0].reshape(-1, 129, 128))
    for result in results:
        np.testing.assert_array_equal(result, results[0])
    np.testing.assert_allclose(results[0], exact, rtol=1e-4, atol=1e-4)
    if not shared:
        del calls[:]
        out = np.ones_like(results[0].mT).mT
        add_product(x, y, out)
        np.testing.assert_allclose(out, exact + 1, rtol=1e-4, atol=1e-4)
        out = np.ones_like(results[0][0])
        add_products(x, y, out)
        assert len(calls) == 2 * len(x.reshape(-1, 129, 130))
        np.testing.assert_allclose(out, exact.sum(axis=0) + 1, rtol=1e-4, atol=2e-4)


def test_what_it_does_not_take(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted(monkeypatch)
    x, y = randn(64, 1 << 15), randn(1 << 15, 64, seed=1)
    product(np.dot, x[:1], y), product(np.dot, x, y[:, :1]), product(np.dot, x[:, :1], y[:1])
    product(np.dot, x[:0], y), product(np.dot, x[:, :0], y[:0]), product(np.dot, x[0], y)
    product(np.dot, x.astype(np.float64), y.astype(np.float64))
    product(np.dot, x.astype(">f4"), y.astype(">f4"))
    product(np.dot, np.broadcast_to(x[:1], x.shape), np.broadcast_to(y[:, :1], y.shape))
    assert not calls
    product(np.dot, x, y)
    assert calls
    del calls[:]
    monkeypatch.setattr(onednn.products(), "most", x.size * 64 - 1)
    product(np.dot, x, y)
    assert not calls
    monkeypatch.undo()
    monkeypatch.setattr(mkldnn, "enabled", True)
    calls = counted(monkeypatch)
    with mkldnn.flags(enabled=False):
        product(np.dot, x, y)
        assert not calls


def test_sizes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="cannot be multiplied"):
        product(np.dot, randn(200, 200), randn(201, 200))


def test_a_matrix_and_itself() -> None:
    x = randn(200, 200)
    exact = x.astype(np.float64)
    np.testing.assert_allclose(product(np.matmul, x, x), exact @ exact, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(product(np.matmul, x, x.T), exact @ exact.T, rtol=1e-4, atol=1e-4)


def test_nan_and_infinity() -> None:
    x, y = randn(150, 100), randn(100, 120, seed=1)
    x[3, 5], y[7, 9], y[5, 50] = np.nan, np.inf, 0
    x[10] = 0
    out = np.full((150, 120), np.nan, np.float32)  # what is there is not read
    product(np.matmul, x, y, out)
    with np.errstate(invalid="ignore"):
        expected = x.astype(np.float64) @ y.astype(np.float64)
    np.testing.assert_array_equal(np.isnan(out), np.isnan(expected))
    np.testing.assert_array_equal(np.isinf(out), np.isinf(expected))
    assert x.size * 120 >= MANY


ISA = """
import sys
import numpy as np
from clew.kernels import onednn
from clew.kernels.product import product

x = np.random.default_rng(0).standard_normal((260, 300), np.float32)
for size in (100, 260):
    ours = product(np.dot, x[:size], x[:size].T)
    assert np.allclose(ours, x[:size].astype(float) @ x[:size].T, rtol=1e-4, atol=1e-4)
print(onednn.products().most)
"""


@pytest.mark.parametrize("isa", ["AVX2", "SSE41"])
def test_older_processors(isa: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ISA], capture_output=True, text=True, check=True,
        env={**os.environ, "CLEW_ONEDNN": "1", "ONEDNN_MAX_CPU_ISA": isa},
    )  # fmt: skip
    assert done.stdout.split() == [str(1 << 24)]


def test_python_threads_at_once() -> None:
    x, y = randn(128, 128), randn(128, 128, seed=1)
    factors = [x + i for i in range(4)]
    expected = [product(np.dot, f, y) for f in factors]
    wrong: list[int] = []

    def run(i: int) -> None:
        products = (product(np.dot, factors[i], y) for _ in range(200))
        wrong.extend(i for found in products if not np.array_equal(found, expected[i]))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_in_a_forked_program() -> None:
    x = randn(300, 300)
    before = clew.get_num_threads()
    clew.set_num_threads(2)
    try:
        expected = product(np.dot, x, x)
        child = os.fork()
        if child == 0:
            os._exit(0 if np.array_equal(product(np.dot, x, x), expected) else 1)
        assert os.waitpid(child, 0)[1] == 0
    finally:
        clew.set_num_threads(before)


def test_openmp_keeps_its_threads() -> None:
    fast: Any = onednn.products()
    threads, set_threads = fast._library._threads
    before = threads()
    try:
        set_threads(3)
        product(np.dot, randn(200, 200), randn(200, 200))
        assert threads() == 3
    finally:
        set_threads(before)


def test_address() -> None:
    x = randn(20, 30)
    for view in (
        x,
        x[3:, 4:],
        x.T,
        x[::-1],
        x.view(np.int32),
        x.view(type("S", (np.ndarray,), {})),
    ):
        assert address(view) == view.ctypes.data
