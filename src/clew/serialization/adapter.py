"""The narrow door between the file format and the objects of a program.

Imports `records` and the layers up to the Tensor class; `nn.Parameter` when it is needed.

The format layer knows arrays and names. What a tensor, a dtype or a device is, it asks an
`Adapter`; the one for clew's objects is `TensorAdapter`.
"""

from __future__ import annotations

import importlib
import pickle
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import FunctionType
from typing import Any, NoReturn

import numpy as np

from clew import dtypes
from clew.device import device
from clew.serialization.records import TensorRecord
from clew.tensor import Size, Tensor


@dataclass(frozen=True, slots=True)
class GlobalName:
    """A function or class as a pickle refers to it, such as `torch FloatStorage`."""

    module: str
    name: str

    def __call__(self, *args: object) -> NoReturn:
        """Never called: a pickler insists that what it writes a call of is callable."""
        raise TypeError(f"{self.module}.{self.name} is a name in a file, not a function")


class Adapter(ABC):
    """What the format layer asks about the objects that are saved and that a load makes."""

    @abstractmethod
    def describe(self, obj: object) -> TensorRecord | None:
        """The record of `obj` if it is a tensor, else None."""

    @abstractmethod
    def spell(self, obj: object) -> GlobalName | tuple[GlobalName, tuple[Any, ...]] | None:
        """PyTorch's name for `obj` (a dtype, a class), or a call that makes it (a size, a device).

        None for everything else, which is then pickled as Python does it.
        """

    @abstractmethod
    def words(self) -> Mapping[str, Any]:
        """The objects that PyTorch's names stand for: {"torch.float32": ..., "torch.Size": ...}.

        A file may refer to each of them without being trusted, and call those that are
        `callable_words`.
        """

    @abstractmethod
    def callable_words(self) -> frozenset[str]:
        """The names in `words` that an untrusted file may call, such as "torch.Size"."""

    @abstractmethod
    def numpy_dtype(self, dtype: Any) -> np.dtype[Any]:
        """The NumPy dtype of a dtype object."""

    @abstractmethod
    def tensor(self, record: TensorRecord) -> Any:
        """The tensor that `record` describes, on the record's memory.

        Raises:
            TypeError: there are no tensors of its dtype.
        """

    @abstractmethod
    def parameter(self, data: Any, requires_grad: bool) -> Any:
        """An `nn.Parameter` on the memory of the tensor `data`."""

    @abstractmethod
    def as_subclass(self, tensor: Any, kind: Any) -> Any:
        """The same tensor as an object of the class `kind`.

        Raises:
            pickle.UnpicklingError: `kind` is no class of tensors.
        """

    @abstractmethod
    def set_state(self, tensor: Any, state: Mapping[str, Any]) -> None:
        """Set the attributes in `state` on a tensor or parameter."""

    @abstractmethod
    def twin(self, module: str, name: str) -> Any:
        """The object that plays the part of PyTorch's `module.name`, for a file that is trusted.

        Raises:
            pickle.UnpicklingError: there is none.
        """


class TensorAdapter(Adapter):
    """clew's tensors, parameters, dtypes, sizes and devices."""

    def describe(self, obj: object) -> TensorRecord | None:
        if not isinstance(obj, Tensor):
            return None
        kind = type(obj)
        is_parameter = isinstance(obj, _parameter_class())
        plain = _parameter_class() if is_parameter else Tensor
        if kind.__reduce_ex__ is not plain.__reduce_ex__:
            return None  # the class says itself how it is pickled
        _warn_of_hooks(obj)
        return TensorRecord.from_array(
            obj._array,
            requires_grad=obj.requires_grad,
            is_parameter=is_parameter,
            state=obj.__dict__ or None,
            subclass=None if is_parameter or kind is Tensor else kind,
        )

    def spell(self, obj: object) -> GlobalName | tuple[GlobalName, tuple[Any, ...]] | None:
        if isinstance(obj, dtypes.dtype):
            return GlobalName("torch", obj.name)
        if type(obj) is Size:
            return GlobalName("torch", "Size"), (tuple(obj),)
        if type(obj) is device:
            place = (obj.type,) if obj.index is None else (obj.type, obj.index)
            return GlobalName("torch", "device"), place
        if type(obj) is dtypes.layout:
            return GlobalName("torch.serialization", "_get_layout"), (repr(obj),)
        return _name_of(obj) if isinstance(obj, (type, FunctionType)) else None

    def words(self) -> Mapping[str, Any]:
        classes = {f"{word.module}.{word.name}": kind for kind, word in _class_names().items()}
        layout = {"torch.serialization._get_layout": _layout}
        return {**classes, **layout, **{repr(dtype): dtype for dtype in dtypes.ALL}}

    def callable_words(self) -> frozenset[str]:
        return frozenset(("torch.Size", "torch.device", "torch.serialization._get_layout"))

    def numpy_dtype(self, dtype: Any) -> np.dtype[Any]:
        if not isinstance(dtype, dtypes.dtype):
            raise pickle.UnpicklingError(f"the dtype of a tensor is {type(dtype).__name__}")
        return dtype.numpy

    def tensor(self, record: TensorRecord) -> Any:
        dtypes.of_numpy(record.dtype)
        made = Tensor._from_array(record.view())
        # Through the public door, which refuses what a hostile file may ask for (integers).
        return made.requires_grad_(True) if record.requires_grad else made

    def parameter(self, data: Any, requires_grad: bool) -> Any:
        return _parameter_class()(data, requires_grad)

    def as_subclass(self, tensor: Any, kind: Any) -> Any:
        if not (isinstance(kind, type) and issubclass(kind, Tensor)):
            raise pickle.UnpicklingError(f"{kind!r} is no class of tensors")
        return kind._from_array(tensor._array, tensor.requires_grad)

    def set_state(self, tensor: Any, state: Mapping[str, Any]) -> None:
        tensor.__dict__.update(state)

    def twin(self, module: str, name: str) -> Any:
        # PyTorch's module, or the nearest package above it that has the name.
        path = ["clew", *module.split(".")[1:]]
        while path:
            try:
                found: Any = importlib.import_module(".".join(path))
                for part in name.split("."):
                    found = getattr(found, part)
                return found
            except (ModuleNotFoundError, AttributeError):
                path.pop()
        raise pickle.UnpicklingError(
            f"The file refers to {module}.{name}, which clew does not have"
        )


@cache
def tensor_adapter() -> Adapter:
    """The adapter that `save` and `load` use."""
    return TensorAdapter()


@cache
def _parameter_class() -> type:
    from clew.nn.parameter import Parameter

    return Parameter


@cache
def _class_names() -> dict[type, GlobalName]:
    """Classes that a file may name, by PyTorch's name for them."""
    return {
        Tensor: GlobalName("torch", "Tensor"),
        Size: GlobalName("torch", "Size"),
        device: GlobalName("torch", "device"),
        dtypes.dtype: GlobalName("torch", "dtype"),
        _parameter_class(): GlobalName("torch.nn.parameter", "Parameter"),
    }


def _name_of(obj: type | FunctionType) -> GlobalName | None:
    """PyTorch's name of a class or function of clew: where clew has it, in `torch`'s place."""
    if isinstance(obj, type) and obj in _class_names():
        return _class_names()[obj]
    package, _, path = obj.__module__.partition(".")
    if (
        package != "clew"
        or getattr(importlib.import_module(obj.__module__), obj.__name__, 0) is not obj
    ):
        return None
    return GlobalName(f"torch.{path}".rstrip("."), obj.__name__)


def _layout(name: str) -> dtypes.layout:
    if name != repr(dtypes.strided):
        raise pickle.UnpicklingError(f"The file refers to the layout {name}, which clew lacks")
    return dtypes.strided


def _warn_of_hooks(tensor: Tensor) -> None:
    hooks = tensor._meta.hooks if tensor._meta is not None else None
    for hook in (hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized. Register it again after "
                "loading.",
                stacklevel=2,
            )
