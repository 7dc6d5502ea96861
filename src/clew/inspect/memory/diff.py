"""What grew between two iterations."""

from __future__ import annotations

from typing import Any

from clew.inspect.memory.history import History
from clew.inspect.memory.log import KINDS, Log, Place
from clew.inspect.memory.tables import Entry, Table, grouped
from clew.site import resolve


class Diff(Table):
    """The entries that differ between the ends of two iterations; ``+`` grew.

    Attributes:
        first: the earlier iteration.
        second: the later one.
        bytes_at: the bytes at both ends.
        kinds: by how many bytes each kind grew.
        steady: the lines that grew in every iteration between.
    """

    def __init__(self, history: History, first: int, second: int, log: Log) -> None:
        before, storages_before = history.at_end_of(first)
        after, storages_after = history.at_end_of(second)
        self.first = first
        self.second = second
        self.bytes_at = int(before.sum()), int(after.sum())
        entries = grouped(log.places, after - before, storages_after - storages_before, _key)
        columns = ("kind", "line", "module", "node", "kept_by")
        super().__init__(f"from iteration {first} to {second}", columns, _told_apart(entries))
        self.kinds = dict.fromkeys(KINDS, 0)
        for entry in self.entries:
            for kind, nbytes in entry.kinds.items():
                self.kinds[kind] += nbytes
        self.steady = _steady(history, first, second, log)

    @property
    def grew(self) -> list[Entry]:
        """The entries that grew, the most first."""
        return [entry for entry in self.entries if entry.bytes > 0]

    @property
    def shrank(self) -> list[Entry]:
        """The entries that shrank, the most first."""
        return [entry for entry in self.entries if entry.bytes < 0]

    def __rich__(self) -> Any:
        from clew.inspect.memory.text import diff

        return diff(self)

    def __repr__(self) -> str:
        return f"<Diff {self.title}: {self.bytes:+,} B>"


def _key(place: Place) -> Any:
    keeper = place.keeper
    return (
        place.kind, resolve(place.origin.site), place.origin.module,
        None if keeper is None else (keeper.node, resolve(keeper.site)),
    )  # fmt: skip


def _told_apart(entries: list[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.bytes or entry.storages]


def _steady(history: History, first: int, second: int, log: Log) -> set[Any]:
    """The lines whose bytes grew in each iteration after `first`, up to `second`."""
    if second - first < 2:
        return set()
    found: set[Any] | None = None
    for one in history.rounds[first + 1 : second + 1]:
        lines: dict[Any, int] = {}
        for place, nbytes in zip(one.places, one.nbytes):
            line = resolve(log.places[place].origin.site)
            lines[line] = lines.get(line, 0) + int(nbytes)
        grew = {line for line, nbytes in lines.items() if nbytes > 0}
        found = grew if found is None else found & grew
    return found or set()
