"""``x[index]`` and ``x[index] = value``.

An index is applied in two steps, as in PyTorch: ints, slices, None and Ellipsis make a view, one
op each; tensors, arrays, lists and bools are then looked up in that view by one `index`.
"""

from __future__ import annotations

import operator
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from clew import dtypes
from clew.dispatch import apply, apply_inplace
from clew.functions.data import array_of
from clew.op import REGISTRY
from clew.ops.index import MASKS
from clew.ops.scalars import checked_number
from clew.publish import composite
from clew.tensor import Tensor

_SELECT, _SLICE, _UNSQUEEZE = REGISTRY["select"], REGISTRY["slice"], REGISTRY["unsqueeze"]
_ALIAS, _INDEX, _INDEX_PUT = REGISTRY["alias"], REGISTRY["index"], REGISTRY["index_put"]
_COPY, _FILL_TENSOR = REGISTRY["copy"], REGISTRY["fill_tensor"]
_VIEW, _EXPAND = REGISTRY["view"], REGISTRY["expand"]
_NUMBERS = (bool, int, float, complex)


@composite(function=False)
def __getitem__(self: Tensor, index: Any) -> Tensor:
    kind = index.__class__
    if kind is int:
        return _select(self, 0, index, 0)
    if kind is slice:
        return _slice(self, 0, index, skip_full=False)
    if index is None:
        return apply(_UNSQUEEZE, (self,), {"dim": 0})
    if index is Ellipsis:
        return apply(_ALIAS, (self,))
    if kind is not bool and isinstance(index, np.integer):
        return _select(self, 0, int(index), 0)
    view, indices = _apply_basic(self, _as_tuple(index))
    if indices:
        return apply(_INDEX, (view, *indices))
    return apply(_ALIAS, (self,)) if view is self else view


@composite(function=False)
def __setitem__(self: Tensor, index: Any, value: Any) -> None:
    if not isinstance(value, Tensor):
        value = _number_for(self, value)
    if index is False:
        return
    indices: list[Tensor | None] = []
    if index.__class__ is int:
        view = _select(self, 0, index, 0)
    elif index.__class__ is slice:
        view = _slice(self, 0, index, skip_full=True)
    else:
        # True is a dimension of size one, as None is.
        view, indices = _apply_basic(self, _as_tuple(None if index is True else index))
    if indices:
        value = _without_leading_ones(value)
        apply_inplace(_INDEX_PUT, view, (value, *indices), {"accumulate": False})
    else:
        _write(view, value)


@composite(function=False)
def __delitem__(self: Tensor, index: Any) -> None:
    raise TypeError("Tensor does not support deleting items")


# -- the index as a tuple


def _as_tuple(index: Any) -> tuple[Any, ...]:
    if index.__class__ is tuple:
        return index
    if isinstance(index, tuple):
        return tuple(index)
    if isinstance(index, list) and _means_tuple(index):
        warnings.warn(
            "Using a non-tuple sequence for multidimensional indexing is deprecated and will be "
            "changed in pytorch 2.9; use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will "
            "be interpreted as tensor index, x[torch.tensor(seq)], which will result either in an "
            "error or a different result",
            UserWarning,
            stacklevel=3,
        )
        return tuple(index)
    return (index,)


def _means_tuple(index: list[Any]) -> bool:
    """PyTorch's guess: a short list that holds anything but numbers is a tuple of indices."""
    return len(index) < 32 and any(
        i is None or i is Ellipsis or isinstance(i, (Tensor, Sequence, slice, np.ndarray))
        for i in index
    )


def _dims_taken(part: Any) -> int:
    """How many dimensions one part of an index uses up."""
    if part is None or part is Ellipsis or isinstance(part, bool):
        return 0
    if isinstance(part, Tensor) and part._array.dtype in MASKS:
        return part._array.ndim
    return 1


# -- ints, slices, None and Ellipsis


def _apply_basic(self: Tensor, parts: tuple[Any, ...]) -> tuple[Tensor, list[Tensor | None]]:
    """The view that the basic parts make, and what is to be looked up in it (None: nothing)."""
    ndim = self._array.ndim
    taken = 0
    converted = []
    for part in parts:
        if part.__class__ is not int and part.__class__ is not slice:
            part = _converted(part)
        converted.append(part)
        taken += _dims_taken(part)
    if taken > ndim:
        raise IndexError(f"too many indices for tensor of dimension {ndim}")
    view, dim = self, 0
    indices: list[Tensor | None] = []
    named = 0  # how many dimensions of the view `indices` speaks of
    for position, part in enumerate(converted):
        if part.__class__ is int:
            view = _select(view, dim, part, position)
        elif part.__class__ is slice:
            view = _slice(view, dim, part, skip_full=True)
            dim += 1
        elif part is Ellipsis:
            dim += ndim - taken
        elif part is None:
            view = apply(_UNSQUEEZE, (view,), {"dim": dim})
            dim += 1
        else:
            if part.__class__ is bool:
                view = apply(_UNSQUEEZE, (view,), {"dim": dim})
                part = _bool_index(part)
            indices += [None] * (dim - named)
            indices.append(part)
            # A mask of n dimensions stands for n indices.
            dim += part._array.ndim if part._array.dtype in MASKS else 1
            named = dim
    return view, indices


def _converted(part: Any) -> Any:
    """One part of an index as an int, slice, None, Ellipsis, bool, or Tensor of dimensions.

    Raises:
        IndexError: it is none of these.
    """
    if part is None or part is Ellipsis or isinstance(part, (bool, slice)):
        return part
    if isinstance(part, np.integer):
        return int(part)
    if isinstance(part, (np.ndarray, list, tuple, range, str, bytes)):
        part = _tensor_of(part)
    if isinstance(part, Tensor):
        array = part._array
        is_number = not array.ndim and array.dtype.kind in "biu"
        # A number of each example's own is looked up like any other tensor.
        if not is_number or (array.dtype not in MASKS and not isinstance(array, np.ndarray)):
            return part
        value = part._array.item()
        return bool(value) if part._array.dtype in MASKS else value
    if hasattr(part, "__index__") and not isinstance(part, np.bool_):
        return operator.index(part)
    kind = type(part)
    name = kind.__name__ if kind.__module__ != "numpy" else f"numpy.{kind.__name__}"
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid "
        f"indices (got {name})"
    )


def _tensor_of(sequence: Any) -> Tensor:
    """An index given as a sequence: masks stay masks, all else becomes int64."""
    if isinstance(sequence, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(sequence).__name__}'")
    array = array_of(sequence, None)
    if array.dtype not in MASKS:
        array = array.astype(np.int64)
    return Tensor._from_array(array)


def _bool_index(value: bool) -> Tensor:
    """The index for a dimension of size one: take it, or take nothing."""
    return Tensor._from_array(np.zeros(1 if value else 0, np.int64))


def _select(self: Tensor, dim: int, index: int, position: int) -> Tensor:
    shape = self._array.shape
    n = shape[dim] if dim < len(shape) else 0
    if not -n <= index < n:
        if not shape:
            raise IndexError(
                "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
                "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number"
            )
        if not -(2**63) <= index < 2**63:
            raise ValueError("Overflow when unpacking long long")
        raise IndexError(f"index {index} is out of bounds for dimension {position} with size {n}")
    return apply(_SELECT, (self,), {"dim": dim, "index": index})


def _slice(self: Tensor, dim: int, part: slice, *, skip_full: bool) -> Tensor:
    if not self._array.ndim:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    start, end, step = part.start, part.stop, part.step
    start = 0 if start is None else _bound(start)
    end = sys.maxsize if end is None else _bound(end)
    step = 1 if step is None else _bound(step)
    if step <= 0:
        raise ValueError("step must be greater than zero" if step else "slice step cannot be zero")
    if skip_full and start == 0 and step == 1 and end >= self._array.shape[dim]:
        return self
    attrs = {"dim": dim, "start": start, "end": end, "step": step}
    return apply(_SLICE, (self,), attrs)


def _bound(value: Any) -> int:
    if value.__class__ is not int:
        if not hasattr(value, "__index__"):
            raise TypeError("slice indices must be integers or None or have an __index__ method")
        value = operator.index(value)
    if -sys.maxsize <= value <= sys.maxsize:
        return value
    return sys.maxsize if value > 0 else -sys.maxsize - 1


# -- the value


def _number_for(self: Tensor, value: Any) -> Any:
    """A Python number that is to be written to `self`.

    Raises:
        TypeError: it is no number.
    """
    if isinstance(value, np.integer):
        value = int(value)
    if not isinstance(value, _NUMBERS):
        kind = type(value)
        name = kind.__name__ if kind.__module__ != "numpy" else f"numpy.{kind.__name__}"
        raise TypeError(f"can't assign a {name} to a torch.{dtypes.legacy_type(self._array.dtype)}")
    return value


def _write(view: Tensor, value: Any) -> None:
    if not isinstance(value, Tensor):
        # PyTorch assigns numbers as tensors, of which graphs and errors tell.
        kind = view._array.dtype
        array = np.asarray(checked_number(value, kind, rounds=True), kind)
        value = Tensor._from_array(array)
    shape = view._array.shape
    if value._array.shape != shape:
        if not value._array.ndim:
            apply_inplace(_FILL_TENSOR, view, (value,))
            return
        value = apply(_VIEW, (value,), {"size": _trimmed(value._array.shape)})
        if value._array.shape != shape:
            value = apply(_EXPAND, (value,), {"size": shape})
    apply_inplace(_COPY, view, (value,))


def _without_leading_ones(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    shape = _trimmed(value._array.shape)
    if shape == value._array.shape:
        return value
    return apply(_VIEW, (value,), {"size": shape})


def _trimmed(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape without its leading ones, which broadcasting would put back."""
    first = next((i for i, n in enumerate(shape) if n != 1), len(shape))
    return shape[first:]
