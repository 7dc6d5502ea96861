"""Samples of special functions that need attributes, or operands of their own."""

from __future__ import annotations

from collections.abc import Iterator

from ops.samples import Sample, Values, call, samples, variants

Samples = Iterator[Sample]

variants("polygamma", {"n": 1}, {"n": 0}, {"n": 3})
variants("mvlgamma", {"p": 2}, {"p": 1}, {"p": 3})


@samples("logit")
def logit(v: Values) -> Samples:
    yield call("usual", v.probabilities(2, 3))
    yield call("limited", v.probabilities(2, 3), eps=0.01)
    yield call("beyond the limit", v.real(2, 3) + 3, eps=0.01)
    yield call("0-d", v.probabilities())
    yield call("empty", v.real(0, 3))


@samples("special_xlog1py_of_number")
def xlog1py_of_number(v: Values) -> Samples:
    yield call("usual", 1.5, v.positive(2, 3))
    yield call("0-d", 1.5, v.positive())
    yield call("empty", 1.5, v.positive(0, 3))


@samples("special_xlog1py_with_number")
def xlog1py_with_number(v: Values) -> Samples:
    yield call("usual", v.nonzero(2, 3), 1.5)
    yield call("0-d", v.nonzero(), 1.5)
    yield call("empty", v.nonzero(0, 3), 1.5)


@samples("igamma", "igammac")
def igamma(v: Values) -> Samples:
    says = "the derivative for 'igamma"
    yield call("usual", v.positive(2, 3), v.positive(2, 3), refuses=says)
    yield call("far out", v.positive(2, 3) * 9, v.positive(2, 3) * 30, refuses=says)
    yield call("empty", v.positive(0, 3), v.positive(0, 3), refuses=says)
