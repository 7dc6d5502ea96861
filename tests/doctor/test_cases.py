"""Real mistakes from public issues, each as a small script: the doctor names the rule, and on the
controls, which somebody suspected and which were right, it stays silent."""

from pathlib import Path

import pytest

from doctor.scripts import ENGINES, examine

CASES = sorted((Path(__file__).parent / "cases").glob("*.py"))


def expected(path):
    """The rules of a script's first line, and those that it must not give."""
    words = path.read_text().splitlines()[0].split()
    assert words[0] == "#" and words[1] in ("expect", "silent")
    found = words[2:]
    at = found.index("not") if "not" in found else len(found)
    return set(found[:at]), set(found[at + 1 :])


def test_there_are_29_cases_and_7_controls():
    silent = [p for p in CASES if not expected(p)[0]]
    assert (len(CASES) - len(silent), len(silent)) == (29, 7)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_case(path, engine):
    report = examine(path, engine)
    wanted, unwanted = expected(path)
    if wanted:
        assert wanted <= report.rules
        assert not unwanted & report.rules
        assert report.status == 1
    else:
        assert not report.rules
        assert report.status == 0
    for finding in report.findings:
        assert finding["file"] == str(path)
        assert finding["line"]
        assert finding["message"].endswith(".")
