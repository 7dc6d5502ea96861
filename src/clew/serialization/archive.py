"""The zip file that holds a checkpoint: named records, stored uncompressed, each at a multiple of
64 bytes.

Imports the standard library and NumPy only.

The writer lays records out exactly as PyTorch's does, because a `.format_version` record promises
readers that they can compute where each record starts. One record is:

    local header | name | extra field, padded so that the data is aligned | data | data descriptor

Sizes and checksum stand in the descriptor behind the data, so the file is written in one pass and
the stream need not be seekable. An empty record has no descriptor. What exceeds 32 bits moves to
zip64 fields.

The reader finds records with the standard library's `zipfile` and reads them in place: a big
record goes straight from the file into the array that will be the tensor's storage.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

if TYPE_CHECKING:
    from zipfile import ZipInfo

ALIGNMENT = 64
LIMIT32 = 0xFFFFFFFF  # a size or position from here on does not fit a plain zip field

_LOCAL_HEADER = struct.Struct("<4s5H3L2H")
_CENTRAL_HEADER = struct.Struct("<4s6H3L5H2L")
_DESCRIPTOR = struct.Struct("<4s3L")
_DESCRIPTOR64 = struct.Struct("<4sL2Q")
_END64 = struct.Struct("<4sQ2H2L4Q")
_END64_LOCATOR = struct.Struct("<4sLQL")
_END = struct.Struct("<4s4H2LH")
_ZIP64_TAG = 1
_PADDING_TAG = b"FB"
_UTF8_NAME = 0x0800
_HAS_DESCRIPTOR = 0x0008
_ZIP64_VERSION = 45
_MADE_BY_UNIX = 0x031E

_DAMAGED = (
    " The file is probably damaged: it was not saved to its end, not transferred completely, or "
    "changed afterwards."
)


@dataclass(frozen=True, slots=True)
class _Entry:
    """What the central directory repeats about one record."""

    name: bytes
    position: int
    size: int
    checksum: int
    flags: int


class ArchiveWriter:
    """Write records to `stream`, which needs `write` only, all of them in the folder `name`."""

    def __init__(self, stream: BinaryIO, name: str = "archive") -> None:
        self._stream = stream
        self._name = name
        self._position = 0
        self._entries: list[_Entry] = []

    def write(self, name: str, data: bytes | memoryview) -> None:
        """Add the record `name` with the bytes `data`."""
        full_name = f"{self._name}/{name}".encode()
        size = len(data)
        flags = _UTF8_NAME | (_HAS_DESCRIPTOR if size else 0)
        entry = _Entry(full_name, self._position, size, zlib.crc32(data), flags)
        self._entries.append(entry)
        extra = _zip64_extra(entry)
        extra += _padding(self._position + _LOCAL_HEADER.size + len(full_name) + len(extra))
        self._put(
            _LOCAL_HEADER.pack(
                b"PK\x03\x04", 0, flags, 0, 0, 0, 0, 0, 0, len(full_name), len(extra)
            )
        )
        self._put(full_name + extra)
        self._put(data)
        if size:
            wide = size >= LIMIT32 or entry.position >= LIMIT32
            descriptor = _DESCRIPTOR64 if wide else _DESCRIPTOR
            self._put(descriptor.pack(b"PK\x07\x08", entry.checksum, size, size))

    def close(self) -> None:
        """Write the central directory; no record can follow."""
        start = self._position
        for entry in self._entries:
            self._put(_central_entry(entry))
        end, count, size = self._position, len(self._entries), self._position - start
        self._put(
            _END64.pack(
                b"PK\x06\x06",
                _END64.size - 12,
                _MADE_BY_UNIX,
                _ZIP64_VERSION,
                0,
                0,
                count,
                count,
                size,
                start,
            )
        )
        self._put(_END64_LOCATOR.pack(b"PK\x06\x07", 0, end, 1))
        count16 = min(count, 0xFFFF)
        self._put(
            _END.pack(
                b"PK\x05\x06", 0, 0, count16, count16, min(size, LIMIT32), min(start, LIMIT32), 0
            )
        )

    def _put(self, data: bytes | memoryview) -> None:
        self._position += len(data)
        write_all(self._stream, data)


def _zip64_extra(entry: _Entry) -> bytes:
    fields = [entry.size, entry.size] if entry.size >= LIMIT32 else []
    if entry.position >= LIMIT32:
        fields.append(entry.position)
    if not fields:
        return b""
    return struct.pack(f"<2H{len(fields)}Q", _ZIP64_TAG, 8 * len(fields), *fields)


def _padding(position: int) -> bytes:
    """An extra field of at least four bytes that ends at a multiple of `ALIGNMENT`."""
    fill = -(position + 4) % ALIGNMENT
    return _PADDING_TAG + struct.pack("<H", fill) + b"Z" * fill


def _central_entry(entry: _Entry) -> bytes:
    extra = _zip64_extra(entry)
    size = LIMIT32 if entry.size >= LIMIT32 else entry.size
    header = _CENTRAL_HEADER.pack(
        b"PK\x01\x02",
        0,
        0,
        entry.flags,
        0,
        0,
        0,
        entry.checksum,
        size,
        size,
        len(entry.name),
        len(extra),
        0,
        0,
        0,
        0,
        min(entry.position, LIMIT32),
    )
    return header + entry.name + extra


class ArchiveReader:
    """Read the records of the zip archive that ends where `stream` ends.

    Raises:
        RuntimeError: `stream` is no complete zip archive.
    """

    def __init__(self, stream: BinaryIO) -> None:
        import zipfile  # costs 7 ms, and only a load needs it

        self._stream = stream
        self._length = stream.seek(0, 2)
        try:
            self._zip = zipfile.ZipFile(stream)
        except (
            zipfile.BadZipFile,
            NotImplementedError,
            ValueError,
            OverflowError,
            OSError,
        ) as error:
            raise RuntimeError(
                "PytorchStreamReader failed reading zip archive: failed finding central directory."
                + _DAMAGED
            ) from error
        names = self._zip.namelist()
        self._folder = names[0].partition("/")[0] if names else ""

    def __contains__(self, name: str) -> bool:
        return f"{self._folder}/{name}" in self._zip.NameToInfo

    def read(self, name: str) -> bytes:
        """The bytes of the record `name`.

        Raises:
            RuntimeError: there is no such record, or it is damaged.
        """
        return self.read_array(name).tobytes()

    def read_array(self, name: str) -> np.ndarray:
        """The record `name` as a new, writable uint8 array in one dimension; errors as `read`."""
        info = self._info(name)
        if info.compress_type != 0:
            return self._read_compressed(info)
        start = self._start(info)
        data = np.empty(info.file_size, np.uint8)
        self._stream.seek(start)
        read_into(self._stream, data)
        # PyTorch can be told not to compute checksums and then stores 0.
        if info.CRC and zlib.crc32(data.data) != info.CRC:
            raise RuntimeError(f"The record {info.filename} has a wrong checksum.{_DAMAGED}")
        return data

    def size(self, name: str) -> int:
        """The length of the record `name` in bytes.

        Raises:
            RuntimeError: there is no such record.
        """
        return self._info(name).file_size

    def locate(self, name: str) -> int | None:
        """Where the bytes of the record `name` start in the stream; None if they are compressed.

        Raises:
            RuntimeError: there is no such record, or it is damaged.
        """
        info = self._info(name)
        return self._start(info) if info.compress_type == 0 else None

    def _info(self, name: str) -> ZipInfo:
        try:
            return self._zip.NameToInfo[f"{self._folder}/{name}"]
        except KeyError:
            raise RuntimeError(
                f"PytorchStreamReader failed locating file {name}: file not found.{_DAMAGED}"
            ) from None

    def _start(self, info: ZipInfo) -> int:
        """Where the data of a stored record starts, by its local header; it ends in the file."""
        header_end = info.header_offset + _LOCAL_HEADER.size
        if info.header_offset >= 0 and header_end <= self._length:
            self._stream.seek(info.header_offset)
            signature, *_, name, extra = _LOCAL_HEADER.unpack(self._stream.read(_LOCAL_HEADER.size))
            start = header_end + name + extra
            if signature == b"PK\x03\x04" and start + info.file_size <= self._length:
                return start
        raise RuntimeError(
            f"PytorchStreamReader failed reading file {info.filename}: file read failed.{_DAMAGED}"
        )

    def _read_compressed(self, info: ZipInfo) -> np.ndarray:
        """A record that some other tool has compressed since the file was saved."""
        import zipfile

        try:
            if info.compress_type != zipfile.ZIP_DEFLATED:
                raise NotImplementedError("compressed by another method than deflate")
            return np.frombuffer(bytearray(self._zip.read(info)), np.uint8)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError) as error:
            raise RuntimeError(
                f"PytorchStreamReader failed reading file {info.filename}: {error}.{_DAMAGED}"
            ) from error


def write_all(stream: BinaryIO, data: bytes | memoryview) -> None:
    """Write all of `data`: an unbuffered stream may take a part of it only."""
    written = stream.write(data)
    while written is not None and written < len(data):
        data = memoryview(data)[written:]
        written = stream.write(data)


def read_into(stream: BinaryIO, target: np.ndarray) -> None:
    """Fill `target` (uint8, one dimension) from `stream`, without a second copy where it has
    `readinto`.

    Raises:
        RuntimeError: the stream ends too early.
    """
    view = target.data
    while len(view):
        if hasattr(stream, "readinto"):
            count = stream.readinto(view)
        else:
            part = stream.read(len(view))
            count = len(part)
            view[:count] = part
        if not count:
            raise RuntimeError(
                f"unexpected EOF, expected {len(view)} more bytes. The file might be corrupted."
            )
        view = view[count:]
