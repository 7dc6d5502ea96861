"""The mistakes in other shapes (functions, closures, other optimizers, no optimizer), and programs
that look like mistakes and are right: ``programs.txt``, one after the other."""

from pathlib import Path

import pytest

from doctor.scripts import ENGINES, examine_text

PROGRAMS = {}
for part in (Path(__file__).parent / "programs.txt").read_text().split("==== ")[1:]:
    title, _, text = part.partition("\n")
    PROGRAMS[title] = text


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("title", PROGRAMS)
def test_program(title, engine):
    report = examine_text(PROGRAMS[title], engine)
    rule = title.partition(":")[0]
    if rule == "silent":
        assert not report.rules, report.findings
        assert "Error" not in report.log
    else:
        assert rule in report.rules
        assert report.status == 1


@pytest.mark.parametrize("rule", [f"R{n:02}" for n in range(1, 19)])
def test_every_rule_has_a_program(rule):
    assert any(title.startswith(rule) for title in PROGRAMS)
