"""The zip format: a pickle and one record for each buffer that its tensors are views of.

Imports the standard library, NumPy and this package.

The records, in PyTorch's order: `data.pkl`, `.format_version`, `.storage_alignment`, `byteorder`,
the buffers `data/0`, `data/1`, ..., and `version`.
"""

from __future__ import annotations

import io
import mmap
import pickle
import sys
from typing import Any, BinaryIO

import numpy as np

from clew.serialization.adapter import Adapter
from clew.serialization.archive import ALIGNMENT, ArchiveReader, ArchiveWriter
from clew.serialization.locations import LoadedStorage, Restore
from clew.serialization.pickling import CheckpointPickler
from clew.serialization.rebuild import StorageType
from clew.serialization.unpickling import ReadPickle

_VERSION = b"3\n"
_NEWEST_VERSION = 10
_FORMAT_VERSION = b"1"  # the promise that positions of records can be computed


def save_zip(
    obj: object,
    stream: BinaryIO,
    name: str,
    pickler_type: type[CheckpointPickler],
    protocol: int,
    adapter: Adapter,
    with_byte_order: bool = True,
) -> None:
    """Write `obj` to `stream` in the folder `name`; errors as in `CheckpointPickler`."""
    body = io.BytesIO()
    pickler = pickler_type(body, protocol, adapter)
    pickler.dump(obj)
    archive = ArchiveWriter(stream, name)
    archive.write("data.pkl", body.getbuffer())
    archive.write(".format_version", _FORMAT_VERSION)
    archive.write(".storage_alignment", str(ALIGNMENT).encode())
    if with_byte_order:
        archive.write("byteorder", sys.byteorder.encode())
    for buffer in pickler.buffers:
        archive.write(f"data/{buffer.key}", buffer.memory.data)
    archive.write("version", _VERSION)
    archive.close()


def load_zip(stream: BinaryIO, read: ReadPickle, restore: Restore, mapped: bool) -> Any:
    """The object in the archive; `read(stream, persistent_load)` reads its pickle.

    Args:
        stream: the archive is all that follows in it.
        restore: what `map_location` asks for.
        mapped: map the file into memory and read a buffer when it is used.

    Raises:
        RuntimeError: the file is damaged, newer than this reader, or a TorchScript archive.
        pickle.UnpicklingError, EOFError: as `read` raises them.
    """
    archive = ArchiveReader(stream)
    if "constants.pkl" in archive:
        raise RuntimeError(
            "Cannot use ``weights_only=True`` with TorchScript archives passed to "
            "``torch.load``. clew does not run TorchScript at all: save the module's "
            "state_dict() in PyTorch instead."
        )
    version = archive.read("version") if "version" in archive else _VERSION
    if not version.strip().isdigit() or int(version) > _NEWEST_VERSION:
        raise RuntimeError(
            "Attempted to read a PyTorch file with version "
            f"{version.decode(errors='replace').strip()}, but the maximum supported version for "
            f"reading is {_NEWEST_VERSION}."
        )
    mapping = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY) if mapped else None
    storages = StorageReader(archive, restore, mapping)
    return read(io.BytesIO(archive.read("data.pkl")), storages.persistent_load)


class StorageReader:
    """The storages of one archive, each read when the pickle first refers to it, and only once.

    Args:
        archive: the opened checkpoint.
        restore: what `map_location` asks for.
        mapped: the bytes of the whole file, mapped into memory, or None to read records into
            memory.
    """

    def __init__(
        self, archive: ArchiveReader, restore: Restore, mapped: mmap.mmap | None = None
    ) -> None:
        self._archive = archive
        self._restore = restore
        self._mapped = mapped
        self._loaded: dict[str, LoadedStorage] = {}
        order = archive.read("byteorder") if "byteorder" in archive else b"little"
        if order not in (b"little", b"big"):
            raise ValueError(f"Unknown endianness type: {order.decode(errors='replace')}")
        self._foreign = order.decode() != sys.byteorder

    def persistent_load(self, reference: Any) -> LoadedStorage:
        """The storage that ("storage", type, key, location, elements) in a pickle means."""
        kind, key, location, count = check_reference(reference, 5)
        if key not in self._loaded:
            itemsize = 1 if kind.dtype is None else kind.dtype.itemsize
            data = self._read(f"data/{key}", count * itemsize)
            storage = LoadedStorage(data, kind.dtype)
            if self._foreign:
                storage.swap_bytes()
            self._loaded[key] = self._restore(storage, location)
        return self._loaded[key]

    def _read(self, name: str, nbytes: int) -> np.ndarray:
        size = self._archive.size(name)
        if size != nbytes:
            raise RuntimeError(
                f"record size ({size} bytes) does not match expected size ({nbytes} bytes) of "
                f"the storage {name}. The file is damaged."
            )
        place = self._archive.locate(name)
        if self._mapped is None or place is None or place % ALIGNMENT or not nbytes:
            return self._archive.read_array(name)
        # An array of its own for each storage: to save one again must not save the whole file.
        return np.frombuffer(self._mapped, np.uint8, nbytes, place)


def as_text(value: Any) -> Any:
    """`value`, as text if it is bytes: files from Python 2 have these where Python 3 has text."""
    return value.decode("ascii", "replace") if type(value) is bytes else value


def check_reference(reference: Any, length: int) -> tuple[StorageType, str, str, int]:
    """The fields (type, key, location, number of elements) of a reference to a storage.

    Raises:
        pickle.UnpicklingError: `reference` is something else.
    """
    if type(reference) is tuple and len(reference) == length:
        tag, kind, key, location, count = reference[:5]
        tag, key, location = map(as_text, (tag, key, location))
        fields = (type(tag), type(kind), type(key), type(location), type(count))
        if fields == (str, StorageType, str, str, int) and tag == "storage" and count >= 0:
            return kind, key, location, count
    raise pickle.UnpicklingError("Only persistent_load of storage is allowed")
