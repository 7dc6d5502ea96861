"""Sorting and selecting by rank: functions that return named pairs."""

from __future__ import annotations

from typing import Any

from clew.dispatch import apply
from clew.functions.reduce import named_result
from clew.op import REGISTRY
from clew.publish import composite
from clew.tensor import Tensor


def _pair(name: str, op: str, self: Tensor, attrs: dict[str, Any]) -> Any:
    return named_result(name, "values", "indices")(*apply(REGISTRY[op], (self,), attrs))


@composite(out=True)
def sort(
    self: Tensor, dim: int = -1, descending: bool = False, *, stable: bool | None = None
) -> Any:
    """The elements in order along `dim`, and where each came from; always a stable sort."""
    attrs: dict[str, Any] = {"dim": dim, "descending": descending}
    if stable is None:
        return _pair("sort", "sort", self, attrs)
    return _pair("sort", "sort_stable", self, {"stable": stable, **attrs})


@composite()
def argsort(
    self: Tensor, dim: int = -1, descending: bool = False, stable: bool | None = None
) -> Any:
    """The indices that sort along `dim`."""
    return sort(self, dim, descending, stable=stable)[1]


@composite(out=True)
def msort(self: Tensor) -> Any:
    """The elements in order along the first dimension."""
    return sort(self, 0)[0]


@composite(out=True)
def topk(self: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The `k` largest (or smallest) elements along `dim` in order, and where they stand.

    Raises:
        RuntimeError: there are not `k` elements.
    """
    attrs = {"k": k, "dim": dim, "largest": largest, "sorted": sorted}
    return _pair("topk", "topk", self, attrs)


@composite(out=True)
def kthvalue(self: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """The `k`-th smallest element along `dim`, counted from 1, and where it stands.

    Raises:
        RuntimeError: there are not `k` elements.
    """
    return _pair("kthvalue", "kthvalue", self, {"k": k, "dim": dim, "keepdim": keepdim})


@composite(out=True)
def mode(self: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """The most frequent element along `dim`, the smallest of several, and where it stands."""
    return _pair("mode", "mode", self, {"dim": dim, "keepdim": keepdim})


def _median(name: str, doc: str) -> Any:
    def function(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
        if dim is None:
            return apply(REGISTRY[f"{name}_all"], (self,))
        return _pair(name, f"{name}_dim", self, {"dim": dim, "keepdim": keepdim})

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return composite(out=True)(function)


median = _median(
    "median", "The middle element (the lower of two), of all or along `dim`; nan if any is."
)
nanmedian = _median("nanmedian", "`median` of what is not nan.")


def _running(name: str) -> Any:
    def function(self: Tensor, dim: int) -> Any:
        return _pair(name, name, self, {"dim": dim})

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "The extremum so far along `dim`, and where it stands."
    return composite(out=True)(function)


cummax = _running("cummax")
cummin = _running("cummin")
