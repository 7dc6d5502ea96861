"""Writing a pickle that speaks PyTorch's names, without PyTorch.

Imports the standard library and, of this package, `adapter` and `records`.

A pickle refers to functions and classes by module and name: `torch._utils _rebuild_tensor_v2`
makes a tensor, `torch FloatStorage` says what a buffer holds. Python's picklers insist on
importing such a name before they write it. Here a `GlobalName` stands for it, and a subclass of
the standard library's pickler (the one that is written in Python) writes its two words as they
are.
"""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np

from clew.serialization.adapter import Adapter, GlobalName
from clew.serialization.records import STORAGE_NAMES, UNTYPED_DTYPES, TensorRecord

_REBUILD_TENSOR = GlobalName("torch._utils", "_rebuild_tensor_v2")
_REBUILD_UNTYPED = GlobalName("torch._utils", "_rebuild_tensor_v3")
_REBUILD_PARAMETER = GlobalName("torch._utils", "_rebuild_parameter")
_REBUILD_PARAMETER_WITH_STATE = GlobalName("torch._utils", "_rebuild_parameter_with_state")
_REBUILD_WITH_STATE = GlobalName("torch._tensor", "_rebuild_from_type_v2")
_TENSOR = GlobalName("torch", "Tensor")
_UNTYPED_STORAGE = GlobalName("torch.storage", "UntypedStorage")
_STORAGES = {dtype: GlobalName("torch", name) for dtype, name in STORAGE_NAMES.items()}
_DTYPES = {name: GlobalName("torch", name) for name in UNTYPED_DTYPES}

# Most objects of a checkpoint are of these types; the adapter need not be asked about them.
_PLAIN = frozenset(
    (str, int, float, bool, type(None), tuple, list, dict, OrderedDict, bytes, complex, set)
)

# Python's own, whose methods can be overridden; the type checker's stubs do not know them.
_Pickler: Any = pickle._Pickler


@dataclass(frozen=True, slots=True, eq=False)
class StoredBuffer:
    """A buffer that the pickle refers to; `memory` (uint8) is written elsewhere, under `key`."""

    key: str
    memory: np.ndarray
    kind: GlobalName
    itemsize: int

    def reference(self) -> tuple[Any, ...]:
        """What stands for the buffer in the pickle."""
        return ("storage", self.kind, self.key, "cpu", self.memory.nbytes // self.itemsize)


class CheckpointPickler(_Pickler):
    """Pickle to `stream`, and collect the buffers that the pickle refers to in `buffers`.

    Raises (from `dump`):
        RuntimeError: two tensors view one buffer with different dtypes: the format cannot say so.
        pickle.PicklingError, TypeError, AttributeError: an object that cannot be pickled.
    """

    def __init__(self, stream: io.BytesIO, protocol: int, adapter: Adapter) -> None:
        super().__init__(stream, protocol)
        self._adapter = adapter
        self._by_memory: dict[tuple[int, int], StoredBuffer] = {}
        self.buffers: list[StoredBuffer] = []

    def persistent_id(self, obj: Any) -> tuple[Any, ...] | None:
        return obj.reference() if type(obj) is StoredBuffer else None

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) in _PLAIN:
            return NotImplemented
        if type(obj) is GlobalName:
            return obj.name
        record = obj if type(obj) is TensorRecord else self._adapter.describe(obj)
        if record is not None:
            return self._reduce(record)
        word = self._adapter.spell(obj)
        if type(word) is GlobalName:
            return word.name
        return NotImplemented if word is None else word

    def save_global(self, obj: Any, name: str | None = None) -> None:
        word = obj if type(obj) is GlobalName else self._adapter.spell(obj)
        if type(word) is not GlobalName:
            super().save_global(obj, name)
            return
        if self.proto >= 4:
            self.save(word.module)
            self.save(word.name)
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + f"{word.module}\n{word.name}\n".encode())
        self.memoize(obj)

    def _reduce(self, record: TensorRecord) -> tuple[GlobalName, tuple[Any, ...]]:
        """The call that makes the tensor again: PyTorch's own, with PyTorch's arguments."""
        arguments: tuple[Any, ...]
        if record.is_parameter:
            data = replace(record, is_parameter=False, requires_grad=False, state=None)
            arguments = (data, record.requires_grad, OrderedDict())
            if record.state:
                return _REBUILD_PARAMETER_WITH_STATE, (*arguments, dict(record.state))
            return _REBUILD_PARAMETER, arguments
        if record.state or record.subclass:
            function, arguments = self._reduce(replace(record, state=None, subclass=None))
            state = dict(record.state) if record.state else None
            return _REBUILD_WITH_STATE, (function, record.subclass or _TENSOR, arguments, state)
        untyped = _DTYPES.get(record.dtype.name)
        arguments = (
            self._buffer(record),
            record.offset,
            record.size,
            record.stride,
            record.requires_grad,
            OrderedDict(),
        )
        if untyped:
            return _REBUILD_UNTYPED, (*arguments, untyped)
        return _REBUILD_TENSOR, arguments

    def _buffer(self, record: TensorRecord) -> StoredBuffer:
        """The buffer of `record`, the same object for each tensor that shares it."""
        data, dtype = record.storage, record.dtype
        if dtype.name in UNTYPED_DTYPES:
            kind, itemsize = _UNTYPED_STORAGE, 1
        elif dtype.name in _STORAGES:
            kind, itemsize = _STORAGES[dtype.name], dtype.itemsize
        else:
            raise TypeError(f"PyTorch's format has no tensor of the NumPy dtype {dtype}")
        place = record.memory()
        buffer = self._by_memory.get(place) if data.nbytes else None
        if buffer is None:
            buffer = StoredBuffer(str(len(self.buffers)), data, kind, itemsize)
            self._by_memory[place] = buffer
            self.buffers.append(buffer)
        elif buffer.kind is not kind:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as "
                "different types"
            )
        return buffer


class LegacyPickler(CheckpointPickler):
    """The same for the format before zip, whose references have one field more (never used)."""

    def persistent_id(self, obj: Any) -> tuple[Any, ...] | None:
        reference = super().persistent_id(obj)
        if reference is None:
            return None
        if obj.kind is _UNTYPED_STORAGE:
            raise TypeError(
                "PyTorch cannot read uint16, uint32 and uint64 from the format before zip: "
                "save with _use_new_zipfile_serialization=True"
            )
        return (*reference, None)


def pickler_class(
    base: type[CheckpointPickler], pickle_module: ModuleType
) -> type[CheckpointPickler]:
    """`base`, on top of the pickler of `pickle_module` if that is not `pickle` but, say, dill.

    Raises:
        TypeError: that pickler is not written in Python, so it insists on importing each name.
    """
    other = pickle_module.Pickler
    if other is pickle.Pickler:
        return base
    if not (isinstance(other, type) and issubclass(other, _Pickler)):
        raise TypeError(
            f"clew cannot save with pickle_module={pickle_module.__name__}: PyTorch's names "
            "can only be written by a Pickler that is a subclass of pickle._Pickler"
        )
    return type(base.__name__, (base, other), {})
