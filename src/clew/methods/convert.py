"""Between tensors and numbers, lists, arrays, types.  Layer 4."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

from clew import dtypes
from clew.autograd.modes import state
from clew.device import device, require_cpu
from clew.dispatch import apply
from clew.errors import NonLeafCopyError, RequiresGradError, scalar_of_graph_text
from clew.observers import observers
from clew.op import REGISTRY
from clew.publish import composite
from clew.storage import Geometry, element_strides, extent, flat_storage, geometry, root, strided
from clew.tensor import Tensor

_TO_DTYPE = REGISTRY["to_dtype"]


@composite(function=False)
def item(self: Tensor) -> Any:
    """The only element, as a Python number.

    Raises:
        RuntimeError: there is not exactly one element.
    """
    array = self._array
    if array.size != 1:
        raise RuntimeError(f"a Tensor with {array.size} elements cannot be converted to Scalar")
    value = array.item()
    for on_cut in observers.on_cut:
        on_cut("item()", self, value)
    return float(value) if array.dtype.kind == "V" else value


@composite(function=False)
def tolist(self: Tensor) -> Any:
    """The elements as nested lists of Python numbers; of a 0-d tensor the number."""
    array = self._array
    if array.dtype.kind == "V":
        array = array.astype(np.float32)
    for on_cut in observers.on_cut:
        on_cut("tolist()", self, None)
    return array.tolist()


@composite(function=False)
def numpy(self: Tensor, *, force: bool = False) -> np.ndarray:
    """The memory of this tensor as an array.

    Raises:
        RuntimeError: the tensor requires grad, and `force` is not set.
        TypeError: NumPy has no such type (bfloat16).
    """
    if not force and state.now.grad_enabled and self.requires_grad:
        raise RequiresGradError(
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
            self,
            "use x.detach().numpy(), or x.numpy(force=True); NumPy's operations are not recorded",
        )
    if self._array.dtype.kind == "V":
        raise TypeError("Got unsupported ScalarType BFloat16")
    for on_cut in observers.on_cut:
        on_cut("numpy()", self, self._array)
    # An example of `vmap` says why it has no values.
    return self._array if isinstance(self._array, np.ndarray) else np.asarray(self._array)


@composite(function=False)
def __array__(self: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    array = numpy(self)
    if dtype is not None and array.dtype != dtype:
        return array.astype(dtype)
    return array.copy() if copy else array


@composite(function=False)
def __array_wrap__(
    self: Tensor, array: np.ndarray, context: Any = None, return_scalar: bool = False
) -> Any:
    array = np.asarray(array)
    # Bools become bytes, as PyTorch had it before it had bools.
    return Tensor._from_array(array.astype(np.uint8) if array.dtype == np.bool_ else array)


@composite(function=False)
def __len__(self: Tensor) -> int:
    if self._array.ndim == 0:
        raise TypeError("len() of a 0-d tensor")
    return self._array.shape[0]


@composite(function=False)
def __bool__(self: Tensor) -> bool:
    array = self._array
    if array.size == 1:
        return bool(array.item() if isinstance(array, np.ndarray) else array)
    if array.size == 0:
        raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
    raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")


def _number(convert: Any) -> Any:
    def method(self: Tensor) -> Any:
        if self._array.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        recorded = state.now.grad_enabled and self.requires_grad
        if convert is float and recorded and self._array.size == 1:
            _warn_scalar_of_graph(self)
        if self._array.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return convert(item(self))

    return method


_warned_scalar = False


def _warn_scalar_of_graph(tensor: Tensor) -> None:
    global _warned_scalar
    from clew.config import switches

    if _warned_scalar and not switches.warn_always:
        return
    _warned_scalar = True
    import warnings

    warnings.warn(scalar_of_graph_text(tensor), UserWarning, stacklevel=3)


composite(function=False, name="__float__")(_number(float))
composite(function=False, name="__int__")(_number(int))
composite(function=False, name="__complex__")(_number(complex))


@composite(function=False)
def __index__(self: Tensor) -> int:
    if self._array.size != 1 or self._array.dtype.kind not in "biu":
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(self._array.item())


@composite(function=False)
def __format__(self: Tensor, spec: str) -> str:
    if self._array.ndim == 0:
        return format(item(self), spec)
    return object.__format__(self, spec)


@composite(function=False)
def __iter__(self: Tensor) -> Iterator[Any]:
    if self._array.ndim == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(self.unbind(0))


@composite(function=False)
def __contains__(self: Tensor, element: Any) -> bool:
    if isinstance(element, (Tensor, bool, int, float, complex)):
        return bool(self.eq(element)._array.any())
    raise RuntimeError(
        f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
    )


# -- types and devices


@composite(function=False)
def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """This tensor in another type, or itself if nothing changes.

    Takes a dtype, a device (the CPU), both, or another tensor whose type to take.
    """
    dtype = kwargs.pop("dtype", None)
    copy_ = kwargs.pop("copy", False)
    require_cpu(kwargs.pop("device", None))
    kwargs.pop("non_blocking", None)
    kwargs.pop("memory_format", None)
    kwargs.pop("other", None)
    if kwargs:
        raise TypeError(f"to() got an unexpected keyword argument '{next(iter(kwargs))}'")
    for i, argument in enumerate(args):
        if isinstance(argument, dtypes.dtype):
            dtype = argument
        elif isinstance(argument, Tensor):
            dtype = argument.dtype
        elif isinstance(argument, (str, device)):
            require_cpu(argument)
        elif isinstance(argument, bool):
            copy_ = argument if i == len(args) - 1 and i > 1 else copy_
        elif argument is not None:
            raise TypeError(
                "to() received an invalid combination of arguments - got "
                f"({type(argument).__name__})"
            )
    if dtype is not None and dtype.numpy != self._array.dtype:
        return apply(_TO_DTYPE, (self,), {"dtype": dtype})
    return apply(_TO_DTYPE, (self,), {"dtype": self.dtype}) if copy_ else self


def _cast_method(name: str, dtype: dtypes.dtype) -> None:
    def method(self: Tensor, memory_format: Any = None) -> Tensor:
        return to(self, dtype)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"This tensor as {dtype!r}."
    composite(function=False)(method)


for _name, _dtype in dtypes.ALIASES.items():
    _cast_method(_name, _dtype)
_cast_method("bfloat16", dtypes.bfloat16)
_cast_method("char", dtypes.int8)
_cast_method("byte", dtypes.uint8)


@composite(function=False)
def type(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of this tensor's type (``torch.FloatTensor``), or the tensor in another type."""
    if dtype is None:
        return "torch." + dtypes.legacy_type(self._array.dtype)
    if isinstance(dtype, str):
        found = dtypes.of_legacy_type(dtype.removeprefix("torch."))
        if found is None:
            raise ValueError(f"invalid type: '{dtype}'")
        return to(self, found)
    return to(self, getattr(dtype, "_legacy_dtype", dtype))


@composite(function=False)
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """This tensor in the type of another."""
    return to(self, other.dtype)


@composite(function=False)
def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """This tensor: it is on the CPU."""
    return self


def _other_device(name: str) -> None:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        require_cpu(name)
        return self

    method.__name__ = method.__qualname__ = name
    method.__doc__ = "Raises: clew runs on the CPU."
    composite(function=False)(method)


_other_device("cuda")
_other_device("xpu")


# -- copying and pickling


@composite(function=False)
def __deepcopy__(self: Tensor, memo: dict[int, Any]) -> Any:
    if self._node is not None:
        raise NonLeafCopyError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
            "protocol at the moment.  If you were attempting to deepcopy a module, this may be "
            "because of a torch.nn.utils.weight_norm usage, see "
            "https://github.com/pytorch/pytorch/pull/103001",
            self,
        )
    if id(self) in memo:
        return memo[id(self)]
    cls = self.__class__
    made = cls._from_array(_copied_storage(self, memo), self._requires_grad)
    memo[id(self)] = made
    if self._grad is not None:
        made._grad = copy.deepcopy(self._grad, memo)
    made.__dict__.update(copy.deepcopy(self.__dict__, memo))
    return made


def _copied_storage(self: Tensor, memo: dict[int, Any]) -> np.ndarray:
    """A copy of the elements; tensors that share a storage share it in the copy too."""
    owner = root(self._array)
    if owner is self._array or not owner.flags.c_contiguous:
        key = id(owner)
        if key in memo and owner is self._array and isinstance(memo[key], np.ndarray):
            return memo[key].reshape(self._array.shape)
        copied = self._array.copy()
        memo[key] = copied
        return copied
    if id(owner) not in memo:
        memo[id(owner)] = owner.copy()
    flat = flat_storage(memo[id(owner)])
    if flat.dtype != self._array.dtype:
        flat = flat.view(self._array.dtype)
    return strided(flat, geometry(self._array))


@composite(function=False)
def __reduce_ex__(self: Tensor, protocol: int) -> Any:
    array = self._array
    strides = None if array.flags.c_contiguous else element_strides(array)
    state = (
        self.__class__, _flat(array), self.dtype, self._requires_grad, self.__dict__ or None,
        array.shape, strides,
    )  # fmt: skip
    return (_rebuild, state)


def _flat(array: np.ndarray) -> np.ndarray:
    """The elements as they lie in memory, gaps between them included (or in order)."""
    if array.flags.c_contiguous:
        return array.reshape(-1)
    size = extent(Geometry(array.shape, element_strides(array), 0))
    return strided(flat_storage(array), Geometry((size,), (1,), geometry(array).offset))


def _rebuild(
    cls: Any, flat: np.ndarray, dtype: dtypes.dtype, requires_grad: bool, extras: Any,
    shape: tuple[int, ...], strides: tuple[int, ...] | None,
) -> Any:  # fmt: skip
    array = np.array(flat, dtype=dtype.numpy)
    if strides is None:
        array = array.reshape(shape)
    else:
        array = strided(array, Geometry(shape, strides, 0))
    made = cls._from_array(array, requires_grad)
    if extras:
        made.__dict__.update(extras)
    return made
