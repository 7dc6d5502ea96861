"""The compiled twins of losses and their gradients agree with NumPy, and raise its errors."""

import numpy as np
import pytest

import clew
from clew.kernels import loss as kernels
from clew.nn import functional as F

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-45, 200.0, -200.0, 0.5]
LOSSES = {
    "mse_loss": {},
    "smooth_l1_loss": {"beta": 0.5},
    "huber_loss": {"delta": 0.7},
    "binary_cross_entropy_with_logits": {},
}


def by_both(monkeypatch, compute):
    """What twins make of it, and NumPy."""
    results = []
    for small in (1, 1 << 60):
        monkeypatch.setattr(kernels, "SMALL", small)
        results.append(compute())
    return results


def loss_and_gradients(name, x, t, reduction="mean", **options):
    x, t = (clew.tensor(a).requires_grad_() for a in (x, t))
    loss = getattr(F, name)(x, t, reduction=reduction, **options)
    loss.backward(clew.full_like(loss, 3.0))
    return [loss.detach().numpy(), x.grad.numpy(), t.grad.numpy()]


def assert_close(ours, theirs):
    for a, b in zip(ours, theirs):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        eps = 30 * float(np.finfo(b.dtype).eps)
        np.testing.assert_allclose(a, b, rtol=eps, atol=eps * 1e-3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", LOSSES)
class TestPairs:
    @pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
    @pytest.mark.parametrize("shape", [(1,), (), (3, 5), (7, 2000), (0, 3)])
    def test_values(self, name, shape, reduction, dtype, monkeypatch):
        rng = np.random.default_rng(0)
        x, t = (rng.normal(size=shape).astype(dtype) for _ in range(2))
        given = name, x, t, reduction
        assert_close(*by_both(monkeypatch, lambda: loss_and_gradients(*given, **LOSSES[name])))

    def test_special_numbers(self, name, dtype, monkeypatch):
        values = np.array(SPECIAL).astype(dtype)
        for a in values:
            for b in values:
                given = name, np.full(3, a), np.full(3, b)
                both = by_both(monkeypatch, lambda: loss_and_gradients(*given, **LOSSES[name]))  # noqa: B023
                assert_close(*both)

    def test_gaps_broadcasting_and_types(self, name, dtype, monkeypatch):
        x = np.random.default_rng(0).normal(size=(6, 8)).astype(dtype)

        def losses():
            leaf = clew.tensor(x).requires_grad_()
            turned, other = leaf.t(), clew.ones(8, 6, dtype=clew.float64)
            function, options = getattr(F, name), LOSSES[name]
            pairs = [(turned, turned * 2), (turned[::2], turned[1::2]), (turned, other)]
            total = sum(function(*pair, **options).double() for pair in pairs)
            total.backward()
            return [total.detach().numpy(), leaf.grad.numpy()]

        assert_close(*by_both(monkeypatch, losses))


def classes(x, target, reduction="mean", ignore_index=-100, weight=None):
    leaf = clew.tensor(x).requires_grad_()
    loss = F.nll_loss(leaf, clew.tensor(target), weight, ignore_index=ignore_index,
                      reduction=reduction)  # fmt: skip
    loss.backward(clew.full_like(loss, 3.0))
    return [loss.detach().numpy(), leaf.grad.numpy()]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
class TestClasses:
    @pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
    @pytest.mark.parametrize("ignored", [-100, 2])
    @pytest.mark.parametrize("shape", [(1, 1), (5, 4), (300, 7)])
    def test_values(self, shape, ignored, reduction, dtype, monkeypatch):
        rng = np.random.default_rng(0)
        x, target = rng.normal(size=shape).astype(dtype), rng.integers(shape[1], size=shape[0])
        target[::3] = ignored if ignored < 0 or shape[1] > 2 else 0
        assert_close(*by_both(monkeypatch, lambda: classes(x, target, reduction, ignored)))

    def test_special_numbers(self, dtype, monkeypatch):
        x = np.resize(np.array(SPECIAL), (10, 3)).astype(dtype)
        for row in range(10):
            given = x[row : row + 1], np.array([row % 3])
            assert_close(*by_both(monkeypatch, lambda: classes(*given)))  # noqa: B023

    def test_only_ignored(self, dtype, monkeypatch):
        given = np.ones((4, 3), dtype), np.full(4, 1), "mean", 1
        assert_close(*by_both(monkeypatch, lambda: classes(*given)))

    @pytest.mark.parametrize("wrong", [3, -1, -100, 1 << 40])
    def test_errors(self, wrong, dtype, monkeypatch):
        def error():
            try:
                return classes(np.ones((4, 3), dtype), np.array([0, wrong, 1, 2]), "mean", 7)
            except IndexError as raised:
                return str(raised)

        ours, theirs = by_both(monkeypatch, error)
        assert ours == theirs == f"Target {wrong} is out of bounds."
        monkeypatch.setattr(kernels, "SMALL", 1)
        one = np.ones((), dtype)
        with pytest.raises(IndexError, match="out of bounds"):
            kernels.nll_loss_backward(one, (2, 3), np.array([0, wrong]), None, "sum", 7, one)


def test_sums_keep_their_digits(monkeypatch):
    monkeypatch.setattr(kernels, "SMALL", 1)
    x = np.random.default_rng(0).random((1000, 3000)).astype(np.float32)
    loss = F.mse_loss(clew.tensor(x), clew.zeros(1000, 3000), reduction="sum")
    np.testing.assert_allclose(loss.item(), (x.astype(np.float64) ** 2).sum(), rtol=1e-6)
