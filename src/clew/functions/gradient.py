"""`gradient`: slopes of samples by finite differences."""

from __future__ import annotations

from typing import Any

from clew.dispatch import apply
from clew.functions.numeric import diff
from clew.op import REGISTRY
from clew.ops.rules import wrap_dim, wrap_dims
from clew.publish import composite
from clew.tensor import Tensor


@composite(method=False)
def gradient(input: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> Any:
    """The slopes along each of `dim`, from both neighbours of a sample.

    Args:
        input: the samples.
        spacing: how far samples are apart, 1 by default: a number, one for each dimension, or
            vectors of their places.
        dim: an int or several; all by default.
        edge_order: 1 or 2: whether the slopes at the ends come from two or from three samples.

    Returns:
        tuple: a tensor for each dimension.

    Raises:
        RuntimeError: there are too few samples, or the arguments do not fit together.
    """
    x: Any = input
    dims = wrap_dims(dim, x.ndim)
    _check(x, spacing, dim, dims, edge_order)
    spacing = 1 if spacing is None else spacing
    steps = spacing if isinstance(spacing, (tuple, list)) else [spacing] * len(dims)
    return tuple(
        _along_places(x, step, d, edge_order)
        if isinstance(step, Tensor) and step._array.ndim
        else _along(x, step, d, edge_order)
        for step, d in zip(steps, dims)
    )


def _check(x: Any, spacing: Any, dim: Any, dims: tuple[int, ...], edge_order: int) -> None:
    if x._array.dtype.name == "uint8":
        raise RuntimeError("torch.gradient does not support uint8 input.")
    if isinstance(spacing, (tuple, list)) and len(spacing) != len(dims):
        wanted = f"'self.dim() = {x.ndim}', since dim argument was not given"
        if dim is not None:
            wanted = f"number of dimensions in dim argument, {len(dims)}"
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar, or a list of length "
            f"equal to {wanted}, but got a list of length {len(spacing)}"
        )
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if any(x._array.shape[d] <= edge_order for d in dims):
        raise RuntimeError(
            "torch.gradient expected each dimension size to be at least edge_order+1"
        )


def _slices(x: Any, dim: int) -> Any:
    """``at(i)``: the slice `i` of `x`, from the end if negative, of size one along `dim`."""
    return lambda i: x.narrow(dim, i, 1)


def _along(x: Any, step: Any, dim: int, edge_order: int) -> Any:
    """Samples that are evenly spaced."""
    at = _slices(x, dim)
    n = x._array.shape[dim]
    inside = (x.narrow(dim, 2, n - 2) - x.narrow(dim, 0, n - 2)) / step / 2
    if edge_order == 1:
        first, last = (at(1) - at(0)) / step, (at(-1) - at(-2)) / step
    else:
        first = (-1.5 * at(0) + 2 * at(1) - 0.5 * at(2)) / step
        last = (0.5 * at(-3) - 2 * at(-2) + 1.5 * at(-1)) / step
    return apply(REGISTRY["cat"], (first, inside, last), {"dim": dim})


def _along_places(x: Any, places: Any, dim: int, edge_order: int) -> Any:
    """Samples at given places: slopes of the parabola through three neighbours."""
    n = x._array.shape[dim]
    widths = diff(places).view((-1,) + (1,) * (x.ndim - wrap_dim(dim, x.ndim) - 1))
    at, width = _slices(x, dim), _slices(widths, 0)
    before, after = widths.narrow(0, 0, n - 2), widths.narrow(0, 1, n - 2)
    inside = (
        x.narrow(dim, 0, n - 2) * (-after / (before * (before + after)))
        + x.narrow(dim, 1, n - 2) * ((after - before) / (before * after))
        + x.narrow(dim, 2, n - 2) * (before / (after * (before + after)))
    )
    if edge_order == 1:
        first, last = (at(1) - at(0)) / width(0), (at(-1) - at(-2)) / width(-1)
    else:
        first = _end(at(0), at(1), at(2), width(0), width(1))
        last = -_end(at(-1), at(-2), at(-3), width(-1), width(-2))
    return apply(REGISTRY["cat"], (first, inside, last), {"dim": dim})


def _end(end: Any, second: Any, third: Any, near: Any, far: Any) -> Any:
    """The slope at the end, going inwards, of the parabola through three samples."""
    return (
        end * (-(2 * near + far) / (near * (near + far)))
        + second * ((near + far) / (near * far))
        - third * (near / (far * (near + far)))
    )
