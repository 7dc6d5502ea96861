"""Profiled events as a table.  Layer 4."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Column = tuple[str, str, Callable[[Any], str]]
"""Heading, alignment and the text of an event."""


def _format_time(time_us: float) -> str:
    """A time with its unit: ``1.500ms``."""
    if time_us >= 1_000_000:
        return f"{time_us / 1_000_000:.3f}s"
    return f"{time_us / 1_000:.3f}ms" if time_us >= 1_000 else f"{time_us:.3f}us"


def _format_time_share(time_us: float, total_time_us: float) -> str:
    """A share of the whole time: ``12.50%``."""
    if total_time_us == 0:
        return "NaN"
    return f"{time_us * 100.0 / total_time_us:.2f}%"


def _format_memory(nbytes: float) -> str:
    """A number of bytes with its unit: ``1.50 KB``."""
    for unit, size in (("GB", 2**30), ("MB", 2**20), ("KB", 2**10)):
        if abs(nbytes) >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} B"


def table(
    events: Any, sort_by: str | None, row_limit: int, widths: dict[str, int], header: str | None,
    top_level_only: bool, *, memory: bool, source: bool,
) -> str:  # fmt: skip
    """See `clew.autograd.profiler_util.EventList.table`."""
    if not events:
        return ""
    columns = _columns(events, widths, memory=memory, source=source)
    shown = list(events)
    if sort_by is not None:
        shown.sort(key=lambda event: getattr(event, _attribute(sort_by)), reverse=True)
    if top_level_only:
        shown = [event for event in shown if event.cpu_parent is None]
    rows = [[text(event) for _, _, text in columns] for event in _first(shown, row_limit)]
    sizes = [max(len(cell) for cell in column) for column in zip([c[0] for c in columns], *rows)]
    lines = ["-" * size for size in sizes]
    sides = [side for _, side, _ in columns]
    body = [lines, [c[0] for c in columns], lines, *rows, lines]
    text = [
        "  ".join(f"{cell:{side}{size}}" for cell, side, size in zip(row, sides, sizes)) + "  "
        for row in body
    ]
    width = len(text[0])
    above = ["=" * width, header] if header else []
    if top_level_only:
        above += ["=" * width, "This report only display top-level ops statistics"]
    total = f"Self CPU time total: {_format_time(events.self_cpu_time_total)}"
    return "\n".join([*above, *text, total, ""])


def _first(events: list[Any], limit: int) -> list[Any]:
    return events if limit < 0 else events[:limit]


def _attribute(sort_by: str) -> str:
    """The attribute behind a name to sort by; PyTorch's names of the GPU's times are old ones."""
    return sort_by.replace("cuda", "device")


def _columns(events: Any, widths: dict[str, int], *, memory: bool, source: bool) -> list[Column]:
    total = events.self_cpu_time_total
    columns: list[Column] = [
        ("Name", ">", lambda e: _cut(e.key, widths["name"])),
        ("Self CPU %", ">", lambda e: _format_time_share(e.self_cpu_time_total, total)),
        ("Self CPU", ">", lambda e: _format_time(e.self_cpu_time_total)),
        ("CPU total %", ">", lambda e: _format_time_share(e.cpu_time_total, total)),
        ("CPU total", ">", lambda e: _format_time(e.cpu_time_total)),
        ("CPU time avg", ">", lambda e: _format_time(e.cpu_time)),
    ]
    if memory:
        columns.append(("CPU Mem", ">", lambda e: _format_memory(e.cpu_memory_usage)))
        columns.append(("Self CPU Mem", ">", lambda e: _format_memory(e.self_cpu_memory_usage)))
    columns.append(("# of Calls", ">", lambda e: str(e.count)))
    if any(event.input_shapes for event in events):
        columns.append(("Input Shapes", ">", lambda e: _cut(str(e.input_shapes), widths["shapes"])))
    if source and any(event.stack for event in events):
        columns.append(("Source Location", "<", lambda e: _cut(_first_line(e), widths["source"])))
    return columns


def _first_line(event: Any) -> str:
    return event.stack[0] if event.stack else ""


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."
