"""Check an autograd error: PyTorch's type and text, and a note that names the right lines.

A failing program is a function of the engine.  A comment ``#: label`` at the end of one of its
lines says that clew's fact of that label must name this line; several labels are separated by
commas.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import clew

PAGE = Path(__file__).parent.parent / "docs" / "errors.md"
TYPED = re.compile(r"(int|float|complex)\d+ \[[\d, ]*\]")
TRIGGERED = re.compile(r" \(Triggered internally at [^)]*\)$")


def error_of(program: Callable[[Any], Any], engine: Any) -> Exception:
    """What the program raises with an engine."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception) as caught:
            program(engine)
    return caught.value


def warning_of(program: Callable[[Any], Any], engine: Any) -> str:
    """The one warning that the program gives with an engine."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        program(engine)
    assert len(caught) == 1, [str(w.message) for w in caught]
    assert caught[0].category is UserWarning
    return TRIGGERED.sub("", str(caught[0].message))


def check_as_torch(program: Callable[[Any], Any]) -> Exception:
    """The program fails with clew as with torch: the type and the text; the error of clew."""
    torch = pytest.importorskip("torch")
    theirs, ours = error_of(program, torch), error_of(program, clew)
    assert type(theirs) in type(ours).__mro__, f"{type(ours)} instead of {type(theirs)}"
    assert str(ours).strip() == str(theirs).strip()
    return ours


def without_a_tensor(program: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Mark a program whose error is about no tensor in particular."""
    program.without_a_tensor = True  # type: ignore[attr-defined]
    return program


def check_teaches(program: Callable[[Any], Any]) -> None:
    """`check_as_torch`, and the facts name the marked lines, a shape and dtype (unless it is about
    no tensor), and a cure."""
    error = check_as_torch(program)
    assert isinstance(error, clew.errors.AutogradError)
    text = error.__notes__[0]
    if not hasattr(program, "without_a_tensor"):
        assert TYPED.search(text), "no dtype and shape"
    check_facts(program, text, error.anchor)


def check_facts(program: Callable[[Any], Any], text: str, anchor: str) -> None:
    """The lines that clew adds to PyTorch's text."""
    facts = dict(line.strip().split(":", 1) for line in text.strip().splitlines())
    facts = {label: fact.strip() for label, fact in facts.items()}
    for label, line in marked_lines(program):
        assert label in facts, f"no {label!r} in {facts}"
        place = re.escape(f"{inspect.getsourcefile(program)}:{line}")
        assert re.search(rf"{place}(, in|$)", facts[label]), (
            f"line {line} is not named in {label}: {facts[label]}"
        )
    assert facts["cure"]
    assert facts["more"] == f"docs/errors.md#{anchor}"


def marked_lines(program: Callable[[Any], Any]) -> list[tuple[str, int]]:
    """(label, line number) of the program's marks; there is at least one."""
    lines, first = inspect.getsourcelines(program)
    marks = [
        (label.strip(), first + i)
        for i, line in enumerate(lines)
        if "#: " in line
        for label in line.split("#: ")[1].split(",")
    ]
    assert marks, f"{program.__name__} marks no line"
    return marks
