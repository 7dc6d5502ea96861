"""Samples of ops on complex numbers, and of those that are about their parts."""

from __future__ import annotations

from collections.abc import Iterator

from clew.dtypes import complex128, float64
from clew.storage import Geometry
from ops.samples import Sample, Values, call, samples

Samples = Iterator[Sample]


@samples("view_as_real", "conj_physical")
def of_complex(v: Values) -> Samples:
    yield call("usual", v.complex(2, 3))
    yield call("0-d", v.complex())


@samples("view_as_complex")
def view_as_complex(v: Values) -> Samples:
    yield call("usual", v.real(3, 2), laid_out=True)
    yield call("0-d", v.real(2), laid_out=True)


@samples("angle", "imag")
def angle(v: Values) -> Samples:
    yield call("usual", v.complex(2, 3))
    yield call("0-d", v.complex())
    yield call("real", v.nonzero(2, 3))


@samples("complex")
def complex_(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), v.real(2, 3))
    yield call("broadcast", v.real(2, 3), v.real(3))
    yield call("0-d", v.real(), v.real())


@samples("polar")
def polar(v: Values) -> Samples:
    yield call("usual", v.positive(2, 3), v.real(2, 3))
    yield call("broadcast", v.positive(3), v.real(2, 3))


@samples("reread")
def reread(v: Values) -> Samples:
    pairs, numbers = Geometry((3, 2), (2, 1), 0), Geometry((2,), (1,), 1)
    yield call("parts", v.complex(3), view=Geometry((2,), (2,), 1), base=Geometry((3,), (1,), 0),
               kind=float64, laid_out=True)  # fmt: skip
    yield call("pairs", v.real(3, 2), view=numbers, base=pairs, kind=complex128, laid_out=True)
