"""A ledger in a terminal.  Uses rich."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from clew.inspect.memory.diff import Diff
from clew.inspect.memory.log import KINDS
from clew.inspect.memory.tables import Entry, Snapshot, Table
from clew.inspect.text import bytes_text
from clew.site import SourceLine

_PATH_WIDTH = 30
_BAR_WIDTH = 12
LINES = 10
"""So many entries of a table are shown unless more are asked for."""

_HEADS = {"kind": "kind", "line": "made at", "module": "module", "what": "operation"}
_SHORT = {"saved for backward": "saved"}


def short_path(path: str) -> str:
    """A path from the working directory where that is shorter; its last folders if it is long."""
    with suppress(ValueError):  # another drive
        path = min(os.path.relpath(path), path, key=len)
    if len(path) <= _PATH_WIDTH:
        return path
    start = path.find(os.sep, len(path) - _PATH_WIDTH)
    return f"…{path[start:]}" if start >= 0 else path


def place_text(line: SourceLine | None) -> str:
    """``train.py:12``."""
    return f"{short_path(line.file)}:{line.line}" if line else "-"


# -- whole reports


def renderable(ledger: Any, lines: int = LINES) -> RenderableType:
    """What a ledger prints."""
    peak, now = ledger.peak, ledger.now
    parts: list[RenderableType] = [_headline(peak), kinds_table(peak, now)]
    modules = peak.by_module()
    parts += [_title("the peak by line"), table(peak.by_line(), lines)]
    if any(entry.module for entry in modules):
        parts += [_title("the peak by module"), table(modules, lines)]
    if peak.saved():
        parts += [_title("kept for backward at the peak"), table(peak.saved(), lines)]
    return Group(*parts, _iterations(ledger))


def text_of(ledger: Any, lines: int = LINES) -> str:
    """The text of `renderable`, without colours."""
    return _captured(renderable(ledger, lines))


def plain_text(shown: Any) -> str:
    """The text of whatever rich can print, without colours."""
    return _captured(shown)


def _captured(shown: Any) -> str:
    console = Console(width=120, no_color=True, highlight=False, emoji=False)
    with console.capture() as capture:
        console.print(shown)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def snapshot(shown: Snapshot) -> RenderableType:
    """One moment: its kinds and lines."""
    return Group(_headline(shown, "holds"), kinds_table(shown), table(shown.by_line()))


def _headline(shown: Snapshot, word: str = "peak") -> Text:
    text = Text.assemble((f" {word} {bytes_text(shown.bytes)}", "bold"))
    text.append(f" ({shown.bytes:,} B), iteration {shown.iteration}, {shown.seconds:.2f} s")
    if shown.doing:
        where = f" in {shown.module}" if shown.module else ""
        text.append(f"\n   {shown.doing}{where}", "dim")
    if shown.line is not None:
        text.append(f"   {place_text(shown.line)}", "cyan")
        text.append(f"  {shown.line.text}")
    return text


def _title(words: str) -> Text:
    return Text(f"\n {words}", style="bold")


def _iterations(ledger: Any) -> Text:
    rounds = ledger.iterations
    if len(rounds) < 2:
        return Text(f"\n {len(rounds)} iteration{'s' * (len(rounds) != 1)}", style="dim")
    text = Text(f"\n {len(rounds)} iterations", style="bold")
    text.append(f", highest peak {bytes_text(max(one.peak for one in rounds))}", "not bold")
    ends = [one.bytes for one in rounds[1:]]  # the first brings what stays
    if grows(ends):
        grew = f"; what is left at their ends grew from {bytes_text(ends[0])} to "
        text.append(f"{grew}{bytes_text(ends[-1])}", "not bold red")
        text.append(f": see diff(1, {len(rounds) - 1})", "not bold")
    else:
        text.append("; what is left at their ends does not grow", "not bold")
    return text


def grows(ends: list[int]) -> bool:
    """Whether all of the second half is above all of the first: no saw-tooth, no single jump."""
    half = len(ends) // 2
    return half >= 2 and max(ends[:half]) < min(ends[half:])


# -- tables


def kinds_table(peak: Snapshot, now: Snapshot | None = None) -> RichTable:
    """Bytes by kind at the peak, and now."""
    shown = new_table()
    shown.add_column("bytes held", no_wrap=True)
    shown.add_column("peak" if now else "bytes", justify="right", no_wrap=True)
    if now:
        shown.add_column("at the end", justify="right", no_wrap=True)
    moments = [peak, now] if now else [peak]
    for kind in KINDS:
        cells = [bytes_text(moment.kinds[kind]) for moment in moments]
        if kind != "buffer" or any(moment.kinds[kind] for moment in moments):
            shown.add_row(kind, *cells)
    shown.add_section()
    shown.add_row("total", *(bytes_text(moment.bytes) for moment in moments), style="bold")
    return shown


def table(shown: Table, lines: int = LINES) -> RenderableType:
    """A table of entries, the largest first, those beyond `lines` in one."""
    if not shown.entries:
        return Text(" nothing", style="dim")
    if "node" in shown.columns:
        return _saved_table(shown, lines)
    made = new_table()
    made.add_column("bytes", justify="right", no_wrap=True)
    made.add_column("", no_wrap=True)
    (column,) = shown.columns[:1]
    made.add_column(_HEADS[column], no_wrap=True)
    made.add_column("")
    largest = max(abs(entry.bytes) for entry in shown) or 1
    for entry in shown.entries[:lines]:
        bar = Text(_bar(abs(entry.bytes) / largest), style="blue")
        made.add_row(bytes_text(entry.bytes), bar, _key(entry, column), _detail(entry, column))
    _add_rest(made, shown.entries[lines:])
    return made


def _saved_table(shown: Table, lines: int) -> RichTable:
    made = new_table()
    made.add_column("bytes", justify="right", no_wrap=True)
    made.add_column("node", no_wrap=True)
    made.add_column("recorded at", no_wrap=True)
    made.add_column("because")
    for entry in shown.entries[:lines]:
        what = Text.assemble(entry.node.removesuffix("Backward0"), (f" {entry.keeps}", "dim"))
        kinds = f" ({entry.kind})" if entry.kind != "saved for backward" else ""
        why = one_line(entry.reason + kinds)
        made.add_row(bytes_text(entry.bytes), what, _place(entry.kept_by), why)
    _add_rest(made, shown.entries[lines:])
    return made


def _add_rest(made: RichTable, rest: list[Entry]) -> None:
    if rest:
        cells = [""] * (len(made.columns) - 2)
        made.add_row(bytes_text(sum(e.bytes for e in rest)), f"{len(rest)} more", *cells,
                     style="dim")  # fmt: skip


def _key(entry: Entry, column: str) -> Text:
    if column == "line":
        return _place(entry.line)
    return Text(str(getattr(entry, column)) or "(outside modules)")


def _detail(entry: Entry, column: str) -> Text:
    """The kinds; for a line its text before them."""
    kinds = sorted(entry.kinds, key=lambda kind: -entry.kinds[kind])
    words = ", ".join(_SHORT.get(kind, kind) for kind in kinds)
    if column == "kind":
        return Text("")
    if column != "line":
        return one_line(words)
    if entry.line is None:
        return one_line(f"before tracking   {words}")
    # The kinds are what is cut off where the terminal is narrow.
    text = one_line(entry.line.text)
    text.append(f"   {words}", "dim")
    return text


def _place(line: SourceLine | None) -> Text:
    return Text(place_text(line), style="cyan")


def one_line(words: str) -> Text:
    """Text that is cut, not wrapped, where the terminal is narrow; its column alone shrinks."""
    return Text(words, no_wrap=True, overflow="ellipsis")


def diff(shown: Diff, lines: int = LINES) -> RenderableType:
    """What grew and what shrank."""
    before, after = shown.bytes_at
    head = Text.assemble(
        (f" {after - before:+,} B", "bold red" if after > before else "bold"),
        f" {shown.title}: {bytes_text(before)} → {bytes_text(after)}",
    )
    if not shown.entries:
        return Group(head, Text(" no line holds more or less than before", style="dim"))
    made = new_table()
    made.add_column("grew", justify="right", no_wrap=True)
    made.add_column("storages", justify="right", no_wrap=True)
    for name in ("kind", "made at"):
        made.add_column(name, no_wrap=True)
    made.add_column("")
    for entry in shown.entries[:lines]:
        grew = Text(_signed(entry.bytes))
        if entry.line in shown.steady:
            grew.append(" each time", "red")
        source = one_line(entry.line.text if entry.line else "before tracking")
        if entry.node:
            source.append(f"   kept by {entry.node} {place_text(entry.kept_by)}", "dim")
        kind = _SHORT.get(entry.kind, entry.kind)
        made.add_row(grew, f"{entry.storages:+d}", kind, _place(entry.line), source)
    _add_rest(made, shown.entries[lines:])
    return Group(head, made)


def _signed(count: int) -> str:
    return ("+" if count > 0 else "") + bytes_text(count)


def _bar(share: float) -> str:
    eighths = round(share * _BAR_WIDTH * 8)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def new_table() -> RichTable:
    """A table as clew's reports have them."""
    return RichTable(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
