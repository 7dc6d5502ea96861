"""Samples of products of vectors and matrices."""

from __future__ import annotations

from collections.abc import Iterator

from ops.samples import Sample, Values, call, samples

Samples = Iterator[Sample]

_SCALES = {"beta": 0.5, "alpha": -2.0}


@samples("mm")
def mm(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), v.real(3, 4))
    yield call("nothing to add", v.real(2, 0), v.real(0, 4))
    yield call("empty", v.real(0, 3), v.real(3, 4))


@samples("mv")
def mv(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), v.real(3))
    yield call("empty", v.real(0, 3), v.real(3))


@samples("dot", "vdot")
def dot(v: Values) -> Samples:
    yield call("usual", v.real(3), v.real(3))
    yield call("empty", v.real(0), v.real(0))


@samples("bmm")
def bmm(v: Values) -> Samples:
    yield call("usual", v.real(2, 2, 3), v.real(2, 3, 4))
    yield call("empty", v.real(0, 2, 3), v.real(0, 3, 4))


@samples("addmm")
def addmm(v: Values) -> Samples:
    yield call("usual", v.real(2, 4), v.real(2, 3), v.real(3, 4))
    yield call("scaled", v.real(2, 4), v.real(2, 3), v.real(3, 4), **_SCALES)
    yield call("broadcast", v.real(4), v.real(2, 3), v.real(3, 4))
    yield call("empty", v.real(0, 4), v.real(0, 3), v.real(3, 4))


@samples("addmv")
def addmv(v: Values) -> Samples:
    yield call("usual", v.real(2), v.real(2, 3), v.real(3))
    yield call("scaled", v.real(2), v.real(2, 3), v.real(3), **_SCALES)
    yield call("broadcast", v.real(1), v.real(2, 3), v.real(3))
    yield call("empty", v.real(0), v.real(0, 3), v.real(3))


@samples("addr")
def addr(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), v.real(2), v.real(3))
    yield call("scaled", v.real(2, 3), v.real(2), v.real(3), **_SCALES)
    yield call("broadcast", v.real(3), v.real(2), v.real(3))
    yield call("empty", v.real(0, 3), v.real(0), v.real(3))


@samples("baddbmm")
def baddbmm(v: Values) -> Samples:
    yield call("usual", v.real(2, 2, 4), v.real(2, 2, 3), v.real(2, 3, 4))
    yield call("scaled", v.real(2, 2, 4), v.real(2, 2, 3), v.real(2, 3, 4), **_SCALES)
    yield call("broadcast", v.real(1, 4), v.real(2, 2, 3), v.real(2, 3, 4))
    yield call("empty", v.real(0, 2, 4), v.real(0, 2, 3), v.real(0, 3, 4))


@samples("addbmm")
def addbmm(v: Values) -> Samples:
    yield call("usual", v.real(2, 4), v.real(2, 2, 3), v.real(2, 3, 4))
    yield call("scaled", v.real(2, 4), v.real(2, 2, 3), v.real(2, 3, 4), **_SCALES)
    yield call("empty", v.real(2, 4), v.real(0, 2, 3), v.real(0, 3, 4))


@samples("linalg_cross")
def linalg_cross(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), v.real(2, 3))
    yield call("first", v.real(3, 2), v.real(3, 2), dim=0)
    yield call("broadcast", v.real(2, 3), v.real(1, 3))
    yield call("empty", v.real(0, 3), v.real(0, 3))
