"""Run random programs on clew and on torch, side by side, and show where the two differ.

    python tools/fuzz.py --programs 10000         # of seed 0
    python tools/fuzz.py --minutes 60 --seed 7    # as many as fit into an hour
    python tools/fuzz.py --program 7-123          # one program, with its script
    python tools/fuzz.py --hypothesis --minutes 9 # Hypothesis drives instead of a seed

A difference is shortened and printed as a script of torch.  ``tests/fuzz`` holds the parts; CI
runs some two thousand programs of other seeds.  Two drivers make programs of the same kinds of
lines: random numbers, which are three times as fast and give each program a name, and Hypothesis,
which makes variations of what it has tried.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.syntax import Syntax
from rich.table import Table

ROOT = Path(__file__).parent.parent
# In place of this directory, in which `fuzz` would be this file.
sys.path[:1] = [str(ROOT / "src"), str(ROOT / "tests")]

from fuzz.choices import KINDS  # noqa: E402
from fuzz.machine import Mismatch, warn_always  # noqa: E402
from fuzz.programs import Program, explore  # noqa: E402
from fuzz.shorten import script, shortened  # noqa: E402
from fuzz.stateful import search  # noqa: E402

console = Console()

BATCH = 300
"""How many programs Hypothesis makes at a time."""


@dataclass
class Tally:
    """What a run came to.

    Attributes:
        programs: how many ran.
        cut: how many of them ended early, at a known difference.
        failed: how many lines raised, on both engines alike.
        kinds: how many lines of each kind ran.
        within: in how many programs each kind occurred.
        mismatches: the names of the programs on which the engines differ.
    """

    programs: int = 0
    cut: int = 0
    failed: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    within: Counter[str] = field(default_factory=Counter)
    mismatches: list[str] = field(default_factory=list)

    def add(self, name: str, program: Program) -> None:
        self.programs += 1
        self.cut += program.cut
        self.failed += program.failed
        self.kinds += program.kinds
        self.within.update(program.kinds.keys())
        if program.mismatch is not None and name not in self.mismatches:
            self.mismatches.append(name)


def show(name: str, lines: list[str]) -> None:
    """Print the shortened script of a difference."""
    lines, why = shortened(lines)
    console.rule(f"program {name}")
    console.print(Syntax(script(lines), "python", word_wrap=True))
    console.print(why, style="red", markup=False)


Driver = Callable[[str, Tally], None]


def by_seed(seed: str, tally: Tally) -> None:
    """Run the next program that this seed names."""
    name = f"{seed}-{tally.programs}"
    program = explore(name)
    tally.add(name, program)
    if program.mismatch is not None:
        show(name, program.lines)


def by_hypothesis(seed: str, tally: Tally) -> None:
    """Let Hypothesis make the next few hundred programs, or find differences."""
    name, differing = f"{seed}-{tally.programs}", []

    def tell(program: Program) -> None:
        tally.add(name, program)
        if program.mismatch is not None:
            differing.append(program.lines)

    try:
        search(name, BATCH, tell)
    except (Mismatch, ExceptionGroup):
        show(name, differing[-1])


def run(drive: Driver, seed: str, programs: int, seconds: float, most: int) -> Tally:
    """Run programs until there are `programs`, or the time is up, or `most` differences."""
    tally = Tally()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
               TimeElapsedColumn())  # fmt: skip
    until = time.monotonic() + seconds
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("programs", total=programs)
        while tally.programs < programs and time.monotonic() < until:
            drive(seed, tally)
            found = len(tally.mismatches)
            progress.update(task, completed=tally.programs, description=f"{found} differences")
            if found >= most:
                break
    return tally


def report(tally: Tally) -> None:
    """Print how often each kind of line occurred, and the sums."""
    lines = sum(tally.kinds.values())
    table = Table("area", "kind of line", "lines", "programs", title="What was run")
    for kind in sorted(KINDS, key=lambda kind: kind.area):
        count, within = tally.kinds[kind.name], tally.within[kind.name]
        table.add_row(kind.area, kind.name, f"{count:,}", f"{within:,}")
    console.print(table)
    console.print(
        f"{tally.programs:,} programs of {lines:,} lines, {tally.failed:,} of which raised alike; "
        f"{tally.cut:,} programs ended at a known difference; {len(tally.mismatches)} differ."
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=10**9, help="how many (default: no limit)")
    parser.add_argument("--minutes", type=float, default=1.0, help="how long at most (default: 1)")
    parser.add_argument("--seed", default="0", help="which programs (default: 0)")
    parser.add_argument("--most", type=int, default=10, help="stop after so many differences")
    parser.add_argument("--program", help="run one program by its name, SEED-NUMBER")
    parser.add_argument("--hypothesis", action="store_true", help="let Hypothesis make them")
    given = parser.parse_args()
    with warn_always():
        return fuzz(given)


def fuzz(given: argparse.Namespace) -> int:
    """Run what the command line asks for."""
    if given.program:
        program = explore(given.program)
        console.print(Syntax(script(program.lines), "python", word_wrap=True))
        if program.mismatch is not None:
            show(given.program, program.lines)
        return int(program.mismatch is not None)
    drive = by_hypothesis if given.hypothesis else by_seed
    tally = run(drive, given.seed, given.programs, given.minutes * 60, given.most)
    report(tally)
    return int(bool(tally.mismatches))


if __name__ == "__main__":
    sys.exit(main())
