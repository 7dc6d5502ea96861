"""The base classes: validation, expanding, errors, Independent, mixtures, small functions."""

import warnings

import pytest

from twins import assert_same


def t(e, *values):
    return e.tensor(list(values))


CALLS = {
    "scale": lambda D, e: D.Normal(t(e, 0.0, 1.0), t(e, 1.0, -1.0)),
    "scalar scale": lambda D, e: D.Normal(0.0, -1.0),
    "nan": lambda D, e: D.Normal(t(e, e.nan), 1.0),
    "bounds": lambda D, e: D.Uniform(t(e, 1.0, 2.0), 1.5),
    "probs": lambda D, e: D.Bernoulli(t(e, 0.5, 1.5)),
    "both": lambda D, e: D.Bernoulli(0.5, 0.5),
    "neither": lambda D, e: D.Bernoulli(),
    "negative weights": lambda D, e: D.Categorical(t(e, -0.5, 1.5)),
    "0-d weights": lambda D, e: D.Categorical(e.tensor(0.5)),
    "0-d logits": lambda D, e: D.Categorical(logits=e.tensor(0.5)),
    "zero probability": lambda D, e: D.Geometric(t(e, 0.0, 0.5)),
    "parameter type": lambda D, e: D.Normal("a", 1.0),
    "value": lambda D, e: D.Exponential(t(e, 1.0)).log_prob(t(e, -1.0)),
    "value type": lambda D, e: D.Normal(0.0, 1.0).log_prob(0.5),
    "value shape": lambda D, e: D.Normal(e.zeros(3), 1.0).log_prob(e.zeros(2)),
    "event shape": lambda D, e: D.OneHotCategorical(e.ones(3)).log_prob(e.ones(2)),
    "category": lambda D, e: D.Categorical(e.ones(3)).log_prob(e.tensor(3)),
    "half a category": lambda D, e: D.Categorical(e.ones(3)).log_prob(e.tensor(0.5)),
    "icdf": lambda D, e: D.Poisson(1.0).icdf(e.tensor(0.5)),
    "base": lambda D, e: D.Distribution(validate_args=False).sample(),
    "base expand": lambda D, e: D.Distribution(validate_args=False).expand((2,)),
    "validate": lambda D, e: D.Distribution.set_default_validate_args(3),
    "dirichlet": lambda D, e: D.Dirichlet(e.tensor(1.0)),
    "mvn": lambda D, e: D.MultivariateNormal(e.zeros(2)),
    "mvn 0-d": lambda D, e: D.MultivariateNormal(e.tensor(0.0), e.eye(2)),
    "mvn dims": lambda D, e: D.MultivariateNormal(e.zeros(2), scale_tril=e.ones(2)),
    "mvn covariance dims": lambda D, e: D.MultivariateNormal(e.zeros(2), e.ones(2)),
    "mvn indefinite": lambda D, e: D.MultivariateNormal(e.zeros(2), -e.eye(2)),
    "mvn value": lambda D, e: D.MultivariateNormal(e.zeros(2), e.eye(2)).log_prob(e.zeros(3)),
    "counts": lambda D, e: D.Multinomial(e.ones(2), e.ones(2)),
    "inhomogeneous": lambda D, e: D.Binomial(t(e, 2.0, 3.0), t(e, 0.5, 0.5)).entropy(),
    "independent": lambda D, e: D.Independent(D.Normal(0.0, 1.0), 1),
    "transform": lambda D, e: D.TransformedDistribution(D.Normal(0.0, 1.0), 3),
    "transforms": lambda D, e: D.TransformedDistribution(D.Normal(0.0, 1.0), [3]),
    "transform dims": lambda D, e: D.TransformedDistribution(
        D.Normal(0.0, 1.0), D.StickBreakingTransform()
    ),
    "mixture": lambda D, e: D.MixtureSameFamily(D.Normal(0.0, 1.0), D.Normal(0.0, 1.0)),
    "component": lambda D, e: D.MixtureSameFamily(D.Categorical(e.ones(2)), 3),
    "components": lambda D, e: D.MixtureSameFamily(
        D.Categorical(e.ones(2)), D.Normal(e.zeros(3), 1.0)
    ),
    "mixture batch": lambda D, e: D.MixtureSameFamily(
        D.Categorical(e.ones(3, 2)), D.Normal(e.zeros(4, 2), 1.0)
    ),
    "tril": lambda D, e: D.utils.tril_matrix_to_vec(e.arange(9.0).reshape(3, 3), -1),
    "tril diagonal": lambda D, e: D.utils.tril_matrix_to_vec(e.eye(3), 3),
    "vec": lambda D, e: D.utils.vec_to_tril_matrix(e.arange(6.0)),
    "vec size": lambda D, e: D.utils.vec_to_tril_matrix(e.arange(5.0)),
    "probs_to_logits": lambda D, e: D.utils.probs_to_logits(t(e, 0.0, 0.5, 1.0), True),
    "clamp_probs": lambda D, e: D.utils.clamp_probs(t(e, 0.0, 0.5, 1.0)),
    "broadcast_all": lambda D, e: D.utils.broadcast_all(1, t(e, 2.0, 3.0), 0.5),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
    assert_same(lambda e: CALLS[name](e.distributions, e))


def test_validation_messages_are_torchs_to_the_last_line():
    def run(e):
        texts = []
        for make in (CALLS["scale"], CALLS["value"], CALLS["bounds"], CALLS["zero probability"]):
            try:
                make(e.distributions, e)
            except ValueError as error:
                texts.append(str(error))
        return texts

    assert_same(run)


def test_validation_can_be_turned_off():
    def run(e):
        D = e.distributions.Distribution
        D.set_default_validate_args(False)
        try:
            return e.distributions.Normal(0.0, -1.0).scale
        finally:
            D.set_default_validate_args(True)

    assert_same(run)


def test_subclass_with_a_constructor_needs_its_own_expand():
    def run(e):
        class Mine(e.distributions.Normal):
            def __init__(self, loc):
                super().__init__(loc, 1.0)

        return Mine(e.zeros(2)).expand((3, 2))

    assert_same(run)


def test_subclass_in_pytorchs_style():
    def run(e):
        D = e.distributions

        class Shifted(D.Distribution):
            arg_constraints = {"loc": D.constraints.real}  # noqa: RUF012
            support = D.constraints.real

            def __init__(self, loc, validate_args=None):
                self.loc = loc
                super().__init__(loc.shape, validate_args=validate_args)

            def expand(self, batch_shape, _instance=None):
                new = self._get_checked_instance(Shifted, _instance)
                new.loc = self.loc.expand(batch_shape)
                super(Shifted, new).__init__(batch_shape, validate_args=False)
                new._validate_args = self._validate_args
                return new

            def rsample(self, sample_shape=()):
                return self.loc.expand(self._extended_shape(sample_shape)) + 1

            def log_prob(self, value):
                if self._validate_args:
                    self._validate_sample(value)
                return value - self.loc

        d = Shifted(t(e, 0.5, 1.5)).expand(e.Size((3, 2)))
        return d.sample((2,)), d.log_prob(e.zeros(2)), repr(d), tuple(d.batch_shape)

    assert_same(run)


def test_missing_constraints_warn():
    def run(e):
        class Bare(e.distributions.Distribution):
            pass

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            Bare()._validate_sample(e.ones(1))
        return [str(w.message).split("> ")[1] for w in caught]

    assert_same(run)


def test_sample_n_warns():
    def run(e):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            shape = tuple(e.distributions.Normal(e.zeros(2), 1.0).sample_n(3).shape)
        return shape, [(w.category.__name__, str(w.message)) for w in caught]

    assert_same(run)


@pytest.mark.parametrize("ndims", [0, 1, 2])
def test_independent(ndims):
    def run(e):
        D = e.distributions
        e.manual_seed(2)
        d = D.Independent(D.Normal(e.zeros(3, 2), e.ones(3, 2)), ndims)
        x = d.sample((4,))
        facts = repr(d), repr(d.support), tuple(d.batch_shape), tuple(d.event_shape)
        wide = d.expand((5, *d.batch_shape))
        flags = d.has_rsample, d.has_enumerate_support
        return x, d.log_prob(x), d.entropy(), d.mean, d.variance, d.mode, facts, flags, repr(wide)

    assert_same(run)


@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("event", [False, True])
def test_mixture(batch, event):
    def run(e):
        D = e.distributions
        e.manual_seed(2)
        weights = D.Categorical(e.rand(*batch, 4))
        shape = (*batch, 4, 2) if event else (*batch, 4)
        components = D.Normal(e.randn(shape), e.rand(shape) + 0.1)
        d = D.MixtureSameFamily(weights, D.Independent(components, 1) if event else components)
        x = d.sample((5,))
        cdf = None if event else d.cdf(x)
        wide = d.expand((2, *batch))
        facts = repr(d), repr(d.support), tuple(wide.batch_shape)
        return x, d.log_prob(x), d.mean, d.variance, cdf, facts

    assert_same(run, rtol=1e-4)


def test_transformed_with_broadcasting_and_events():
    def run(e):
        D = e.distributions
        e.manual_seed(3)
        base = D.Normal(0.0, 1.0)
        d = D.TransformedDistribution(
            base, [D.ExpTransform(), D.AffineTransform(t(e, 0.0, 1.0), -2.0)]
        )
        x = d.sample((3,))
        facts = repr(d), repr(d.support), tuple(d.batch_shape)
        return x, d.log_prob(x), d.icdf(e.full((2,), 0.3)), facts, d.expand((4, 2)).sample()

    assert_same(run, rtol=1e-4)


def test_multivariate_normal_of_batches_against_batches():
    def run(e):
        D = e.distributions
        e.manual_seed(4)
        factor = e.randn(3, 1, 2, 2).tril(-1) + e.eye(2)
        d = D.MultivariateNormal(e.randn(5, 2), scale_tril=factor)
        x = d.sample((4,))
        matrices = d.covariance_matrix, d.precision_matrix, d.scale_tril
        return x, d.log_prob(x), d.log_prob(e.zeros(2)), d.entropy(), d.variance, matrices

    assert_same(run, rtol=1e-3, atol=1e-4)


def test_lazy_attributes_record_outside_no_grad():
    def run(e):
        logits = t(e, 0.3, -0.2).requires_grad_()
        with e.no_grad():
            d = e.distributions.Bernoulli(logits=logits)
            d.sample()
        return d.probs.requires_grad, e.autograd.grad(d.probs.sum(), logits)

    assert_same(run)
