"""Every page's programs run and print what the page shows; its quotations and links stand."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import runner

from clew import errors

ROOT = Path(__file__).parent.parent.parent
PAGES = [
    page
    for page in (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")))
    if page.exists()
]
# Those of the doctor run together, in test_doctor_pages.py.
LINKED = [*PAGES, *sorted((ROOT / "docs" / "doctor").glob("*.md"))]


def relative(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_programs_print_what_is_shown(page):
    text = page.read_text(encoding="utf-8")
    if not runner.programs_of(text) and not runner.quotes_of(text):
        return
    command = [sys.executable, runner.__file__, str(page)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", LINKED, ids=relative)
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.M)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{target} leads nowhere"
        if anchor:
            assert anchor in anchors_of(file), f"{target} leads to no heading"


def test_files_that_pages_name_exist():
    for page in PAGES:
        for path in re.findall(
            r"`((?:docs|src|tests|tools|examples)/[\w./-]+\w)`", page.read_text()
        ):
            assert (ROOT / path).exists(), f"{page.name} names {path}"


def anchors_of(page):
    """The anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.M)
    words = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {heading.replace(" ", "-") for heading in words}


# -- errors and their page


def classes(base=errors.AutogradError):
    return [base, *(c for sub in base.__subclasses__() for c in classes(sub))]


def test_anchors_of_errors_lead_to_their_sections():
    files = sorted(Path(errors.__file__).parent.glob("*.py"))
    source = "".join(file.read_text(encoding="utf-8") for file in files)
    named = {c.anchor for c in classes()} | set(re.findall(r'^        "([a-z-]+)",$', source, re.M))
    named.discard("")
    assert {"no-gradient-path", "non-leaf-grad", "scalar-of-a-graph"} <= named
    assert named <= anchors_of(ROOT / "docs" / "errors.md")


def test_every_error_class_is_on_its_page():
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    raised = {c.__name__ for c in classes() if not c.__subclasses__()}
    shown = set(re.findall(r"^clew\.errors\.(\w+): ", page, flags=re.M))
    assert raised == shown


def test_clew_from_scratch_is_short():
    page = (ROOT / "docs" / "clew-from-scratch.md").read_text(encoding="utf-8")
    core = page[: page.index("## Against clew")]
    lines = [line for block, _ in runner.programs_of(core) for line in block.lines if line.strip()]
    assert 120 < len(lines) < 170
