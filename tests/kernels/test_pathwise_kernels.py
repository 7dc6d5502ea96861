"""Pathwise derivatives against PyTorch's approximations and against the quantiles themselves."""

import numpy as np
import pytest

from clew.kernels import pathwise
from clew.quiet import quietly


def gamma_gradient(*arrays):
    """As ops call it: far out in the tail, numbers overflow and count nothing."""
    return quietly(pathwise.gamma_gradient, arrays, {})


def beta_gradient(*arrays):
    return quietly(pathwise.beta_gradient, arrays, {})


def test_gamma_gradient_of_the_exponential_distribution():
    """At shape 1, ``F = 1 - exp(-x)``; dF/da is known in closed form at x = 1 (A&S 6.5)."""
    # -dP/da(1, 1) = integral of exp(-t) * (-log t - euler) over (0, 1), by series.
    n = np.arange(1, 40)
    factorials = np.cumprod(n.astype(float))
    incomplete = np.sum((-1.0) ** (n + 1) / (n * factorials))  # Ein(1)
    euler = 0.5772156649015329
    minus_dp = incomplete - euler * (1 - np.exp(-1.0))
    np.testing.assert_allclose(
        gamma_gradient(np.array(1.0), np.array(1.0)), minus_dp / np.exp(-1.0), rtol=1e-8
    )


def test_gamma_gradient_near_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    shape = np.exp(rng.uniform(np.log(0.1), np.log(1000), 500))
    x = rng.gamma(shape)
    theirs = torch._standard_gamma_grad(torch.tensor(shape), torch.tensor(x)).numpy()
    np.testing.assert_allclose(gamma_gradient(shape, x), theirs, rtol=2e-3)


def test_gamma_gradient_follows_the_quantile():
    """The derivative is that of the number at the same level of the cumulative function."""
    torch = pytest.importorskip("torch")
    shape, x, step = 3.0, np.array([0.3, 2.0, 3.0, 7.0]), 1e-4
    levels = torch.special.gammainc(torch.tensor(shape, dtype=torch.float64), torch.tensor(x))

    def quantile(a):
        low, high = np.zeros_like(x), np.full_like(x, 50.0)
        for _ in range(80):
            middle = (low + high) / 2
            p = torch.special.gammainc(torch.tensor(a, dtype=torch.float64), torch.tensor(middle))
            low = np.where(p < levels, middle, low)
            high = np.where(p < levels, high, middle)
        return (low + high) / 2

    slope = (quantile(shape + step) - quantile(shape - step)) / (2 * step)
    np.testing.assert_allclose(gamma_gradient(np.full(4, shape), x), slope, rtol=1e-6)


def test_beta_gradient_near_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    a, b = np.exp(rng.uniform(np.log(0.1), np.log(100), (2, 500)))
    x = rng.beta(a, b).clip(1e-12, 1 - 1e-12)
    theirs = torch._dirichlet_grad(*map(torch.tensor, (x, a, a + b))).numpy()
    np.testing.assert_allclose(beta_gradient(x, a, a + b), theirs, rtol=2e-3)


def test_beta_gradient_of_the_power_distribution():
    """With the other parameter 1, ``F = x ** a``, so ``dx/da = -x log(x) / a``."""
    a = np.array([0.2, 1.0, 3.0, 40.0])
    x = np.array([0.01, 0.4, 0.9, 0.97])
    expected = -x * np.log(x) / a / (1 - x)
    np.testing.assert_allclose(beta_gradient(x, a, a + 1), expected, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtype_and_shape_are_kept(dtype):
    x = np.full((2, 3), 0.5, dtype)
    assert gamma_gradient(x, x).dtype == dtype
    assert beta_gradient(x, x, x + 1).shape == (2, 3)
    assert gamma_gradient(x[:0], x[:0]).shape == (0, 3)
