"""The table of names that clew lacks."""

import importlib.util
from pathlib import Path

import pytest

TOOL = Path(__file__).parent.parent.parent / "tools" / "compatibility.py"


@pytest.fixture
def tool():
    spec = importlib.util.spec_from_file_location("compatibility", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_names_of_the_table_are_lacking(tool):
    page = tool.PAGE.read_text(encoding="utf-8")
    there = [use.name for use in tool.listed(page) if tool.has(use.name)]
    assert there == [], "run python tools/compatibility.py"


def test_names_are_looked_up_where_they_stand(tool):
    known = ["Tensor.sum", "torch.exp", "torch.nn.Linear", "torch.nn.functional.relu", "torch.nn"]
    assert all(map(tool.has, known))
    unknown = ["Tensor.no_such", "torch.no_such", "torch.nn.NoSuch", "torch.no.such", "torch.exp.x"]
    assert not any(map(tool.has, unknown))


def test_names_that_are_there_leave_the_table(tool, tmp_path, monkeypatch):
    page = tmp_path / "compatibility.md"
    monkeypatch.setattr(tool, "PAGE", page)
    uses = [tool.Use("torch.exp", 9), tool.Use("torch.no_such", 3), tool.Use("Tensor.none", 5)]
    page.write_text("before\n" + tool.table(10, uses) + "\nafter\n")
    assert tool.main(["--check"]) == 1
    assert tool.main([]) == 0
    assert tool.main(["--check"]) == 0
    text = page.read_text()
    assert "Of the 10 names, clew has 8 and lacks 2:" in text
    assert text.index("Tensor.none") < text.index("torch.no_such")
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
