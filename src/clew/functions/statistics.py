"""Variances and other statistics whose name covers several ops."""

from __future__ import annotations

import warnings
from typing import Any

from clew.dispatch import apply
from clew.dtypes import scalar_name
from clew.functions.reduce import named_result
from clew.op import REGISTRY
from clew.ops.statistics import degrees_of_freedom
from clew.publish import composite
from clew.tensor import Tensor


def _variance_like(name: str, method: bool, doc: str) -> Any:
    op = REGISTRY[name]

    def function(
        self: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
        correction: float | None = None,
    ) -> Any:  # fmt: skip
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        if unbiased is not None and correction is not None:
            raise TypeError(
                f"{name}() received an invalid combination of arguments - got (Tensor, "
                "correction=int, unbiased=bool)"
            )
        if correction is None:
            correction = 1 if unbiased is None or unbiased else 0
        floating = self._array.dtype.kind in "fcV"  # others are refused
        degrees = degrees_of_freedom(self._array.shape, dim, correction)
        if floating and (degrees == 0 or not self._array.size):
            warnings.warn(
                f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than "
                "the reduction factor (input numel divided by output numel).",
                UserWarning,
                stacklevel=3,
            )
        attrs = {"dim": dim, "correction": correction, "keepdim": keepdim}
        return apply(op, (self,), attrs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return composite(method=method, out=True)(function)


var = _variance_like(
    "var", True,
    "The squared deviations from the mean, summed and divided by ``n - correction`` (default 1).",
)  # fmt: skip
std = _variance_like("std", True, "The square root of `var`.")
var_mean = _variance_like("var_mean", False, "`var` and the mean.")
std_mean = _variance_like("std_mean", False, "`std` and the mean.")


@composite(out=True)
def aminmax(self: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """The smallest and the largest element, of all or along `dim`.

    Raises:
        RuntimeError: there are no elements.
    """
    found = apply(REGISTRY["aminmax"], (self,), {"dim": dim, "keepdim": keepdim})
    return named_result("aminmax", "min", "max")(*found)


@composite(out=True)
def nanmean(self: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The mean of what is not nan."""
    if self._array.dtype.kind not in "fcV":
        raise RuntimeError(
            "nanmean(): expected input to have floating point or complex dtype but got "
            f"{scalar_name(self._array.dtype)}"
        )
    known = apply(REGISTRY["logical_not"], (self.detach().isnan(),))
    counts = known.sum(dim, keepdim)
    attrs = {"dim": dim, "keepdim": keepdim, "dtype": dtype}
    return apply(REGISTRY["nansum"], (self,), attrs).div(counts)
