"""Compiled twins: how they are switched, kept between programs, and what may go wrong there."""

import os
import resource
import subprocess
import sys

import numpy as np
import pytest

import clew
from clew.cli import main
from clew.kernels import compiled
from clew.kernels.compiled import cache

PROGRAM = """
import resource, sys
import numpy as np
from clew.kernels.compiled import twins
if "full" in sys.argv:
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
x = np.arange(6.0).reshape(2, 3)
x.flags.writeable = False
out = np.empty_like(x)
twins("softmax", x.dtype).softmax(out, x)
print(out.sum())
"""

COMPILING = "clew: compiling kernels as they are first used"


def start(folder, *words):
    environment = os.environ | {"CLEW_CACHE_DIR": str(folder), "CLEW_NUMBA": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def end(process):
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert float(out) == pytest.approx(2)
    return err


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache directory, of this process too."""
    monkeypatch.setenv("CLEW_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_program_compiles_once_and_a_damaged_file_is_compiled_anew(folder):
    assert end(start(folder)).startswith(COMPILING)
    assert end(start(folder)) == ""
    [file] = cache.folder().iterdir()
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    assert end(start(folder)).startswith(COMPILING)
    assert end(start(folder)) == ""


def test_two_programs_compile_at_once(folder):
    for process in [start(folder), start(folder)]:
        assert end(process).startswith(COMPILING)
    assert cache.usage()[0] == 1
    assert end(start(folder)) == ""


def test_a_folder_that_cannot_be_written(tmp_path):
    tmp_path.joinpath("file").touch()  # not even root makes a folder in a file
    err = end(start(tmp_path / "file"))
    assert "compiled kernels cannot be kept in" in err and "Not a directory" in err


def test_a_full_disk(folder):
    assert "(File too large)" in end(start(folder, "full"))
    assert cache.usage() == (0, 0)


def test_what_is_stored_is_loaded_if_whole(folder):
    assert cache.load("a") is None
    cache.store("a", b"12345")
    cache.store("a", b"123456")
    assert cache.load("a") == b"123456"
    file = cache.folder() / "a"
    for damaged in (b"", file.read_bytes()[:-1], b"x" + file.read_bytes()[1:]):
        file.write_bytes(damaged)
        assert cache.load("a") is None


def test_a_failed_write_leaves_nothing(folder):
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    cache.store("a", b"")
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limit[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            cache.store("a", bytes(1000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert [path.name for path in cache.folder().iterdir()] == ["a"]
    assert cache.load("a") == b""


def test_warmup_compiles_and_clears(folder, monkeypatch, capsys):
    [kernel] = [k for k in compiled.all_kernels() if k.name == "softmax.softmax"]
    monkeypatch.setattr(compiled, "all_kernels", lambda: [kernel])
    old = cache.root() / "old"
    old.mkdir(parents=True)
    old.joinpath("file").write_bytes(bytes(1000))
    assert main(["warmup"]) == 0
    shown = capsys.readouterr()
    assert "2/2" in shown.err
    assert shown.out.startswith("2 compiled kernels, ") and str(cache.folder()) in shown.out
    assert "removed 1.0 kB of other versions" in shown.out
    assert end(start(folder)) == ""
    assert not old.exists()
    assert main(["warmup"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["info"]) == 0
    assert "compiled by numba; 2 are kept" in " ".join(capsys.readouterr().out.split())
    assert main(["warmup", "--clear"]) == 0
    assert capsys.readouterr().out.startswith("removed ")
    assert cache.usage() == (0, 0)


def test_warmup_into_a_folder_that_cannot_be_written(tmp_path, monkeypatch, capsys):
    [kernel] = [k for k in compiled.all_kernels() if k.name == "softmax.softmax"]
    monkeypatch.setattr(compiled, "all_kernels", lambda: [kernel])
    tmp_path.joinpath("file").touch()
    monkeypatch.setenv("CLEW_CACHE_DIR", str(tmp_path / "file"))
    assert main(["warmup"]) == 1
    assert "Not a directory" in capsys.readouterr().err


def test_without_numba(monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    compiled.switch(True)
    assert not clew.backends.numba.is_available() and not clew.backends.numba.enabled
    assert compiled.twins("softmax", np.dtype("f")) is None
    assert main(["warmup"]) == 1
    assert "pip install 'clew[fast]'" in capsys.readouterr().out
    monkeypatch.undo()
    compiled.switch(True)


def test_numba_that_cannot_be_imported(monkeypatch, capsys):
    def refuse(name):
        raise ImportError("Numba needs NumPy 1.0 or less")

    with monkeypatch.context() as patch:
        patch.setattr(compiled.importlib, "import_module", refuse)
        compiled.switch(True)
        assert compiled.twins("softmax", np.dtype("f")) is None
    assert "Numba needs NumPy 1.0 or less" in capsys.readouterr().err
    compiled.switch(True)


def test_the_switch():
    switch = clew.backends.numba
    assert switch.is_available() and switch.enabled
    with switch.flags(enabled=False):
        assert not switch.enabled
        assert compiled.twins("softmax", np.dtype("f")) is None
        with switch.flags():
            assert switch.enabled
        assert not switch.enabled
    switch.enabled = False
    assert not switch.enabled
    switch.enabled = True
    assert compiled.twins("softmax", np.dtype("f")) is not None
    assert compiled.twins("softmax", np.dtype("e")) is None
    assert compiled.twins("softmax", np.dtype(int)) is None


def test_arguments_are_checked_in_tests():
    x = np.zeros((2, 3), "f")
    softmax = compiled.twins("softmax", x.dtype).softmax
    for wrong in (x.T, x.astype("d"), x[0], x[:, :2]):
        with pytest.raises(TypeError):
            softmax(x, wrong)
    fixed = x.copy()
    fixed.flags.writeable = False
    softmax(x, fixed)
    with pytest.raises(TypeError):
        softmax(fixed, x)
