"""Samples of reductions, running totals, sorting and searching."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import numpy as np

from ops.samples import Sample, Values, call, samples

Samples = Iterator[Sample]

# -- over everything


@samples("sum_all", "mean_all", "prod_all")
def of_all(v: Values) -> Samples:
    yield call("usual", v.nonzero(2, 3))
    yield call("0-d", v.nonzero())
    yield call("empty", v.nonzero(0, 3))


@samples("max_all", "min_all", "median_all", "nanmedian_all")
def extremum_of_all(v: Values) -> Samples:
    yield call("usual", v.distinct(2, 3))
    yield call("0-d", v.distinct())


@samples("trace")
def trace(v: Values) -> Samples:
    yield call("usual", v.real(3, 4))
    yield call("empty", v.real(0, 3))


# -- over dimensions


@samples("sum", "mean", "nansum")
def over_dims(v: Values) -> Samples:
    yield call("usual", v.real(2, 3, 4), dim=(0, -1))
    yield call("kept", v.real(2, 3), dim=1, keepdim=True)
    yield call("all", v.real(2, 3), dim=None)
    yield call("0-d", v.real(), dim=0)
    yield call("empty", v.real(0, 3), dim=0)
    yield call("none left", v.real(2, 0), dim=0)


@samples("sum_to_size")
def sum_to_size(v: Values) -> Samples:
    yield call("usual", v.real(2, 3, 4), size=(3, 1))
    yield call("0-d", v.real(2, 3), size=())
    yield call("same", v.real(2, 3), size=(2, 3))
    yield call("empty", v.real(0, 3), size=(1, 3))


@samples("amax", "amin")
def extrema(v: Values) -> Samples:
    yield call("usual", v.distinct(2, 3, 4), dim=(0, -1))
    yield call("kept", v.distinct(2, 3), dim=1, keepdim=True)
    yield call("all", v.distinct(2, 3))
    yield call("0-d", v.distinct(), dim=0)
    yield call("none left", v.distinct(0, 3), dim=1)


@samples("aminmax")
def aminmax(v: Values) -> Samples:
    yield call("usual", v.distinct(2, 3), dim=1)
    yield call("kept", v.distinct(2, 3), dim=0, keepdim=True)
    yield call("all", v.distinct(2, 3))
    yield call("0-d", v.distinct())


@samples("max_dim", "min_dim", "median_dim", "nanmedian_dim", "mode")
def extremum_with_index(v: Values) -> Samples:
    yield call("usual", v.distinct(2, 3), dim=1)
    yield call("kept", v.distinct(2, 3), dim=-2, keepdim=True)
    yield call("0-d", v.distinct(), dim=0)
    yield call("none left", v.distinct(0, 3), dim=1)


@samples("put_values")
def put_values(v: Values) -> Samples:
    yield call("usual", v.real(2), v.integers(3, 2), size=(2, 3), dim=1, keepdim=False)
    yield call("kept", v.real(1, 3), v.integers(2, 1, 3), size=(2, 3), dim=0, keepdim=True)
    yield call("0-d", v.real(), v.integers(1), size=(), dim=0, keepdim=False)
    yield call("empty", v.real(0), v.integers(3, 0), size=(0, 3), dim=1, keepdim=False)


@samples("take_values")
def take_values(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), v.integers(3, 2), dim=1, keepdim=False)
    yield call("kept", v.real(2, 3), v.integers(2, 1, 3), dim=0, keepdim=True)
    yield call("0-d", v.real(), v.integers(1), dim=0, keepdim=False)
    yield call("empty", v.real(0, 3), v.integers(3, 0), dim=1, keepdim=False)


@samples("argmax", "argmin", "any", "all")
def to_integers(v: Values) -> Samples:
    yield call("usual", v.distinct(2, 3), dim=1)
    yield call("kept", v.distinct(2, 3), dim=-2, keepdim=True)
    yield call("all", v.distinct(2, 3))
    yield call("0-d", v.distinct())


@samples("count_nonzero")
def count_nonzero(v: Values) -> Samples:
    yield call("usual", v.integers(2, 2, 3), dim=1)
    yield call("all", v.integers(2, 2, 3))
    yield call("empty", v.integers(2, 0, 3), dim=0)


# -- products


@samples("prod")
def prod(v: Values) -> Samples:
    yield call("usual", v.nonzero(2, 3), dim=1)
    yield call("kept", v.nonzero(2, 3), dim=0, keepdim=True)
    yield call("zeros", _with_zeros(v), dim=1)
    yield call("0-d", v.nonzero(), dim=0)
    yield call("empty", v.nonzero(2, 0), dim=1)


def _with_zeros(v: Values) -> np.ndarray:
    """Rows with no zero, one and two."""
    x = v.nonzero(3, 4)
    x[1, 2] = x[2, 0] = x[2, 3] = 0
    return x


@samples("products_of_others")
def products_of_others(v: Values) -> Samples:
    yield call("usual", v.nonzero(2, 3), dim=1)
    yield call("zeros", _with_zeros(v), dim=1)
    yield call("empty", v.nonzero(2, 0), dim=1)


@samples("one_slice")
def one_slice(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), index=1, dim=1, value=1)


# -- variance, norms


@samples("var", "std", "var_mean", "std_mean")
def moments(v: Values) -> Samples:
    yield call("usual", v.distinct(2, 3), dim=1)
    yield call("kept", v.distinct(2, 3, 2), dim=(0, -1), correction=0, keepdim=True)
    yield call("all", v.distinct(2, 3))
    yield call("empty", v.distinct(0, 3), dim=1)


@samples("logsumexp")
def logsumexp(v: Values) -> Samples:
    yield call("usual", v.real(2, 3, 2), dim=(0, -1))
    yield call("kept", v.real(2, 3), dim=1, keepdim=True)
    yield call("0-d", v.real(), dim=0)
    yield call("empty", v.real(0, 3), dim=1)


@samples("linalg_vector_norm")
def vector_norm(v: Values) -> Samples:
    for order in (2, 1, 3, 1.5, 0.5, -1):
        yield call(f"order {order}", v.nonzero(2, 3), ord=order, dim=1)
    for order in (inf, -inf):
        yield call(f"order {order}", v.distinct(2, 3), ord=order, dim=1, keepdim=True)
    yield call("order 0", v.nonzero(2, 3), ord=0)
    yield call("all", v.nonzero(2, 3, 2))
    yield call("0-d", v.nonzero())
    yield call("empty", v.nonzero(0, 3))


@samples("dist")
def dist(v: Values) -> Samples:
    for p in (2, 1, 3, inf):
        yield call(f"p {p}", v.distinct(2, 3), v.real(2, 3) / 50, p=p)
    yield call("broadcast", v.distinct(2, 3), v.real(3) / 50)
    yield call("0-d", v.distinct(), v.real())
    yield call("empty", v.real(0, 3), v.real(0, 3))


@samples("renorm")
def renorm(v: Values) -> Samples:
    yield call("usual", v.real(3, 4) * np.array([[0.1], [1], [2]]), p=2, dim=0, maxnorm=1.0)
    yield call("order 3", v.nonzero(2, 3), p=3, dim=-1, maxnorm=1.0)
    yield call("empty", v.real(0, 3), p=2, dim=1, maxnorm=1.0)


@samples("cdist")
def cdist(v: Values) -> Samples:
    for p in (2, 1, 3, inf):
        yield call(f"p {p}", v.real(3, 2), v.real(4, 2), p=p)
    yield call("batches", v.real(2, 3, 2), v.real(2, 4, 2), p=2.0)
    yield call("empty", v.real(0, 2), v.real(4, 2), p=2.0)


# -- running totals


@samples("cumsum", "cumsum_reversed", "logcumsumexp")
def cumulative(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), dim=1)
    yield call("negative", v.real(2, 3), dim=-2)
    yield call("0-d", v.real(), dim=0)
    yield call("empty", v.real(0, 3), dim=0)


@samples("cumprod")
def cumprod(v: Values) -> Samples:
    yield call("usual", v.nonzero(2, 3), dim=1)
    yield call("zeros", _with_zeros(v), dim=-1)
    yield call("0-d", v.nonzero(), dim=0)
    yield call("empty", v.nonzero(0, 3), dim=0)


@samples("cumprod_backward")
def cumprod_backward(v: Values) -> Samples:
    why = "the products move with the factors"
    for name, x in (("usual", v.nonzero(3, 4)), ("zeros", _with_zeros(v))):
        yield call(name, v.real(3, 4), x, np.cumprod(x, 1), dim=1, convention=why)


@samples("cummax", "cummin")
def running_extremum(v: Values) -> Samples:
    yield call("usual", v.distinct(2, 3), dim=1)
    yield call("negative", v.distinct(2, 3), dim=-2)
    yield call("0-d", v.distinct(), dim=0)
    yield call("empty", v.distinct(0, 3), dim=0)


@samples("add_values")
def add_values(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), v.integers(3, 2, 3), size=(2, 3), dim=1)
    yield call("0-d", v.real(), v.integers(1), size=(), dim=0)
    yield call("empty", v.real(0, 3), v.integers(3, 0, 3), size=(0, 3), dim=1)


# -- order


@samples("sort")
def sort(v: Values) -> Samples:
    yield call("usual", v.distinct(2, 3))
    yield call("descending", v.distinct(2, 3), dim=0, descending=True)
    yield call("0-d", v.distinct())
    yield call("empty", v.distinct(0, 3))


@samples("sort_stable")
def sort_stable(v: Values) -> Samples:
    yield call("usual", v.distinct(2, 3), stable=True)
    yield call("0-d", v.distinct(), stable=True)


@samples("topk")
def topk(v: Values) -> Samples:
    yield call("usual", v.distinct(2, 5), k=2)
    yield call("smallest", v.distinct(5, 2), k=2, dim=0, largest=False)
    yield call("long", v.distinct(2, 40), k=2)
    yield call("0-d", v.distinct(), k=1)
    yield call("none", v.distinct(2, 5), k=0)


@samples("kthvalue")
def kthvalue(v: Values) -> Samples:
    yield call("usual", v.distinct(2, 5), k=2)
    yield call("kept", v.distinct(5, 2), k=3, dim=0, keepdim=True)
    yield call("0-d", v.distinct(), k=1)
    yield call("none left", v.distinct(0, 3), k=1)


# -- distinct elements, counts, places

_ALL = {"return_inverse": True, "return_counts": True}


@samples("unique2")
def unique2(v: Values) -> Samples:
    says = "the derivative for '_unique2' is not implemented"
    yield call("usual", v.integers(3, 2, 3), **_ALL)
    yield call("floating", v.real(3), refuses=says, **_ALL)
    yield call("empty", v.integers(3, 0), **_ALL)


@samples("unique_dim")
def unique_dim(v: Values) -> Samples:
    says = "the derivative for 'unique_dim' is not implemented"
    yield call("usual", v.integers(2, 5, 2), dim=0, **_ALL)
    yield call("floating", v.real(3, 2), dim=0, refuses=says, **_ALL)


@samples("unique_consecutive")
def unique_consecutive(v: Values) -> Samples:
    says = "the derivative for 'unique_consecutive' is not implemented"
    yield call("usual", v.integers(2, 6), dim=None, **_ALL)
    yield call("slices", v.integers(2, 5, 1), dim=0, **_ALL)
    yield call("floating", v.real(3), dim=None, refuses=says, **_ALL)


@samples("bincount")
def bincount(v: Values) -> Samples:
    yield call("usual", v.integers(4, 6), None)
    yield call("weighted", v.integers(4, 6), v.real(6), minlength=8)
    yield call("empty", v.integers(4, 0), None)


@samples("histc")
def histc(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), bins=4, min=-1, max=1)
    yield call("own range", v.real(6), bins=3)


@samples("searchsorted")
def searchsorted(v: Values) -> Samples:
    places = {"right": False, "out_int32": False}
    yield call("usual", np.sort(v.real(5)), v.real(2, 3), None, **places)
    yield call("rows", np.sort(v.real(2, 5)), v.real(2, 3), None, **places)
    yield call("number", np.sort(v.real(5)), 0.5, None, right=True, out_int32=True)


@samples("isin")
def isin(v: Values) -> Samples:
    yield call("usual", v.integers(4, 2, 3), v.integers(4, 3))
    yield call("inverted", v.integers(4, 2, 3), v.integers(4, 3), invert=True)
    yield call("empty", v.integers(4, 0), v.integers(4, 3))
