"""`clew compile`: what it says and leaves behind; the compiled modules are tested by CI, which runs
tests of the engine once more after it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from clew import ahead
from clew.cli import compile, main


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for compiled modules in which there are none."""
    monkeypatch.setattr(ahead, "ROOT", str(tmp_path / "compiled"))
    monkeypatch.setattr(ahead, "MODULES", ("op",))
    monkeypatch.setattr(ahead, "sources", list)
    return tmp_path / "compiled"


def test_says_what_it_needs(
    empty: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["compile"]) == 1
    assert "pip install 'clew[compile]'" in capsys.readouterr().out
    assert not empty.exists()


def test_what_fails_leaves_nothing(
    empty: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(module: str, work: Path, made: Path) -> None:
        made.mkdir(exist_ok=True)
        raise compile.CompileError(f"clew.{module} could not be compiled:\nno compiler")

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(compile, "_compile", fail)
    assert main(["compile"]) == 1
    assert "no compiler" in capsys.readouterr().err
    assert list(empty.iterdir()) == []


def test_what_does_not_work_is_removed(
    empty: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def make_nothing(module: str, work: Path, made: Path) -> None:
        made.mkdir(exist_ok=True)

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(compile, "_compile", make_nothing)
    monkeypatch.setattr(compile, "_TRIAL", "raise SystemExit('does not work')")
    assert main(["compile"]) == 1
    assert "does not work" in capsys.readouterr().err
    assert list(empty.iterdir()) == []


def test_clear_removes_what_there_is(empty: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (empty / "old" / "clew").mkdir(parents=True)
    (empty / "old" / "clew" / "op.so").write_bytes(bytes(2048))
    assert main(["compile", "--clear"]) == 0
    assert capsys.readouterr().out == f"removed 2.0 kB from {empty}\n"
    assert list(empty.iterdir()) == []


def test_other_sources_have_another_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = tmp_path / "op.py"
    monkeypatch.setattr(ahead, "sources", lambda: [str(source)])

    def folder_of(text: str) -> Any:
        source.write_text(text)
        return ahead.folder()

    assert folder_of("x = 1") == folder_of("x = 1") != folder_of("x = 2")


def test_each_compiled_module_is_python_and_has_its_types() -> None:
    assert all(Path(source).is_file() for source in ahead.sources())
