"""Samples of reading and writing by index: positions, masks, slices, rows of a table."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ops.samples import Sample, Values, call, samples

Samples = Iterator[Sample]

# -- x[indices]


@samples("index")
def index(v: Values) -> Samples:
    yield call("usual", v.real(4, 5), v.integers(4, 3))
    yield call("pair", v.real(4, 5), v.integers(4, 2, 1), v.integers(5, 3))
    yield call("second", v.real(4, 5), None, v.integers(5, 3))
    yield call("mask", v.real(2, 3), v.mask(2, 3))
    yield call("to 0-d", v.real(4), v.integers(4))
    yield call("empty", v.real(4, 5), v.integers(4, 0))


@samples("index_backward")
def index_backward(v: Values) -> Samples:
    mask = v.mask(2, 3)
    yield call("usual", v.real(3, 5), v.integers(4, 3), size=(4, 5))
    yield call("second", v.real(4, 3), None, v.integers(5, 3), size=(4, 5))
    yield call("mask", v.real(int(mask.sum())), mask, size=(2, 3))
    yield call("empty", v.real(0, 5), v.integers(4, 0), size=(4, 5))


@samples("index_put")
def index_put(v: Values) -> Samples:
    yield call("usual", v.real(4, 5), v.real(2, 5), np.array([3, 1]))
    yield call("added", v.real(4, 5), v.real(3, 5), np.array([3, 1, 3]), accumulate=True)
    yield call("broadcast", v.real(4, 5), v.real(5), np.array([3, 1]))
    yield call("mask", v.real(2, 3), v.real(), v.mask(2, 3))
    yield call("number", v.real(4, 5), 0, np.array([3, 1]))
    yield call("empty", v.real(4, 5), v.real(0, 5), v.integers(4, 0))


# -- flat positions


@samples("take")
def take(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), v.integers(6, 2, 2))
    yield call("negative", v.real(2, 3), v.integers(6, 4) - 6)
    yield call("0-d", v.real(), v.integers(1))
    yield call("empty", v.real(2, 3), v.integers(6, 0))


@samples("put")
def put(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), np.array([4, 0]), v.real(2))
    yield call("added", v.real(2, 3), np.array([4, 0, 4]), v.real(3), accumulate=True)
    yield call("0-d", v.real(), np.array(0), v.real())
    yield call("empty", v.real(2, 3), v.integers(6, 0), v.real(0))


# -- masks


@samples("masked_select")
def masked_select(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), v.mask(2, 3))
    yield call("broadcast", v.real(3), v.mask(2, 1))
    yield call("0-d", v.real(), np.array(True))
    yield call("empty", v.real(0, 3), v.mask(0, 3))


@samples("masked_select_backward")
def masked_select_backward(v: Values) -> Samples:
    mask = v.mask(2, 3)
    yield call("usual", v.real(int(mask.sum())), mask, size=(2, 3), stride=(3, 1))
    yield call("empty", v.real(0), v.mask(0, 3), size=(0, 3), stride=(3, 1))


@samples("masked_scatter")
def masked_scatter(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), v.mask(2, 3), v.real(7))
    yield call("broadcast", v.real(2, 3), v.mask(3), v.real(2, 3))
    yield call("0-d", v.real(), np.array(True), v.real())
    yield call("empty", v.real(0, 3), v.mask(0, 3), v.real(2))


@samples("masked_scatter_backward")
def masked_scatter_backward(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), v.mask(2, 3), size=(7,))
    yield call("empty", v.real(0, 3), v.mask(0, 3), size=(2,))


# -- an index of as many dimensions as the tensor


@samples("gather")
def gather(v: Values) -> Samples:
    yield call("usual", v.real(3, 4), v.integers(3, 2, 4), dim=0)
    yield call("last", v.real(3, 4), v.integers(4, 3, 6), dim=-1)
    yield call("0-d", v.real(), v.integers(1), dim=0)
    yield call("empty", v.real(3, 4), v.integers(3, 0, 4), dim=0)


@samples("gather_backward")
def gather_backward(v: Values) -> Samples:
    yield call("usual", v.real(2, 4), v.integers(3, 2, 4), size=(3, 4), dim=0)
    yield call("last", v.real(3, 6), v.integers(4, 3, 6), size=(3, 4), dim=-1)
    yield call("empty", v.real(0, 4), v.integers(3, 0, 4), size=(3, 4), dim=0)


_LARGER_SOURCE = "returned an invalid gradient at index 1"


def _apart(*rows: int) -> np.ndarray:
    """An index of two columns in which no place is named twice along dimension 0."""
    return np.stack([rows, np.roll(rows, 1)], 1)


@samples("scatter")
def scatter(v: Values) -> Samples:
    yield call("usual", v.real(4, 2), _apart(3, 0, 1), v.real(3, 2), dim=0)
    yield call(
        "larger source", v.real(4, 2), _apart(3, 0), v.real(3, 3), dim=-2, refuses=_LARGER_SOURCE
    )
    yield call("0-d", v.real(), np.array(0), v.real(), dim=0)
    yield call("empty", v.real(4, 2), v.integers(4, 0, 2), v.real(0, 2), dim=0)


@samples("scatter_value")
def scatter_value(v: Values) -> Samples:
    yield call("usual", v.real(4, 2), _apart(3, 0, 1), dim=0, value=1.5)
    yield call("0-d", v.real(), np.array(0), dim=0, value=0)
    yield call("empty", v.real(4, 2), v.integers(4, 0, 2), dim=0, value=1.5)


@samples("scatter_combine")
def scatter_combine(v: Values) -> Samples:
    says = "derivative for aten::scatter is not implemented"
    for reduce in ("add", "multiply"):
        attrs = {"dim": 0, "reduce": reduce, "refuses": says}
        yield call(reduce, v.real(4, 2), v.integers(4, 3, 2), v.real(3, 2), **attrs)


@samples("scatter_add")
def scatter_add(v: Values) -> Samples:
    yield call("usual", v.real(4, 2), v.integers(4, 6, 2), v.real(6, 2), dim=0)
    yield call(
        "larger source", v.real(4, 2), v.integers(2, 3, 2), v.real(3, 4), dim=-1,
        refuses=_LARGER_SOURCE,
    )  # fmt: skip
    yield call("0-d", v.real(), np.array(0), v.real(), dim=0)
    yield call("empty", v.real(4, 2), v.integers(4, 0, 2), v.real(0, 2), dim=0)


@samples("differentiable_once", "refuse_where")
def refusals(v: Values) -> Samples:
    nowhere = np.zeros((2, 3), bool)
    yield call("usual", v.real(2, 3), nowhere, message="no")
    yield call("0-d", v.real(), np.array(False), message="no")
    yield call("empty", v.real(0, 3), nowhere[:0], message="no")


@samples("scatter_reduce")
def scatter_reduce(v: Values) -> Samples:
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        for include_self in (True, False):
            name = reduce if include_self else f"{reduce} without self"
            values = v.distinct(10, 2)
            yield call(
                name, values[:4], v.integers(4, 6, 2), values[4:], dim=0, reduce=reduce,
                include_self=include_self,
            )  # fmt: skip
    source = v.nonzero(4, 2)
    source[1:3, 0] = source[2, 1] = 0
    index = np.array([[0, 1], [0, 1], [1, 1], [1, 0]])
    yield call("zeros", v.nonzero(3, 2), index, source, dim=0, reduce="prod")
    yield call(
        "zeros at one place", v.nonzero(3, 2), np.zeros_like(index), source, dim=0, reduce="prod",
        once="torch refuses it too",
    )  # fmt: skip
    yield call("0-d", v.real(), np.array(0), v.real(), dim=0, reduce="sum")
    yield call("empty", v.real(4, 2), v.integers(4, 0, 2), v.real(0, 2), dim=0, reduce="sum")


# -- whole slices


@samples("index_select")
def index_select(v: Values) -> Samples:
    yield call("usual", v.real(4, 2), v.integers(4, 6), dim=0)
    yield call("last", v.real(2, 4), v.integers(4, 3), dim=-1)
    yield call("0-d", v.real(), np.array(0), dim=0)
    yield call("empty", v.real(4, 2), v.integers(4, 0), dim=0)


@samples("index_select_backward")
def index_select_backward(v: Values) -> Samples:
    yield call("usual", v.real(6, 2), v.integers(4, 6), size=(4, 2), dim=0)
    yield call("0-d", v.real(), np.array(0), size=(), dim=0)
    yield call("empty", v.real(0, 2), v.integers(4, 0), size=(4, 2), dim=0)


@samples("index_add")
def index_add(v: Values) -> Samples:
    yield call("usual", v.real(4, 2), v.integers(4, 6), v.real(6, 2), dim=0)
    yield call("scaled", v.real(2, 4), v.integers(4, 6), v.real(2, 6), dim=-1, alpha=0.5)
    yield call("0-d", v.real(), np.array([0]), v.real(), dim=0)
    yield call("empty", v.real(4, 2), v.integers(4, 0), v.real(0, 2), dim=0)


@samples("index_copy")
def index_copy(v: Values) -> Samples:
    yield call("usual", v.real(4, 2), np.array([3, 0]), v.real(2, 2), dim=0)
    yield call("last", v.real(2, 4), np.array([3, 0]), v.real(2, 2), dim=-1)
    yield call("0-d", v.real(), np.array(0), v.real(), dim=0)
    yield call("empty", v.real(4, 2), v.integers(4, 0), v.real(0, 2), dim=0)


@samples("index_fill_value")
def index_fill_value(v: Values) -> Samples:
    yield call("usual", v.real(4, 2), np.array([3, 0]), dim=0, value=1.5)
    yield call("0-d", v.real(), np.array(0), dim=0, value=0)
    yield call("empty", v.real(4, 2), v.integers(4, 0), dim=0, value=1.5)


@samples("index_fill")
def index_fill(v: Values) -> Samples:
    yield call("usual", v.real(4, 2), np.array([3, 0]), v.real(), dim=0)
    yield call("0-d", v.real(), np.array(0), v.real(), dim=0)
    yield call("empty", v.real(4, 2), v.integers(4, 0), v.real(), dim=0)


@samples("index_reduce")
def index_reduce(v: Values) -> Samples:
    for reduce in ("prod", "mean", "amax", "amin"):
        for include_self in (True, False):
            name = reduce if include_self else f"{reduce} without self"
            values = v.distinct(10, 2)
            yield call(
                name, values[:4], v.integers(4, 6), values[4:], dim=0, reduce=reduce,
                include_self=include_self,
            )  # fmt: skip
    yield call("empty", v.real(4, 2), v.integers(4, 0), v.real(0, 2), dim=0, reduce="mean")


# -- rows of a table

_ROWS = np.array([[1, 3, 1], [0, 1, 4]])
_PADDED = {"padding_idx": 1, "scale_grad_by_freq": False}
_SCALED = {"padding_idx": -1, "scale_grad_by_freq": True}
_PLAIN = {"padding_idx": -1, "scale_grad_by_freq": False}


@samples("embedding")
def embedding(v: Values) -> Samples:
    yield call("usual", v.real(5, 2), _ROWS)
    yield call("padded", v.real(5, 2), _ROWS, convention="padding learns nothing", **_PADDED)
    yield call("scaled", v.real(5, 2), _ROWS, convention="scaled by frequency", **_SCALED)
    yield call("one row", v.real(5, 2), np.array(3))
    yield call("empty", v.real(5, 2), v.integers(5, 0))


@samples("embedding_dense_backward")
def embedding_dense_backward(v: Values) -> Samples:
    for name, attrs in (("usual", _PLAIN), ("padded", _PADDED), ("scaled", _SCALED)):
        yield call(name, v.real(2, 3, 2), _ROWS, num_weights=5, **attrs)
    yield call("empty", v.real(0, 2), v.integers(5, 0), num_weights=5, **_PLAIN)


@samples("embedding_dense_double_backward")
def embedding_dense_double_backward(v: Values) -> Samples:
    for name, attrs in (("usual", _PLAIN), ("padded", _PADDED), ("scaled", _SCALED)):
        yield call(name, v.real(5, 2), _ROWS, **attrs)
    yield call("empty", v.real(5, 2), v.integers(5, 0), **_PLAIN)


@samples("embedding_renorm")
def embedding_renorm(v: Values) -> Samples:
    yield call("usual", v.real(5, 2), _ROWS, max_norm=1.0, norm_type=2.0)
    yield call("empty", v.real(5, 2), v.integers(5, 0), max_norm=1.0, norm_type=2.0)


@samples("one_hot")
def one_hot(v: Values) -> Samples:
    yield call("usual", v.integers(4, 2, 3), num_classes=4)
    yield call("counted", v.integers(4, 2, 3))
    yield call("0-d", v.integers(4), num_classes=4)
    yield call("empty", v.integers(4, 0), num_classes=4)
