"""Random programs do the same on clew and on torch.

By hand, for longer and from other seeds: ``python tools/fuzz.py --minutes 60``, with
``--hypothesis`` by Hypothesis.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fuzz.choices import KINDS
from fuzz.machine import Mismatch, machine, warn_always
from fuzz.programs import Program, explore, replay
from fuzz.shorten import script, shortened
from fuzz.stateful import search

SEEDS, PROGRAMS = 20, 40
SEARCHES, EXAMPLES = 4, 220

OPEN: dict[str, str] = {}
"""Programs on which the engines are known to differ, and in what; to be emptied."""


@pytest.fixture(autouse=True)
def every_warning() -> Iterator[None]:
    """Both engines warn each time, so that no program depends on what ran before it."""
    with warn_always():
        yield


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_programs(seed: int) -> None:
    for number in range(PROGRAMS):
        name = f"{seed}-{number}"
        program = explore(name)
        if name in OPEN:
            assert program.mismatch is not None, f"{name} is no longer open"
        elif program.mismatch is not None:
            lines, why = shortened(program.lines)
            pytest.fail(f"{name}: they differ:\n\n{script(lines)}\n\n{why}", pytrace=False)


@pytest.mark.parametrize("seed", range(SEARCHES))
def test_programs_of_hypothesis(seed: int) -> None:
    search(str(seed), EXAMPLES)


@pytest.fixture
def wrong_mul_(monkeypatch: pytest.MonkeyPatch) -> None:
    """``mul_`` counts two writes."""
    tensor = machine().ours.module.Tensor
    right = tensor.mul_
    monkeypatch.setattr(tensor, "mul_", lambda self, other: right(self, other).add_(0))


@pytest.mark.usefixtures("wrong_mul_")
def test_hypothesis_finds_a_difference_and_shortens() -> None:
    found: list[list[str]] = []

    def tell(program: Program) -> None:
        if program.mismatch is not None:
            found.append(program.lines)

    some = ("tensor", "arithmetic_write", "binary", "looked")  # of all it takes minutes
    with pytest.raises(Mismatch):
        search("0", EXAMPLES, tell, [kind for kind in KINDS if kind.name in some])
    assert [line for line in found[-1] if ".mul_(" in line or "*=" in line] == found[-1][2:]


@pytest.mark.usefixtures("wrong_mul_")
def test_a_difference_is_found_and_shortened() -> None:
    lines = [
        "a = torch.ones(3, requires_grad=True)",
        "b = torch.zeros(2)",
        "with torch.no_grad(): c = a * 2",
        "b.add_(1)",
        "c.mul_(3)",
        "check()",
    ]
    assert replay(lines[:4]) is None
    found, why = shortened(lines)
    assert found == ["a = torch.ones(3)", "c = a * 2", "c.mul_(3)"]
    assert why.startswith("c is ")


def test_a_script_is_complete() -> None:
    text = script(["a = torch.ones(3, requires_grad=True)", "b = Double.apply(a)", "check()"])
    exec(text, {"__name__": "script"})
    assert "class Double" in text and "class Write" not in text
