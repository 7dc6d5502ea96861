"""What stands in the place of an array in a tensor that `vmap` sees as one example of many.

Note [Batches]
    Inside ``vmap`` a tensor has the shape, the strides and the type of one example, but no values
    of its own: its ``_array`` is a `Batch`, which holds the tensor of the level outside that has
    all examples, and says which of its dimensions counts them.  Code that asks for shapes goes on
    as ever.  Code that asks for values gets an error, for there is no one answer.
"""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

import numpy as np

from clew import storage

_NO_ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling "
    ".item() on a Tensor, please try to rewrite what you're doing with other operations. If error "
    "is occurring somewhere inside PyTorch internals, please file a bug report."
)
NO_BOOL = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. "
    "We don't support that yet, please file an issue at "
    "https://github.com/pytorch/pytorch/issues ."
)
_NO_VALUES = "Cannot access data pointer of Tensor that doesn't have storage"


class Flags(NamedTuple):
    """What of an array's flags is asked for."""

    c_contiguous: bool
    f_contiguous: bool
    forc: bool
    writeable: bool = True


class Batch:
    """Examples in a tensor of the level outside, seen as one.

    Attributes:
        value: that tensor.
        bdim: the dimension that counts the examples; None if it is the same for all of them.
        level: the `vmap` that it belongs to.
        shape: that of one example.
        dtype: the NumPy type.
    """

    __slots__ = ("bdim", "dtype", "level", "shape", "value")

    def __init__(self, value: Any, bdim: int | None, level: Any) -> None:
        self.value = value
        self.bdim = bdim
        self.level = level
        array = value._array
        self.dtype: np.dtype = array.dtype
        shape: tuple[int, ...] = array.shape
        self.shape = shape if bdim is None else shape[:bdim] + shape[bdim + 1 :]

    def holding(self, value: Any) -> Batch:
        """The same examples, of another tensor."""
        return Batch(value, self.bdim, self.level)

    @property
    def ndim(self) -> int:
        """The number of dimensions of one example."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements of one example."""
        total = 1
        for n in self.shape:
            total *= n
        return total

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of one example."""
        return self.size * self.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides of one example, in bytes."""
        strides: tuple[int, ...] = self.value._array.strides
        return strides if self.bdim is None else strides[: self.bdim] + strides[self.bdim + 1 :]

    @property
    def base(self) -> Any:
        """The array that has the memory, so that all examples are of one storage."""
        return self.value._array

    @property
    def flags(self) -> Flags:
        """Whether one example is contiguous, were the others not there."""
        c = _is_contiguous(self.shape, self.strides, self.itemsize)
        f = _is_contiguous(self.shape[::-1], self.strides[::-1], self.itemsize)
        return Flags(c, f, c or f)

    def address(self) -> int:
        """The address of the first example."""
        return storage.address(self.value._array)

    def item(self) -> NoReturn:
        """Refused: there is no one value.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(_NO_ITEM)

    def __bool__(self) -> NoReturn:
        raise RuntimeError(NO_BOOL)

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(_NO_VALUES)

    __array_ufunc__ = None

    def _compare(self, other: Any) -> NoReturn:
        raise RuntimeError(_NO_VALUES)

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _compare
    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise RuntimeError(_NO_VALUES)

    def __getitem__(self, index: Any) -> NoReturn:
        raise RuntimeError(_NO_VALUES)

    def __repr__(self) -> str:
        return f"<Batch {self.bdim} of {self.value!r}>"


def _is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    if 0 in shape:
        return True
    step = itemsize
    for n, stride in zip(reversed(shape), reversed(strides)):
        if n != 1:
            if stride != step:
                return False
            step *= n
    return True
