"""`Parameter` and `Buffer`: tensors that a module knows as its own.

May import the core of clew, and nothing of `clew.nn`.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from clew import dtypes
from clew.autograd.modes import state
from clew.device import require_cpu
from clew.errors import InferenceTensorError
from clew.observers import tell_memory
from clew.tensor import Tensor

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "is_lazy",
]


def _nothing(dtype: dtypes.dtype | None = None) -> np.ndarray:
    return np.empty(0, (dtype or dtypes.get_default_dtype()).numpy)


class Parameter(Tensor):
    """A tensor that becomes a parameter of the module that it is assigned to.

    Args:
        data: the tensor whose memory (and version) the parameter takes; by default an empty one.
        requires_grad: whether gradients are computed for it.

    Raises:
        RuntimeError: `requires_grad` for a type that is neither floating nor complex.
    """

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Any:
        if data is None:
            return cls._from_array(_nothing(), requires_grad)
        if not isinstance(data, Tensor):
            raise AttributeError(f"'{type(data).__name__}' object has no attribute 'detach'")
        return cls._on(data, requires_grad)

    @classmethod
    def _on(cls, data: Tensor, requires_grad: bool) -> Any:
        if requires_grad and data.is_inference() and not state.now.inference:
            raise InferenceTensorError(
                "Setting requires_grad=True on inference tensor outside InferenceMode is not "
                "allowed.",
                data,
                "make a parameter of x.clone()",
            )
        if requires_grad and data._array.dtype.kind not in "fcV":
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients"
            )
        made = cls._from_array(data._array, requires_grad)
        made._counter = data._counter
        made._ensure_meta().inference = data.is_inference()
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            copied = self._from_array(self._array.copy(order="K"), self._requires_grad)
            memo[id(self)] = copied
        return memo[id(self)]

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


class _BufferMeta(type):
    """A buffer is any tensor that was marked as one, whatever its class."""

    def __instancecheck__(cls, instance: object) -> bool:
        if cls is Buffer and isinstance(instance, Tensor):
            return getattr(instance, "_is_buffer", False) or super().__instancecheck__(instance)
        return super().__instancecheck__(instance)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that becomes a buffer of the module that it is assigned to.

    The call returns an ordinary Tensor on the memory of `data`, marked as a buffer.

    Args:
        data: the tensor; by default an empty one.
        persistent: whether the buffer is part of the module's `state_dict`.
    """

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = Tensor._from_array(_nothing())
        made: Any = data.detach().requires_grad_(data.requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made


_MEMORY: Any = Tensor._array


class UninitializedTensorMixin:
    """A parameter or buffer of a lazy module, whose shape is not known yet.

    Only its type can be asked for and changed; operations raise ValueError.
    """

    cls_to_become: type = Tensor

    def materialize(
        self, shape: Any, device: Any = None, dtype: dtypes.dtype | None = None
    ) -> None:
        """Give it memory of that shape, uninitialised, and turn it into an ordinary one."""
        require_cpu(device)
        kind = self.dtype if dtype is None else dtype
        self._array = np.empty(tuple(shape), kind.numpy)
        self.__class__ = self.cls_to_become
        tell_memory(self)

    @property
    def _array(self) -> NoReturn:
        raise ValueError(
            "Attempted to use an uninitialized parameter in an operation. This error happens when "
            "you are using a `LazyModule` or explicitly manipulating "
            f"`torch.nn.parameter.{type(self).__name__}` objects. When using LazyModules Call "
            "`forward` with a dummy batch to initialize the parameters before calling torch "
            "functions"
        )

    @_array.setter
    def _array(self, value: np.ndarray) -> None:
        _MEMORY.__set__(self, value)

    @property
    def dtype(self) -> dtypes.dtype:
        """The type that the elements will have."""
        return dtypes.of_numpy(_MEMORY.__get__(self).dtype)

    @property
    def data(self) -> Any:
        """Itself without gradient; may be set to one of another type."""
        return self._as(self.dtype, requires_grad=False)

    @data.setter
    def data(self, value: Any) -> None:
        self._array = _nothing(value.dtype)

    @property
    def shape(self) -> NoReturn:
        """Raises RuntimeError: there is no shape yet."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually "
            "happens in `load_state_dict` when trying to load an uninitialized parameter into an "
            "initialized one. Call `forward` to initialize the parameters before accessing their "
            "attributes."
        )

    def share_memory_(self) -> NoReturn:
        """Raises RuntimeError: there is no memory yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to "
            "initialize the parameters before calling `module.share_memory()`."
        )

    def _as(self, dtype: dtypes.dtype, requires_grad: bool) -> Any:
        """Another one, of that type, with the same attributes."""
        made = type(self)(requires_grad, dtype=dtype)  # type: ignore[call-arg]
        made.__dict__.update(self.__dict__)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = self._as(self.dtype, self.requires_grad)  # type: ignore[attr-defined]
        return memo[id(self)]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (type(self), (self.requires_grad,))  # type: ignore[attr-defined]


def _cast(name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        plain = Tensor._from_array(_nothing(self.dtype))
        return self._as(getattr(plain, name)(*args, **kwargs).dtype, self.requires_grad)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"`Tensor.{name}` of what is not there yet: only the type may change."
    return method


for _name in ("to", "float", "double", "half", "bfloat16", "type", "cpu", "cuda"):
    setattr(UninitializedTensorMixin, _name, _cast(_name))


def is_lazy(param: Any) -> bool:
    """Whether a parameter or buffer still waits for its shape."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc]
    """A parameter of a lazy module; its first forward gives it a shape."""

    cls_to_become = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: Any = None, dtype: dtypes.dtype | None = None
    ) -> Any:
        require_cpu(device)
        return cls._from_array(_nothing(dtype), requires_grad)


class UninitializedBuffer(UninitializedTensorMixin, Tensor):  # type: ignore[misc]
    """A buffer of a lazy module; its first forward gives it a shape."""

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Any = None,
        dtype: dtypes.dtype | None = None,
        persistent: bool = True,
    ) -> Any:
        require_cpu(device)
        made = cls._from_array(_nothing(dtype), requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made
