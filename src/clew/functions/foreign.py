"""Tensors on memory that other libraries own, and the way back: buffers and DLPack."""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Any

import numpy as np

from clew import dtypes
from clew.device import require_cpu
from clew.publish import composite
from clew.storage import Geometry, address, element_strides, extent, strided
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


class DLDeviceType(IntEnum):
    """Where memory is, in the DLPack protocol."""

    kDLCPU = 1


class _OfCapsule:
    """A capsule that was taken out of its owner, as NumPy wants to be given it."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return DLDeviceType.kDLCPU, 0


@composite(method=False)
def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor on the memory of an array of another library, by the DLPack protocol.

    Args:
        ext_tensor: an object with ``__dlpack__``, or what that returned.
        device: the CPU.
        copy: True for memory of its own.

    Raises:
        RuntimeError: the object does not speak the protocol.
        BufferError: its memory cannot be shared, or is not the CPU's.
    """
    require_cpu(device)
    if type(ext_tensor).__name__ == "PyCapsule":
        array = _writable(np.from_dlpack(_OfCapsule(ext_tensor)))
        return Tensor._from_array(array.copy() if copy else array)
    if not hasattr(ext_tensor, "__dlpack__"):
        raise RuntimeError(
            f"from_dlpack received a {type(ext_tensor).__name__}, which has no __dlpack__"
        )
    array = np.from_dlpack(ext_tensor)
    return Tensor._from_array(array.copy() if copy else array)


def _writable(array: np.ndarray) -> np.ndarray:
    """The same memory, open to writes: NumPy forbids them where a capsule does not allow them,
    which one of the first version of the protocol cannot."""
    if array.flags.writeable or array.size == 0:
        return array
    place = Geometry(array.shape, element_strides(array), 0)
    memory: Any = (ctypes.c_byte * (extent(place) * array.itemsize)).from_address(address(array))
    memory.owner = array  # which keeps the capsule
    return strided(np.frombuffer(memory, array.dtype), place)


@composite(method=False)
def to_dlpack(tensor: Tensor) -> Any:
    """The memory of a tensor as a capsule of the DLPack protocol, to be taken up once."""
    return tensor.__dlpack__()


@composite(function=False)
def __dlpack__(self: Tensor, **options: Any) -> Any:
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    return self._array.__dlpack__(**options)


@composite(function=False)
def __dlpack_device__(self: Tensor) -> tuple[DLDeviceType, int]:
    return DLDeviceType.kDLCPU, 0
