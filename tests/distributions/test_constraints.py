"""Constraints: what they allow, how they print, their dimensions; as torch's."""

import pytest

from twins import assert_same


def t(e, *values):
    return e.tensor(list(values))


VALUES = {
    "numbers": lambda e: t(e, -1.0, 0.0, 0.5, 1.0, 2.0, 3.5, e.nan),
    "vectors": lambda e: e.tensor(
        [[0.0, 1.0, 0.0], [0.2, 0.3, 0.5], [1.0, 1.0, -1.0], [0.5, 0.6, e.nan]]
    ),
    "matrices": lambda e: e.tensor(
        [
            [[1.0, 0.0], [0.5, 2.0]],
            [[1.0, 0.5], [0.5, 2.0]],
            [[1.0, 2.0], [2.0, 1.0]],
            [[1.0, 0.0], [0.6, 0.8]],
        ]
    ),
}
OF_NUMBERS = {
    "boolean": lambda c, e: c.boolean,
    "real": lambda c, e: c.real,
    "positive": lambda c, e: c.positive,
    "nonnegative": lambda c, e: c.nonnegative,
    "greater_than": lambda c, e: c.greater_than(0.5),
    "greater_than_eq": lambda c, e: c.greater_than_eq(t(e, 0.5)),
    "less_than": lambda c, e: c.less_than(1),
    "interval": lambda c, e: c.interval(0, t(e, 1.0)),
    "half_open_interval": lambda c, e: c.half_open_interval(0.0, 1.0),
    "unit_interval": lambda c, e: c.unit_interval,
    "integer_interval": lambda c, e: c.integer_interval(0, 2),
    "nonnegative_integer": lambda c, e: c.nonnegative_integer,
    "positive_integer": lambda c, e: c.positive_integer,
}
OF_VECTORS = {
    "one_hot": lambda c, e: c.one_hot,
    "simplex": lambda c, e: c.simplex,
    "real_vector": lambda c, e: c.real_vector,
    "multinomial": lambda c, e: c.multinomial(1),
    "independent": lambda c, e: c.independent(c.positive, 1),
    "independent 0": lambda c, e: c.independent(c.positive, 0),
    "mixture": lambda c, e: c.MixtureSameFamilyConstraint(c.unit_interval),
    "cat": lambda c, e: c.cat([c.positive, c.real], 1, [1, 2]),
    "stack": lambda c, e: c.stack([c.positive, c.real, c.boolean], 1),
}
OF_MATRICES = {
    "lower_triangular": lambda c, e: c.lower_triangular,
    "lower_cholesky": lambda c, e: c.lower_cholesky,
    "corr_cholesky": lambda c, e: c.corr_cholesky,
    "square": lambda c, e: c.square,
    "symmetric": lambda c, e: c.symmetric,
    "positive_definite": lambda c, e: c.positive_definite,
    "positive_semidefinite": lambda c, e: c.positive_semidefinite,
}
CASES = [
    (kind, name, make)
    for kind, table in zip(VALUES, (OF_NUMBERS, OF_VECTORS, OF_MATRICES))
    for name, make in table.items()
]


@pytest.mark.parametrize(("kind", "name", "make"), CASES, ids=[c[1] for c in CASES])
def test_check_and_facts(kind, name, make):
    def run(e):
        constraint = make(e.distributions.constraints, e)
        facts = repr(constraint) if name not in ("cat", "stack") else ""
        flags = constraint.is_discrete, constraint.event_dim
        values = VALUES[kind](e)
        if name.startswith("positive_") and kind == "matrices":
            return constraint.check(values[1:3]), constraint.check(values), facts, flags
        return constraint.check(values), facts, flags

    assert_same(run)


CALLS = {
    "dependent check": lambda c, e: c.dependent.check(e.ones(1)),
    "dependent discrete": lambda c, e: c.dependent.is_discrete,
    "dependent dim": lambda c, e: c.dependent.event_dim,
    "dependent said": lambda c, e: (
        c.dependent(event_dim=2).event_dim,
        c.dependent(is_discrete=True)(event_dim=1).is_discrete,
    ),
    "is_dependent": lambda c, e: [c.is_dependent(x) for x in (c.dependent, c.real, 3)],
    "base check": lambda c, e: c.Constraint().check(e.ones(1)),
    "independent few": lambda c, e: c.independent(c.real, 2).check(e.ones(1)),
    "independent type": lambda c, e: c.independent(1, 2),
    "independent ndims": lambda c, e: c.independent(c.real, "1"),
    "independent negative": lambda c, e: c.independent(c.real, -1),
    "mixture type": lambda c, e: c.MixtureSameFamilyConstraint(1),
    "cat type": lambda c, e: c.cat([1]),
    "cat lengths": lambda c, e: c.cat([c.real], 0, [1, 2]),
    "cat dim": lambda c, e: c.cat([c.real], 2).check(e.ones(1)),
    "square not": lambda c, e: c.symmetric.check(e.ones(2, 3)),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
    assert_same(lambda e: CALLS[name](e.distributions.constraints, e))


def test_dependent_property():
    def run(e):
        constraints = e.distributions.constraints

        class Box:
            @constraints.dependent_property(is_discrete=True, event_dim=1)
            def support(self):
                return constraints.real

        on_class = Box.support
        flags = constraints.is_dependent(on_class), on_class.is_discrete, on_class.event_dim
        return flags, repr(Box().support)

    assert_same(run)
