"""Joining, splitting and repeating, composed of ops as in PyTorch."""

from __future__ import annotations

import itertools
import operator
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from clew import dtypes
from clew.dispatch import apply
from clew.functions.shape import sizes
from clew.functions.values import of_values
from clew.op import REGISTRY
from clew.ops.join import repeated_index
from clew.ops.rules import broadcast_shape, wrap_dim
from clew.publish import composite
from clew.tensor import Size, Tensor

_CAT, _STACK, _EXPAND = REGISTRY["cat"], REGISTRY["stack"], REGISTRY["expand"]
_SPLIT, _SPLIT_SIZES = REGISTRY["split"], REGISTRY["split_with_sizes"]


def tensor_list(tensors: Any) -> list[Tensor]:
    """The tensors given one by one or as one sequence.

    Raises:
        TypeError: one is no tensor.
    """
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tensors[0]
    for i, x in enumerate(tensors):
        if not isinstance(x, Tensor):
            raise TypeError(
                f"expected Tensor as element {i} in argument 0, but got {type(x).__name__}"
            )
    return list(tensors)


def _cat(tensors: Sequence[Tensor], dim: int) -> Any:
    return apply(_CAT, tuple(tensors), {"dim": dim})


# -- splitting


@composite()
def split(self: Tensor, split_size_or_sections: Any = None, dim: int = 0, **names: Any) -> Any:
    """Pieces along `dim`, views: each of one size (the last may be smaller), or of given sizes.

    Raises:
        RuntimeError: a size is negative, or the sizes do not sum to that of `dim`.
    """
    size = names.pop("split_size", split_size_or_sections)
    if names:
        raise TypeError(f"split() got an unexpected keyword argument '{next(iter(names))}'")
    if isinstance(size, (tuple, list)):
        return apply(_SPLIT_SIZES, (self,), {"split_sizes": tuple(size), "dim": dim})
    try:
        size = operator.index(size)
    except TypeError:
        raise TypeError(
            "split_with_sizes(): argument 'split_sizes' (position 2) must be tuple of ints, not "
            f"{type(size).__name__}"
        ) from None
    return apply(_SPLIT, (self,), {"split_size": size, "dim": dim})


@composite()
def unsafe_split(self: Tensor, split_size: int, dim: int = 0) -> Any:
    """`split` whose pieces are not tracked as views: writing to them is the caller's risk."""
    return apply(REGISTRY["unsafe_split"], (self,), {"split_size": split_size, "dim": dim})


def _chunks(self: Tensor, chunks: int, dim: int, prefix: str) -> Any:
    if self._array.ndim == 0:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    n = self._array.shape[wrap_dim(dim, self._array.ndim)]
    size = -(-n // chunks)
    if size == 0:
        attrs = {"split_sizes": (0,) * chunks, "dim": dim}
        return apply(REGISTRY[f"{prefix}split_with_sizes"], (self,), attrs)
    return apply(REGISTRY[f"{prefix}split"], (self,), {"split_size": size, "dim": dim})


@composite()
def chunk(self: Tensor, chunks: int, dim: int = 0) -> Any:
    """At most `chunks` pieces along `dim`, views, as equal as can be.

    Raises:
        RuntimeError: the tensor has no dimension, or `chunks` is not positive.
    """
    return _chunks(self, chunks, dim, "")


@composite()
def unsafe_chunk(self: Tensor, chunks: int, dim: int = 0) -> Any:
    """`chunk` whose pieces are not tracked as views."""
    return _chunks(self, chunks, dim, "unsafe_")


def _sections(self: Tensor, given: Any) -> Any:
    """The number of sections, or where to split, that a tensor gives."""
    if given._array.dtype != dtypes.int64.numpy:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
            f"{dtypes.scalar_name(given._array.dtype)}"
        )
    if given._array.ndim > 1:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or "
            f"one-dimensional tensor, but got a tensor with {given._array.ndim} dims"
        )
    return given._array.tolist()


@composite()
def tensor_split(
    self: Tensor, indices_or_sections: Any = None, dim: int = 0, **names: Any
) -> tuple[Tensor, ...]:
    """Pieces along `dim`, views: as many as said, as equal as can be, or split at given indices.

    Raises:
        RuntimeError: the tensor has no dimension, or there are no sections.
    """
    given = names.pop("indices", names.pop("sections", indices_or_sections))
    given = names.pop("tensor_indices_or_sections", given)
    if self._array.ndim == 0:
        raise RuntimeError(
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        )
    if isinstance(given, Tensor):
        given = _sections(self, given)
    n = self._array.shape[wrap_dim(dim, self._array.ndim)]
    if isinstance(given, int):
        if given <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {given}")
        small, larger = divmod(n, given)
        ends = [(i + 1) * small + min(i + 1, larger) for i in range(given)]
    else:
        ends = [*given, n]
    return tuple(
        apply(REGISTRY["slice"], (self,), {"dim": dim, "start": start, "end": end, "step": 1})
        for start, end in zip([0, *ends[:-1]], ends)
    )


def _split_along(name: str, least: int, dim_of: Any) -> Any:
    def function(self: Tensor, indices_or_sections: Any = None, **names: Any) -> Any:
        given = names.pop("indices", names.pop("sections", indices_or_sections))
        ndim = self._array.ndim
        if ndim < least:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least} dimension, but got a "
                f"tensor with {ndim} dimensions!"
            )
        dim = dim_of(ndim)
        n = self._array.shape[dim]
        if isinstance(given, int) and (given <= 0 or n % given):
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {dim}, but the size of the "
                f"dimension {n} is not divisible by the split_size {given}!"
            )
        return tensor_split(self, given, dim)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`tensor_split` into equal parts for NumPy's ``{name}``."
    return composite()(function)


hsplit = _split_along("hsplit", 1, lambda ndim: 0 if ndim == 1 else 1)
vsplit = _split_along("vsplit", 2, lambda ndim: 0)
dsplit = _split_along("dsplit", 3, lambda ndim: 2)


# -- more dimensions


def _each(function: Any) -> Any:
    """A function of one tensor that also takes several, or a sequence of them."""

    def of_many(*tensors: Any) -> Any:
        if len(tensors) == 1 and isinstance(tensors[0], Tensor):
            return function(tensors[0])
        return tuple(function(x) for x in tensor_list(tensors))

    of_many.__name__ = of_many.__qualname__ = function.__name__
    of_many.__doc__ = function.__doc__
    composite(method=False)(of_many)
    return function


@_each
def atleast_1d(x: Any) -> Any:
    """The tensor, with a dimension if it has none."""
    return x.reshape(1) if x._array.ndim == 0 else x


@_each
def atleast_2d(x: Any) -> Any:
    """The tensor, with dimensions put before until there are two."""
    ndim = x._array.ndim
    if ndim == 0:
        return x.reshape(1, 1)
    return x.unsqueeze(0) if ndim == 1 else x


@_each
def atleast_3d(x: Any) -> Any:
    """The tensor, with dimensions added until there are three; a vector becomes ``(1, n, 1)``."""
    ndim = x._array.ndim
    if ndim == 0:
        return x.reshape(1, 1, 1)
    if ndim == 1:
        return x.unsqueeze(0).unsqueeze(-1)
    return x.unsqueeze(-1) if ndim == 2 else x


# -- joining


def _stacking(name: str, prepare: Any, dim_of: Any, doc: str, aliases: Any = ()) -> Any:
    def function(tensors: Any) -> Any:
        if isinstance(tensors, Tensor):
            raise TypeError(
                f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor"
            )
        if not tensors:
            raise RuntimeError(f"{name} expects a non-empty TensorList")
        ready = [prepare(x) for x in tensor_list((tensors,))]
        return _cat(ready, dim_of(ready[0]._array.ndim))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return composite(method=False, aliases=aliases, out=True)(function)


def _as_column(x: Any) -> Any:
    return x if x._array.ndim > 1 else x.reshape(x._array.size, 1)


hstack = _stacking(
    "hstack", atleast_1d, lambda ndim: 0 if ndim == 1 else 1,
    "Join along the second dimension; vectors along the first.",
)  # fmt: skip
vstack = _stacking(
    "vstack", atleast_2d, lambda ndim: 0, "Join along the first dimension; vectors are rows.",
    aliases=("row_stack",),
)  # fmt: skip
dstack = _stacking("dstack", atleast_3d, lambda ndim: 2, "Join along the third dimension.")
column_stack = _stacking(
    "column_stack", _as_column, lambda ndim: 1, "`hstack` that takes vectors as columns."
)


@composite(method=False)
def block_diag(*tensors: Any) -> Any:
    """A matrix with the given matrices along its diagonal; vectors are rows.

    Raises:
        RuntimeError: a tensor has more than two dimensions.
    """
    if not tensors:
        return Tensor._from_array(np.empty((1, 0), dtypes.get_default_dtype().numpy))
    for i, x in enumerate(tensor_list(tensors)):
        if x._array.ndim > 2:
            raise RuntimeError(
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input "
                f"{i} has {x._array.ndim} dimensions"
            )
    return apply(REGISTRY["block_diag"], tensors)


# -- reordering and repeating


@composite()
def fliplr(self: Tensor) -> Any:
    """The second dimension turned round."""
    if self._array.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return apply(REGISTRY["flip"], (self,), {"dims": (1,)})


@composite()
def flipud(self: Tensor) -> Any:
    """The first dimension turned round."""
    if self._array.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return apply(REGISTRY["flip"], (self,), {"dims": (0,)})


@composite()
def tile(self: Tensor, *dims: Any, **names: Any) -> Any:
    """`repeat`, where missing leading repeats are 1."""
    repeats = sizes((names["dims"],) if "dims" in names else dims)
    repeats = (1,) * (self._array.ndim - len(repeats)) + repeats
    return apply(REGISTRY["repeat"], (self,), {"repeats": repeats})


@composite()
def repeat_interleave(
    self: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Any:
    """Each slice along `dim`, `repeats` times in a row; elements of the flat tensor without `dim`.

    Given only a vector of repeats, the positions that it repeats.

    Raises:
        RuntimeError: a number of repeats is negative, or there is not one for each slice.
    """
    if repeats is None:
        return Tensor._from_array(repeated_index(self._array, output_size))
    if dim is None:
        self, dim = self.flatten(), 0
    if isinstance(repeats, int):
        return _repeated_evenly(self, repeats, wrap_dim(dim, self._array.ndim), output_size)
    if self._array.ndim == 0:
        self = self.reshape(1)
    n = self._array.shape[wrap_dim(dim, self._array.ndim)]
    counts: Any = repeats._array
    if counts.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if counts.size not in (1, n):
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{counts.size} and input.size({dim}) = {n}"
        )
    index = of_values(
        lambda each: repeated_index(np.broadcast_to(each, (n,)), output_size), repeats
    )
    return apply(REGISTRY["index_select"], (self, index), {"dim": dim})


def _repeated_evenly(self: Any, repeats: int, dim: int, output_size: int | None) -> Any:
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    apart = self.unsqueeze(dim + 1)
    shape = self._array.shape
    total = shape[dim] * repeats
    if output_size not in (None, total):
        raise RuntimeError(
            f"repeat_interleave: Invalid output_size, expected {total} but got {output_size}"
        )
    apart = apart.expand(*shape[: dim + 1], repeats, *shape[dim + 1 :])
    copied = apply(REGISTRY["clone"], (apart,), {"memory_format": "contiguous"})
    return copied.flatten(dim, dim + 1)


# -- grids and combinations


@composite(method=False)
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """The coordinates of a grid: for each vector a tensor of the grid's shape, a view of it.

    Args:
        tensors: vectors, or one sequence of them.
        indexing: "ij", the default: the first vector runs along the first dimension; "xy": along
            the second.

    Raises:
        RuntimeError: there are no vectors, or they do not fit together.
    """
    vectors = tensor_list(tensors)
    if indexing is None:
        indexing = "ij"
        if vectors:
            warnings.warn(
                "torch.meshgrid: in an upcoming release, it will be required to pass the indexing "
                "argument.",
                UserWarning,
                stacklevel=2,
            )
    _check_grid(vectors, indexing)
    flipped = indexing == "xy" and len(vectors) >= 2
    if flipped:
        vectors[:2] = vectors[1::-1]
    shape = tuple(x._array.size for x in vectors)
    grids = []
    for i, x in enumerate(vectors):
        single = (1,) * i + (shape[i],) + (1,) * (len(shape) - i - 1)
        grids.append(apply(_EXPAND, (x.view(single),), {"size": shape}))
    if flipped:
        grids[:2] = grids[1::-1]
    return tuple(grids)


def _check_grid(vectors: list[Tensor], indexing: str) -> None:
    if not vectors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for x in vectors:
        if x._array.dtype != vectors[0]._array.dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    if indexing not in ("ij", "xy"):
        raise RuntimeError(
            'torch.meshgrid: indexing must be one of "xy" or "ij", but received: ' + indexing
        )
    for x in vectors:
        if x._array.ndim > 1:
            raise RuntimeError(
                f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {x}"
            )


@composite(method=False)
def cartesian_prod(*tensors: Any) -> Any:
    """Every choice of one element from each vector, one to a row.

    Raises:
        RuntimeError: a tensor is no vector.
    """
    vectors = tensor_list(tensors)
    for x in vectors:
        if x._array.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(x._array.shape)}")
    if len(vectors) == 1:
        return vectors[0]
    grids = meshgrid(*vectors, indexing="ij")
    return apply(_STACK, tuple(grid.flatten() for grid in grids), {"dim": 1})


@composite()
def combinations(self: Tensor, r: int = 2, with_replacement: bool = False) -> Any:
    """Every choice of `r` elements of a vector, one to a row, in the vector's order.

    Raises:
        RuntimeError: the tensor is no vector, or `r` is negative.
    """
    if self._array.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(self._array.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return Tensor._from_array(np.empty(0, self._array.dtype))
    n = self._array.size
    places = np.meshgrid(*[np.arange(n)] * r, indexing="ij")
    rises = np.less_equal if with_replacement else np.less
    chosen = np.ones((n,) * r, np.bool_)
    for before, after in itertools.pairwise(places):
        chosen &= rises(before, after)
    mask = Tensor._from_array(chosen)
    grids = meshgrid(*[self] * r, indexing="ij")
    return apply(_STACK, tuple(g.masked_select(mask) for g in grids), {"dim": 1})


# -- broadcasting


@composite(method=False)
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensors, expanded to the shape that all broadcast to.

    Raises:
        RuntimeError: there is no such shape.
    """
    for i, x in enumerate(tensors):
        if not isinstance(x, Tensor):
            raise TypeError(
                f"expected Tensor as element {i} in argument 0, but got {type(x).__name__}"
            )
    shape = broadcast_shape(*(x._array.shape for x in tensors))
    attrs = {"size": shape}
    return tuple(x if x._array.shape == shape else apply(_EXPAND, (x,), attrs) for x in tensors)


@composite()
def broadcast_to(self: Tensor, *size: Any, **names: Any) -> Any:
    """`expand` to a shape."""
    shape = sizes((names["size"],) if "size" in names else size)
    return apply(_EXPAND, (self,), {"size": shape})


@composite(method=False)
def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that tensors of the given shapes broadcast to.

    Raises:
        RuntimeError: there is none.
    """
    result: tuple[int, ...] = ()
    for i, shape in enumerate(shapes):
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        padded = (1,) * (len(result) - len(shape)) + shape
        known = (1,) * (len(shape) - len(result)) + result
        for d, (m, n) in enumerate(zip(known, padded)):
            if m != n and 1 not in (m, n):
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {n} at {d - len(known)}! "
                    f"Mismatching argument at index {i} had {shape}; but expected shape should "
                    f"be broadcastable to {list(known)}"
                )
        result = tuple(m if n == 1 else n for m, n in zip(known, padded))
    return Size(result)
