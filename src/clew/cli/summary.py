"""What `clew run --summary` shows.  Imports rich, and the ledger's tables, when it prints."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table


@dataclass
class Summary:
    """What a program held.

    Attributes:
        peak: bytes by kind at the moment when their sum was highest.
        current: bytes by kind at the end.
        nodes_recorded: graph nodes made.
        nodes_freed: of these, how many are gone.
        top_lines: (file, line, text, bytes) of the lines that held most saved bytes at the peak.
    """

    peak: dict[str, int]
    current: dict[str, int]
    nodes_recorded: int
    nodes_freed: int
    top_lines: list[tuple[str, int, str, int]] = field(default_factory=list)


def summarize(ledger: Any, lines: int = 5) -> Summary:
    """The summary of a `clew.memory.Ledger`."""
    peak = ledger.peak
    kept: dict[Any, int] = {}
    for entry in peak.saved():
        if entry.kept_by is not None:
            kept[entry.kept_by] = kept.get(entry.kept_by, 0) + entry.bytes
    top = sorted(kept.items(), key=lambda item: -item[1])[:lines]
    recorded = ledger.nodes_recorded
    return Summary(
        peak.kinds, ledger.now.kinds, recorded, recorded - ledger.nodes_alive(),
        [(line.file, line.line, line.text, nbytes) for line, nbytes in top],
    )  # fmt: skip


def print_summary(summary: Summary, file: IO[str] | None = None, width: int | None = None) -> None:
    """Print a summary, by default on stderr, so that the program's own output stays as it is.

    Colours are used on a terminal only.
    """
    from rich.console import Console

    console = Console(file=file or sys.stderr, width=width, highlight=False)
    console.print()
    console.print(render(summary))


def render(summary: Summary) -> RenderableType:
    """The summary as something that rich prints."""
    from rich.console import Group
    from rich.text import Text

    alive = summary.nodes_recorded - summary.nodes_freed
    nodes = Text.assemble(
        (" graph nodes", "bold"),
        f"   {summary.nodes_recorded:,} recorded, {summary.nodes_freed:,} freed, {alive:,} alive",
    )
    parts: list[RenderableType] = [_kinds_table(summary), nodes]
    if summary.top_lines:
        parts += ["", _lines_table(summary)]
    return Group(*parts)


def _kinds_table(summary: Summary) -> Table:
    from clew.inspect.memory.log import KINDS
    from clew.inspect.memory.text import new_table
    from clew.inspect.text import bytes_text

    table = new_table()
    table.add_column("bytes held", no_wrap=True)
    table.add_column("peak", justify="right", no_wrap=True)
    table.add_column("at the end", justify="right", no_wrap=True)
    for kind in KINDS:
        peak, current = summary.peak.get(kind, 0), summary.current.get(kind, 0)
        if kind != "buffer" or peak or current:
            table.add_row(kind, bytes_text(peak), bytes_text(current))
    table.add_section()
    totals = (sum(summary.peak.values()), sum(summary.current.values()))
    table.add_row("total", *(bytes_text(total) for total in totals), style="bold")
    return table


def _lines_table(summary: Summary) -> Table:
    from rich.text import Text

    from clew.inspect.memory.text import new_table, one_line, short_path
    from clew.inspect.text import bytes_text

    table = new_table()
    table.add_column("saved at the peak", justify="right", no_wrap=True)
    table.add_column("by line", no_wrap=True)
    table.add_column("")
    for file, line, source, count in summary.top_lines:
        place = Text(f"{short_path(file)}:{line}", style="cyan")
        table.add_row(bytes_text(count), place, one_line(source.strip()))
    return table
