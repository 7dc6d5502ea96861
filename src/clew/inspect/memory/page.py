"""The ledger as a page: bytes by kind over time, and what was there at any moment."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

from clew.inspect.memory.log import KINDS
from clew.inspect.memory.plain import frames, places, with_surroundings
from clew.inspect.memory.tables import described
from clew.inspect.page import build

LIMIT = 30_000
"""So many changes are drawn one by one; several of a longer log make one step."""


def page(ledger: Any, title: str = "memory") -> str:
    """An HTML page that needs no other file."""
    return build(
        title=title, kind="memory", data=data(ledger), body="memory.html", styles=["memory.css"],
        scripts=["chart.js", "memory.js"], folder=Path(__file__).parent / "web",
    )  # fmt: skip


def data(ledger: Any) -> dict[str, Any]:
    """What the page draws."""
    timeline = ledger.timeline
    found = ledger.now.places
    drawn = frames(timeline, LIMIT)
    start = timeline.totals(timeline.first).nbytes
    lines = {}
    for place in found:
        shown = described(place)
        for one in (shown.line, shown.kept_by):
            if one is not None:
                lines[f"{one.file}:{one.line}"] = with_surroundings(one)
    rounds = ledger.iterations
    dropped = [one for one in rounds if one.index < len(rounds) - len(timeline.ends)]
    return {
        "kinds": list(KINDS),
        "engines": ledger.engines,
        "places": places(found),
        "types": ledger.module_types,
        "lines": lines,
        "start": {str(i): int(n) for i, n in enumerate(start) if n},
        "times": drawn.times,
        "changes": drawn.changes,
        "ends": drawn.ends,
        "firstIteration": len(dropped),
        "dropped": [{"peak": one.peak, "bytes": one.bytes} for one in dropped],
        "firstChange": timeline.first,
        "total": timeline.first + len(timeline),
        "peak": ledger.peak.bytes,
    }


def in_notebook(ledger: Any) -> str:
    """The page in a frame, for a notebook."""
    return (
        f'<iframe srcdoc="{html.escape(page(ledger))}" '
        'style="width:100%;height:640px;border:1px solid #ccc;border-radius:8px"></iframe>'
    )
