"""What `clew run --summary` shows.  Imports the standard library, and rich when it prints."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from clew.inspect.ledger import Summary

KINDS = ("parameters", "gradients", "saved for backward", "optimizer state", "other")
"""The kinds of bytes, in the order in which they are shown."""

_PATH_WIDTH = 30


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


def format_bytes(count: int) -> str:
    """A number of bytes as people read it.

    >>> format_bytes(1536)
    '1.5 KiB'
    """
    if abs(count) < 1024:
        return f"{count} B"
    size, unit = count / 1024, "KiB"
    for larger in ("MiB", "GiB", "TiB"):
        if abs(size) < 1023.95:  # from there on, one decimal would show 1024.0
            break
        size, unit = size / 1024, larger
    return f"{size:,.1f} {unit}"


def _kinds_table(summary: Summary) -> Table:
    table = _table()
    table.add_column("bytes held", no_wrap=True)
    table.add_column("peak", justify="right", no_wrap=True)
    table.add_column("at the end", justify="right", no_wrap=True)
    others = [kind for kind in summary.peak | summary.current if kind not in KINDS]
    for kind in (*KINDS, *others):
        peak, current = summary.peak.get(kind, 0), summary.current.get(kind, 0)
        table.add_row(kind, format_bytes(peak), format_bytes(current))
    table.add_section()
    totals = (sum(summary.peak.values()), sum(summary.current.values()))
    table.add_row("total", *(format_bytes(total) for total in totals), style="bold")
    return table


def _lines_table(summary: Summary) -> Table:
    from rich.text import Text

    table = _table()
    table.add_column("saved at the peak", justify="right", no_wrap=True)
    table.add_column("by line", no_wrap=True)
    table.add_column("")
    for file, line, source, count in summary.top_lines:
        # Text, because source may hold square brackets, which rich reads as markup.  Only this
        # column may be squeezed into a narrow terminal, and it is cut rather than wrapped.
        text = Text(source.strip(), no_wrap=True, overflow="ellipsis")
        place = Text(f"{_short_path(file)}:{line}", style="cyan")
        table.add_row(format_bytes(count), place, text)
    return table


def _table() -> Table:
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)


def _short_path(path: str) -> str:
    """A path from the working directory where that is shorter; its last folders if it is long."""
    with suppress(ValueError):  # another drive
        path = min(os.path.relpath(path), path, key=len)
    if len(path) <= _PATH_WIDTH:
        return path
    start = path.find(os.sep, len(path) - _PATH_WIDTH)
    return f"…{path[start:]}" if start >= 0 else path
