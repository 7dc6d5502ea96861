"""Histograms of one or several dimensions; `histc` is an op of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from clew import dtypes
from clew.dispatch import apply
from clew.functions.create import linspace
from clew.functions.linalg import refuse_non_tensors
from clew.functions.reduce import named_result
from clew.op import REGISTRY
from clew.publish import composite
from clew.tensor import Tensor

_FIELDS = ("hist", "bin_edges")


@composite(out=True)
def histogram(
    self: Tensor, bins: Any = 100, *, range: Any = None, weight: Tensor | None = None,
    density: bool = False,
) -> Any:  # fmt: skip
    """How many elements lie in each bin, and the edges of the bins.

    Args:
        self: a floating tensor of any shape.
        bins: how many bins of equal width, or a vector of their edges in rising order.
        range: the lowest and the highest edge; by default of the elements.
        weight: counts each element this many times; of the shape of `self`.
        density: divide by the number of elements and the width of each bin.

    Returns:
        ``(hist, bin_edges)``, of the type of `self`.

    Raises:
        RuntimeError: the bins, the range or the weight do not fit.
    """
    refuse_non_tensors("histogram", input=self)
    points = self.detach().reshape(-1, 1)
    flat = None if weight is None else weight.detach().reshape(-1)
    if weight is not None and weight._array.shape != self._array.shape:
        flat = weight  # refused below, with its own shape
    hist, edges = _histogram(points, [bins], range, flat, density)
    return named_result("histogram", *_FIELDS)(hist, edges[0])


@composite(method=False)
def histogramdd(
    input: Tensor, bins: Any, range: Any = None, weight: Tensor | None = None,
    density: bool = False,
) -> Any:  # fmt: skip
    """`histogram` of points: the last dimension of `input` holds their coordinates.

    Args:
        input: ``(*, dims)``.
        bins: a number of bins for all dimensions, one for each, or vectors of edges.
        range: lowest and highest edge, one pair after the other.
        weight: of the shape of `input` without its last dimension.
        density: as of `histogram`, with the volume of each bin.

    Returns:
        ``(hist, bin_edges)``: counts with a dimension for each coordinate, and a tuple of edges.

    Raises:
        RuntimeError: the bins, the range or the weight do not fit.
    """
    refuse_non_tensors("histogramdd", input=input)
    shape = input._array.shape
    if len(shape) < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    given = [bins] * shape[-1] if isinstance(bins, int) else list(bins)
    if len(given) != shape[-1]:
        raise RuntimeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input."
        )
    points = input.detach().reshape(-1, shape[-1])
    flat = weight
    if weight is not None and weight._array.shape == shape[:-1]:
        flat = weight.detach().reshape(-1)
    hist, edges = _histogram(points, given, range, flat, density)
    return named_result("histogramdd", *_FIELDS)(hist, tuple(edges))


def _histogram(
    points: Tensor, bins: Sequence[Any], range_: Any, weight: Tensor | None, density: bool
) -> tuple[Any, list[Tensor]]:
    _check_type(points)
    if weight is not None:
        _check_weight(points, weight)
    if all(isinstance(b, Tensor) for b in bins):
        edges = [_checked_edges(points, b, d) for d, b in enumerate(bins)]
    else:
        edges = _even_edges(points, bins, range_)
    attrs = {"density": density}
    return apply(REGISTRY["histogram_counts"], (points, weight, *edges), attrs), edges


def _check_type(points: Tensor) -> None:
    if points._array.dtype.kind != "f" or points._array.dtype.itemsize < 4:
        name = dtypes.scalar_name(points._array.dtype)
        raise NotImplementedError(f"\"histogramdd\" not implemented for '{name}'")


_C_NAMES = {"float32": "float", "float64": "double", "int64": "long int", "int32": "int"}


def _c_name(x: Tensor) -> str:
    return _C_NAMES.get(x.dtype.name, x.dtype.name)


def _check_weight(points: Tensor, weight: Tensor) -> None:
    if weight._array.shape != points._array.shape[:-1]:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the "
            "input tensor excluding its innermost dimension, but got input with shape "
            f"{list(points._array.shape)} and weight with shape {list(weight._array.shape)}"
        )
    if weight.dtype is not points.dtype:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor "
            f"should have the same dtype, but got input({_c_name(points)}), and "
            f"weight({_c_name(weight)})"
        )


def _checked_edges(points: Tensor, edges: Tensor, dim: int) -> Tensor:
    if edges.dtype is not points.dtype:
        raise RuntimeError(
            "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got "
            f"input with dtype {_c_name(points)} and bins for dimension {dim} with dtype "
            f"{_c_name(edges)}"
        )
    if edges._array.ndim != 1:
        raise RuntimeError(
            f"torch.histogramdd: bins tensor should have one dimension, but got "
            f"{edges._array.ndim} dimensions in the bins tensor for dimension {dim}"
        )
    if edges._array.size == 0:
        raise RuntimeError(
            "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in "
            f"the bins tensor for dimension {dim}"
        )
    return edges.detach().clone()


def _even_edges(points: Tensor, bins: Sequence[int], range_: Any) -> list[Tensor]:
    """The edges of bins of equal width in the given range, or in that of the points."""
    for dim, n in enumerate(bins):
        if n <= 0:
            raise RuntimeError(
                f"torch.histogram(): bins must be > 0, but got {n} for dimension {dim}"
            )
    array, dims = points._array, len(bins)
    if range_ is not None:
        if len(range_) != 2 * dims:
            raise RuntimeError(
                f"torch.histogramdd: for a {dims}-dimensional histogram range should have "
                f"{2 * dims} elements, but got {len(range_)}"
            )
        lows, highs = np.array(range_[::2], float), np.array(range_[1::2], float)
    elif array.size:
        lows, highs = array.min(0).astype(float), array.max(0).astype(float)
    else:
        lows, highs = np.zeros(dims), np.ones(dims)
    edges = []
    for dim, (low, high, n) in enumerate(zip(lows.tolist(), highs.tolist(), bins)):
        if not np.isfinite([low, high]).all():
            raise RuntimeError(
                f"torch.histogramdd: dimension {dim}'s range [{low:g}, {high:g}] is not finite"
            )
        if low > high:
            raise RuntimeError(
                f"torch.histogramdd: min should not exceed max, but got min {low:g} max {high:g} "
                f"for dimension {dim}"
            )
        if low == high:
            low, high = low - 0.5, high + 0.5
        edges.append(linspace(low, high, n + 1, dtype=points.dtype))
    return edges
