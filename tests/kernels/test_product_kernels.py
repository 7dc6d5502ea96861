"""Products on several threads are those of NumPy, whatever the number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import clew
from clew.kernels.product import FEW, PIECE, add_product, add_products, product

SHAPES = [
    (3, 4, 5),
    (64, 65, 66),
    (130, 270, 140),
    (40, 300, 1000),
    (1000, 300, 40),
    (600, 500, 550),
]


def layouts(x: Any) -> list[Any]:
    return [x, np.asfortranarray(x), np.repeat(x, 2, axis=-1)[..., ::2]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("shape", SHAPES)
def test_matrices(shape: tuple[int, int, int], dtype: Any) -> None:
    rng = np.random.default_rng(0)
    m, k, n = shape
    x, y = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
    wide = np.complex128 if dtype == np.complex64 else np.float64
    exact = x.astype(wide) @ y.astype(wide)
    before = clew.get_num_threads()
    for a, b in zip(layouts(x), layouts(y)):
        results = []
        try:
            for number in (1, 2, 3):
                clew.set_num_threads(number)
                results.append(product(np.dot, a, b))
        finally:
            clew.set_num_threads(before)
        for result in results:
            assert result.dtype == dtype and result.flags.c_contiguous
            np.testing.assert_array_equal(result, results[0])
        size = np.abs(x) @ np.abs(y) * np.finfo(dtype).eps
        assert (np.abs(results[0] - exact) <= 20 * size).all()


@pytest.mark.parametrize("batch", [1, 2, 7, 40])
def test_batches(batch: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(batch, 70, 80)).astype(np.float32)
    y = rng.normal(size=(batch, 90, 80)).astype(np.float32).transpose(0, 2, 1)
    assert batch < 40 or batch * 70 * 80 * 90 > 2 * PIECE
    np.testing.assert_allclose(product(np.matmul, x, y), np.matmul(x, y), rtol=1e-4, atol=1e-4)


def test_vectors_and_other_ranks() -> None:
    rng = np.random.default_rng(0)
    x, v = rng.normal(size=(900, 1000)), rng.normal(size=1000)
    assert x.size > FEW
    np.testing.assert_allclose(product(np.dot, x, v), x @ v)
    np.testing.assert_allclose(product(np.dot, v, v), v @ v)
    np.testing.assert_allclose(product(np.matmul, x, x[None].mT), x @ x[None].mT)


@pytest.mark.parametrize("rows, columns", [(1, 1), (1, 2), (3, 1)])
def test_long_and_thin(rows: int, columns: int) -> None:
    length = 2 * PIECE + 1
    x, y = np.ones((rows, length), np.float32), np.ones((length, columns), np.float32)
    np.testing.assert_array_equal(product(np.dot, x, y), np.full((rows, columns), length))


def test_blas_has_its_threads_afterwards() -> None:
    before = clew.get_num_threads()
    try:
        clew.set_num_threads(2)
        x = clew.randn(300, 300)
        for _ in range(3):
            x @ x
        pools = [p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"]
        assert set(pools) == {2}
    finally:
        clew.set_num_threads(before)


@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("shape", SHAPES)
def test_into_an_array(shape: tuple[int, int, int], batch: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    m, k, n = shape
    x, y = rng.normal(size=(*batch, m, k)), rng.normal(size=(*batch, k, n))
    out = np.full((*batch, m, n), np.nan)
    assert product(np.matmul, x, y, out) is out
    np.testing.assert_array_equal(out, product(np.matmul, x, y))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("shape", SHAPES)
def test_added(shape: tuple[int, int, int], dtype: Any) -> None:
    rng = np.random.default_rng(0)
    m, k, n = shape
    x, y = rng.normal(size=(3, m, k)).astype(dtype), rng.normal(size=(3, k, n)).astype(dtype)
    close: Any = {"rtol": 1e-4, "atol": 1e-4}
    out = np.ones((3, m, n), dtype)
    add_product(x, y, out)
    np.testing.assert_allclose(out, x @ y + 1, **close)
    add_product(x[0], y[0], out[0])
    np.testing.assert_allclose(out[0], 2 * (x[0] @ y[0]) + 1, **close)
    total = np.ones((m, n), dtype)
    add_products(x, y, total)
    np.testing.assert_allclose(total, (x @ y).sum(axis=0) + 1, **close)
    add_products(x[:0], y[:0], total)
    np.testing.assert_allclose(total, (x @ y).sum(axis=0) + 1, **close)


def test_batches_that_broadcast() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(5, 1, 70, 80)), rng.normal(size=(3, 80, 90))
    np.testing.assert_allclose(product(np.matmul, x, y), x @ y)
    assert product(np.matmul, x, y[:0]).shape == (5, 0, 70, 90)
    with pytest.raises(ValueError, match="cannot be multiplied"):
        product(np.matmul, x, y[:, :-1])
