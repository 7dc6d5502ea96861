"""Sorting, selecting by rank, and searching.

Of equal elements the first counts as the smaller, and nan counts as the largest.  The order is
always a stable one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.dtypes import scalar_name
from clew.op import op
from clew.ops.layout import contiguous, laid_out_like
from clew.ops.rules import wrap_dim
from clew.packing import INDICES
from clew.promotion import no_kernel

# -- sorting


def stable_order(x: Any, dim: int, descending: bool) -> Any:
    """The indices that sort `x` along `dim`; equal elements keep their order."""
    if not descending:
        return np.argsort(x, axis=dim, kind="stable")
    backwards = np.argsort(np.flip(x, dim), axis=dim, kind="stable")
    return x.shape[dim] - 1 - np.flip(backwards, dim)


def _refuse_complex(x: Any, message: str) -> None:
    if x.dtype.kind == "c":
        raise RuntimeError(message)


def _sorted(x: Any, dim: int, descending: bool) -> Any:
    _refuse_complex(x, " Sort does not support complex dtypes on CPU")
    dim = wrap_dim(dim, x.ndim)
    if x.ndim == 0:
        return x.copy(), np.zeros((), np.int64)
    order = stable_order(x, dim, descending)
    return laid_out_like(x, np.take_along_axis(x, order, dim)), laid_out_like(x, order)


def _put_back(F: Any, grad: Any, indices: Any, shape: Any, dim: int, keepdim: bool = True) -> Any:
    """The gradient of values that were selected along `dim`, where they came from."""
    return F.put_values(grad, indices, size=shape, dim=wrap_dim(dim, len(shape)), keepdim=keepdim)


@op("sort(self; dim=-1, descending=False) -> values, indices", publish=(),
    no_grad_outputs=(1,), packings={"indices": INDICES})  # fmt: skip
def sort(x: Any, *, dim: int, descending: bool) -> Any:
    """The elements in order along `dim`, and where each came from."""
    return _sorted(x, dim, descending)


@op("sort_stable(self; stable, dim=-1, descending=False) -> values, indices", publish=(),
    no_grad_outputs=(1,), packings={"indices": INDICES}, node="SortBackward1")  # fmt: skip
def sort_stable(x: Any, *, stable: bool, dim: int, descending: bool) -> Any:
    """`sort`, asked for with ``stable=``."""
    return _sorted(x, dim, descending)


for _sort in (sort, sort_stable):

    @_sort.grad("self")
    def _(F: Any, grad: Any, self_shape: Any, indices: Any, *, dim: int) -> Any:
        return _put_back(F, grad, indices, self_shape, dim)


@op("topk(self; k, dim=-1, largest=True, sorted=True) -> values, indices", publish=(),
    no_grad_outputs=(1,), packings={"indices": INDICES})  # fmt: skip
def topk(x: Any, *, k: int, dim: int, largest: bool, sorted: bool) -> Any:
    """The `k` largest (or smallest) elements along `dim` in order, and where they stand."""
    _refuse_complex(x, " topk does not support complex dtypes on CPU")
    if x.dtype.kind == "b":
        raise RuntimeError("topk does not support bool dtypes on CPU")
    dim = wrap_dim(dim, x.ndim)
    if not 0 <= k <= (x.shape[dim] if x.ndim else 1):
        raise RuntimeError("selected index k out of range")
    if x.ndim == 0:
        return x.copy(), np.zeros((), np.int64)
    first = (slice(None),) * dim
    if 0 < k * 16 < x.shape[dim]:
        indices = _partition(x, k, dim, largest)
        chosen = np.take_along_axis(x, indices, dim)
        order = stable_order(chosen, dim, largest)
        indices = np.take_along_axis(indices, order, dim)
    else:
        indices = stable_order(x, dim, largest)[(*first, slice(k))]
        indices = np.asarray(indices, order="C")
    return np.take_along_axis(x, indices, dim), indices


def _partition(x: Any, k: int, dim: int, largest: bool) -> Any:
    """The indices of the `k` extreme elements along `dim`, themselves in order of position."""
    place = x.shape[dim] - k if largest else k - 1
    part = np.argpartition(x, place, axis=dim)
    kept = slice(place, None) if largest else slice(k)
    return np.sort(part[(*(slice(None),) * dim, kept)], axis=dim)


@topk.grad("self")
def _(F: Any, grad: Any, self_shape: Any, indices: Any, *, dim: int) -> Any:
    return _put_back(F, grad, indices, self_shape, dim)


# -- one element by its rank


def _at(x: Any, places: Any, dim: int, keepdim: bool) -> tuple[Any, Any]:
    """The elements at `places` (of size one along `dim`), and the places."""
    values = np.take_along_axis(x, places, dim)
    if not keepdim:
        values, places = np.squeeze(values, dim), np.squeeze(places, dim)
    return values, places


def _check_selection(x: Any, dim: int, name: str) -> int:
    dim = wrap_dim(dim, x.ndim)
    if x.ndim and x.shape[dim] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")
    return dim


def _refuse_bool(x: Any, kernel: str) -> None:
    if x.dtype.kind in "bc":
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(x.dtype)}'")


@op("kthvalue(self; k, dim=-1, keepdim=False) -> values, indices", publish=(),
    no_grad_outputs=(1,), packings={"indices": INDICES})  # fmt: skip
def kthvalue(x: Any, *, k: int, dim: int, keepdim: bool) -> Any:
    """The `k`-th smallest element along `dim`, counted from 1, and where it stands."""
    dim = _check_selection(x, dim, "kthvalue")
    if not 1 <= k <= (x.shape[dim] if x.ndim else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}")
    _refuse_bool(x, "kthvalue_cpu")
    if x.ndim == 0:
        return x.copy(), np.zeros((), np.int64)
    places = np.take(stable_order(x, dim, False), [k - 1], axis=dim)
    return _at(x, places, dim, keepdim)


@kthvalue.grad("self")
def _(F: Any, grad: Any, self_shape: Any, indices: Any, *, dim: int, keepdim: bool) -> Any:
    return _put_back(F, grad, indices, self_shape, dim, keepdim)


def _median_places(x: Any, dim: int, skip_nan: bool) -> Any:
    """Where the (lower) median along `dim` stands; at the first nan if that counts."""
    order = stable_order(x, dim, False)
    missing = np.count_nonzero(x != x, axis=dim, keepdims=True)
    n = x.shape[dim]
    known = n - missing
    rank = np.maximum(known - 1, 0) // 2
    if not skip_nan:
        rank = np.where(missing > 0, known, rank)
    return np.take_along_axis(order, rank, dim)


def _median(name: str, skip_nan: bool) -> None:
    node = name.capitalize()

    def of_all(x: Any) -> Any:
        _refuse_bool(x, "median_cpu")
        flat = x.reshape(-1)
        if flat.size == 0:
            return np.full((), np.nan, x.dtype) if x.dtype.kind in "fV" else _lowest(x.dtype)
        return flat[_median_places(flat, 0, skip_nan)[0]]

    def rule_of_all(F: Any, grad: Any, self: Any, result: Any) -> Any:
        same_nan = F.logical_and(F.isnan(self), F.isnan(result))
        mask = F.logical_or(F.eq(self, result), same_nan)
        return F.masked_fill_tensor(F.zeros_like(self), mask, F.div(grad, F.sum_all(mask)))

    @contiguous
    def along(x: Any, *, dim: int, keepdim: bool) -> Any:
        dim = _check_selection(x, dim, "median")
        _refuse_bool(x, "median_out")
        if x.ndim == 0:
            return x.copy(), np.zeros((), np.int64)
        return _at(x, _median_places(x, dim, skip_nan), dim, keepdim)

    def rule(F: Any, grad: Any, self_shape: Any, indices: Any, *, dim: int, keepdim: bool) -> Any:
        return _put_back(F, grad, indices, self_shape, dim, keepdim)

    op(
        f"{name}_all(self)", of_all, publish=(), node=f"{node}Backward0", self=rule_of_all,
        doc="The middle element; the lower of the two middle ones.",
    )  # fmt: skip
    op(
        f"{name}_dim(self; dim, keepdim=False) -> values, indices", along, publish=(),
        node=f"{node}Backward1", no_grad_outputs=(1,), packings={"indices": INDICES}, self=rule,
        doc="The median along `dim` and where it stands.",
    )  # fmt: skip


def _lowest(dtype: np.dtype) -> Any:
    return np.full((), np.iinfo(dtype).min, dtype)


_median("median", skip_nan=False)
_median("nanmedian", skip_nan=True)


@op("mode(self; dim=-1, keepdim=False) -> values, indices", publish=(),
    no_grad_outputs=(1,), packings={"indices": INDICES})  # fmt: skip
def mode(x: Any, *, dim: int, keepdim: bool) -> Any:
    """The most frequent element along `dim`, the smallest of several, and where it stands last."""
    dim = _check_selection(x, dim, "mode")
    if x.ndim == 0:
        return x.copy(), np.zeros((), np.int64)
    no_kernel("mode_cpu").check(x)
    order = np.moveaxis(stable_order(x, dim, False), dim, -1)
    values = np.take_along_axis(np.moveaxis(x, dim, -1), order, -1)
    # Runs of equal elements: the length of a run is known at its end.
    n = x.shape[dim]
    steps = np.arange(1, n + 1)
    ends = np.concatenate(
        [values[..., 1:] != values[..., :-1], np.ones((*values.shape[:-1], 1), np.bool_)], -1
    )
    run_ends = np.where(ends, steps, 0)
    previous = np.maximum.accumulate(run_ends, -1)
    previous = np.concatenate([np.zeros_like(previous[..., :1]), previous[..., :-1]], -1)
    longest = np.argmax(np.where(ends, steps - previous, 0), -1)[..., None]
    places = np.moveaxis(np.take_along_axis(order, longest, -1), -1, dim)
    return _at(x, places, dim, keepdim)


@mode.grad("self")
def _(F: Any, grad: Any, self_shape: Any, indices: Any, *, dim: int, keepdim: bool) -> Any:
    return _put_back(F, grad, indices, self_shape, dim, keepdim)
