"""Random programs, made and run line by line on both engines."""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from fuzz import kinds_tensors, kinds_views  # noqa: F401  (they register kinds)
from fuzz.choices import KINDS, Choices, Kind, NoChoice, Seeded
from fuzz.kinds_autograd import backward
from fuzz.machine import KnownDifference, Mismatch, machine

_CUMULATIVE = list(accumulate(k.weight for k in KINDS))
_CREATE = [k for k in KINDS if k.area == "create"]

MODES = (
    "torch.no_grad()", "torch.no_grad()", "torch.no_grad()", "torch.enable_grad()",
    "torch.inference_mode()", "torch.no_grad(), torch.enable_grad()",
    "torch.autograd.graph.saved_tensors_hooks(keep('pack'), keep('unpack'))",
    "torch.autograd.graph.saved_tensors_hooks(pack('pack'), keep('unpack'))",
    "torch.autograd.graph.save_on_cpu()", "torch.autograd.graph.disable_saved_tensors_hooks('no')",
    "torch.inference_mode(), torch.inference_mode(False)", "torch.autograd.set_grad_enabled(False)",
)  # fmt: skip

LAST = ("torch.set_grad_enabled(True)", "check()")
"""How each program ends."""


@dataclass
class Program:
    """Lines, and what came of them.

    Attributes:
        lines: the statements.
        kinds: how often each kind of line was taken.
        failed: how many lines raised, on both engines alike.
        cut: whether it ended early, at a known difference.
        mismatch: how the engines differ after the last line, or None.
    """

    lines: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    failed: int = 0
    cut: bool = False
    mismatch: str | None = None


class Run:
    """A program in the making, which runs meanwhile.

    Who drives it takes a kind that fits, has a line made of it, runs the line on both engines and
    compares them.

    Attributes:
        both: the engines.
        choices: what lines are made with.
        program: what there is of it.
    """

    def __init__(self) -> None:
        self.both = machine()
        self.choices = Choices(self.both.theirs.namespace)
        self.program = Program()
        self._mode, self._left = "", 0

    def line(self, kind: Kind) -> str | None:
        """A line of this kind, or None where there is no choice."""
        try:
            line = kind.make(self.choices)
        except (NoChoice, RuntimeError):  # torch cannot look at each of its tensors
            return None
        self.program.kinds[kind.name] += 1
        if kind.area in ("hooks", "create") or line.startswith("with"):
            return line
        if not self._left and self.choices.chance(0.08):
            self._mode = f"with {self.choices.pick(MODES)}: "
            self._left = self.choices.integer(1, 3)
        if not self._left:
            return line
        self._left -= 1
        return self._mode + line

    def creation(self) -> str:
        """A line that makes a tensor, with which programs begin."""
        while True:
            kind = self.choices.pick(_CREATE)
            line = self.line(kind) if kind.fits(self.choices) else None
            if line is not None:
                return line

    def step(self, line: str) -> None:
        """Run a line on both engines."""
        packing = ("saved_tensors_hooks", "save_on_cpu", "_raw_saved")
        self.choices.packs |= any(word in line for word in packing)
        self.program.lines.append(line)
        self.both.step(line)

    def compare(self) -> None:
        """Compare the engines after a line.

        Raises:
            Mismatch: they differ.
            KnownDifference: they differ as is known.
        """
        try:
            self.both.compare()
        except Mismatch as mismatch:
            self.program.mismatch = str(mismatch)
            raise
        except KnownDifference:
            self.program.cut = True
            raise

    def close(self) -> None:
        """Forget the program's variables."""
        self.program.failed = self.both.failed
        self.both.reset()


def explore(seed: str, length: int = 12) -> Program:
    """Make a program from a seed; it ends where the engines differ."""
    run = Run()
    choices = run.choices
    choices.source = Seeded(seed)
    try:
        for position in range(2 + choices.integer(length // 2, length)):
            run.step(run.creation() if position < 2 else _line(run))
            run.compare()
        last = list(LAST)
        if choices.chance(0.6) and choices.tensors(lambda t: t.requires_grad):
            last[1:1] = [backward(choices)]
        for line in last:
            run.step(line)
            run.compare()
    except (Mismatch, KnownDifference):
        pass
    finally:
        run.close()
    return run.program


def _line(run: Run) -> str:
    """A line of a kind that fits, by weight."""
    while True:
        kind = KINDS[bisect(_CUMULATIVE, run.choices.source.below(_CUMULATIVE[-1]))]
        line = run.line(kind) if kind.fits(run.choices) else None
        if line is not None:
            return line


def replay(lines: Sequence[str]) -> str | None:
    """Run lines on both engines; how they differ, or None."""
    both = machine()
    try:
        for line in lines:
            both.step(line)
            both.compare()
    except Mismatch as mismatch:
        return str(mismatch)
    except KnownDifference:
        return None
    finally:
        both.reset()
    return None
