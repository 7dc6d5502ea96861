"""Samples of bags of embeddings and of bilinear forms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from clew.ops.embedding_bag import MAX, MEAN, SUM
from ops.samples import Sample, Values, call, samples

Samples = Iterator[Sample]


@samples("embedding_bag_of_rows")
def embedding_bag(v: Values) -> Samples:
    indices, offsets = np.array([1, 3, 3, 0, 2, 1]), np.array([0, 2, 2, 5])

    def attrs(mode: int, padding_idx: int = -1, by_freq: bool = False) -> dict[str, Any]:
        return {
            "mode": mode, "padding_idx": padding_idx, "scale_grad_by_freq": by_freq,
            "sparse": False,
        }  # fmt: skip

    for name, mode in (("sum", SUM), ("mean", MEAN), ("max", MAX)):
        yield call(name, v.distinct(5, 3), indices, offsets, None, **attrs(mode))
        yield call(f"{name} padded", v.distinct(5, 3), indices, offsets, None, **attrs(mode, 3))
    yield call("weighted", v.real(5, 3), indices, offsets, v.real(6), **attrs(SUM, 1))
    yield call("by frequency", v.real(5, 3), indices, offsets, None, **attrs(MEAN, by_freq=True),
               convention="gradients are divided by how often a row is named")  # fmt: skip
    yield call("empty", v.real(5, 3), indices[:0], offsets[:0], None, **attrs(SUM))


@samples("bilinear_form")
def bilinear_form(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), v.real(2, 4), v.real(5, 3, 4))
    yield call("empty", v.real(0, 3), v.real(0, 4), v.real(5, 3, 4))


@samples("histogram_counts")
def histogram_counts(v: Values) -> Samples:
    edges = np.array([-2.0, -0.5, 0.3, 2.0]), np.array([-1.0, 0.0, 1.0])
    yield call("usual", v.real(30, 2), None, *edges, density=False)
    yield call("weights", v.real(30, 1), v.positive(30), edges[0], density=False)
    yield call("density", v.real(30, 2), v.positive(30), *edges, density=True)
    yield call("empty", v.real(0, 1), None, edges[1], density=False)
