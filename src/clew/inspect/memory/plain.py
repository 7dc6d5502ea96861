"""A ledger as plain data: what ``.json`` files hold, and what the page is made from."""

from __future__ import annotations

import json
import linecache
from bisect import bisect_right
from typing import Any, NamedTuple

import numpy as np

from clew.inspect.memory.history import Rows
from clew.inspect.memory.log import KINDS, Place
from clew.inspect.memory.tables import Entry, Snapshot, described
from clew.inspect.memory.timeline import Timeline
from clew.site import SourceLine

AROUND = 2
"""So many lines before and after a line of the program are shown with it."""


def dumps(ledger: Any) -> str:
    """All figures as JSON."""
    return json.dumps(to_dict(ledger), indent=1, allow_nan=False)


def to_dict(ledger: Any) -> dict[str, Any]:
    """All figures: the peak, now, iterations, and each change that is kept in detail.

    A change is ``[seconds, storage, place before, place after, bytes]``; places are listed under
    "places", and -1 stands for "not there".
    """
    timeline = ledger.timeline
    rows = timeline.rows
    return {
        "format": "clew memory 1",
        "engines": ledger.engines,
        "kinds": list(KINDS),
        "peak": moment(ledger.peak),
        "now": moment(ledger.now),
        "iterations": [vars(one) for one in ledger.iterations],
        "first_change": timeline.first,
        "places": places(ledger.now.places),
        "changes": [[round(row[0], 7), *row[1:]] for row in rows.tolist()],
    }


def moment(snapshot: Snapshot) -> dict[str, Any]:
    """One moment with its entries."""
    return {
        "bytes": snapshot.bytes,
        "kinds": snapshot.kinds,
        "row": snapshot.row,
        "seconds": snapshot.seconds,
        "iteration": snapshot.iteration,
        "line": line(snapshot.line),
        "doing": snapshot.doing,
        "module": snapshot.module,
        "entries": [entry(one) for one in snapshot.entries()],
    }


def entry(one: Entry) -> dict[str, Any]:
    """An entry of a table that tells everything apart."""
    return {"bytes": one.bytes, "storages": one.storages, "kind": one.kind, **_what(one)}


def places(found: list[Place]) -> list[dict[str, Any]]:
    """What the numbers of places stand for."""
    return [{"kind": KINDS[place.kind], **_what(described(place))} for place in found]


def _what(one: Entry) -> dict[str, Any]:
    return {
        "line": line(one.line), "module": one.module, "what": one.what, "node": one.node,
        "keeps": one.keeps, "kept_by": line(one.kept_by), "reason": one.reason,
    }  # fmt: skip


def line(found: SourceLine | None) -> dict[str, Any] | None:
    """A line of the program."""
    return None if found is None else dict(found._asdict())


def with_surroundings(found: SourceLine) -> dict[str, Any]:
    """A line of the program with those around it, as the page shows it."""
    first = max(found.line - AROUND, 1)
    around = [linecache.getline(found.file, n) for n in range(first, found.line + AROUND + 1)]
    while around and not around[-1]:  # beyond the end of the file
        around.pop()
    return {**found._asdict(), "first": first, "around": [text.rstrip("\n") for text in around]}


# -- frames: changes as the page draws them


class Frames(NamedTuple):
    """Changes as the page draws them.

    Attributes:
        times: when each frame ended, in seconds.
        changes: what each changed: place, bytes, place, bytes, ...
        ends: after how many frames iterations ended.
    """

    times: list[float]
    changes: list[list[int]]
    ends: list[int]


def frames(timeline: Timeline, limit: int) -> Frames:
    """The changes, put together where there are more than `limit`.

    Then a frame ends at the highest total of each stretch, and at the end of each iteration, so
    that neither is lost.
    """
    rows = timeline.rows
    cuts = _cuts(timeline.total, timeline.ends_here, limit)
    times, changes, start = [], [], 0
    for cut in cuts:
        part = rows[start:cut]
        times.append(round(float(part["seconds"][-1]), 7))
        changes.append(_net(part))
        start = cut
    ends = [bisect_right(cuts, end) for end in timeline.ends_here]
    return Frames(times, changes, ends)


def _cuts(total: np.ndarray, ends: list[int], limit: int) -> list[int]:
    """After which changes a frame ends."""
    count = len(total)
    if count <= limit:
        return list(range(1, count + 1))
    step = -(-2 * count // limit)
    found = {count, *ends}
    for start in range(0, count, step):
        part = total[start : start + step]
        found.add(start + int(part.argmax()) + 1)
        found.add(start + len(part))
    return sorted(found)


def _net(rows: Rows) -> list[int]:
    change: dict[int, int] = {}
    for _, _, before, after, nbytes in rows.tolist():
        if before >= 0:
            change[before] = change.get(before, 0) - nbytes
        if after >= 0:
            change[after] = change.get(after, 0) + nbytes
    return [number for place, nbytes in change.items() if nbytes for number in (place, nbytes)]
