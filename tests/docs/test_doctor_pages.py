"""docs/doctor has a page on each rule: the mistake gives the finding, the cured program none."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import runner

from clew.inspect.doctor.rules import RULES, TITLES

FOLDER = Path(runner.ROOT) / "docs" / "doctor"


def test_programs_print_what_is_shown():
    pages = [str(page) for page in sorted(FOLDER.glob("*.md"))]
    command = [sys.executable, runner.__file__, *pages]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("rule", TITLES)
def test_page(rule):
    page = (FOLDER / f"{rule}.md").read_text(encoding="utf-8")
    (_, mistake), (_, cured) = runner.programs_of(page)
    assert re.search(rf"^example.py:\d+: (error|warning) {rule}$", mistake.text, re.M)
    assert cured.text == "[]"


def test_the_index_lists_every_rule():
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| \[(R\d\d)\]", index, re.M) == list(TITLES)
    assert {rule.id for rule in RULES} | {"R12"} == set(TITLES)
