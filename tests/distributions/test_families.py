"""Every distribution with several parameters: samples, densities, moments, gradients as torch's."""

import pytest

from engines import seed
from twins import assert_same


def t(e, *values, dtype="float32"):
    return e.tensor(list(values), dtype=getattr(e, dtype))


# name -> (constructor, a function of the engine that gives keyword arguments)
PARAMETERS = {
    "Normal": [
        lambda e: {"loc": t(e, 0.5, -1.0, 2.0), "scale": t(e, 1.0, 0.3, 2.5)},
        lambda e: {"loc": 0.5, "scale": 2.0},
        lambda e: {"loc": t(e, 0.5, -1.0, dtype="float64"), "scale": 1.5},
        lambda e: {"loc": e.zeros(2, 1), "scale": t(e, 1.0, 0.3, 2.5)},
    ],
    "Uniform": [
        lambda e: {"low": t(e, 0.5, -1.0), "high": t(e, 1.0, 3.0)},
        lambda e: {"low": 0.0, "high": 2.0},
    ],
    "Bernoulli": [
        lambda e: {"probs": t(e, 0.0, 0.3, 0.5, 1.0)},
        lambda e: {"logits": t(e, -2.0, 0.3, 5.0)},
        lambda e: {"probs": 0.3},
    ],
    "Categorical": [
        lambda e: {"probs": t(e, 0.2, 0.5, 0.3)},
        lambda e: {"logits": e.tensor([[0.1, 2.0, -1.0], [0.0, 0.0, 3.0]])},
        lambda e: {"probs": e.tensor([[1.0, 3.0, 0.0], [0.2, 0.2, 0.6]], dtype=e.float64)},
    ],
    "OneHotCategorical": [
        lambda e: {"probs": t(e, 0.2, 0.5, 0.3)},
        lambda e: {"logits": e.tensor([[0.1, 2.0, -1.0], [0.0, 0.0, 3.0]])},
    ],
    "OneHotCategoricalStraightThrough": [lambda e: {"probs": t(e, 0.2, 0.5, 0.3)}],
    "Exponential": [lambda e: {"rate": t(e, 0.5, 2.0)}, lambda e: {"rate": 1.5}],
    "Laplace": [lambda e: {"loc": t(e, 0.5, -2.0), "scale": t(e, 1.0, 0.4)}],
    "Cauchy": [lambda e: {"loc": t(e, 0.5, -2.0), "scale": t(e, 1.0, 0.4)}],
    "HalfNormal": [lambda e: {"scale": t(e, 1.0, 0.4)}, lambda e: {"scale": 2.0}],
    "HalfCauchy": [lambda e: {"scale": t(e, 1.0, 0.4)}],
    "LogNormal": [lambda e: {"loc": t(e, 0.5, -2.0), "scale": t(e, 1.0, 0.4)}],
    "Gumbel": [
        lambda e: {"loc": t(e, 0.5, -2.0), "scale": t(e, 1.0, 0.4)},
        lambda e: {"loc": 0.5, "scale": 2.0},
    ],
    "Pareto": [lambda e: {"scale": t(e, 0.5, 2.0), "alpha": t(e, 3.0, 0.4)}],
    "Weibull": [lambda e: {"scale": t(e, 0.5, 2.0), "concentration": t(e, 3.0, 0.4)}],
    "Kumaraswamy": [lambda e: {"concentration1": t(e, 0.5, 2.0), "concentration0": t(e, 3.0, 1.4)}],
    "LogisticNormal": [lambda e: {"loc": t(e, 0.5, -1.0), "scale": t(e, 1.0, 0.4)}],
    "Geometric": [
        lambda e: {"probs": t(e, 0.3, 0.7, 1.0)},
        lambda e: {"logits": t(e, -1.0, 2.0)},
    ],
    "GeneralizedPareto": [
        lambda e: {"loc": t(e, 0.5, 2.0), "scale": t(e, 3.0, 0.4), "concentration": t(e, 0.0, 0.3)},
        lambda e: {"loc": 0.0, "scale": 1.0, "concentration": t(e, -0.4, 0.6, 1.5)},
    ],
    "ContinuousBernoulli": [
        lambda e: {"probs": t(e, 0.0, 0.3, 0.4999, 1.0)},
        lambda e: {"logits": t(e, -2.0, 0.0, 3.0)},
    ],
    "RelaxedBernoulli": [
        lambda e: {"temperature": t(e, 0.7), "probs": t(e, 0.3, 0.9)},
        lambda e: {"temperature": t(e, 0.7), "logits": t(e, -0.3, 1.9)},
    ],
    "RelaxedOneHotCategorical": [
        lambda e: {"temperature": t(e, 0.7), "probs": t(e, 0.2, 0.5, 0.3)},
        lambda e: {"temperature": t(e, 0.7), "logits": t(e, -0.3, 1.9)},
    ],
    "Gamma": [
        lambda e: {"concentration": t(e, 0.5, 2.0, 7.0), "rate": t(e, 3.0, 0.4, 1.0)},
        lambda e: {"concentration": 2.0, "rate": 0.5},
    ],
    "Chi2": [lambda e: {"df": t(e, 0.5, 4.0)}],
    "InverseGamma": [lambda e: {"concentration": t(e, 0.5, 3.0), "rate": t(e, 3.0, 0.4)}],
    "Beta": [
        lambda e: {"concentration1": t(e, 0.5, 2.0), "concentration0": t(e, 3.0, 0.4)},
        lambda e: {"concentration1": 2.0, "concentration0": 0.5},
    ],
    "Dirichlet": [
        lambda e: {"concentration": t(e, 0.5, 2.0, 4.0)},
        lambda e: {"concentration": e.tensor([[0.5, 0.2], [3.0, 4.0]], dtype=e.float64)},
    ],
    "StudentT": [
        lambda e: {"df": t(e, 0.5, 1.5, 6.0), "loc": t(e, 0.0, 1.0, -1.0)},
        lambda e: {"df": t(e, 2.5), "scale": 2.0},
    ],
    "FisherSnedecor": [lambda e: {"df1": t(e, 1.5, 5.0), "df2": t(e, 3.0, 6.0)}],
    "Binomial": [
        lambda e: {"total_count": 5, "probs": t(e, 0.3, 0.8)},
        lambda e: {"total_count": t(e, 40.0, 3.0), "logits": t(e, 0.3, -0.8)},
    ],
    "NegativeBinomial": [
        lambda e: {"total_count": 5.0, "probs": t(e, 0.3, 0.8)},
        lambda e: {"total_count": t(e, 4.5, 3.0), "logits": t(e, 0.3, -0.8)},
    ],
    "Multinomial": [
        lambda e: {"total_count": 6, "probs": t(e, 0.2, 0.5, 0.3)},
        lambda e: {"total_count": 3, "logits": e.tensor([[0.1, 2.0], [0.0, 3.0]])},
    ],
    "MultivariateNormal": [
        lambda e: {"loc": t(e, 0.5, -1.0), "scale_tril": e.tensor([[1.0, 0.0], [0.5, 2.0]])},
        lambda e: {
            "loc": e.zeros(3, 2),
            "covariance_matrix": e.tensor([[2.0, 0.5], [0.5, 1.0]]),
        },
        lambda e: {
            "loc": t(e, 0.5, -1.0),
            "precision_matrix": e.tensor([[[2.0, 0.5], [0.5, 1.0]], [[1.0, 0.2], [0.2, 3.0]]]),
        },
    ],
    "LowRankMultivariateNormal": [
        lambda e: {
            "loc": t(e, 0.5, -1.0, 0.0),
            "cov_factor": e.tensor([[1.0, 0.0], [0.5, 2.0], [-1.0, 0.3]]),
            "cov_diag": t(e, 0.5, 1.0, 2.0),
        },
        lambda e: {
            "loc": e.zeros(2, 2),
            "cov_factor": e.tensor([[1.0], [0.5]]),
            "cov_diag": e.tensor([[0.5, 1.0], [2.0, 0.1]]),
        },
    ],
    "VonMises": [
        lambda e: {"loc": t(e, 0.5, -3.0, 2.0), "concentration": t(e, 0.2, 3.0, 20.0)},
        lambda e: {"loc": 0.5, "concentration": t(e, 1e-6, 4.0, dtype="float64")},
    ],
    "LKJCholesky": [
        lambda e: {"dim": 2, "concentration": 1.0},
        lambda e: {"dim": 4, "concentration": t(e, 0.5, 3.0)},
    ],
    "Wishart": [
        lambda e: {"df": 4.5, "covariance_matrix": e.tensor([[2.0, 0.5], [0.5, 1.0]])},
        lambda e: {
            "df": t(e, 3.0, 6.0, dtype="float64"),
            "scale_tril": e.tensor([[1.0, 0.0], [0.5, 2.0]], dtype=e.float64),
        },
        lambda e: {
            "df": t(e, 3.5, 8.0),
            "precision_matrix": e.tensor([[[2.0, 0.5], [0.5, 1.0]], [[1.0, 0.2], [0.2, 3.0]]]),
        },
    ],
    "Poisson": [lambda e: {"rate": t(e, 0.5, 4.0, 30.0)}, lambda e: {"rate": 2.0}],
}

CASES = [(name, i) for name, cases in PARAMETERS.items() for i in range(len(cases))]
each_case = pytest.mark.parametrize(("name", "case"), CASES)


def make(e, name, case, **options):
    return getattr(e.distributions, name)(**PARAMETERS[name][case](e), **options)


def attempt(function):
    """The result, or the kind of error, of something that not every distribution has."""
    try:
        return function()
    except NotImplementedError:
        return "not implemented"


@each_case
def test_samples(name, case):
    def run(e):
        seed(e, 7)
        d = make(e, name, case)
        return d.sample(), d.sample((3,)), d.sample((2, 20)), e.rand(1)

    # The last diagonal element of a correlation factor is what the row leaves: digits cancel.
    assert_same(run, rtol=5e-4 if name == "LKJCholesky" else 2e-5)


@each_case
def test_reparameterized_samples(name, case):
    def run(e):
        d = make(e, name, case)
        if not d.has_rsample:
            return "none"
        parameters = {
            k: v.requires_grad_() if isinstance(v, e.Tensor) else v
            for k, v in PARAMETERS[name][case](e).items()
        }
        leaves = [v for v in parameters.values() if isinstance(v, e.Tensor)]
        seed(e, 7)
        x = type(d)(**parameters).rsample((4,))
        if not leaves:
            return x
        return x, e.autograd.grad(x.sum(), leaves, allow_unused=True), e.rand(1)

    # PyTorch approximates the pathwise derivatives of gamma and beta numbers to 5e-4.
    of_gamma = {"Gamma", "Chi2", "InverseGamma", "Beta", "Dirichlet", "StudentT", "FisherSnedecor"}
    assert_same(run, rtol=1e-3 if name in of_gamma else 2e-4, atol=1e-5)


@each_case
def test_moments_and_shapes(name, case):
    def run(e):
        d = make(e, name, case)
        names = ("mean", "mode", "variance", "stddev")
        moments = {n: attempt(lambda n=n: getattr(d, n)) for n in names}
        facts = [tuple(d.batch_shape), tuple(d.event_shape), d.has_rsample, repr(d)]
        facts += [d.has_enumerate_support, repr(d.support), type(d.batch_shape).__name__]
        return moments, facts, attempt(d.entropy), attempt(d.perplexity)

    assert_same(run, rtol=5e-5)


@each_case
def test_log_prob_and_its_gradient(name, case):
    def run(e):
        parameters = PARAMETERS[name][case](e)
        leaves = [v.requires_grad_() for v in parameters.values() if isinstance(v, e.Tensor)]
        d = getattr(e.distributions, name)(**parameters)
        seed(e, 3)
        value = d.sample((5,))
        log_prob = d.log_prob(value)
        if not log_prob.requires_grad:
            return log_prob
        return log_prob, e.autograd.grad(log_prob.sum(), leaves)

    assert_same(run, rtol=2e-4, atol=2e-5)


@each_case
def test_cdf_and_icdf(name, case):
    def run(e):
        d = make(e, name, case)
        seed(e, 3)
        value = d.sample((4,))
        p = e.rand(value.shape).to(value.dtype)
        return attempt(lambda: d.cdf(value)), attempt(lambda: d.icdf(p))

    assert_same(run, rtol=2e-4, atol=2e-5)


@each_case
def test_expand(name, case):
    def run(e):
        d = make(e, name, case)
        wide = d.expand((4, *d.batch_shape))
        seed(e, 3)
        x = wide.sample((2,))
        facts = tuple(wide.batch_shape), tuple(wide.event_shape), repr(wide)
        return x, wide.log_prob(x), attempt(lambda: wide.mean), *facts

    assert_same(run, rtol=2e-4, atol=2e-5)


@each_case
def test_enumerate_support(name, case):
    def run(e):
        d = make(e, name, case)
        if not d.has_enumerate_support:
            return attempt(d.enumerate_support)
        return d.enumerate_support(), d.enumerate_support(expand=False)

    assert_same(run)


@each_case
def test_values_outside_the_support(name, case):
    def run(e):
        d = make(e, name, case)
        return d.log_prob(e.full(d.batch_shape + d.event_shape, e.nan))

    assert_same(run)


# What is no category is an error of gather.
@pytest.mark.parametrize(("name", "case"), [c for c in CASES if "Categorical" not in c[0]])
def test_without_validation_any_value_is_taken(name, case):
    def run(e):
        d = make(e, name, case, validate_args=False)
        return d.log_prob(e.full(d.batch_shape + d.event_shape, -0.5))

    assert_same(run, rtol=1e-4)
