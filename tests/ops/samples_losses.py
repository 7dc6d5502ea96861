"""Samples of the losses that ask for a margin."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ops.samples import Sample, Values, call, samples

Samples = Iterator[Sample]


@samples("multi_margin_loss")
def multi_margin_loss(v: Values) -> Samples:
    target = np.array([0, 2, 1, 0])
    for reduction in ("none", "mean", "sum"):
        attrs = {"margin": 0.7, "reduction": reduction}
        yield call(reduction, v.distinct(4, 3), target, v.positive(3), p=1, **attrs)
        yield call(f"squared {reduction}", v.distinct(4, 3), target, None, p=2, **attrs)
    attrs = {"margin": 0.7, "reduction": "none"}
    yield call("one", v.distinct(3), np.array(1), None, p=1, **attrs)
    yield call("empty", v.real(0, 3), v.integers(3, 0), None, p=1, margin=1.0, reduction="sum")


@samples("multilabel_margin_loss")
def multilabel_margin_loss(v: Values) -> Samples:
    target = np.array([[2, 0, -1, 1], [3, -1, 0, 0], [-1, 0, 1, 2], [1, 1, 0, -1]])
    for reduction in ("none", "mean", "sum"):
        yield call(reduction, v.distinct(4, 4), target, reduction=reduction)
    yield call("one", v.distinct(4), target[0], reduction="none")
    yield call("empty", v.real(0, 4), v.integers(4, 0, 4), reduction="sum")


@samples("label_counts")
def label_counts(v: Values) -> Samples:
    yield call("usual", np.array([[2, 0, -1, 1], [3, 3, 0, 0]]), classes=4)
    yield call("empty", v.integers(4, 0, 4), classes=4)
