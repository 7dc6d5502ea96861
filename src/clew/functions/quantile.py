"""Quantiles, covariance and correlation, composed of ops as in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.autograd.transforms import all_values
from clew.dispatch import apply
from clew.dtypes import scalar_name
from clew.functions.join import broadcast_tensors
from clew.functions.values import of_values
from clew.op import REGISTRY
from clew.ops.rules import wrap_dim
from clew.publish import composite
from clew.tensor import Tensor

_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")

# -- quantiles


def _quantile(name: str, doc: str) -> Any:
    def function(
        self: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *,
        interpolation: str = "linear",
    ) -> Any:  # fmt: skip
        shares = _shares(self, q, interpolation)
        return _quantiles(self, shares, dim, keepdim, interpolation, skip_nan=name == "nanquantile")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return composite(out=True)(function)


def _shares(x: Tensor, q: Any, interpolation: str) -> Tensor:
    """`q` as a tensor of the type of `x`.

    Raises:
        RuntimeError: an argument is not as it must be.
    """
    if x._array.size == 0:
        raise RuntimeError("quantile() input tensor must be non-empty")
    if x._array.dtype not in (np.float32, np.float64):
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(
            "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, "
            f"but got {interpolation}"
        )
    if not isinstance(q, Tensor):
        if not 0 <= q <= 1:
            raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q:g}")
        return Tensor._from_array(np.asarray(q, x._array.dtype))
    if q._array.ndim > 1:
        raise RuntimeError("quantile() q must be a scalar or 1D tensor")
    if q._array.dtype != x._array.dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
    if not np.all((all_values(q) >= 0) & (all_values(q) <= 1)):
        raise RuntimeError("quantile() q values must be in the range [0, 1]")
    return q


def _quantiles(
    x: Any, q: Any, dim: int | None, keepdim: bool, interpolation: str, *, skip_nan: bool
) -> Any:
    ndim = x._array.ndim
    if dim is None:
        ordered = x.flatten().sort()[0]
        rest = (1,) * ndim if keepdim else ()
    else:
        dim = wrap_dim(dim, ndim)
        shape = x._array.shape or (1,)
        rest = shape[:dim] + ((1,) if keepdim and ndim else ()) + shape[dim + 1 :]
        last = dim == ndim - 1
        ordered = (x if last else x.unsqueeze(-1).transpose(dim, -1)).sort()[0]
    ordered = ordered.view(*rest, ordered._array.shape[-1])
    ranks = _ranks(ordered, q, skip_nan)
    result = _interpolated(ordered, ranks, interpolation)
    if q._array.ndim == 0:
        return apply(REGISTRY["unsafe_squeeze"], (result,), {"dim": -1})
    return result.movedim(-1, 0)


def _ranks(ordered: Any, q: Any, skip_nan: bool) -> Any:
    """Where the quantiles stand in the sorted last dimension: not whole numbers in general."""
    if skip_nan:
        known = of_values(lambda x: np.sum(~np.isnan(x), axis=-1, keepdims=True) - 1, ordered)
        return (q * known).clamp(min=0)
    last = ordered._array.shape[-1] - 1
    has_nan = of_values(lambda x: np.isnan(x).any(-1, keepdims=True), ordered)
    ranks, has_nan = broadcast_tensors(q * last, has_nan)
    return ranks.masked_fill(has_nan, last)


def _interpolated(ordered: Any, ranks: Any, interpolation: str) -> Any:
    if interpolation in ("lower", "higher", "nearest"):
        rounding: Any = {"lower": np.floor, "higher": np.ceil, "nearest": np.round}[interpolation]
        return ordered.gather(-1, of_values(lambda x: rounding(x).astype(np.int64), ranks))
    below = of_values(lambda x: x.astype(np.int64), ranks)
    above = of_values(lambda x: np.ceil(x).astype(np.int64), ranks)
    if interpolation == "midpoint":
        weight = of_values(lambda x: np.full_like(x, 0.5), ranks)
    else:
        weight = ranks - below
    return ordered.gather(-1, below).lerp_(ordered.gather(-1, above), weight)


quantile = _quantile(
    "quantile",
    "The value below which a share `q` (a number or a vector) of the elements lies; nan if any is.",
)
nanquantile = _quantile("nanquantile", "`quantile` of what is not nan.")


# -- covariance


@composite()
def cov(
    self: Any,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Any:
    """The covariances of the rows, whose columns are observations.

    Args:
        self: ``(variables, observations)``, or one variable.
        correction: what is subtracted from the number of observations.
        fweights: how often each observation was made.
        aweights: how much each counts.

    Raises:
        RuntimeError: an argument is not of that form.
    """
    if self._array.ndim > 2:
        raise RuntimeError(
            "cov(): expected input to have two or fewer dimensions but got an input with "
            f"{self._array.ndim} dimensions"
        )
    if self._array.dtype.kind == "b":
        raise RuntimeError("cov(): bool dtype is not supported for input")
    rows = self.view(1, -1) if self._array.ndim < 2 else self
    count = rows._array.shape[1]
    weights = _weights(count, fweights, aweights)
    if count and weights is not None and float(weights._array.sum()) == 0:
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    total: Any = count if weights is None else weights.sum()
    products = rows if weights is None else rows * weights
    mean = products.sum(1) / total
    if correction and weights is not None and aweights is not None:
        norm = total - correction * (weights * aweights).sum() / total
    else:
        norm = total - correction
    norm = norm.clamp(min=0) if isinstance(norm, Tensor) else max(norm, 0)
    centred = rows - mean.unsqueeze(1)
    weighted = centred if weights is None else centred * weights
    turned = weighted.t()
    if turned._array.dtype.kind == "c":
        turned = apply(REGISTRY["conj"], (turned,))
    return (centred @ turned).true_divide(norm).squeeze()


def _weights(count: int, fweights: Any, aweights: Any) -> Any:
    for given, name, kinds, wanted in (
        (fweights, "fweights", "iu", "integral"),
        (aweights, "aweights", "fV", "floating point"),
    ):
        if given is None:
            continue
        array = given._array
        if array.ndim > 1:
            raise RuntimeError(
                f"cov(): expected {name} to have one or fewer dimensions but got {name} with "
                f"{array.ndim} dimensions"
            )
        if array.dtype.kind not in kinds:
            raise RuntimeError(
                f"cov(): expected {name} to have {wanted} dtype but got {name} with "
                f"{scalar_name(array.dtype)} dtype"
            )
        if array.size != count:
            raise RuntimeError(
                f"cov(): expected {name} to have the same numel as there are observations in the "
                f"input but got {array.size} != {count}"
            )
        if count and array.min() < 0:
            raise RuntimeError(f"cov(): {name} cannot be negative")
    if fweights is None or aweights is None:
        return fweights if aweights is None else aweights
    return fweights * aweights


@composite()
def corrcoef(self: Tensor) -> Any:
    """The correlation coefficients of the rows, whose columns are observations.

    Raises:
        RuntimeError: there are more than two dimensions.
    """
    if self._array.ndim > 2:
        raise RuntimeError(
            "corrcoef(): expected input to have two or fewer dimensions but got an input with "
            f"{self._array.ndim} dimensions"
        )
    covariance = cov(self)
    if covariance._array.ndim == 0:
        return covariance / covariance
    deviations = covariance.diagonal().sqrt()
    if covariance._array.dtype.kind == "c":
        deviations = apply(REGISTRY["real"], (deviations,))
    result = covariance / deviations.view(-1, 1) / deviations.view(1, -1)
    if covariance._array.dtype.kind == "c":
        return result
    return result.clamp(-1, 1)
