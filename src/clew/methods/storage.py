"""The memory behind a tensor: storages, and tensors that take another storage or size.  Layer 4."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from clew import dtypes
from clew.autograd.modes import state
from clew.autograd.views import check_inplace, refuse_inference
from clew.device import CPU, device
from clew.errors import RequiresGradError
from clew.functions.shape import sizes
from clew.observers import tell_memory
from clew.op import NO_ATTRS, REGISTRY
from clew.ops.strided import refuse_outside
from clew.publish import composite
from clew.recording import after_write, before_write
from clew.rng.target import range_of
from clew.storage import (
    Geometry,
    address,
    contiguous_strides,
    flat_storage,
    geometry,
    resized,
    root,
    strided,
)
from clew.tensor import Tensor


class UntypedStorage:
    """The memory behind a tensor, as bytes.  Views of one tensor have equal storages."""

    def __init__(self, owner: Any) -> None:
        self._owner = owner

    def _bytes(self) -> np.ndarray:
        return flat_storage(self._owner).view(np.uint8)

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return address(self._owner) if self._owner.size else 0

    def nbytes(self) -> int:
        """The number of bytes."""
        return int(self._owner.nbytes)

    size = nbytes
    __len__ = nbytes

    def element_size(self) -> int:
        """One: the elements are bytes."""
        return 1

    def tolist(self) -> list[int]:
        """The bytes."""
        return self._bytes().tolist()

    def clone(self) -> UntypedStorage:
        """A copy."""
        return UntypedStorage(self._bytes().copy())

    def is_shared(self) -> bool:
        """Whether other processes can see the memory."""
        from clew.sharing import shared_memory

        return shared_memory(self._owner) is not None

    def resize_(self, size: int) -> UntypedStorage:
        """Change the number of bytes.

        Raises:
            RuntimeError: always, unless nothing changes: NumPy cannot resize memory that others
                look at.
        """
        if size != self.nbytes():
            raise RuntimeError(
                "clew cannot resize a storage; resize a tensor (x.resize_), which takes a new "
                "storage where the old one is too small"
            )
        return self

    @property
    def device(self) -> device:
        """Where the memory is: the CPU."""
        return CPU

    @property
    def _cdata(self) -> int:
        return id(self._owner)

    def __getitem__(self, index: int | slice) -> Any:
        found = self._bytes()[index]
        return UntypedStorage(found) if isinstance(index, slice) else int(found)

    def __setitem__(self, index: int | slice, value: Any) -> None:
        self._bytes()[index] = value

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and other._owner is self._owner

    def __hash__(self) -> int:
        return id(self._owner)

    def __repr__(self) -> str:
        return f"[torch.storage.UntypedStorage(device=cpu) of size {self.nbytes()}]"


class TypedStorage:
    """The memory behind a tensor, as elements of one type.

    Attributes:
        dtype: the type.
    """

    def __init__(self, owner: Any, dtype: dtypes.dtype) -> None:
        self._owner = owner
        self.dtype = dtype

    def _elements(self) -> np.ndarray:
        flat = flat_storage(self._owner)
        return flat if flat.dtype == self.dtype.numpy else flat.view(self.dtype.numpy)

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return UntypedStorage(self._owner)

    _untyped_storage = property(untyped)

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self.untyped().data_ptr()

    def nbytes(self) -> int:
        """The number of bytes."""
        return self.untyped().nbytes()

    def size(self) -> int:
        """The number of elements."""
        return self.nbytes() // self.dtype.itemsize

    __len__ = size

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    def tolist(self) -> list[Any]:
        """The elements."""
        return self._elements().tolist()

    @property
    def device(self) -> device:
        """Where the memory is: the CPU."""
        return CPU

    def __getitem__(self, index: int) -> Any:
        return self._elements()[index].item()

    def __setitem__(self, index: int | slice, value: Any) -> None:
        self._elements()[index] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __repr__(self) -> str:
        elements = "".join(f" {value}\n" for value in self.tolist())
        kind = f"dtype={self.dtype!r}, device=cpu"
        return f"{elements}[torch.storage.TypedStorage({kind}) of size {self.size()}]"


@composite(function=False)
def untyped_storage(self: Tensor) -> UntypedStorage:
    """The memory behind this tensor; views of one tensor have the same."""
    return UntypedStorage(root(self._array))


@composite(function=False)
def storage(self: Tensor) -> TypedStorage:
    """The memory behind this tensor as elements of its type."""
    return TypedStorage(root(self._array), self.dtype)


@composite(function=False)
def is_shared(self: Tensor) -> bool:
    """Whether other processes can see the memory: `share_memory_` has moved it."""
    from clew.sharing import shared_memory

    return shared_memory(self._array) is not None


@composite(function=False)
def share_memory_(self: Tensor) -> Tensor:
    """Move the memory to where processes that get this tensor see the same elements.

    The whole storage moves with this tensor; other tensors that looked at it stay behind.
    """
    from clew.sharing import shared_array, shared_memory

    if shared_memory(self._array) is None:
        own, place = flat_storage(self._array), geometry(self._array)
        moved = shared_array(own.nbytes).view(own.dtype)
        moved[:] = own
        self._array = strided(moved, place)
    return self


# -- another storage, another size


@composite(function=False)
def set_(
    self: Tensor, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None
) -> Tensor:
    """Make this tensor look at the memory of `source`, a tensor or a storage; of None, at none.

    Raises:
        RuntimeError: the tensor is a leaf that requires grad, the types differ, or the size and
            strides reach beyond the storage.
    """
    array = _array_at(self, source, storage_offset, size, stride)
    given = isinstance(source, Tensor) and source.requires_grad
    records = (self.requires_grad or given) and state.now.grad_enabled
    check_inplace(self, "set_", records)
    refuse_inference(self)
    op, mask = REGISTRY["replaced_memory"], self.requires_grad | given << 1
    pending = before_write(op, (self, source), NO_ATTRS, mask) if records else None
    self._array = array
    self._counter.bump("set_")
    meta = self._ensure_meta()
    meta.reshaped = True
    if pending is not None:
        after_write(pending, self, NO_ATTRS)
    tell_memory(self)
    if not state.now.inference:  # as a leaf it is another one now
        meta.accumulator = None
    return self


def _array_at(self: Tensor, source: Any, offset: int, size: Any, stride: Any) -> np.ndarray:
    kind = self._array.dtype
    if source is None:
        return np.empty(0, kind)
    if isinstance(source, Tensor):
        if source._array.dtype != kind:
            raise RuntimeError(
                f"Could not set tensor of type {range_of(source._array.dtype).c_name} to a tensor "
                f"of type {range_of(kind).c_name}"
            )
        if size is None:
            return source._array
        flat = flat_storage(source._array)
    else:
        flat = flat_storage(source._owner)
    flat = flat if flat.dtype == kind else flat.view(kind)
    shape = (flat.size - offset,) if size is None else tuple(size)
    place = Geometry(shape, contiguous_strides(shape) if stride is None else tuple(stride), offset)
    refuse_outside(place, flat)
    return strided(flat, place)


@composite(function=False)
def resize_(self: Tensor, *size: Any, memory_format: Any = None) -> Tensor:
    """Give this tensor another size; its elements are those of the storage, in order.

    Where the storage is too small the tensor gets a new one, with the old elements first; other
    tensors that looked at the old storage then no longer share memory with this one.

    Raises:
        RuntimeError: the tensor requires grad, outside inference mode; or it is an inference
            tensor there.
    """
    if self.requires_grad and not (state.now.inference or self.is_inference()):
        raise RequiresGradError(
            "cannot resize variables that require grad",
            self,
            "resize x.detach(), or make another view: x.view(size), x[:n]",
        )
    shape = sizes(size)
    if shape == self._array.shape:
        return self
    refuse_inference(self)
    if any(n < 0 for n in shape):
        raise RuntimeError(f"resize_: a size cannot be negative, but got {list(shape)}")
    self._array = resized(self._array, shape)
    self._ensure_meta().reshaped = True
    self._counter.bump("resize_")
    tell_memory(self)
    return self


@composite()
def resize_as_(self: Tensor, the_template: Tensor, memory_format: Any = None) -> Tensor:
    """`resize_` to the size of another tensor."""
    return resize_(self, the_template._array.shape)


# -- Python functions of elements


@composite(function=False)
def apply_(self: Tensor, callable: Any) -> Tensor:
    """Replace each element by what a Python function makes of it; slow, and not recorded.

    Raises:
        RuntimeError: the tensor requires grad.
    """
    return _replace(self, "apply_", callable, self._array)


@composite(function=False)
def map_(self: Tensor, tensor: Tensor, callable: Any) -> Tensor:
    """Replace each element by what a Python function makes of it and of that of another tensor.

    Raises:
        RuntimeError: a tensor requires grad.
    """
    if tensor.requires_grad:
        raise RequiresGradError(
            "Can't call map_() on Variable that requires grad. Use var.detach().map_() instead.",
            tensor,
            "use x.detach().map_(y.detach(), f): Python functions of elements are not recorded",
        )
    other = np.broadcast_to(tensor._array, self._array.shape)
    return _replace(self, "map_", callable, self._array, other)


def _replace(self: Tensor, name: str, function: Any, *arrays: np.ndarray) -> Tensor:
    if self.requires_grad:
        raise RequiresGradError(
            f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() "
            "instead.",
            self,
            f"use x.detach().{name}(...): Python functions of elements are not recorded",
        )
    columns = [array.reshape(-1).tolist() for array in arrays]
    values = [function(*row) for row in zip(*columns)]
    # Not counted as a write, as in PyTorch: nothing that requires grad can be written to so.
    self._array[...] = np.array(values, self._array.dtype).reshape(self._array.shape)
    return self
