"""The file at a path is the old one or the new one, never something between."""

import os
import stat

import pytest

from clew.serialization.atomic import atomic_write, replacing


def write(path, content):
    with atomic_write(path) as stream:
        stream.write(content)


def test_writes_a_new_file_and_leaves_nothing_else(tmp_path):
    write(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a"]


def test_old_file_stays_until_the_end(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with atomic_write(path) as stream:
        stream.write(b"new")
        stream.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_failure_while_writing_keeps_the_old_file(tmp_path, error):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(error), atomic_write(path) as stream:
        stream.write(b"half")
        raise error
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_failure_of_the_disk_keeps_the_old_file(tmp_path, monkeypatch, function):
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def fail(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, function, fail)
    with pytest.raises(OSError, match="No space left"):
        write(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_file_and_directory_are_synced_around_the_rename(tmp_path, monkeypatch):
    events = []
    fsync, replace = os.fsync, os.replace

    def traced_fsync(descriptor):
        is_directory = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        events.append("sync directory" if is_directory else "sync file")
        fsync(descriptor)

    def traced_replace(source, target):
        events.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", traced_fsync)
    monkeypatch.setattr(os, "replace", traced_replace)
    write(tmp_path / "a", b"new")
    assert events == ["sync file", "rename", "sync directory"]


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_new_file_has_the_permissions_that_open_gives(tmp_path, umask):
    old = os.umask(umask)
    try:
        write(tmp_path / "a", b"new")
        (tmp_path / "b").write_bytes(b"new")
    finally:
        os.umask(old)
    modes = [stat.S_IMODE(os.stat(tmp_path / name).st_mode) for name in "ab"]
    assert modes[0] == modes[1]


def test_replaced_file_keeps_its_permissions(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o640)
    write(path, b"new")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o640


def test_symbolic_link_stays_a_link(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_device_is_written_and_not_replaced():
    write(os.devnull, b"gone")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_missing_directory(tmp_path):
    with pytest.raises(FileNotFoundError):
        write(tmp_path / "no" / "a", b"new")


def test_directory_in_the_place_of_the_file(tmp_path):
    with pytest.raises(IsADirectoryError):
        write(tmp_path, b"new")


def test_read_only_file_is_not_replaced(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    # Root may write everything, so the answer of the system is played.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(PermissionError):
        write(path, b"new")
    assert path.read_bytes() == b"old"


def test_replacing_gives_a_path_to_other_writers(tmp_path):
    with replacing(tmp_path / "a") as temporary:
        assert os.path.dirname(temporary) == str(tmp_path)
        with open(temporary, "wb") as stream:
            stream.write(b"new")
        assert not (tmp_path / "a").exists()
    assert (tmp_path / "a").read_bytes() == b"new"
