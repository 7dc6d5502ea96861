"""Divergences: every pair that torch has, against torch and against samples."""

import warnings

import pytest

import clew
from twins import assert_same


def t(e, *values):
    return e.tensor(list(values))


MADE = {
    "Bernoulli": lambda D, e: [D.Bernoulli(t(e, 0.0, 0.3, 1.0)), D.Bernoulli(t(e, 0.0, 0.6, 0.0))],
    "Beta": lambda D, e: [D.Beta(t(e, 0.5, 2.0), 3.0), D.Beta(t(e, 1.5, 0.7), 0.4)],
    "Binomial": lambda D, e: [D.Binomial(5, t(e, 0.3, 0.8)), D.Binomial(5, t(e, 0.5, 0.1))],
    "Categorical": lambda D, e: [
        D.Categorical(t(e, 0.0, 0.4, 0.6)),
        D.Categorical(t(e, 0.3, 0.7, 0.0)),
    ],
    "Cauchy": lambda D, e: [D.Cauchy(t(e, 0.0, 1.0), 2.0), D.Cauchy(t(e, 1.0, 1.0), 0.5)],
    "ContinuousBernoulli": lambda D, e: [
        D.ContinuousBernoulli(t(e, 0.2, 0.5)),
        D.ContinuousBernoulli(t(e, 0.7, 0.4)),
    ],
    "Dirichlet": lambda D, e: [D.Dirichlet(t(e, 0.5, 2.0)), D.Dirichlet(t(e, 1.5, 0.7))],
    "Exponential": lambda D, e: [D.Exponential(t(e, 0.5, 2.0)), D.Exponential(t(e, 1.5, 0.7))],
    "Gamma": lambda D, e: [D.Gamma(t(e, 0.5, 2.0), 3.0), D.Gamma(t(e, 1.5, 0.7), 0.4)],
    "Geometric": lambda D, e: [D.Geometric(t(e, 0.5, 0.2)), D.Geometric(t(e, 0.7, 0.4))],
    "Gumbel": lambda D, e: [D.Gumbel(t(e, 0.5, 2.0), 3.0), D.Gumbel(t(e, 1.5, 0.7), 0.4)],
    "HalfNormal": lambda D, e: [D.HalfNormal(t(e, 0.5, 2.0)), D.HalfNormal(t(e, 1.5, 0.7))],
    "Laplace": lambda D, e: [D.Laplace(t(e, 0.5, 2.0), 3.0), D.Laplace(t(e, 1.5, 0.7), 0.4)],
    "LogNormal": lambda D, e: [D.LogNormal(t(e, 0.5, 2.0), 3.0), D.LogNormal(t(e, 1.5, 0.7), 0.4)],
    "MultivariateNormal": lambda D, e: [
        D.MultivariateNormal(t(e, 0.5, 2.0), e.tensor([[2.0, 0.3], [0.3, 1.0]])),
        D.MultivariateNormal(t(e, 0.0, 1.0), e.tensor([[1.0, -0.3], [-0.3, 1.0]])),
    ],
    "LowRankMultivariateNormal": lambda D, e: [
        D.LowRankMultivariateNormal(
            t(e, 0.5, 2.0), e.tensor([[[1.0], [0.3]], [[0.0], [2.0]]]), t(e, 1.0, 0.5)
        ),
        D.LowRankMultivariateNormal(t(e, 0.0, 1.0), e.eye(2), t(e, 0.2, 3.0)),
    ],
    "Wishart": lambda D, e: [
        D.Wishart(4.0, e.tensor([[2.0, 0.3], [0.3, 1.0]])),
        D.Wishart(5.0, e.tensor([[1.0, -0.3], [-0.3, 1.0]])),
    ],
    "Normal": lambda D, e: [D.Normal(t(e, 0.5, 2.0), 3.0), D.Normal(t(e, 1.5, 0.7), 0.4)],
    "OneHotCategorical": lambda D, e: [
        D.OneHotCategorical(t(e, 0.1, 0.4, 0.5)),
        D.OneHotCategorical(t(e, 0.3, 0.6, 0.1)),
    ],
    "Pareto": lambda D, e: [D.Pareto(t(e, 0.5, 2.0), 3.0), D.Pareto(t(e, 0.2, 2.7), 1.4)],
    "Poisson": lambda D, e: [D.Poisson(t(e, 0.5, 2.0)), D.Poisson(t(e, 1.5, 0.7))],
    "Uniform": lambda D, e: [D.Uniform(t(e, 0.5, 0.2), 0.9), D.Uniform(t(e, 0.1, 0.3), 3.0)],
    "Independent": lambda D, e: [
        D.Independent(D.Normal(t(e, 0.5, 2.0), 3.0), 1),
        D.Independent(D.Normal(t(e, 1.5, 0.7), 0.4), 1),
    ],
}

PAIRS = [
    (p, q)
    for p in MADE
    for q in MADE
    if p == q or (getattr(clew.distributions, p), getattr(clew.distributions, q))
    in clew.distributions.kl._KL_REGISTRY
]  # fmt: skip


def pair(e, p, q):
    first = MADE[p](e.distributions, e)[0]
    second = MADE[q](e.distributions, e)[1]
    if p == "Bernoulli" and q == "Poisson":
        first = e.distributions.Bernoulli(t(e, 0.3, 0.6))
    return first, second


@pytest.mark.parametrize(("p", "q"), PAIRS)
def test_pair(p, q):
    assert_same(lambda e: e.distributions.kl_divergence(*pair(e, p, q)), rtol=2e-4, atol=2e-5)


def test_the_table_is_torchs():
    torch = pytest.importorskip("torch")
    theirs = {(p.__name__, q.__name__) for p, q in torch.distributions.kl._KL_REGISTRY}
    ours = {(p.__name__, q.__name__) for p, q in clew.distributions.kl._KL_REGISTRY}
    assert ours == theirs


CALLS = {
    "count": lambda D, e: D.kl_divergence(D.Binomial(3, t(e, 0.5)), D.Binomial(4, t(e, 0.5))),
    "larger count": lambda D, e: D.kl_divergence(
        D.Binomial(4, t(e, 0.5)), D.Binomial(3, t(e, 0.5))
    ),
    "event shapes": lambda D, e: D.kl_divergence(
        D.MultivariateNormal(e.zeros(2), e.eye(2)), D.MultivariateNormal(e.zeros(3), e.eye(3))
    ),
    "event shapes of low rank": lambda D, e: D.kl_divergence(
        D.MultivariateNormal(e.zeros(2), e.eye(2)),
        D.LowRankMultivariateNormal(e.zeros(3), e.ones(3, 1), e.ones(3)),
    ),
    "none": lambda D, e: D.kl_divergence(D.Normal(0.0, 1.0), D.Poisson(1.0)),
    "transforms": lambda D, e: D.kl_divergence(
        D.TransformedDistribution(D.Normal(0.0, 1.0), D.ExpTransform()),
        D.TransformedDistribution(D.Normal(0.0, 1.0), D.TanhTransform()),
    ),
    "families": lambda D, e: D.kl_divergence(D.Poisson(1.0), D.Gamma(1.0, 1.0)),
    "ndims": lambda D, e: D.kl_divergence(
        D.Independent(D.Normal(e.zeros(2), 1.0), 1), D.Independent(D.Normal(e.zeros(2), 1.0), 0)
    ),
    "broadcast": lambda D, e: D.kl_divergence(
        D.Normal(e.zeros(3, 1), 1.0), D.Normal(e.ones(2), 2.0)
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
    def run(e):
        try:
            return CALLS[name](e.distributions, e)
        except (ValueError, NotImplementedError) as error:
            return type(error).__name__, " ".join(str(error).split())

    assert_same(run)


def test_gradients():
    def run(e):
        loc, scale = t(e, 0.3, -1.0).requires_grad_(), t(e, 1.0, 2.0).requires_grad_()
        D = e.distributions
        kl = D.kl_divergence(D.Normal(loc, scale), D.Normal(0.0, 1.0)).sum()
        return e.autograd.grad(kl, [loc, scale])

    assert_same(run)


def test_registering_and_ambiguity():
    def run(e):
        D = e.distributions

        class A(D.Normal):
            pass

        class B(A):
            pass

        @D.register_kl(A, D.Normal)
        def _first(p, q):
            return "first"

        @D.register_kl(D.Normal, A)
        def _second(p, q):
            return "second"

        results = [D.kl_divergence(A(0.0, 1.0), D.Normal(0.0, 1.0))]
        results.append(D.kl_divergence(D.Normal(0.0, 1.0), B(0.0, 1.0)))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            results.append(D.kl_divergence(B(0.0, 1.0), B(0.0, 1.0)))
        for types in ((A, D.Normal), (D.Normal, A)):
            del D.kl._KL_REGISTRY[types]
        return results, [str(w.message) for w in caught]

    assert_same(run)


def test_only_distributions_can_be_registered():
    with pytest.raises(TypeError, match="Expected type_p to be a Distribution subclass but got"):
        clew.distributions.register_kl(int, clew.distributions.Normal)


@pytest.mark.parametrize(
    ("p", "q"),
    [("Normal", "Laplace"), ("Gamma", "Normal"), ("Beta", "Gamma"), ("Uniform", "Gumbel")],
)
def test_the_mean_of_the_difference_of_logs(p, q):
    """The definition, on samples: an oracle that shares no formula."""
    clew.manual_seed(0)
    first, second = pair(clew, p, q)
    x = first.sample((20_000,))
    difference = (first.log_prob(x) - second.log_prob(x)).double()
    error = 4 * difference.std(0) / 20_000**0.5
    exact = clew.distributions.kl_divergence(first, second)
    assert ((difference.mean(0) - exact).abs() < error).all()
