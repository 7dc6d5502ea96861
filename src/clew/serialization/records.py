"""The words of a checkpoint: a tensor as a piece of a stored buffer, and PyTorch's names for
dtypes.

Imports NumPy and `clew.storage` (`ml_dtypes` when a file needs it). Nothing here knows the Tensor
class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from clew.storage import address, contiguous_strides, root

# The class that PyTorch's pickles name for a buffer, by the dtype of the first tensor that used it.
STORAGE_NAMES = {
    "bool": "BoolStorage",
    "uint8": "ByteStorage",
    "int8": "CharStorage",
    "int16": "ShortStorage",
    "int32": "IntStorage",
    "int64": "LongStorage",
    "float16": "HalfStorage",
    "bfloat16": "BFloat16Storage",
    "float32": "FloatStorage",
    "float64": "DoubleStorage",
    "complex64": "ComplexFloatStorage",
    "complex128": "ComplexDoubleStorage",
}
# Dtypes that came later have no such class: the buffer is untyped, the tensor says the dtype.
UNTYPED_DTYPES = ("uint16", "uint32", "uint64")


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The NumPy dtype of PyTorch's `name`, such as "float32" or "bfloat16"."""
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


@dataclass(frozen=True, slots=True, eq=False)
class TensorRecord:
    """One tensor as a checkpoint describes it.

    Attributes:
        storage: the whole buffer that the tensor is a part of, uint8 of shape (bytes,). Tensors
            whose records have the same memory here share it in the file, and again after loading.
        dtype: of the elements.
        offset: position of the first element in the buffer, in elements.
        size: the shape.
        stride: steps along each dimension, in elements.
        requires_grad: the tensor's flag.
        is_parameter: it is an `nn.Parameter`.
        state: attributes that the user has set on the tensor object.
        subclass: the user's class of the tensor, None for a plain tensor or parameter.
    """

    storage: np.ndarray
    dtype: np.dtype[Any]
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    requires_grad: bool = False
    is_parameter: bool = False
    state: Mapping[str, object] | None = None
    subclass: type | None = None

    @classmethod
    def from_array(cls, array: np.ndarray, **attributes: Any) -> TensorRecord:
        """Describe `array` as a piece of the buffer that it is a view of.

        An array that no PyTorch tensor could be (a negative step, a buffer with holes, elements
        that do not lie at multiples of their size) is described as its own contiguous copy. The
        other `attributes` are those of the record.
        """
        storage = _memory(root(array))
        itemsize = array.dtype.itemsize
        offset = address(array) - address(storage) if storage is not None else 0
        steps = array.strides
        if array.size == 0:  # NumPy's strides are all 0, PyTorch's are not
            steps = tuple(n * itemsize for n in contiguous_strides(array.shape))
        if storage is None or any(n % itemsize or n < 0 for n in (*steps, offset, storage.nbytes)):
            array = np.array(array, order="C", copy=True, subok=False)
            storage = array.reshape(-1).view(np.uint8)
            offset, steps = 0, array.strides
        return cls(
            storage,
            array.dtype,
            offset // itemsize,
            array.shape,
            tuple(step // itemsize for step in steps),
            **attributes,
        )

    def memory(self) -> tuple[int, int]:
        """What identifies the storage: (address, bytes)."""
        return address(self.storage), self.storage.nbytes

    def byte_range(self) -> tuple[int, int]:
        """The bytes of the storage from the first element to the end of the last: (start, stop)."""
        start = self.offset
        stop = start
        if 0 not in self.size:
            stop += 1 + sum((n - 1) * step for n, step in zip(self.size, self.stride))
        return start * self.dtype.itemsize, stop * self.dtype.itemsize

    def view(self) -> np.ndarray:
        """The tensor's elements as a view of `storage`.

        Raises:
            RuntimeError: the described elements lie outside of the storage.
        """
        if 0 in self.size:
            return np.ndarray(self.size, self.dtype, self.storage)
        itemsize = self.dtype.itemsize
        start, needed = self.byte_range()
        if min((self.offset, *self.size, *self.stride)) < 0 or needed > self.storage.nbytes:
            raise RuntimeError(
                f"setStorage: sizes {list(self.size)}, strides {list(self.stride)}, storage "
                f"offset {self.offset}, and itemsize {itemsize} requiring a storage size of "
                f"{needed} are out of bounds for storage of size {self.storage.nbytes}"
            )
        strides = tuple(step * itemsize for step in self.stride)
        return np.ndarray(self.size, self.dtype, self.storage, start, strides)


def _memory(array: np.ndarray) -> np.ndarray | None:
    """The memory of `array` as uint8 in one dimension, without a copy; None if it has holes."""
    flat = array.ravel(order="K")
    return flat.view(np.uint8) if address(flat) == address(array) else None
