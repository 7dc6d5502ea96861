"""Tensors of a given memory layout, and writes that follow one."""

from __future__ import annotations

from typing import Any

from clew.functions.create import empty_strided
from clew.publish import composite
from clew.storage import contiguous_strides
from clew.tensor import Tensor


@composite(method=False)
def empty_permuted(size: Any, physical_layout: Any, **options: Any) -> Tensor:
    """An uninitialised tensor whose dimensions lie in memory in the given order, outermost first.

    Takes ``dtype=``, ``device=`` and so on, as `empty_strided`.

    Raises:
        RuntimeError: the order does not name each dimension once.
    """
    shape, order = tuple(size), tuple(physical_layout)
    if len(shape) != len(order):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. "
            f"len(size) = {len(shape)} is not equal to len(physical_layout) = {len(order)}"
        )
    for index, dim in enumerate(order):
        if not 0 <= dim < len(shape):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(shape) - 1}, but got "
                f"{dim} at index {index}).  NB: negative dims not currently supported; file an "
                "issue if you want it."
            )
        if dim in order[:index]:
            raise RuntimeError("Duplicate dim not allowed")
    steps = dict(zip(order, contiguous_strides(tuple(shape[d] for d in order))))
    made: Tensor = empty_strided(shape, tuple(steps[d] for d in range(len(shape))), **options)
    return made


@composite(function=False)
def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Fill the diagonal ``x[i, i, ...]``; with `wrap`, of a tall matrix begin anew below its end.

    Raises:
        RuntimeError: the tensor has less than two dimensions, or more that are not equal.
    """
    shape, strides = self._array.shape, self.stride()
    if len(shape) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    offset, step = self.storage_offset(), sum(strides)
    length = min(shape)
    self.as_strided((length,), (step,), offset).fill_(fill_value)
    rows, columns = shape[:2]
    if wrap and len(shape) == 2 and rows > columns + 1:
        below = (length + 1) * strides[0]
        again = -(-(rows * columns - (length + 1) * columns) // (columns + 1))
        self.as_strided((again,), (step,), offset + below).fill_(fill_value)
    return self
