"""Functions on indices: those whose name covers several ops, and where a tensor is not zero."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from clew import dtypes
from clew.autograd.transforms import all_values
from clew.dispatch import apply, apply_inplace
from clew.functions.create import make
from clew.functions.values import of_values, refuse_batch
from clew.op import REGISTRY
from clew.ops.rules import wrap_dim
from clew.ops.scalars import checked_number
from clew.publish import composite
from clew.storage import geometry
from clew.tensor import Tensor

_SCATTER, _SCATTER_VALUE = REGISTRY["scatter"], REGISTRY["scatter_value"]
_SCATTER_COMBINE = REGISTRY["scatter_combine"]


def _scatter_call(
    self: Tensor, dim: int, index: Tensor, src: Any, value: Any, reduce: str | None
) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The op, the inputs after the first and the attributes that `scatter` comes down to."""
    src = value if src is None else src
    if not isinstance(src, Tensor):
        src = checked_number(src, self._array.dtype)
        if reduce is None:
            return _SCATTER_VALUE, (index,), {"dim": dim, "value": src}
    if reduce is None:
        return _SCATTER, (index, src), {"dim": dim}
    return _SCATTER_COMBINE, (index, src), {"dim": dim, "reduce": reduce}


@composite(out=True)
def scatter(
    self: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None,
    reduce: str | None = None,
) -> Tensor:  # fmt: skip
    """`self` with `src` (a tensor or a number) where `index` points along `dim`.

    With `reduce` "add" or "multiply" what stands there is combined with it; that has no gradient.

    Raises:
        RuntimeError: shapes or types that do not fit, or an index that is out of bounds.
    """
    op, rest, attrs = _scatter_call(self, dim, index, src, value, reduce)
    return apply(op, (self, *rest), attrs)


@composite(function=False)
def scatter_(
    self: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None,
    reduce: str | None = None,
) -> Tensor:  # fmt: skip
    """`scatter` in place."""
    op, rest, attrs = _scatter_call(self, dim, index, src, value, reduce)
    return apply_inplace(op, self, rest, attrs)


def _fill_call(
    self: Tensor, dim: int, index: Tensor, value: Any
) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    if isinstance(value, Tensor):
        return REGISTRY["index_fill"], (index, value), {"dim": dim}
    if isinstance(value, complex) and self._array.dtype.kind != "c":
        raise RuntimeError(
            "index_fill_(): Converting complex Scalar to non-complex type is not supported"
        )
    value = checked_number(value, self._array.dtype)
    return REGISTRY["index_fill_value"], (index,), {"dim": dim, "value": value}


@composite(out=True)
def index_fill(self: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """`self` with a number or 0-d tensor in the slices that `index` names along `dim`."""
    op, rest, attrs = _fill_call(self, dim, index, value)
    return apply(op, (self, *rest), attrs)


@composite(function=False)
def index_fill_(self: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """`index_fill` in place."""
    op, rest, attrs = _fill_call(self, dim, index, value)
    return apply_inplace(op, self, rest, attrs)


@composite()
def masked_fill(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    """`self` with a number or 0-d tensor where `mask` is true; the two broadcast.

    Raises:
        RuntimeError: the mask is not boolean, or the type of `self` cannot hold the value.
    """
    if isinstance(value, Tensor):
        return apply(REGISTRY["masked_fill_tensor"], (self, mask, value))
    return apply(REGISTRY["masked_fill"], (self, mask), {"value": value})


@composite(function=False)
def masked_fill_(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    """`masked_fill` in place."""
    if isinstance(value, Tensor):
        return apply_inplace(REGISTRY["masked_fill_tensor"], self, (mask, value))
    return apply_inplace(REGISTRY["masked_fill"], self, (mask,), {"value": value})


@composite(function=False)
def fill_diagonal_(self: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Fill the main diagonal with a number; with `wrap`, a tall matrix's once and again.

    Raises:
        RuntimeError: less than two dimensions, or more of unequal size.
    """
    shape = self._array.shape
    if len(shape) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    place = geometry(self._array)
    step, size = sum(place.stride), min(shape)
    self.as_strided((size,), (step,), place.offset).fill_(fill_value)
    if wrap and len(shape) == 2 and shape[0] > shape[1] + 1:
        width = shape[1]
        again = max(-(-self._array.size // (width + 1)) - size, 0)
        first = place.offset + place.stride[0] * (width + 1)
        self.as_strided((again,), (step,), first).fill_(fill_value)
    return self


@composite(out=True)
def take_along_dim(self: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """The elements that `indices` names along `dim`, the other dimensions broadcast.

    Without `dim`, of the flattened tensor.  Negative indices count from the end.

    Raises:
        RuntimeError: `indices` is not int64, or has another number of dimensions.
    """
    if indices._array.dtype != np.int64:
        raise RuntimeError(
            "torch.take_along_dim(): dtype of indices should be Long but got "
            f"{dtypes.scalar_name(indices._array.dtype)}"
        )
    if dim is None:
        flat = indices.reshape(-1)
        return _take_along(self.reshape(-1), flat, 0)
    ndim = self._array.ndim
    if indices._array.ndim != ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, "
            f"but got {ndim} dimensions for input, and {indices._array.ndim} dimensions for indices"
        )
    d = wrap_dim(dim, ndim)
    here, there = list(self._array.shape), list(indices._array.shape)
    shape = np.broadcast_shapes(_without(here, d), _without(there, d))
    self = self.expand(*shape[:d], here[d], *shape[d:])
    indices = indices.expand(*shape[:d], there[d], *shape[d:])
    return _take_along(self, indices, d)


def _without(shape: list[int], d: int) -> tuple[int, ...]:
    return (*shape[:d], *shape[d + 1 :])


def _take_along(self: Tensor, indices: Tensor, d: int) -> Tensor:
    n = self._array.shape[d]
    if indices._array.size and all_values(indices).min() < 0:
        indices = of_values(lambda array: np.where(array < 0, array + n, array), indices)
    attrs = {"dim": d, "sparse_grad": False}
    return apply(REGISTRY["gather"], (self, indices), attrs)


# -- where a tensor is not zero


@composite(out=True)
def nonzero(self: Tensor, *, as_tuple: bool = False) -> Any:
    """The indices of the elements that are not zero.

    Returns:
        An int64 tensor of one row for each element and one column for each dimension; with
        `as_tuple` a tuple of one vector for each dimension, which can index the tensor (a 0-d
        tensor counts as a vector of one).
    """
    refuse_batch(self, "nonzero")
    array = self._array
    if not as_tuple:
        return Tensor._from_array(_places(array))
    found = np.nonzero(array if array.ndim else array.reshape(1))
    return tuple(Tensor._from_array(np.ascontiguousarray(f)) for f in found)


def _places(array: np.ndarray) -> np.ndarray:
    """One row for each element that is not zero; columns lie together, as in PyTorch."""
    if array.ndim == 0:
        return np.zeros((int(array.item() != 0), 0), np.int64)
    return np.array(np.nonzero(array), dtype=np.int64).T


@composite()
def argwhere(self: Tensor) -> Tensor:
    """`nonzero` as one tensor."""
    found: Tensor = of_values(_places, self)
    return found


@composite(out=True)
def nonzero_static(self: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """`nonzero` cut off after `size` rows, or filled up to that with `fill_value`."""
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")

    def rows(array: np.ndarray) -> np.ndarray:
        found = _places(array)[:size]
        filled = np.full((size, array.ndim), fill_value, np.int64)
        filled[: len(found)] = found
        return filled

    return of_values(rows, self)


def _place(positions: np.ndarray, step: int, n: int) -> np.ndarray:
    """Where flat positions lie in a dimension of size `n` whose elements are `step` apart."""
    return np.asarray(np.remainder(np.floor_divide(positions.astype(np.int64), step), n))


@composite(method=False)
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """For flat positions in a tensor of `shape`, the index in each of its dimensions.

    Raises:
        TypeError: the positions or the shape are not made of integers.
        ValueError: a size is negative.
    """
    if indices._array.dtype.kind not in "iu":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype!r}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    for n in sizes:
        if not hasattr(n, "__index__"):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(n)}")
        if n < 0:
            raise ValueError(f"'shape' cannot have negative values, but got {tuple(sizes)}")
    step, found = 1, []
    for n in reversed(sizes):
        found.append(of_values(partial(_place, step=step, n=n), indices))
        step *= n
    return tuple(reversed(found))


def _triangle(name: str, indices: Any, doc: str) -> Any:
    def function(
        row: int, col: int, offset: int = 0, *, dtype: Any = dtypes.int64, device: Any = None,
        layout: Any = None, requires_grad: bool = False,
    ) -> Tensor:  # fmt: skip
        for size, word in ((row, "row"), (col, "col")):
            if size < 0:
                raise RuntimeError(f"{word} must be non-negative, got{size}")
        return make(np.stack(indices(row, offset, col)), dtype, device, requires_grad)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return composite(method=False)(function)


tril_indices = _triangle(
    "tril_indices",
    np.tril_indices,
    "Rows and columns of the lower triangle of a matrix, as (2, n).",
)
triu_indices = _triangle(
    "triu_indices",
    np.triu_indices,
    "Rows and columns of the upper triangle of a matrix, as (2, n).",
)
