"""Random programs, made and run line by line on both engines."""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random

from fuzz import kinds_tensors, kinds_views  # noqa: F401  (they register kinds)
from fuzz.choices import KINDS, Choices, Kind, NoChoice
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


def explore(random: Random, length: int = 12) -> Program:
    """Make a program while it runs; it ends where the engines differ."""
    both = machine()
    program = Program()
    choices = Choices(random, both.theirs.namespace)
    prefix, left = "", 0
    try:
        for position in range(2 + choices.integer(length // 2, length)):
            if not left and choices.chance(0.08):
                prefix, left = f"with {choices.pick(MODES)}: ", choices.integer(1, 3)
            kind, line = _line(choices, _CREATE if position < 2 else KINDS)
            plain = kind.area in ("hooks", "create") or line.startswith("with")
            if left and position >= 2 and not plain:
                line, left = prefix + line, left - 1
            choices.packs |= "saved_tensors_hooks" in line or "save_on_cpu" in line
            choices.packs |= "_raw_saved" in line
            program.kinds[kind.name] += 1
            program.lines.append(line)
            both.run(line)
        last = ["torch.set_grad_enabled(True)", "check()"]
        if choices.chance(0.6) and choices.tensors(lambda t: t.requires_grad):
            last[1:1] = [backward(choices)]
        for line in last:
            program.lines.append(line)
            both.run(line)
    except Mismatch as mismatch:
        program.mismatch = str(mismatch)
    except KnownDifference:
        program.cut = True
    finally:
        program.failed = both.failed
        both.reset()
    return program


def _line(choices: Choices, kinds: Sequence[Kind]) -> tuple[Kind, str]:
    while True:
        if kinds is KINDS:
            kind = KINDS[bisect(_CUMULATIVE, choices.random.random() * _CUMULATIVE[-1])]
        else:
            kind = choices.pick(kinds)
        try:
            return kind, kind.make(choices)
        except (NoChoice, RuntimeError):  # torch cannot look at each of its tensors
            continue


def replay(lines: Sequence[str]) -> str | None:
    """Run lines on both engines; how they differ, or None."""
    both = machine()
    try:
        for line in lines:
            both.run(line)
    except Mismatch as mismatch:
        return str(mismatch)
    except KnownDifference:
        return None
    finally:
        both.reset()
    return None
