"""Which of PyTorch's names clew has: the table in docs/compatibility.md.

``python tools/compatibility.py`` takes names that clew has by now out of the table; ``--check``
only says which.  ``python tools/compatibility.py --names USAGE.tsv`` makes the table anew from a
list of names by use, with a header and the columns name, scripts, repositories: from the public
names that at least three scripts use and that torch, which must be installed, has.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

import clew

PAGE = Path(__file__).parent.parent / "docs" / "compatibility.md"
BEGIN, END = "<!-- names: begin -->", "<!-- names: end -->"
ROW = re.compile(r"^\| `([\w.]+)` \| (\d+) \|$", re.MULTILINE)
TOTAL = re.compile(r"Of the (\d+) names")


FEWEST = 3
"""A name that so many scripts use is common."""


class Use(NamedTuple):
    """A name of PyTorch, and how many scripts use it."""

    name: str
    scripts: int


def has(name: str, engine: Any = clew) -> bool:
    """Whether clew (or torch) has ``torch.nn.Linear``, ``Tensor.sum``, ..."""
    parts = name.split(".")
    found: Any = engine.Tensor if parts[0] == "Tensor" else engine
    for part in parts[1:]:
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(f"{found.__name__}.{part}")
            except (ImportError, AttributeError):
                return False
    return not getattr(found, "is_lacking", False)  # there so that programs can import it


def read_uses(path: Path) -> list[Use]:
    """The common public names of a list by use."""
    import torch

    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    uses = [Use(row[0], int(row[1])) for row in rows]
    return [
        use
        for use in uses
        if use.scripts >= FEWEST and "._" not in use.name and has(use.name, torch)
    ]


def listed(page: str) -> list[Use]:
    """The names in the page's table."""
    return [Use(name, int(scripts)) for name, scripts in ROW.findall(page)]


def table(total: int, lacking: list[Use]) -> str:
    """The generated part of the page."""
    ordered = sorted(lacking, key=lambda use: (-use.scripts, use.name))
    rows = "\n".join(f"| `{use.name}` | {use.scripts} |" for use in ordered)
    return (
        f"{BEGIN}\n"
        f"Of the {total} names, clew has {total - len(lacking)} and lacks {len(lacking)}:\n\n"
        f"| name | scripts |\n|---|---|\n{rows}\n{END}"
    )


def updated(page: str, total: int, lacking: list[Use]) -> str:
    """The page with another table."""
    start, end = page.index(BEGIN), page.index(END) + len(END)
    return page[:start] + table(total, lacking) + page[end:]


def main(arguments: list[str]) -> int:
    """Update or check the page; 1 if the check finds a name that clew has."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", type=Path, help="the list of names by use")
    parser.add_argument("--check", action="store_true", help="change nothing")
    options = parser.parse_args(arguments)
    page = PAGE.read_text(encoding="utf-8")
    if options.names is not None:
        uses = read_uses(options.names)
        total = len(uses)
    else:
        uses = listed(page)
        total = int(TOTAL.search(page).group(1))  # type: ignore[union-attr]
    lacking = [use for use in uses if not has(use.name)]
    if options.check:
        there = [use.name for use in uses if use not in lacking]
        print("\n".join(there) or "the table is right")
        return 1 if there else 0
    PAGE.write_text(updated(page, total, lacking), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
