"""PyTorch's old constructors: ``Tensor(2, 3)``, ``LongTensor([1, 2])``, ``x.new(3)``.  Layer 4.

Each takes sizes (and leaves the elements to chance), data, or a tensor, of which it makes an alias.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from clew import dtypes
from clew.device import require_cpu
from clew.dispatch import TENSORS
from clew.functions.data import array_of
from clew.publish import FUNCTIONS, composite
from clew.storage import flat_storage
from clew.tensor import Size, Tensor


def construct(cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What ``Tensor(...)`` is: of the default floating type, unless it is given a tensor.

    Raises:
        TypeError: the arguments are neither sizes nor data nor a tensor.
    """
    if len(args) == 1 and isinstance(args[0], Tensor) and cls is Tensor and not kwargs:
        return TENSORS.alias(args[0])
    made = _made(dtypes.get_default_dtype(), args, kwargs)
    return made if cls is Tensor else cls._from_array(made._array)  # type: ignore[attr-defined]


def _made(dtype: dtypes.dtype, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    size, device = kwargs.pop("size", None), kwargs.pop("device", None)
    data = kwargs.pop("data", None)
    if kwargs:
        raise TypeError(f"new() received an invalid combination of arguments: {sorted(kwargs)}")
    require_cpu(device)
    if data is not None:
        args = (data,)
    if size is not None:
        return _of_size(dtype, tuple(size))
    if not args:
        return _of_size(dtype, (0,))
    if all(_is_size(n) for n in args):
        return _of_size(dtype, args)
    if len(args) > 1:
        kinds = ", ".join(type(a).__name__ for a in args)
        raise TypeError(
            f"new() received an invalid combination of arguments - got ({kinds}), but expected "
            "sizes, or one argument: a tensor, a storage, or a sequence of numbers"
        )
    return _of_data(dtype, args[0])


def _of_data(dtype: dtypes.dtype, data: Any) -> Tensor:
    if isinstance(data, Tensor):
        if data.dtype is not dtype:
            raise TypeError(f"expected a tensor of {dtype!r} (got one of {data.dtype!r})")
        return TENSORS.alias(data)
    if hasattr(data, "_owner"):  # a storage
        flat = flat_storage(data._owner)
        return Tensor._from_array(flat.view(dtype.numpy))
    if isinstance(data, Size):
        return _of_size(dtype, tuple(data))
    if isinstance(data, (bool, int, float, complex)):
        raise TypeError(f"new(): data must be a sequence (got {type(data).__name__})")
    return Tensor._from_array(array_of(data, dtype))


def _is_size(n: Any) -> bool:
    return isinstance(n, (int, np.integer)) and not isinstance(n, bool)


def _of_size(dtype: dtypes.dtype, size: tuple[Any, ...]) -> Tensor:
    return Tensor._from_array(np.zeros([int(n) for n in size], dtype.numpy))


@composite(function=False)
def new(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """A tensor of this one's type, from sizes or data; new code uses `new_tensor`, `new_zeros`."""
    return _made(self.dtype, args, kwargs)


class tensortype(type):
    """The type of `LongTensor` and the like: constructors of Tensors of one type of elements."""

    _legacy_dtype: dtypes.dtype

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return _made(cls._legacy_dtype, args, kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls._legacy_dtype


def _declare(dtype: dtypes.dtype) -> Callable[..., Any]:
    name = dtypes.LEGACY_TYPES[dtype.name]
    members = {
        "_legacy_dtype": dtype, "dtype": dtype, "is_cuda": False, "__module__": "torch",
        "__doc__": f"Makes tensors of {dtype!r}; new code uses ``torch.tensor(data, dtype=...)``.",
    }  # fmt: skip
    return tensortype(name, (), members)


for _dtype in (
    dtypes.bool_, dtypes.uint8, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64,
    dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64,
):  # fmt: skip
    FUNCTIONS[dtypes.LEGACY_TYPES[_dtype.name]] = _declare(_dtype)
