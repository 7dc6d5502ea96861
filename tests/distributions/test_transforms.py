"""Transforms: values, inverses, Jacobians, shapes, equality and errors as torch's."""

import pickle

import pytest

import clew
from twins import assert_same


def d(e):
    return e.distributions


def t(e, *values):
    return e.tensor(list(values))


SQUARE = [[1.0, 0.5, -0.3], [0.2, -0.7, 0.9], [0.1, 0.4, 0.6]]

# name -> (transform, argument)
TRANSFORMS = {
    "exp": lambda e: (d(e).ExpTransform(), t(e, -1.0, 2.0)),
    "sigmoid": lambda e: (d(e).SigmoidTransform(), t(e, -1.0, 2.0, 50.0)),
    "tanh": lambda e: (d(e).TanhTransform(), t(e, -1.0, 0.3)),
    "softplus": lambda e: (d(e).SoftplusTransform(), t(e, -1.0, 0.3)),
    "power": lambda e: (d(e).PowerTransform(t(e, 2.0, 0.5)), t(e, 1.5, 0.3)),
    "affine": lambda e: (d(e).AffineTransform(t(e, 1.0, 2.0), -3.0), t(e, 1.5, 0.3)),
    "affine event": lambda e: (
        d(e).AffineTransform(0.0, t(e, 2.0, 3.0), event_dim=1),
        e.ones(4, 2),
    ),
    "compose": lambda e: (
        d(e).ComposeTransform([d(e).ExpTransform(), d(e).AffineTransform(1.0, 2.0)]),
        t(e, -1.0, 2.0),
    ),
    "compose events": lambda e: (
        d(e).ComposeTransform([d(e).StickBreakingTransform(), d(e).AffineTransform(1.0, 2.0)]),
        t(e, -1.0, 2.0),
    ),
    "identity": lambda e: (d(e).transforms.identity_transform, t(e, -1.0, 2.0)),
    "independent": lambda e: (d(e).IndependentTransform(d(e).ExpTransform(), 1), e.ones(3, 2)),
    "reshape": lambda e: (d(e).ReshapeTransform((6,), (2, 3)), e.arange(12.0).reshape(2, 6)),
    "stick breaking": lambda e: (
        d(e).StickBreakingTransform(),
        e.tensor([[0.1, -2.0], [3.0, 1.0]]),
    ),
    "correlation": lambda e: (d(e).CorrCholeskyTransform(), t(e, 0.1, -2.0, 0.7)),
    "cat": lambda e: (
        d(e).CatTransform([d(e).ExpTransform(), d(e).TanhTransform()], 1, [2, 1]),
        e.tensor([[0.1, -2.0, 0.3], [3.0, 1.0, 0.2]]),
    ),
    "cat events": lambda e: (
        d(e).CatTransform(
            [d(e).AffineTransform(0.0, 2.0, event_dim=1), d(e).ExpTransform()], -1, [2, 1]
        ),
        e.tensor([[0.1, -2.0, 0.3], [3.0, 1.0, 0.2]]),
    ),
    "stack": lambda e: (
        d(e).StackTransform([d(e).ExpTransform(), d(e).TanhTransform()], 0),
        e.tensor([[0.1, -2.0], [0.5, 0.2]]),
    ),
    "inverse": lambda e: (d(e).ExpTransform().inv, t(e, 1.0, 2.0)),
    "cdf": lambda e: (
        d(e).CumulativeDistributionTransform(d(e).Uniform(t(e, 0.0), t(e, 4.0))),
        t(e, 1.0, 2.0),
    ),
}
INEXACT = {
    "abs": lambda e: (d(e).AbsTransform(), t(e, -1.0, 2.0)),
    "softmax": lambda e: (d(e).SoftmaxTransform(), t(e, -1.0, 2.0, 0.5)),
    "lower cholesky": lambda e: (d(e).LowerCholeskyTransform(), e.tensor(SQUARE)),
    "positive definite": lambda e: (d(e).PositiveDefiniteTransform(), e.tensor(SQUARE)),
}
ALL = {**TRANSFORMS, **INEXACT}
each = pytest.mark.parametrize("name", ALL)


@each
def test_values_inverse_and_facts(name):
    def run(e):
        transform, x = ALL[name](e)
        y = transform(x)
        try:
            sign = transform.sign
        except NotImplementedError:
            sign = "none"
        facts = [transform.bijective, sign, repr(transform), repr(transform.inv)]
        facts += [repr(transform.domain), repr(transform.codomain)]
        shapes = tuple(transform.forward_shape(x.shape)), tuple(transform.inverse_shape(y.shape))
        return y, transform.inv(y), facts, shapes

    assert_same(run, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_jacobians_and_gradients(name):
    def run(e):
        transform, x = TRANSFORMS[name](e)
        x.requires_grad_()
        y = transform(x)
        jacobian = transform.log_abs_det_jacobian(x, y)
        back = transform.inv.log_abs_det_jacobian(y, x)
        if not jacobian.requires_grad:
            return jacobian, back
        return jacobian, back, e.autograd.grad(jacobian.sum() + y.sum(), x)

    assert_same(run, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [n for n in ALL if n != "cdf"])  # which clamps
def test_the_cache_gives_back_the_argument(name):
    def run(e):
        transform, x = ALL[name](e)
        cached = transform.with_cache()
        y = cached(x)
        return cached.inv(y) is x, cached(x) is y, cached.with_cache() is cached

    assert_same(run)


@each
def test_pickled_transforms_work(name):
    transform, x = ALL[name](clew)
    again = pickle.loads(pickle.dumps(transform))
    assert again(x).tolist() == transform(x).tolist()


CALLS = {
    "equal": lambda e: d(e).ExpTransform() == d(e).ExpTransform(),
    "unequal": lambda e: d(e).ExpTransform() == d(e).TanhTransform(),
    "equal affine": lambda e: d(e).AffineTransform(0, t(e, 2.0)) == d(e).AffineTransform(0, 2.0),
    "unequal affine": lambda e: d(e).AffineTransform(0, 1) != d(e).AffineTransform(1, 1),
    "equal power": lambda e: d(e).PowerTransform(2.0) == d(e).PowerTransform(2.0),
    "equal inverse": lambda e: d(e).ExpTransform().inv == d(e).ExpTransform().inv,
    "unequal inverse": lambda e: d(e).ExpTransform().inv == d(e).ExpTransform(),
    "equal compose": lambda e: (
        d(e).ComposeTransform([d(e).ExpTransform()]) == d(e).ComposeTransform([d(e).ExpTransform()])
    ),
    "inverse of inverse": lambda e: repr(d(e).ExpTransform().inv.inv),
    "cache size": lambda e: d(e).ExpTransform(cache_size=2),
    "reshape sizes": lambda e: d(e).ReshapeTransform((2,), (3,)),
    "reshape shape": lambda e: d(e).ReshapeTransform((2,), (1, 2)).forward_shape((3,)),
    "reshape few": lambda e: d(e).ReshapeTransform((2, 1), (1, 2)).forward_shape((3,)),
    "independent few": lambda e: d(e).IndependentTransform(d(e).ExpTransform(), 2)(e.ones(3)),
    "softmax few": lambda e: d(e).SoftmaxTransform().forward_shape(()),
    "correlation count": lambda e: d(e).CorrCholeskyTransform().forward_shape((4,)),
    "correlation square": lambda e: d(e).CorrCholeskyTransform().inverse_shape((2, 3)),
    "cat size": lambda e: d(e).CatTransform([d(e).ExpTransform()], 0)(e.ones(3)),
    "cat lengths": lambda e: d(e).CatTransform([d(e).ExpTransform()], 0, [1, 2]),
    "cat dim": lambda e: d(e).CatTransform([d(e).ExpTransform()], 3)(e.ones(3)),
    "stack size": lambda e: d(e).StackTransform([d(e).ExpTransform()], 0)(e.ones(3)),
    "stack parts": lambda e: d(e).StackTransform([1], 0),
    "event_dim": lambda e: d(e).CorrCholeskyTransform().event_dim,
    "hash": lambda e: hash(d(e).ExpTransform()),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
    assert_same(CALLS[name])


def test_a_subclass_without_constructor_can_be_cached():
    def run(e):
        class Twice(e.distributions.transforms.Transform):
            domain = e.distributions.constraints.real
            codomain = e.distributions.constraints.real
            bijective = True

            def _call(self, x):
                return 2 * x

            def _inverse(self, y):
                return y / 2

        transform = Twice().with_cache()
        return transform(e.ones(2)), transform.inv(e.ones(2)), repr(transform)

    assert_same(run)


CONSTRAINTS = {
    "real": lambda c, e: c.real,
    "positive": lambda c, e: c.positive,
    "nonnegative": lambda c, e: c.nonnegative,
    "greater": lambda c, e: c.greater_than(2.0),
    "less": lambda c, e: c.less_than(t(e, 2.0)),
    "unit": lambda c, e: c.unit_interval,
    "interval": lambda c, e: c.interval(-1.0, 2.0),
    "half open": lambda c, e: c.half_open_interval(0.0, 1.0),
    "vector": lambda c, e: c.real_vector,
    "simplex": lambda c, e: c.simplex,
    "cholesky": lambda c, e: c.lower_cholesky,
    "definite": lambda c, e: c.positive_definite,
    "semidefinite": lambda c, e: c.positive_semidefinite,
    "correlation": lambda c, e: c.corr_cholesky,
    "cat": lambda c, e: c.cat([c.positive, c.real], 0, [2, 1]),
    "stack": lambda c, e: c.stack([c.positive, c.real, c.real], 0),
    "boolean": lambda c, e: c.boolean,
}


@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_registries(registry, name):
    def run(e):
        constraint = CONSTRAINTS[name](d(e).constraints, e)
        transform = getattr(d(e), registry)(constraint)
        square = name in ("cholesky", "definite", "semidefinite")
        x = e.tensor(SQUARE) if square else t(e, 0.3, -1.0, 2.0)
        y = transform(x)
        return y, repr(transform), constraint.check(y)

    assert_same(run, rtol=1e-4)


def test_registering():
    def run(e):
        constraints = d(e).constraints
        registry = d(e).constraint_registry.ConstraintRegistry()
        registry.register(constraints.real, lambda c: "made")

        @registry.register(constraints.greater_than)
        def _greater(constraint):
            return constraint.lower_bound

        return registry(constraints.real), registry(constraints.greater_than(3))

    assert_same(run)
    assert_same(lambda e: d(e).constraint_registry.ConstraintRegistry().register(int, lambda c: 1))
