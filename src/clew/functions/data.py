"""Arrays of data as users give it, typed as PyTorch infers it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from clew import dtypes
from clew.tensor import Tensor


def array_of(data: Any, dtype: dtypes.dtype | None) -> np.ndarray:
    """A fresh array of nested sequences, numbers, tensors or arrays, typed as PyTorch infers it."""
    if isinstance(data, Tensor):
        return np.array(data._array, dtype=dtype.numpy if dtype else None)
    if isinstance(data, (np.ndarray, np.generic)):
        dtypes.of_numpy(data.dtype)
        refuse_negative_strides(data)
        return np.array(data, dtype=dtype.numpy if dtype else None)
    if isinstance(data, (bool, int, float, complex)):
        kind = dtype or dtypes.of_python(type(data))
        try:
            return np.array(data, dtype=kind.numpy)
        except OverflowError:
            raise ValueError("Overflow when unpacking long long") from None
    if data is None:
        raise RuntimeError("Could not infer dtype of NoneType")
    plain = _plain(data)
    array = _array_of_sequence(plain)
    if dtype is None and _holds_tensors(data):
        dtype = _common_type(data)
    if dtype is not None:
        return array.astype(dtype.numpy)
    if array.size == 0 and array.dtype == np.float64:
        return array.astype(dtypes.get_default_dtype().numpy)
    if array.dtype.kind == "f" and not _holds_numpy(data):
        return array.astype(dtypes.get_default_dtype().numpy)
    if array.dtype == np.complex128 and not _holds_numpy(data):
        return array.astype(dtypes.get_default_dtype().to_complex().numpy)
    return array


def _plain(data: Any) -> Any:
    """Nested sequences with tensors and other array-likes turned into what NumPy reads fast."""
    if isinstance(data, Tensor):
        return data._array if data._array.ndim else data._array.item()
    if isinstance(data, (list, tuple)):
        if (data and isinstance(data[0], (list, tuple, Tensor))) or any(
            isinstance(d, Tensor) for d in data
        ):
            return [_plain(d) for d in data]
        return data
    if isinstance(data, str):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if hasattr(data, "__array__"):
        return np.asarray(data)
    if isinstance(data, Sequence) or hasattr(data, "__getitem__"):
        return [_plain(d) for d in data]
    return data


def _array_of_sequence(data: Any) -> np.ndarray:
    try:
        array = np.array(data)
    except ValueError:
        raise _not_a_block(data) from None
    except OverflowError:
        raise RuntimeError("Overflow when unpacking long long") from None
    if array.dtype.kind not in "biufcV":
        kind = type(data).__name__ if not isinstance(data, (list, tuple)) else _odd_element(data)
        raise TypeError(f"new(): invalid data type '{kind}'" if kind == "str" else
                        f"Could not infer dtype of {kind}")  # fmt: skip
    return array


def _not_a_block(data: Any, dim: int = 0) -> Exception:
    """The error for nested sequences of which two that should be alike differ."""
    lengths = [len(d) if isinstance(d, (list, tuple)) else None for d in data]
    for part, n in zip(data, lengths):
        if n == lengths[0]:
            continue
        if n is None:
            return TypeError("not a sequence")
        if lengths[0] is None:
            return TypeError(f"'{type(part).__name__}' object cannot be interpreted as an integer")
        return ValueError(f"expected sequence of length {lengths[0]} at dim {dim + 1} (got {n})")
    if lengths[0] is None:
        return ValueError("the data is no block of numbers")
    parts = [_not_a_block(part, dim + 1) for part in data]
    found = [e for e in parts if "block" not in str(e)]
    return found[0] if found else _not_a_block([d for part in data for d in part], dim + 1)


def _holds_tensors(data: Any) -> bool:
    if isinstance(data, (list, tuple)):
        return any(isinstance(d, Tensor) or _holds_tensors(d) for d in data)
    return False


def _common_type(data: Any) -> dtypes.dtype:
    """The type that all elements of nested data, tensors among them, are promoted to."""
    if isinstance(data, Tensor):
        return data.dtype
    if isinstance(data, (list, tuple)):
        return functools.reduce(dtypes.promote_types, map(_common_type, data))
    if isinstance(data, (np.ndarray, np.generic)):
        return dtypes.of_numpy(data.dtype)
    return dtypes.of_python(type(data))


def _odd_element(data: Any) -> str:
    """The type of the first element that is no number."""
    if isinstance(data, (list, tuple)):
        kinds = [_odd_element(d) for d in data]
        return next((k for k in kinds if k not in ("int", "float", "bool", "complex")), "int")
    return type(data).__name__


def _holds_numpy(data: Any) -> bool:
    """Whether the first leaf of nested data is a NumPy value or a tensor, whose type counts."""
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return isinstance(data, (np.ndarray, np.generic, Tensor))


def refuse_negative_strides(array: Any) -> None:
    """Refuse an array that runs backwards in memory, as tensors cannot.

    Raises:
        ValueError: it does.
    """
    if any(s < 0 for s in array.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative "
            "strides are not currently supported. (You can probably work around this by making a "
            "copy of your array  with array.copy().) "
        )
