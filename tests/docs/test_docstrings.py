"""The examples in docstrings run, with ``torch`` meaning clew."""

import doctest
import importlib
from pathlib import Path

import pytest

import clew

SOURCE = Path(clew.__file__).parent
MODULES = [
    ".".join(("clew", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
    for path in sorted(SOURCE.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    module = importlib.import_module(name)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    names = {"clew": clew, "torch": clew}
    failed, run = doctest.testmod(module, extraglobs=names, optionflags=flags)
    assert run > 0
    assert failed == 0
