"""Tensors on memory that other libraries own, and the way back: buffers and DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew import dtypes
from clew.publish import composite
from clew.tensor import Tensor


@composite(method=False)
def frombuffer(
    buffer: Any, *, dtype: dtypes.dtype, count: int = -1, offset: int = 0,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A tensor of one dimension on the memory of a Python buffer.

    Args:
        buffer: bytes, a bytearray, a memory map, an array.
        dtype: how to read it.
        count: the number of elements; -1 for all.
        offset: the number of bytes to skip.
        requires_grad: record operations on it.

    Raises:
        ValueError: the buffer does not hold what is asked for.
    """
    try:
        nbytes = memoryview(buffer).nbytes
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    _check_extent(nbytes, dtype.itemsize, count, offset)
    array = np.frombuffer(buffer, dtype.numpy, count, offset)
    return Tensor._from_array(array, requires_grad)


def _check_extent(nbytes: int, itemsize: int, count: int, offset: int) -> None:
    if nbytes == 0 or count == 0:
        raise ValueError(f"both buffer length ({nbytes}) and count ({count}) must not be 0")
    if not 0 <= offset < nbytes:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length "
            f"({nbytes} bytes) minus 1"
        )
    if count < 0 and (nbytes - offset) % itemsize:
        raise ValueError(
            f"buffer length ({nbytes - offset} bytes) after offset ({offset} bytes) must be a "
            f"multiple of element size ({itemsize})"
        )
    if count > 0 and offset + count * itemsize > nbytes:
        raise ValueError(
            f"requested buffer length ({count} * {itemsize} bytes) after offset ({offset} bytes) "
            f"must not be greater than actual buffer length ({nbytes} bytes)"
        )


@composite(method=False)
def from_dlpack(ext_tensor: Any) -> Tensor:
    """A tensor on the memory of an array of another library, by the DLPack protocol.

    Raises:
        RuntimeError: the object does not speak the protocol.
        BufferError: its memory cannot be shared, or is not the CPU's.
    """
    if not hasattr(ext_tensor, "__dlpack__"):
        raise RuntimeError(
            f"from_dlpack received a {type(ext_tensor).__name__}, which has no __dlpack__"
        )
    return Tensor._from_array(np.from_dlpack(ext_tensor))


@composite(function=False)
def __dlpack__(self: Tensor, **options: Any) -> Any:
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    return self._array.__dlpack__(**options)


@composite(function=False)
def __dlpack_device__(self: Tensor) -> tuple[int, int]:
    return self._array.__dlpack_device__()
