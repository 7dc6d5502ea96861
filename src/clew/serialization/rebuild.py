"""The functions that a checkpoint calls to make its tensors, under PyTorch's names.

Imports `adapter`, `locations` and `records` of this package.

A file that nobody vouches for calls these with arguments of its choice, so they check what they
are given.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from clew.serialization.adapter import Adapter
from clew.serialization.locations import LoadedStorage
from clew.serialization.records import STORAGE_NAMES, TensorRecord, numpy_dtype

_KINDS = {
    "a sparse tensor": ("_utils._rebuild_sparse_tensor", "_utils._rebuild_sparse_csr_tensor"),
    "a tensor on the meta device": ("_utils._rebuild_meta_tensor_no_storage",),
    "a nested tensor": ("_utils._rebuild_nested_tensor",),
    "a wrapper subclass of Tensor": ("_utils._rebuild_wrapper_subclass",),
    "a tensor of an accelerator": (
        "_utils._rebuild_device_tensor_from_numpy",
        "_utils._rebuild_device_tensor_from_cpu_tensor",
    ),
    "a quantized tensor": (
        "_utils._rebuild_qtensor",
        "QInt8Storage",
        "QUInt8Storage",
        "QInt32Storage",
        "QUInt4x2Storage",
        "QUInt2x4Storage",
    ),
    "a dtype": (
        "ComplexHalfStorage",
        "complex32",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "float4_e2m1fn_x2",
    ),
}
# What PyTorch's names stand for where clew has no such thing.
UNSUPPORTED = {f"torch.{name}": kind for kind, names in _KINDS.items() for name in names}


class StorageType:
    """What `torch FloatStorage` in a file means: a buffer of a dtype, None for an untyped one."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: np.dtype[Any] | None) -> None:
        self.dtype = dtype


class Rebuilder:
    """The rebuild functions of PyTorch's format, making the objects of one adapter."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        self.functions: dict[str, Callable[..., Any]] = {
            "torch._utils._rebuild_tensor": self._tensor,
            "torch._utils._rebuild_tensor_v2": self._tensor_v2,
            "torch._utils._rebuild_tensor_v3": self._tensor_v3,
            "torch._utils._rebuild_parameter": self._parameter,
            "torch._utils._rebuild_parameter_with_state": self._parameter_with_state,
            "torch._tensor._rebuild_from_type_v2": self._with_state,
        }

    def names(self) -> dict[str, Any]:
        """All names of this module's functions and storages with what they stand for."""
        storages = {f"torch.{s}": StorageType(numpy_dtype(d)) for d, s in STORAGE_NAMES.items()}
        untyped = {"torch.storage.UntypedStorage": StorageType(None)}
        return {**self.functions, **storages, **untyped}

    def _tensor(self, storage: Any, offset: Any, size: Any, stride: Any) -> Any:
        return self._tensor_v2(storage, offset, size, stride, False, {})

    def _tensor_v2(
        self,
        storage: Any,
        offset: Any,
        size: Any,
        stride: Any,
        requires_grad: Any,
        hooks: Any,
        metadata: Any = None,
    ) -> Any:
        dtype = getattr(storage, "dtype", None)
        return self._make(storage, dtype, offset, size, stride, requires_grad, hooks, metadata)

    def _tensor_v3(
        self,
        storage: Any,
        offset: Any,
        size: Any,
        stride: Any,
        requires_grad: Any,
        hooks: Any,
        dtype: Any,
        metadata: Any = None,
    ) -> Any:
        dtype = self._adapter.numpy_dtype(dtype)
        return self._make(storage, dtype, offset, size, stride, requires_grad, hooks, metadata)

    def _make(
        self,
        storage: Any,
        dtype: Any,
        offset: Any,
        size: Any,
        stride: Any,
        requires_grad: Any,
        hooks: Any,
        metadata: Any,
    ) -> Any:
        fits = isinstance(storage, LoadedStorage) and isinstance(dtype, np.dtype)
        fits = fits and len(size) == len(stride)
        if not fits or any(type(n) is not int for n in (offset, *size, *stride)):
            raise pickle.UnpicklingError("a tensor in the file has impossible arguments")
        _refuse_hooks(hooks)
        record = TensorRecord(
            storage.data, dtype, offset, tuple(size), tuple(stride), bool(requires_grad)
        )
        return self._adapter.tensor(_resolved(record, metadata or {}))

    def _parameter(self, data: Any, requires_grad: Any, hooks: Any) -> Any:
        _refuse_hooks(hooks)
        self._check_tensor(data)
        return self._adapter.parameter(data, bool(requires_grad))

    def _parameter_with_state(self, data: Any, requires_grad: Any, hooks: Any, state: Any) -> Any:
        return self._stateful(self._parameter(data, requires_grad, hooks), state)

    def _with_state(self, function: Any, kind: Any, arguments: Any, state: Any) -> Any:
        """A tensor with attributes, or of a class of the user's."""
        if function not in self.functions.values():
            raise pickle.UnpicklingError(f"{function!r} is no function that makes a tensor")
        result = function(*arguments)
        if type(result) is not kind:
            result = self._adapter.as_subclass(result, kind)
        return self._stateful(result, state)

    def _stateful(self, tensor: Any, state: Any) -> Any:
        attributes, slots = state if isinstance(state, tuple) else (state, None)
        self._adapter.set_state(tensor, {**(attributes or {}), **(slots or {})})
        return tensor

    def _check_tensor(self, value: Any) -> None:
        if self._adapter.describe(value) is None:
            raise pickle.UnpicklingError(f"the data of a parameter is {type(value).__name__}")


def _refuse_hooks(hooks: Any) -> None:
    if hooks:
        raise pickle.UnpicklingError(
            "The file holds a tensor with backward hooks (PyTorch before 1.0 saved them): "
            "clew does not restore hooks"
        )


def _resolved(record: TensorRecord, metadata: Mapping[str, Any]) -> TensorRecord:
    """`record` with PyTorch's lazy conjugate and negative bits carried out, on a copy."""
    array = record.view()
    if not (metadata.get("conj") or metadata.get("neg")):
        return record
    if metadata.get("conj"):
        array = np.conj(array)
    if metadata.get("neg"):
        array = np.negative(array)
    return TensorRecord.from_array(np.array(array, order="C"), requires_grad=record.requires_grad)
