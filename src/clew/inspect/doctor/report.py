"""What the doctor prints: findings with their lines of source.  Imports rich when it prints."""

from __future__ import annotations

import linecache
import os
import sys
from contextlib import suppress
from typing import IO, Any

from clew.inspect.doctor.finding import Finding, several
from clew.inspect.doctor.rules import TITLES
from clew.site import SourceLine

_COLOURS = {"error": "bold red", "warning": "bold yellow", "info": "bold blue"}


def print_findings(
    findings: list[Finding], file: IO[str] | None = None, width: int | None = None
) -> None:
    """Print findings, by default on stderr; colours on a terminal only."""
    from rich.console import Console

    console = Console(file=file or sys.stderr, width=width, highlight=False, soft_wrap=False)
    console.print(render(findings))


def render(findings: list[Finding]) -> Any:
    """The findings as something that rich prints."""
    from rich.console import Group
    from rich.text import Text

    if not findings:
        return Text.assemble(("clew doctor", "bold"), ": nothing to report")
    parts: list[Any] = []
    for finding in findings:
        parts += [_finding(finding), ""]
    return Group(*parts, Text.assemble(("clew doctor", "bold"), f": {summary(findings)}"))


def summary(findings: list[Finding]) -> str:
    """``1 error, 2 warnings``."""
    counts = {s: sum(f.severity == s for f in findings) for s in _COLOURS}
    words = [several(n, s) if s != "info" else f"{n} info" for s, n in counts.items() if n]
    return ", ".join(words) or "nothing to report"


def _finding(finding: Finding) -> Any:
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    title = TITLES.get(finding.rule, "exception")
    head = Text.assemble(
        (finding.severity, _COLOURS[finding.severity]), " ", (finding.rule or "-", "bold"),
        f" {title}",
    )  # fmt: skip
    if finding.place is not None:
        head.append(f"  {short_path(finding.place.file)}:{finding.place.line}", "cyan")
    body: list[Any] = [head, Padding(Text(finding.message), (0, 0, 0, 2))]
    lines = finding.lines or ([("", finding.place)] if finding.place else [])
    if lines:
        body.append(Padding(_lines(lines, finding.file), (0, 0, 0, 2)))
    if finding.cure:
        body.append(Padding(Text.assemble(("→ ", "green"), finding.cure), (0, 0, 0, 2)))
    return Group(*body)


def _lines(lines: list[tuple[str, SourceLine]], home: str | None) -> Any:
    """The lines in the order of the source, each with what it is; files are named once."""
    from rich.table import Table
    from rich.text import Text

    roles: dict[tuple[str, int], list[str]] = {}
    texts: dict[tuple[str, int], str] = {}
    for role, at in lines:
        key = (at.file, at.line)
        roles.setdefault(key, []).append(role)
        texts[key] = at.text or linecache.getline(at.file, at.line).strip()
    # In a narrow terminal the source is cut short, never the numbers and words beside it.
    table = Table.grid(padding=(0, 1), expand=True)
    digits = max(len(str(line)) for _, line in roles)
    table.add_column(justify="right", no_wrap=True, style="cyan", width=digits)
    table.add_column(no_wrap=True, style="dim", width=1)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    width = max(len(", ".join(words)) for words in roles.values())
    table.add_column(no_wrap=True, style="dim italic", width=width)
    shown = home
    for file, line in sorted(roles, key=lambda k: (k[0] != home, k)):
        if file != shown:
            table.add_row("", "", Text(short_path(file), style="cyan"), "")
            shown = file
        # Text, because source may hold square brackets, which rich reads as markup.
        words = [role for role in roles[file, line] if role]
        table.add_row(str(line), "│", Text(texts[file, line]), ", ".join(words))
    return table


def short_path(path: str) -> str:
    """A path from the working directory where that is shorter."""
    with suppress(ValueError):  # another drive
        path = min(os.path.relpath(path), path, key=len)
    return path
