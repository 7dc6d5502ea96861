"""The error functions and the gamma functions against exact values, Python's math and PyTorch."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from clew.kernels import special
from clew.kernels.gamma import digamma, lgamma, polygamma
from clew.kernels.special import erf, erfc, erfinv

torch = pytest.importorskip("torch")

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 2.0, 0.5, -0.5, 1e-30, -1e-30, 1e30, 30.0]


@pytest.fixture(autouse=True)
def quiet():
    """As the library runs its kernels: without NumPy's floating-point warnings."""
    with np.errstate(all="ignore"):
        yield


def uniform(low, high, count=2000):
    return np.random.default_rng(1).uniform(low, high, count)


def assert_within(ulps, ours, exact):
    """Compare in units in the last place of the exact value."""
    error = np.abs(ours - exact) / np.spacing(np.abs(exact))
    assert error.max() <= ulps


@pytest.mark.parametrize("low, high", [(-0.5, 0.5), (-1, 1), (0.4, 3), (-7, 7), (-1e-8, 1e-8)])
def test_erf(low, high):
    x = uniform(low, high)
    assert_within(2, erf(x), np.array([math.erf(v) for v in x]))


@pytest.mark.parametrize("low, high", [(-0.5, 0.5), (-6, 1), (0.4, 3), (3, 26.5)])
def test_erfc(low, high):
    x = uniform(low, high)
    assert_within(5, erfc(x), np.array([math.erfc(v) for v in x]))


def test_erfc_in_denormals():
    x = uniform(26.6, 27.5)
    assert_within(5, erfc(x), np.array([math.erfc(v) for v in x]))


def test_erfinv_undoes_erf():
    """Exact to the last places, which erf maps back to within its own rounding."""
    y = np.concatenate([uniform(-1, 1), 10.0 ** uniform(-300, -1), [0.5, -0.5, 0.75, -0.75]])
    assert_within(4, erf(erfinv(y)), y)


def test_erfinv_near_one_undoes_erfc():
    tail = 2.0 ** -np.arange(1, 54)
    x = erfinv(1 - tail)
    # A relative error e of x becomes one of 2 * x**2 * e in erfc(x).
    np.testing.assert_allclose(erfc(x), tail, rtol=4e-16 * 2 * 36)


def test_lgamma_keeps_its_digits_near_its_zeros():
    """By its series: lgamma(1 + z) = -euler z + zeta(2) / 2 z**2 - zeta(3) / 3 z**3 + ..."""
    zeta = [math.pi**2 / 6, 1.2020569031595942, math.pi**4 / 90, 1.03692775514337]
    z = np.array([2.0**-10, -(2.0**-10), 2.0**-20, -(2.0**-20), 2.0**-40])
    expected = -0.5772156649015329 * z
    for k, value in enumerate(zeta, start=2):
        expected += (-1) ** k * value / k * z**k
    np.testing.assert_allclose(lgamma(1 + z), expected, rtol=2e-15)
    np.testing.assert_allclose(lgamma(2 + z), expected + np.log1p(z), rtol=2e-15)


@pytest.mark.parametrize(
    "low, high", [(0.01, 0.5), (0.5, 2.5), (2.5, 10), (9, 11), (10, 1e4), (1e4, 1e300), (-9, 0)]
)
def test_gamma_functions(low, high):
    x = uniform(low, high)
    x_t = torch.tensor(x)
    np.testing.assert_allclose(lgamma(x), torch.lgamma(x_t).numpy(), rtol=1e-14, atol=3e-15)
    exact_near_poles = 1e-11 if low < 0 else 1e-13
    np.testing.assert_allclose(
        digamma(x), torch.digamma(x_t).numpy(), rtol=exact_near_poles, atol=3e-15
    )
    for n in (1, 2, 3, 7):
        expected = torch.polygamma(n, x_t).numpy()
        # PyTorch's own trigamma has nine digits.
        tolerance = 1e-9 if n == 1 or low < 0 else 1e-13
        np.testing.assert_allclose(polygamma(n, x), expected, rtol=tolerance, atol=0)


def test_gamma_functions_of_integers():
    """Against factorials and harmonic numbers in exact arithmetic."""
    x = np.arange(1, 60)
    factorials = np.array([math.log(math.factorial(n - 1)) for n in x])
    np.testing.assert_allclose(lgamma(x.astype(float)), factorials, rtol=1e-15, atol=1e-16)
    harmonic = [float(sum(Fraction(1, k) for k in range(1, n))) for n in x]
    euler = 0.5772156649015329
    np.testing.assert_allclose(digamma(x.astype(float)), np.array(harmonic) - euler, rtol=1e-15)
    squares = np.array([float(sum(Fraction(1, k * k) for k in range(1, n))) for n in x])
    expected = math.pi**2 / 6 - squares
    np.testing.assert_allclose(polygamma(1, x.astype(float)), expected, rtol=1e-13)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_special_values(dtype):
    x = np.array(SPECIAL, dtype)
    pairs = [
        (erf(x), torch.erf),
        (erfc(x), torch.erfc),
        (erfinv(x), torch.erfinv),
        (lgamma(x), torch.lgamma),
        (digamma(x), torch.digamma),
        (polygamma(0, x), lambda t: torch.polygamma(0, t)),
        (polygamma(1, x), lambda t: torch.polygamma(1, t)),
    ]
    for ours, theirs in pairs:
        expected = theirs(torch.tensor(x)).numpy()
        np.testing.assert_allclose(ours, expected, rtol=2e-6 if dtype == np.float32 else 1e-9)
        np.testing.assert_array_equal(np.signbit(ours[:2]), np.signbit(expected[:2]))


def test_negative_integers():
    x = np.array([-1.0, -2.0, -30.0])
    np.testing.assert_array_equal(lgamma(x), np.inf)
    np.testing.assert_array_equal(digamma(x), np.nan)
    for n in (1, 3):
        np.testing.assert_array_equal(polygamma(n, x), np.inf)


def test_polygamma_of_a_negative_order_is_refused():
    with pytest.raises(RuntimeError) as theirs:
        torch.polygamma(-1, torch.ones(1))
    with pytest.raises(RuntimeError) as ours:
        polygamma(-1, np.ones(1))
    assert str(ours.value) == str(theirs.value)


def test_polygamma_far_to_the_left_ends():
    assert np.isnan(polygamma(2, np.array([-1e20]))).all()
    assert np.isfinite(polygamma(1, np.array([-1e6 - 0.5]))).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_other_dtypes_are_computed_in_double_and_rounded_once(dtype):
    x = uniform(0.1, 0.9, 50).astype(dtype)
    for function in (erf, erfc, erfinv, lgamma, digamma):
        expected = function(x.astype(np.float64)).astype(dtype)
        np.testing.assert_array_equal(function(x), expected)
        assert function(x).dtype == dtype


def test_shapes_and_blocks(monkeypatch):
    monkeypatch.setattr(special, "BLOCK", 7)
    x = uniform(0.1, 0.9, 60).reshape(3, 4, 5)
    np.testing.assert_allclose(erf(x.T), np.vectorize(math.erf)(x).T, rtol=1e-15)
    assert erf(np.float64(0.3) * np.ones(())).shape == ()
    assert erf(np.empty((0, 3))).shape == (0, 3)
