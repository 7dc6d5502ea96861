"""The format before zip (PyTorch 1.5 and older, `_use_new_zipfile_serialization=False` since).

Imports the standard library, NumPy and this package.

One after the other, each a pickle of its own: a magic number, a version, facts about the machine,
the object, the list of the keys of its storages. Then, for each key, the number of elements as
eight bytes and the elements, always little-endian. The object comes before its storages, so their
memory is allocated first and filled last.
"""

from __future__ import annotations

import io
import pickle
import struct
import sys
from types import ModuleType
from typing import Any, BinaryIO

import numpy as np

from clew.serialization.adapter import Adapter
from clew.serialization.archive import read_into, write_all
from clew.serialization.checkpoint import as_text, check_reference
from clew.serialization.locations import LoadedStorage, Restore
from clew.serialization.pickling import LegacyPickler, pickler_class
from clew.serialization.unpickling import ReadPickle

_MAGIC = 0x1950A86A20F9469CFC6C
_VERSION = 1001
_COUNT = struct.Struct("<q")


def save_legacy(
    obj: object, stream: BinaryIO, pickle_module: ModuleType, protocol: int, adapter: Adapter
) -> None:
    """Write `obj` to `stream`.

    Raises:
        NotImplementedError: on a big-endian machine.
        RuntimeError, pickle.PicklingError: as in `CheckpointPickler`.
    """
    _require_little_endian()
    body = io.BytesIO()
    pickler = pickler_class(LegacyPickler, pickle_module)(body, protocol, adapter)
    pickler.dump(obj)
    sizes = {"short": 2, "int": 4, "long": 4}
    machine = {"protocol_version": _VERSION, "little_endian": True, "type_sizes": sizes}
    for value in (_MAGIC, _VERSION, machine):
        stream.write(pickle.dumps(value, protocol))
    stream.write(body.getvalue())
    stream.write(pickle.dumps([buffer.key for buffer in pickler.buffers], protocol))
    for buffer in pickler.buffers:
        stream.write(_COUNT.pack(buffer.memory.nbytes // buffer.itemsize))
        write_all(stream, buffer.memory.data)


def load_legacy(stream: BinaryIO, read: ReadPickle, restore: Restore) -> Any:
    """The object in `stream`; `read(stream, persistent_load)` reads one pickle of it.

    Raises:
        NotImplementedError: on a big-endian machine.
        RuntimeError: the stream holds no such file, or a damaged one.
        pickle.UnpicklingError, EOFError: as `read` raises them.
    """
    _require_little_endian()
    _refuse_tar(stream)
    storages = _Storages(stream, restore)
    if read(stream, storages.persistent_load) != _MAGIC:
        raise RuntimeError("Invalid magic number; corrupt file?")
    version = read(stream, storages.persistent_load)
    if version != _VERSION:
        raise RuntimeError(f"Invalid protocol version: {version}")
    read(stream, storages.persistent_load)
    result = read(stream, storages.persistent_load)
    storages.fill(read(stream, storages.persistent_load))
    return result


class _Storages:
    """The storages of one file: allocated when the pickle refers to them, filled at the end."""

    def __init__(self, stream: BinaryIO, restore: Restore) -> None:
        self._stream = stream
        self._restore = restore
        self._storages: dict[str, LoadedStorage] = {}
        position = stream.tell()
        self._length = stream.seek(0, 2)
        stream.seek(position)

    def persistent_load(self, reference: Any) -> Any:
        """The storage referred to; or the class, for that of a module saved with its source."""
        if type(reference) is tuple and reference[:1] == ("module",) and len(reference) == 4:
            return reference[1]
        kind, key, location, count = check_reference(reference, 6)
        if reference[5] is not None:
            raise pickle.UnpicklingError(
                "The file holds a view of a storage (PyTorch before 0.4): clew does not read these"
            )
        if key not in self._storages:
            nbytes = count * (1 if kind.dtype is None else kind.dtype.itemsize)
            if nbytes > self._length:
                raise RuntimeError(
                    f"unexpected EOF: a storage of {nbytes} bytes in a file of {self._length}. "
                    "The file might be corrupted."
                )
            storage = LoadedStorage(np.empty(nbytes, np.uint8), kind.dtype)
            self._storages[key] = self._restore(storage, location)
        return self._storages[key]

    def fill(self, keys: Any) -> None:
        """Read the elements of all storages, which follow in the order of `keys`."""
        names = [as_text(key) for key in keys] if type(keys) is list else None
        if names is None or sorted(names, key=str) != sorted(self._storages):
            raise RuntimeError(
                "The file's list of storages is not that of its object: it is damaged."
            )
        for key in names:
            storage = self._storages[key]
            itemsize = 1 if storage.dtype is None else storage.dtype.itemsize
            header = np.empty(_COUNT.size, np.uint8)
            read_into(self._stream, header)
            (count,) = _COUNT.unpack(header.data)
            if count * itemsize != storage.nbytes():
                raise RuntimeError(
                    f"The file holds {count} elements for the storage {key}, its object says "
                    f"{storage.nbytes() // itemsize}: it is damaged."
                )
            read_into(self._stream, storage.data)


def _require_little_endian() -> None:
    if sys.byteorder != "little":
        raise NotImplementedError(
            "clew reads and writes the format before zip on little-endian machines only"
        )


def _refuse_tar(stream: BinaryIO) -> None:
    """PyTorch 0.1 wrote tar files."""
    position = stream.tell()
    stream.seek(position + 257)
    is_tar = stream.read(5) == b"ustar"
    stream.seek(position)
    if is_tar:
        raise RuntimeError(
            "The file is in the legacy .tar format of PyTorch 0.1, which clew does not read. "
            "Load it with PyTorch and save it again."
        )
