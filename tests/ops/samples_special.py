"""Samples of special functions that need attributes, or operands of their own."""

from __future__ import annotations

from collections.abc import Iterator

from clew.kernels.orthogonal import FAMILIES
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


# -- Bessel functions and polynomials: those without derivatives are not elementwise by a domain


@samples(
    "special_airy_ai", "special_bessel_j0", "special_bessel_j1", "special_bessel_y0",
    "special_bessel_y1", "special_modified_bessel_i0", "special_modified_bessel_i1",
    "special_modified_bessel_k0", "special_modified_bessel_k1",
    "special_scaled_modified_bessel_k0", "special_scaled_modified_bessel_k1",
    "special_spherical_bessel_j0",
)  # fmt: skip
def bessel(v: Values) -> Samples:
    yield call("usual", v.real(2, 3))
    yield call("0-d", v.positive())
    yield call("empty", v.real(0, 3))


@samples(*(f"special_{name}" for name in FAMILIES))
def polynomials(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), v.integers(6, 2, 3))
    yield call("number", v.real(2, 3), 4.0)
    yield call("degrees of one number", 0.4, v.integers(12, 5).astype(float))
    yield call("empty", v.real(0, 3), v.integers(6, 3))


@samples("special_ndtri")
def ndtri(v: Values) -> Samples:
    yield call("usual", v.probabilities(2, 3))
    yield call("0-d", v.probabilities())
    yield call("empty", v.real(0, 3))


@samples("special_zeta")
def zeta(v: Values) -> Samples:
    says = "the derivative for 'zeta' is not implemented"
    yield call("usual", v.above_one(2, 3), v.positive(3), refuses=says)
    yield call("0-d", v.above_one(), v.positive(), refuses=says)


@samples("special_zeta_of_number")
def zeta_of_number(v: Values) -> Samples:
    yield call("usual", 2.5, v.positive(2, 3))
    yield call("empty", 2.5, v.positive(0, 3))


@samples("special_zeta_with_number")
def zeta_with_number(v: Values) -> Samples:
    yield call("usual", v.above_one(2, 3), 1.5, refuses="the derivative for 'zeta'")
