"""From a list of samples to a batch of tensors."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from clew.dispatch import apply
from clew.dtypes import float64
from clew.functions.create import as_tensor, tensor
from clew.op import REGISTRY
from clew.tensor import Tensor

CollateMap = dict[Any, Callable[..., Any]]

_NO_TENSOR_KINDS = "SUO"  # arrays of bytes, text or objects

default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def default_convert(data: Any) -> Any:
    """Turn NumPy arrays and scalars into tensors, inside mappings and sequences too.

    Tuples become lists, as in PyTorch; everything else stays as it is.
    """
    if isinstance(data, Tensor):
        return data
    if isinstance(data, (np.ndarray, np.generic)):
        return data if _holds_no_numbers(data) else as_tensor(data)
    if isinstance(data, Mapping):
        return _like_mapping(data, {key: default_convert(data[key]) for key in data})
    if _is_namedtuple(data):
        return type(data)(*(default_convert(d) for d in data))
    if isinstance(data, tuple):
        return [default_convert(d) for d in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _like_sequence(data, [default_convert(d) for d in data])
    return data


def default_collate(batch: Sequence[Any]) -> Any:
    """Join samples into a batch.

    Tensors and arrays are stacked, numbers make a tensor (Python floats a float64 one), text stays
    a list, and mappings, named tuples and sequences are joined member by member.

    Raises:
        TypeError: a sample is of a type that cannot be joined.
        RuntimeError: sequences of different lengths, or tensors of different shapes.
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def collate(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """Join samples by the function that the map has for their type, or else member by member.

    Args:
        batch: the samples; the first decides how they are joined.
        collate_fn_map: from types (or tuples of them) to functions, which are called as
            ``function(batch, collate_fn_map=...)``.
    """
    first = batch[0]
    functions = collate_fn_map or {}
    if type(first) in functions:
        return functions[type(first)](batch, collate_fn_map=collate_fn_map)
    for kind, function in functions.items():
        if isinstance(first, kind):
            return function(batch, collate_fn_map=collate_fn_map)

    def join(samples: Sequence[Any]) -> Any:
        return collate(samples, collate_fn_map=collate_fn_map)

    if isinstance(first, Mapping):
        return _like_mapping(first, {key: join([d[key] for d in batch]) for key in first})
    if _is_namedtuple(first):
        return type(first)(*map(join, zip(*batch)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        joined = [join(samples) for samples in zip(*batch)]
        return joined if isinstance(first, tuple) else _like_sequence(first, joined)
    raise TypeError(default_collate_err_msg_format.format(type(first)))


def _is_namedtuple(data: Any) -> bool:
    return isinstance(data, tuple) and hasattr(data, "_fields")


def _holds_no_numbers(data: Any) -> bool:
    return isinstance(data, np.str_) or (
        isinstance(data, np.ndarray) and data.dtype.kind in _NO_TENSOR_KINDS
    )


def _like_mapping(model: Any, members: dict[Any, Any]) -> Any:
    """A mapping of the model's type and extra attributes, as far as the type allows it."""
    try:
        if isinstance(model, MutableMapping):
            clone = copy.copy(model)
            clone.update(members)
            return clone
        return type(model)(members)
    except TypeError:
        return members


def _like_sequence(model: Any, members: list[Any]) -> Any:
    """A sequence of the model's type and extra attributes, as far as the type allows it."""
    try:
        if isinstance(model, MutableSequence):
            clone = copy.copy(model)
            for i, member in enumerate(members):
                clone[i] = member
            return clone
        return type(model)(members)
    except TypeError:
        return members


def collate_tensor_fn(batch: Sequence[Tensor], *, collate_fn_map: CollateMap | None = None) -> Any:
    """Stack tensors."""
    return apply(REGISTRY["stack"], batch, {"dim": 0})


def collate_numpy_array_fn(
    batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None
) -> Any:
    """Stack arrays into a tensor."""
    if batch[0].dtype.kind in _NO_TENSOR_KINDS:
        raise TypeError(default_collate_err_msg_format.format(batch[0].dtype))
    return collate([as_tensor(b) for b in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(
    batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None
) -> Any:
    """A tensor of NumPy scalars."""
    return as_tensor(batch)


def collate_float_fn(batch: Sequence[float], *, collate_fn_map: CollateMap | None = None) -> Any:
    """A float64 tensor of Python floats."""
    return tensor(batch, dtype=float64)


def collate_int_fn(batch: Sequence[int], *, collate_fn_map: CollateMap | None = None) -> Any:
    """A tensor of Python ints (or bools)."""
    return tensor(batch)


def collate_str_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """Text stays as it is."""
    return batch


default_collate_fn_map: CollateMap = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}
"""What `default_collate` does with each type; programs may add to it."""
