"""Random programs as a state machine of Hypothesis: a rule for each kind of line.

Hypothesis chooses rules that fit what torch's tensors are at that moment and draws the choices of
which the kind makes a line.  After each rule the engines are compared.  It shortens a program on
which they differ by making it again with fewer rules and simpler choices.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import HealthCheck, Phase, note, reject, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from fuzz.choices import KINDS, Kind
from fuzz.machine import KnownDifference, Mismatch
from fuzz.programs import LAST, Program, Run

Draw = Callable[[st.SearchStrategy[Any]], Any]

STEPS = 14
"""How many lines a program has at most, beside those with which it begins and ends."""

PARTS = 100
"""Probabilities are drawn as a number of this many."""


class Drawn:
    """Choices that Hypothesis draws; the first option, and False, are the simplest."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw

    def below(self, n: int) -> int:
        return int(self._draw(st.integers(0, n - 1)))

    def chance(self, probability: float) -> bool:
        return bool(self._draw(st.integers(0, PARTS - 1)) >= PARTS * (1 - probability))

    def order(self, n: int) -> Sequence[int]:
        return list(self._draw(st.permutations(range(n))))


@st.composite
def lines(draw: Draw, make: Callable[[Run], str | None]) -> str | None:
    """A line for the program of the machine that runs, or None where none can be."""
    run = draw(st.runner()).run
    run.choices.source = Drawn(draw)
    return make(run)


class Programs(RuleBasedStateMachine):
    """A program, run on both engines while it is made."""

    def __init__(self) -> None:
        super().__init__()
        self.run = Run()

    def tell(self, program: Program) -> None:
        """Is given the program at its end."""

    @initialize(first=lines(Run.creation), second=lines(Run.creation))
    def begin(self, first: str, second: str) -> None:
        """Make two tensors."""
        self.run.step(first)
        self.engines_agree()
        self.run.step(second)

    @invariant()
    def engines_agree(self) -> None:
        """Compare the engines after a rule."""
        try:
            self.run.compare()
        except KnownDifference:
            reject()
        except Mismatch:
            note("\n".join(self.run.program.lines))
            raise

    def teardown(self) -> None:
        """End the program, unless Hypothesis or a difference has ended it earlier."""
        try:
            for line in LAST if sys.exc_info()[0] is None else ():
                self.run.step(line)
                self.engines_agree()
        finally:
            self.run.close()
            self.tell(self.run.program)


def _rule(kind: Kind) -> Any:
    """The rule that adds a line of this kind."""

    def add(self: Programs, line: str | None) -> None:
        if line is not None:
            self.run.step(line)

    add.__name__ = kind.name
    fits = precondition(lambda self: kind.fits(self.run.choices))
    return rule(line=lines(lambda run: run.line(kind)))(fits(add))


def ignore(program: Program) -> None:
    """Do nothing with a program."""


def search(
    name: str,
    examples: int,
    tell: Callable[[Program], None] = ignore,
    kinds: Sequence[Kind] = KINDS,
) -> None:
    """Let Hypothesis look for a program on which the engines differ.

    Args:
        name: which programs.
        examples: how many that do not end at a known difference.
        tell: is given each.
        kinds: of what lines.

    Raises:
        Mismatch: they differ, on a program that is shortened; or a group of such.
    """

    rules = {kind.name: _rule(kind) for kind in kinds}
    told = {"tell": lambda self, program: tell(program)}
    machine = seed(name)(type("Programs", (Programs,), rules | told))
    profile = settings(
        max_examples=examples, stateful_step_count=STEPS, database=None, deadline=None,
        suppress_health_check=list(HealthCheck), phases=(Phase.generate, Phase.shrink),
    )  # fmt: skip
    run_state_machine_as_test(machine, settings=profile)
