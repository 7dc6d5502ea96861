"""The page of ops, made from the declarations."""

import importlib.util
from pathlib import Path

import pytest

TOOL = Path(__file__).parent.parent.parent / "tools" / "ops_page.py"


@pytest.fixture(scope="module")
def tool():
    pytest.importorskip("torch")  # which says what ops PyTorch has
    spec = importlib.util.spec_from_file_location("ops_page", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date(tool):
    assert tool.PAGE.read_text(encoding="utf-8") == tool.page(), "run python tools/ops_page.py"


def test_each_op_is_there_once(tool):
    listed = [op.name for ops in tool.modules().values() for op in ops]
    assert sorted(listed) == sorted(tool.REGISTRY)


def test_formulas_are_those_of_the_rules(tool):
    ops = tool.REGISTRY
    assert tool.formula(ops["mul"].rules["self"]) == "`times(grad, other)`"
    assert tool.formula(ops["exp"].rules["self"]) == "`times(grad, result)`"
    assert tool.keeps(ops["mul"]) == "self: other<br>other: self"
    assert tool.keeps(ops["add"]) == "nothing"
    assert tool.signature(ops["cat"]).startswith("cat(*tensors; dim")
