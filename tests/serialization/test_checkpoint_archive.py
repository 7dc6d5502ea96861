"""The zip container: laid out as PyTorch does it, readable by any zip reader, safe when damaged."""

import io
import random
import zipfile

import numpy as np
import pytest

from clew.serialization import archive
from clew.serialization.archive import ArchiveReader, ArchiveWriter, read_into

RECORDS = {"data.pkl": b"pickle", "data/0": bytes(range(256)), "data/1": b"", "version": b"3\n"}


def written(records=RECORDS, name="model"):
    stream = io.BytesIO()
    writer = ArchiveWriter(stream, name)
    for key, data in records.items():
        writer.write(key, data)
    writer.close()
    return stream.getvalue()


def test_any_zip_reader_reads_it():
    with zipfile.ZipFile(io.BytesIO(written())) as file:
        assert file.testzip() is None
        assert {name: file.read(f"model/{name}") for name in RECORDS} == RECORDS
        assert all(info.compress_type == zipfile.ZIP_STORED for info in file.infolist())


def test_reader_reads_it():
    reader = ArchiveReader(io.BytesIO(written()))
    assert {name: reader.read(name) for name in RECORDS} == RECORDS
    assert "version" in reader
    assert "byteorder" not in reader
    assert [reader.size(name) for name in RECORDS] == [6, 256, 0, 2]


def test_records_are_aligned():
    data = written()
    reader = ArchiveReader(io.BytesIO(data))
    for name, content in RECORDS.items():
        place = reader.locate(name)
        assert place % 64 == 0
        assert data[place : place + len(content)] == content


@pytest.mark.parametrize("limit", [100, 600, 1])
def test_zip64(monkeypatch, limit):
    # 4 GiB is the real limit; a smaller one takes the same way.
    monkeypatch.setattr(archive, "LIMIT32", limit)
    data = written()
    monkeypatch.undo()
    # Fields below the true limit are legal as they are, so mark them as moved.
    reader = ArchiveReader(io.BytesIO(_as_moved(data, limit)))
    assert {name: reader.read(name) for name in RECORDS} == RECORDS
    assert all(reader.locate(name) % 64 == 0 for name in RECORDS)


def _as_moved(data, limit):
    """Turn the stand-in for 0xFFFFFFFF in the central directory into the real one."""
    import struct

    data = bytearray(data)
    small, real = struct.pack("<L", limit), b"\xff\xff\xff\xff"
    place = data.find(b"PK\x01\x02")
    while place >= 0:
        for field in (20, 24, 42):
            if data[place + field : place + field + 4] == small:
                data[place + field : place + field + 4] = real
        place = data.find(b"PK\x01\x02", place + 4)
    return bytes(data)


def test_read_array_is_writable_and_alone():
    stream = io.BytesIO(written())
    array = ArchiveReader(stream).read_array("data/0")
    array[:] = 0
    assert ArchiveReader(stream).read("data/0") == RECORDS["data/0"]


def test_archive_behind_other_data():
    stream = io.BytesIO(b"in front" + written())
    stream.seek(8)
    reader = ArchiveReader(stream)
    assert reader.read("data/0") == RECORDS["data/0"]


def test_compressed_by_another_tool():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in RECORDS.items():
            file.writestr(f"model/{name}", data)
    reader = ArchiveReader(stream)
    assert {name: reader.read(name) for name in RECORDS} == RECORDS
    assert reader.locate("data/0") is None
    assert reader.read_array("data/0").flags.writeable


def test_damaged_compressed_record():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("model/data/0", bytes(range(256)) * 10)
    data = bytearray(stream.getvalue())
    data[100:110] = bytes(10)
    with pytest.raises(RuntimeError, match="failed reading file model/data/0"):
        ArchiveReader(io.BytesIO(bytes(data))).read("data/0")


def test_other_compression():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_BZIP2) as file:
        file.writestr("model/data/0", b"x")
    with pytest.raises(RuntimeError, match="compressed by another method than deflate"):
        ArchiveReader(stream).read("data/0")


@pytest.mark.parametrize("seed", range(4))
def test_random_damage(seed):
    """A damaged archive gives its records or RuntimeError."""
    generator = random.Random(seed)
    good = written()
    directory = good.find(b"PK\x01\x02")
    failures = 0
    for _ in range(300):
        data = bytearray(good)
        for _ in range(generator.choice((1, 1, 3))):
            place = generator.randrange(generator.choice((0, directory)), len(data) - 20)
            if generator.random() < 0.3:
                del data[place : place + generator.randrange(1, 20)]
            else:
                data[place] = generator.randrange(256)
        try:
            reader = ArchiveReader(io.BytesIO(bytes(data)))
            for name in RECORDS:
                reader.read(name)
        except RuntimeError:
            failures += 1
    assert failures > 100


def test_missing_record():
    reader = ArchiveReader(io.BytesIO(written()))
    for method in (reader.read, reader.size, reader.locate):
        with pytest.raises(RuntimeError, match="failed locating file data/7: file not found"):
            method("data/7")


def test_wrong_checksum():
    data = written().replace(RECORDS["data/0"], bytes(256))
    with pytest.raises(RuntimeError, match="data/0 has a wrong checksum"):
        ArchiveReader(io.BytesIO(data)).read("data/0")


def test_record_reaching_beyond_the_end():
    # The size in the central directory is forged, so nothing of that size may be allocated.
    data = bytearray(written())
    place = data.find(b"PK\x01\x02", data.find(b"PK\x01\x02") + 4)
    data[place + 20 : place + 28] = b"\xf0\xff\xff\x7f" * 2
    with pytest.raises(RuntimeError, match=r"failed reading file model/data/0: file read failed"):
        ArchiveReader(io.BytesIO(bytes(data))).read_array("data/0")


@pytest.mark.parametrize("length", [0, 4, 30, 400, -1, -30])
def test_cut_off(length):
    with pytest.raises(RuntimeError, match="failed finding central directory"):
        ArchiveReader(io.BytesIO(written()[:length]))


def test_many_records():
    records = {f"data/{i}": b"x" for i in range(70_000)}
    reader = ArchiveReader(io.BytesIO(written(records)))
    assert reader.read("data/69999") == b"x"


class Slow(io.RawIOBase):
    """An unbuffered stream that takes or gives a few bytes at a time."""

    def __init__(self, data=b""):
        self.data = bytearray(data)
        self.place = 0

    def writable(self):
        return True

    def readable(self):
        return True

    def write(self, data):
        part = bytes(data)[:100]
        self.data += part
        return len(part)

    def readinto(self, target):
        part = self.data[self.place : self.place + min(100, len(target))]
        target[: len(part)] = part
        self.place += len(part)
        return len(part)


def test_unbuffered_stream_gets_everything():
    stream = Slow()
    writer = ArchiveWriter(stream)
    writer.write("data/0", bytes(1000))
    writer.close()
    assert ArchiveReader(io.BytesIO(stream.data)).read("data/0") == bytes(1000)


def test_read_into_continues_after_a_short_read():
    target = np.zeros(250, np.uint8)
    read_into(Slow(bytes(range(250))), target)
    assert target.tobytes() == bytes(range(250))


def test_read_into_without_readinto():
    class OnlyRead:
        def __init__(self, data):
            self.read = io.BytesIO(data).read

    target = np.zeros(3, np.uint8)
    read_into(OnlyRead(b"abc"), target)
    assert target.tobytes() == b"abc"
    with pytest.raises(RuntimeError, match="unexpected EOF, expected 1 more bytes"):
        read_into(OnlyRead(b"ab"), target)
