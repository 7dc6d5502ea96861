"""Samples of the ops on gamma, Dirichlet and binomial numbers."""

from __future__ import annotations

from collections.abc import Iterator

import clew
from ops.samples import Sample, Values, call, samples

Samples = Iterator[Sample]

_GENERATOR = {"generator": clew.Generator()}


@samples("standard_gamma")
def standard_gamma(v: Values) -> Samples:
    why = "it is that of the number at the same quantile, not of the number drawn"
    yield call("usual", v.positive(2, 3), convention=why, **_GENERATOR)
    yield call("0-d", v.positive(), convention=why, **_GENERATOR)
    yield call("empty", v.positive(0, 3), convention=why, **_GENERATOR)


@samples("standard_gamma_grad")
def standard_gamma_grad(v: Values) -> Samples:
    says = "the derivative for '_standard_gamma_grad' is not implemented."
    yield call("usual", v.positive(2, 3), v.positive(2, 3), refuses=says)
    yield call("0-d", v.positive(), v.positive(), refuses=says)
    yield call("empty", v.positive(0, 3), v.positive(0, 3), refuses=says)


@samples("sample_dirichlet")
def sample_dirichlet(v: Values) -> Samples:
    says = "derivative for aten::_sample_dirichlet is not implemented"
    yield call("usual", v.positive(2, 3), refuses=says, **_GENERATOR)
    yield call("empty", v.positive(0, 3), refuses=says, **_GENERATOR)


@samples("dirichlet_grad")
def dirichlet_grad(v: Values) -> Samples:
    says = "derivative for aten::_dirichlet_grad is not implemented"
    yield call(
        "usual", v.probabilities(2, 3), v.positive(2, 3), v.above_one(2, 3) + 2, refuses=says
    )
    yield call("empty", v.probabilities(0), v.positive(0), v.above_one(0), refuses=says)


@samples("binomial")
def binomial(v: Values) -> Samples:
    says = "derivative for aten::binomial is not implemented"
    counts = v.integers(9, 2, 3).astype(float)
    yield call("usual", counts, v.probabilities(2, 3), refuses=says, **_GENERATOR)
    yield call("broadcast", counts, v.probabilities(3), refuses=says, **_GENERATOR)
    yield call("empty", v.positive(0, 3), v.probabilities(0, 3), refuses=says, **_GENERATOR)
