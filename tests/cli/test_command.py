"""The `clew` command itself: help, version, information, wrong words."""

import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from clew.cli import COMMANDS, info, main

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_without_words_it_shows_help(capsys):
    assert main([]) == 0
    out = capsys.readouterr().out
    assert out.startswith("usage: clew")
    assert all(f"  {name}" in out and what in out for name, what in COMMANDS.items())


def test_version(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"clew {importlib.metadata.version('clew')}\n"


@pytest.mark.parametrize("words", [["walk"], ["--walk"], ["info", "walk"]])
def test_wrong_words_exit_with_2(capsys, words):
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert "walk" in capsys.readouterr().err


def test_python_m_clew_shows_help_without_loading_rich():
    code = (
        "import atexit, runpy, sys; sys.argv[1:] = ['--help'];"
        "atexit.register(lambda: print('rich' in sys.modules));"
        "runpy.run_module('clew', run_name='__main__')"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.startswith("usage: clew ")
    assert result.stdout.splitlines()[-1] == "False"


def test_info_shows_versions_and_extras(capsys):
    assert main(["info"]) == 0
    out = capsys.readouterr().out
    rows = {line.split()[0]: line for line in out.splitlines() if line.split()}
    for package in ("clew", "numpy", "rich"):
        assert importlib.metadata.version(package) in rows[package]
    assert sys.executable in rows["Python"]
    assert "BLAS threads" in out
    assert {extra.name for extra in info.EXTRAS} <= rows.keys()


def test_info_tells_how_to_get_what_is_missing(capsys, monkeypatch):
    monkeypatch.setattr(info, "version_of", lambda package: None)
    assert main(["info"]) == 0
    out = capsys.readouterr().out
    for extra in info.EXTRAS:
        assert f"pip install 'clew[{extra.name}]'" in out


def test_blas_threads_without_threadpoolctl(monkeypatch):
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(variable, raising=False)
    assert info.blas_threads().startswith("one per core")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert info.blas_threads() == "3 (OMP_NUM_THREADS)"


def test_the_extras_are_those_of_the_project():
    project = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    for extra in info.EXTRAS:
        names = [re.match(r"[\w-]+", requirement)[0] for requirement in project[extra.name]]
        assert tuple(names) == extra.packages
    assert set(project) - {extra.name for extra in info.EXTRAS} == {"all", "test"}
