"""The compiled twins of softmax, log-softmax and log-sum-exp agree with NumPy, and with torch."""

import numpy as np
import pytest

from clew.kernels import softmax as kernels

SHAPES = [
    ((1, 1), 1), ((3, 10), 1), ((700, 2), -1), ((5, 700), 1), ((2, 5000), 1),  # rows
    ((3, 4, 30), 1), ((40, 600), 0), ((1, 3, 16), 1),  # columns
    ((3, 4, 5), 1), ((7, 2), 0), ((5,), 0), ((), 0),  # few columns; vectors
]  # fmt: skip
SPECIAL = [0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, -np.nan, 1e-40, -1e-45, 1e-310, 3e38, -104, -80]


def by_both(monkeypatch, compute):
    """What twins make of it, and NumPy."""
    results = []
    for small in (0, 1 << 60):
        monkeypatch.setattr(kernels, "SMALL", small)
        with np.errstate(all="ignore"):
            results.append(compute())
    return results


def assert_close(ours, theirs):
    eps = np.finfo(theirs.dtype).eps
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    assert ours.flags.c_contiguous
    np.testing.assert_allclose(ours, theirs, rtol=20 * eps, atol=20 * eps)


def special_rows(dtype):
    """Rows of 20 with some special numbers each, also alone."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(300, 20))
    with np.errstate(over="ignore"):
        for i, row in enumerate(rows):
            row[rng.integers(20, size=i % 4)] = rng.choice(SPECIAL, size=i % 4)
        rows[-3:] = [[np.inf], [-np.inf], [np.nan]]
        return rows.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
class TestOneDimension:
    @pytest.mark.parametrize(("shape", "dim"), SHAPES)
    def test_forward(self, name, dtype, shape, dim, monkeypatch):
        x = np.random.default_rng(0).normal(size=shape, scale=10).astype(dtype)
        assert_close(*by_both(monkeypatch, lambda: getattr(kernels, name)(x, dim)))

    @pytest.mark.parametrize(("shape", "dim"), SHAPES)
    def test_backward(self, name, dtype, shape, dim, monkeypatch):
        rng = np.random.default_rng(0)
        x, grad = (rng.normal(size=shape).astype(dtype) for _ in range(2))
        result = getattr(kernels, name)(x, dim)
        backward = getattr(kernels, name + "_backward")
        assert_close(*by_both(monkeypatch, lambda: backward(grad, result, dim)))

    @pytest.mark.parametrize("turned", [False, True])
    def test_special_numbers(self, name, dtype, turned, monkeypatch):
        rows = special_rows(dtype)
        rows, dim = (np.ascontiguousarray(rows.T), 0) if turned else (rows, 1)
        assert_close(*by_both(monkeypatch, lambda: getattr(kernels, name)(rows, dim)))
        backward = getattr(kernels, name + "_backward")
        assert_close(*by_both(monkeypatch, lambda: backward(rows, rows, dim)))

    def test_special_numbers_as_torch(self, name, dtype, monkeypatch):
        torch = pytest.importorskip("torch")
        rows = special_rows(dtype)
        monkeypatch.setattr(kernels, "SMALL", 0)
        assert_close(
            getattr(kernels, name)(rows, 1), getattr(torch, name)(torch.tensor(rows), 1).numpy()
        )

    def test_gaps_and_read_only(self, name, dtype, monkeypatch):
        x = np.random.default_rng(0).normal(size=(6, 5, 40)).astype(dtype)[::2, :, ::2]
        x.flags.writeable = False
        for dim in range(3):
            assert_close(*by_both(monkeypatch, lambda: getattr(kernels, name)(x, dim)))  # noqa: B023

    def test_in_pieces(self, name, dtype, monkeypatch):
        monkeypatch.setattr(kernels, "GRAIN", 100)
        for shape, dim in [((50, 30), 1), ((20, 4, 17), 1)]:
            x = np.random.default_rng(0).normal(size=shape).astype(dtype)
            assert_close(*by_both(monkeypatch, lambda: getattr(kernels, name)(x, dim)))  # noqa: B023


@pytest.mark.parametrize("dtype", ["float32", "float64"])
class TestLogsumexp:
    @pytest.mark.parametrize("keepdim", [False, True])
    @pytest.mark.parametrize(
        ("shape", "dims"), [((3, 10), (1,)), ((2, 3, 700), (2, 1)), ((4, 5), (0, 1)), ((1,), (0,))]
    )
    def test_values(self, dtype, shape, dims, keepdim, monkeypatch):
        x = np.random.default_rng(0).normal(size=shape, scale=10).astype(dtype)
        assert_close(*by_both(monkeypatch, lambda: kernels.logsumexp(x, dims, keepdim)))

    def test_special_numbers(self, dtype, monkeypatch):
        rows = special_rows(dtype)
        assert_close(*by_both(monkeypatch, lambda: kernels.logsumexp(rows, (1,), False)))


def test_other_types_have_no_twins(monkeypatch):
    monkeypatch.setattr(kernels, "SMALL", 0)
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.longdouble)
    assert kernels.softmax(x, 1).dtype == np.longdouble
    assert kernels.softmax(x.astype(np.float16), 1).dtype == np.float16
