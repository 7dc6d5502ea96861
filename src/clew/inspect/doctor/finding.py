"""What the doctor says: one finding, and the words that findings share.  Standard library only."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import Any

from clew.site import SourceLine

SEVERITIES = ("error", "warning", "info")


@dataclass
class Finding:
    """One mistake, in one short paragraph.

    Attributes:
        rule: ``R01`` to ``R18``.
        severity: ``error``, ``warning`` or ``info``.
        message: what happens, since when, and what it costs.
        cure: the change to make.
        place: the line to look at.
        lines: (what it is, line) of all lines that matter.
        figures: the rule's numbers, by name.
    """

    rule: str
    severity: str
    message: str
    cure: str
    place: SourceLine | None
    lines: list[tuple[str, SourceLine]] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)

    @property
    def file(self) -> str | None:
        """The file of the line to look at."""
        return self.place.file if self.place else None

    @property
    def line(self) -> int | None:
        """The number of the line to look at."""
        return self.place.line if self.place else None

    def as_dict(self) -> dict[str, Any]:
        """As plain data, for JSON; the figures stand beside the rest."""
        return {
            "rule": self.rule,
            "severity": self.severity,
            "file": self.file,
            "line": self.line,
            "message": f"{self.message} {self.cure}".strip(),
            "cure": self.cure,
            "lines": [
                {"role": role, "file": at.file, "line": at.line, "text": at.text}
                for role, at in self.lines
            ],
            **self.figures,
        }

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}: " if self.place else ""
        head = f"{where}{self.severity} {self.rule}".rstrip()
        body = (
            textwrap.fill(
                part,
                98,
                initial_indent=start,
                subsequent_indent="  ",
                break_on_hyphens=False,
                break_long_words=False,
            )
            for start, part in (("  ", self.message), ("  → ", self.cure))
            if part
        )
        return "\n".join([head, *body])


def human(count: int) -> str:
    """A number of bytes as people read it.

    >>> human(1536)
    '1.5 KiB'
    """
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if abs(size) < 1023.95:
            break
        size, unit = size / 1024, larger
    return f"{size:,.0f} B" if unit == "B" else f"{size:,.1f} {unit}"


def several(count: int, word: str) -> str:
    """A count with its noun.

    >>> several(1, "node"), several(3, "node")
    ('1 node', '3 nodes')
    """
    return f"{count:,} {word}" + ("" if count == 1 else "s")


def listed(names: list[str], most: int = 3) -> str:
    """A few names in words.

    >>> listed(["a", "b", "c", "d"], most=2)
    'a, b and 2 more'
    """
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
