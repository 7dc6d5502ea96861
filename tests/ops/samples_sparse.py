"""Samples of products of sparse matrices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ops.samples import Sample, Values, call, samples


@samples("sparse_product")
def sparse_product(v: Values) -> Iterator[Sample]:
    rows, columns = np.array([0, 2, 0, 0]), np.array([1, 0, 1, 2])
    yield call("usual", v.real(4), v.real(3, 2), rows, columns, size=3)
    yield call("sorted", v.real(4), v.real(3, 2), np.sort(rows), columns, size=3)
    none = np.zeros(0, np.int64)
    yield call("no elements", v.real(0), v.real(3, 2), none, none, size=2)
    yield call("no columns", v.real(4), v.real(3, 0), rows, columns, size=3)
