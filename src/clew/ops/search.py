"""Distinct elements, counts and places: integer results."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew import kernels
from clew.dtypes import scalar_name
from clew.op import op
from clew.ops.rules import not_implemented, wrap_dim
from clew.promotion import no_kernel

# -- distinct elements


_UNIQUE: dict[str, Any] = {"publish": (), "no_grad_outputs": (1, 2)}


@op("unique2(self; return_inverse, return_counts) -> output, inverse, counts",
    self=not_implemented("_unique2"), **_UNIQUE)  # fmt: skip
def unique2(x: Any, *, return_inverse: bool, return_counts: bool) -> Any:
    """The distinct elements in order; where each element is among them; how often each occurs."""
    no_kernel("unique").check(x)
    values, inverse, counts = np.unique(
        x.reshape(-1), return_inverse=True, return_counts=True, equal_nan=False
    )
    return (
        values,
        inverse.reshape(x.shape) if return_inverse else None,
        counts if return_counts else None,
    )


@op("unique_dim(self; dim, return_inverse, return_counts) -> output, inverse, counts",
    self=not_implemented("unique_dim"), **_UNIQUE)  # fmt: skip
def unique_dim(x: Any, *, dim: int, return_inverse: bool, return_counts: bool) -> Any:
    """`unique2` of the slices along `dim`, in lexicographic order."""
    no_kernel("unique_dim").check(x)
    dim = _checked_dim(x, dim)
    if x.shape[dim] == 0:
        nothing = np.zeros(0, np.int64)
        return (
            x.copy(), nothing if return_inverse else None, nothing if return_counts else None
        )  # fmt: skip
    values, inverse, counts = np.unique(
        x, axis=dim, return_inverse=True, return_counts=True, equal_nan=False
    )
    return (
        values,
        inverse.reshape(-1) if return_inverse else None,
        counts if return_counts else None,
    )


def _checked_dim(x: Any, dim: int) -> int:
    dim = wrap_dim(dim, x.ndim)
    if x.size == 0 and x.shape[dim] != 0:
        raise RuntimeError(
            "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied"
        )
    return dim


@op("unique_consecutive(self; return_inverse, return_counts, dim) -> output, inverse, counts",
    self=not_implemented("unique_consecutive"), **_UNIQUE)  # fmt: skip
def unique_consecutive(x: Any, *, return_inverse: bool, return_counts: bool, dim: Any) -> Any:
    """The elements (or slices along `dim`) that differ from the one before."""
    if dim is None:
        no_kernel("unique").check(x)
        rows, at = x.reshape(-1, 1), 0
    else:
        at = _checked_dim(x, dim)
        rows = np.moveaxis(x, at, 0).reshape(x.shape[at], -1 if x.size else 1)
    starts = np.ones(len(rows), np.bool_)
    starts[1:] = np.any(rows[1:] != rows[:-1], axis=1)
    kept = np.flatnonzero(starts)
    values = rows[kept, 0] if dim is None else np.take(x, kept, at)
    places = np.cumsum(starts) - 1
    return (
        values,
        places.reshape(x.shape if dim is None else -1) if return_inverse else None,
        np.diff(np.append(kept, len(rows))) if return_counts else None,
    )


# -- counts


@op("bincount(self, weights=None; minlength=0)")
def bincount(x: Any, weights: Any, *, minlength: int) -> Any:
    """How often each integer from 0 occurs in a vector; with `weights`, the sum of their weights.

    Raises:
        RuntimeError: the tensor is no vector, has negative elements, or not one weight for each.
    """
    if x.dtype.kind not in "iu":
        raise NotImplementedError(f"\"bincount_cpu\" not implemented for '{scalar_name(x.dtype)}'")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if x.ndim == 1 and x.size == 0:
        return np.zeros(minlength, np.int64)
    if x.ndim != 1 or x.min() < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is None:
        return np.bincount(x.astype(np.int64), minlength=minlength)
    if weights.shape != x.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    kind = np.float32 if weights.dtype == np.float32 else np.float64
    return np.bincount(x.astype(np.int64), weights, minlength).astype(kind)


@op("histc(self; bins=100, min=0, max=0)")
def histc(x: Any, *, bins: int, min: float, max: float) -> Any:
    """How many elements lie in each of `bins` equal parts of ``[min, max]``.

    With `min` and `max` equal, the range is that of the elements.

    Raises:
        RuntimeError: there is no bin, or no finite range.
    """
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    no_kernel("aminmax_cpu").check(x)
    if x.dtype.kind not in "fV":
        raise NotImplementedError(f"\"histogram_cpu\" not implemented for '{scalar_name(x.dtype)}'")
    low, high = float(min), float(max)
    if low == high and x.size:
        low, high = float(np.min(x)), float(np.max(x))
    if low == high:
        low, high = low - 1, high + 1
    if not np.isfinite([low, high]).all():
        raise RuntimeError(f"torch.histc: range of [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError("torch.histc: max must be larger than min")
    return np.histogram(x, bins, (low, high))[0].astype(x.dtype)


@op("histogram_counts(self, weight=None, *bin_edges; density)", publish=())
def histogram_counts(points: Any, weight: Any, *bin_edges: Any, density: bool) -> Any:
    """How many points ``(count, dims)``, or which sum of weights, the boxes between edges hold."""
    return kernels.histogram.counts(points, weight, bin_edges, density=density)


# -- places in sorted sequences


@op("searchsorted(sequence, values, sorter=None; right, out_int32)", publish=())
def searchsorted(sequence: Any, values: Any, sorter: Any, *, right: bool, out_int32: bool) -> Any:
    """Where each value belongs in the sorted last dimension; behind equal ones if `right`."""
    kind = np.int32 if out_int32 else np.int64
    no_kernel("searchsorted_out_cpu").check(sequence, np.asarray(values))
    side: Any = "right" if right else "left"
    values = np.asarray(values)
    if sorter is not None:
        sequence = np.take_along_axis(sequence, sorter, -1)
    if sequence.ndim == 1:
        return np.searchsorted(sequence, values, side).astype(kind)
    out = np.empty(values.shape, kind)
    for row in np.ndindex(sequence.shape[:-1]):
        out[row] = np.searchsorted(sequence[row], values[row], side)
    return out


@op("isin(elements, test_elements; *, assume_unique=False, invert=False)", publish=())
def isin(x: Any, tests: Any, *, assume_unique: bool, invert: bool) -> Any:
    """Whether each element is among the test elements."""
    kind = np.result_type(*(v if isinstance(v, np.ndarray) else np.asarray(v) for v in (x, tests)))
    if kind.kind == "c":
        name = scalar_name(kind)
        raise RuntimeError(f"Unsupported input type encountered for isin(): {name}")
    return np.isin(x, tests, assume_unique=False, invert=invert)
