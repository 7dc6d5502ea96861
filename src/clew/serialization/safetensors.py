"""The safetensors format, with the functions of `safetensors.torch`.

Imports this package and, when a function is called, the safetensors library. Files are written
atomically.

The format is a table of names and plain arrays: it has no code to execute, no sharing and no
strides. So two tensors on the same memory, or a tensor that is not contiguous, are refused rather
than written twice or changed behind the user's back; `save_model` leaves the duplicates of a model
out and `load_model` knows it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from clew.device import require_cpu
from clew.serialization.adapter import tensor_adapter
from clew.serialization.atomic import replacing
from clew.serialization.records import TensorRecord, numpy_dtype

Metadata = Mapping[str, str]

# The format's names of dtypes.
_DTYPES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "U16": "uint16",
    "U32": "uint32",
    "U64": "uint64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
}


def save_file(
    tensors: Mapping[str, Any],
    filename: str | os.PathLike[str],
    metadata: Metadata | None = None,
) -> None:
    """Write the dict `tensors` to `filename`, with the texts of `metadata` in the file's header.

    Raises:
        ValueError: `tensors` is not a dict of tensors, or one of them is not contiguous.
        RuntimeError: two tensors share memory.
        OSError: the file cannot be written.
    """
    from safetensors.numpy import save_file as write

    arrays = _arrays(tensors)
    with replacing(filename) as temporary:
        write(arrays, temporary, metadata=_header(metadata))


def save(tensors: Mapping[str, Any], metadata: Metadata | None = None) -> bytes:
    """The bytes that `save_file` would write; errors as there."""
    from safetensors.numpy import save as to_bytes

    return to_bytes(_arrays(tensors), metadata=_header(metadata))


def load_file(filename: str | os.PathLike[str], device: Any = "cpu") -> dict[str, Any]:
    """The tensors in `filename` by their names.

    Raises:
        FileNotFoundError: there is no such file.
        safetensors.SafetensorError: it is no such file, or damaged.
        TypeError: a tensor is of a dtype that clew does not have.
        AssertionError, RuntimeError: `device` is not the CPU.
    """
    from safetensors import safe_open

    require_cpu(device)
    _register_dtypes()
    with safe_open(os.fspath(filename), framework="numpy") as file:
        names = file.keys()
        for name in names:
            _dtype(name, file.get_slice(name).get_dtype())
        return _tensors({name: file.get_tensor(name) for name in names})


def load(data: bytes) -> dict[str, Any]:
    """The tensors in the bytes of a file by their names.

    Raises:
        safetensors.SafetensorError: the bytes are no such file.
        TypeError: a tensor is of a dtype that clew does not have.
    """
    from safetensors import deserialize

    arrays = {}
    for name, entry in deserialize(data):
        dtype = _dtype(name, entry["dtype"])
        arrays[name] = np.frombuffer(entry["data"], dtype).reshape(entry["shape"])
    return _tensors(arrays)


def save_model(
    model: Any,
    filename: str | os.PathLike[str],
    metadata: Metadata | None = None,
    force_contiguous: bool = True,
) -> None:
    """Write the `state_dict` of `model`, each shared tensor once.

    The header tells, for each name left out, under which name its tensor is. Tensors that are not
    contiguous are written as contiguous copies.

    Raises:
        RuntimeError: tensors overlap and none of them covers all of the memory they are on.
        ValueError: a tensor is not contiguous, with `force_contiguous=False`.
        OSError: the file cannot be written.
    """
    tensors = dict(model.state_dict())
    notes = dict(metadata or {})
    for kept, duplicates in _duplicates(_records(tensors)).items():
        for name in duplicates:
            notes.setdefault(name, kept)
            del tensors[name]
    if force_contiguous:
        tensors = {name: tensor.contiguous() for name, tensor in tensors.items()}
    save_file(tensors, filename, notes or None)


def load_model(
    model: Any, filename: str | os.PathLike[str], strict: bool = True, device: Any = "cpu"
) -> tuple[set[str], list[str]]:
    """Load what `save_model` has written into `model`.

    Returns:
        The names that the file lacks, and those that the model lacks; without those that only are
        other names of a shared tensor.

    Raises:
        RuntimeError: there are such names, with `strict=True`; or a tensor has another shape than
            the model's.
    """
    tensors = load_file(filename, device)
    duplicates = _duplicates(_records(model.state_dict()), preferred=tensors)
    answer = model.load_state_dict(tensors, strict=False)
    missing, unexpected = set(answer[0]), list(answer[1])
    for name in (name for names in duplicates.values() for name in names):
        if name in missing:
            missing.remove(name)
        else:
            unexpected.append(name)
    if strict and (missing or unexpected):
        error = f"Error(s) in loading state_dict for {type(model).__name__}:"
        for kind, names in (("Missing", missing), ("Unexpected", unexpected)):
            if names:
                shown = ", ".join(f'"{name}"' for name in sorted(names))
                error += f"\n    {kind} key(s) in state_dict: {shown}"
        raise RuntimeError(error)
    return missing, unexpected


def load_for_map_location(filename: str, map_location: Any) -> dict[str, Any]:
    """`load_file` as `load` calls it for a path that ends in ".safetensors".

    Raises:
        RuntimeError: `map_location` is a dict or a function; and as in `load_file`.
    """
    if map_location is None:
        map_location = "cpu"
    elif not (isinstance(map_location, str) or hasattr(map_location, "type")):
        kind = "dict" if isinstance(map_location, dict) else "callable"
        raise RuntimeError(
            f"Loading safetensors file with {kind} map_location is not supported. Use a device "
            "string or torch.device instead."
        )
    return load_file(filename, map_location)


def _header(metadata: Metadata | None) -> dict[str, str] | None:
    return None if metadata is None else dict(metadata)


def _dtype(name: str, code: str) -> np.dtype[Any]:
    if code not in _DTYPES:
        raise TypeError(f"The tensor `{name}` is of the dtype {code}, which clew does not have")
    return numpy_dtype(_DTYPES[code])


def _register_dtypes() -> None:
    """Importing ml_dtypes makes NumPy know "bfloat16", by which name safetensors asks for it."""
    import ml_dtypes  # noqa: F401


def _tensors(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    adapter = tensor_adapter()
    return {name: adapter.tensor(TensorRecord.from_array(a)) for name, a in arrays.items()}


def _records(tensors: Mapping[str, Any]) -> dict[str, TensorRecord]:
    adapter = tensor_adapter()
    records = {}
    for name, tensor in tensors.items():
        record = adapter.describe(tensor)
        if record is None:
            raise ValueError(
                f"Key `{name}` is invalid, expected torch.Tensor but received {type(tensor)}"
            )
        records[name] = record
    return records


def _arrays(tensors: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The arrays of `tensors`, if the format can say them; errors as in `save_file`."""
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    records = _records(tensors)
    failing = [sorted(names) for names in _overlapping(records) if len(names) > 1]
    if failing:
        raise RuntimeError(
            "Some tensors share memory, this will lead to duplicate memory on disk and "
            f"potential differences when loading them again: {failing}. To save a model, use "
            "save_model, which writes each of them once; else save a copy (`tensor.clone()`) "
            "of all but one."
        )
    arrays = {name: record.view() for name, record in records.items()}
    for name, array in arrays.items():
        if not array.flags.c_contiguous:
            raise ValueError(
                f"You are trying to save a non contiguous tensor: `{name}` which is not "
                "allowed. Call `.contiguous()` on it first; if it is a part of another saved "
                "tensor, save only the whole one."
            )
    return arrays


def _overlapping(records: Mapping[str, TensorRecord]) -> list[list[str]]:
    """The names in groups: tensors of one storage whose elements lie in overlapping ranges."""
    by_storage: dict[tuple[int, int], list[tuple[int, int, str]]] = {}
    for name, record in records.items():
        if record.storage.nbytes:
            start, stop = record.byte_range()
            by_storage.setdefault(record.memory(), []).append((start, stop, name))
    groups = []
    for spans in by_storage.values():
        reached = -1
        for start, stop, name in sorted(spans):
            if start >= reached:
                groups.append([name])
            else:
                groups[-1].append(name)
            reached = max(reached, stop)
    return groups


def _duplicates(
    records: Mapping[str, TensorRecord], preferred: Iterable[str] = ()
) -> dict[str, list[str]]:
    """For each tensor that several names share: the name to keep, and the names to leave out.

    The name to keep is the first, in alphabetical order, of the tensors that cover their whole
    storage; of those in `preferred`, if there are any.
    """
    chosen: dict[str, list[str]] = {}
    wanted = set(preferred)
    for names in _overlapping(records):
        if len(names) == 1:
            continue
        complete = {n for n in names if records[n].byte_range() == (0, records[n].storage.nbytes)}
        if not complete:
            raise RuntimeError(
                "Error while trying to find names to remove to save state dict, but found no "
                f"suitable name to keep for saving amongst: {sorted(names)}. None is covering "
                "the entire storage."
            )
        kept = min(complete & wanted or complete)
        chosen[kept] = sorted(set(names) - {kept})
    return chosen
