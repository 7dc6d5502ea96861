"""One moment of a ledger, sorted by kind, line, module or node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from clew.inspect.memory.history import Totals, by_kind
from clew.inspect.memory.log import KINDS, PARAMETER, Log, Place
from clew.inspect.reasons import reason
from clew.site import SourceLine, resolve


@dataclass
class Entry:
    """A line of a table: bytes that have something in common.

    Attributes:
        bytes: how many.
        storages: in how many storages.
        kinds: bytes by kind.
        line: the line of the program that made them, or None.
        module: the path of the module that made them or that they belong to.
        what: the operation that made them.
        node: the node that keeps them for backward, "" if none does.
        keeps: what the node calls them.
        kept_by: the line that recorded the node.
    """

    bytes: int = 0
    storages: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    line: SourceLine | None = None
    module: str = ""
    what: str = ""
    node: str = ""
    keeps: str = ""
    kept_by: SourceLine | None = None

    @property
    def kind(self) -> str:
        """The kind of most of the bytes."""
        return max(self.kinds, key=lambda kind: abs(self.kinds[kind]), default="")

    @property
    def reason(self) -> str:
        """Why the node keeps them, "" if that is not known."""
        return reason(self.node, self.keeps) if self.node else ""


class Table:
    """Entries, the largest first.

    Attributes:
        title: what it shows.
        columns: the attributes of its entries that tell them apart.
    """

    def __init__(self, title: str, columns: tuple[str, ...], entries: list[Entry]) -> None:
        self.title = title
        self.columns = columns
        self.entries = sorted(entries, key=lambda entry: -abs(entry.bytes))

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __getitem__(self, index: int) -> Entry:
        return self.entries[index]

    @property
    def bytes(self) -> int:
        """The sum over all entries."""
        return sum(entry.bytes for entry in self.entries)

    def __str__(self) -> str:
        from clew.inspect.memory.text import plain_text

        return plain_text(self)

    def __repr__(self) -> str:
        return f"<Table {self.title!r}: {len(self)} entries, {self.bytes:,} B>"

    def __rich__(self) -> Any:
        from clew.inspect.memory.text import table

        return table(self)


class Snapshot:
    """What was there at one moment.

    Attributes:
        bytes: all bytes.
        kinds: bytes by kind.
        seconds: since tracking began.
        iteration: the number of the iteration that ran.
        row: how many changes came before.
        line: the line of the program that ran.
        doing: the operation that ran, and "" if nothing had happened yet.
        module: the path of the module that ran.
        places: what the bytes are booked under.
    """

    def __init__(self, totals: Totals, log: Log) -> None:
        self.places = log.places
        self._nbytes = totals.nbytes
        self._storages = totals.storages
        kinds = np.array([place.kind for place in log.places], np.int64)
        self.bytes = totals.total
        self.kinds = dict(zip(KINDS, by_kind(totals.nbytes, kinds)))
        self.seconds = totals.seconds
        self.iteration = totals.iteration
        self.row = totals.row
        cause = log.places[totals.cause].origin if totals.cause >= 0 else None
        self.line = resolve(cause.site) if cause else None
        self.doing = cause.what if cause else ""
        self.module = cause.module if cause else ""

    @property
    def saved_bytes(self) -> int:
        """Bytes that graphs keep, inputs among them, parameters (which live anyway) left out."""
        return self.saved().bytes

    def by_kind(self) -> Table:
        """Bytes of each kind."""
        table = self._table("by kind", (), lambda place: KINDS[place.kind])
        table.columns = ("kind",)
        return table

    def by_line(self) -> Table:
        """Bytes by the line of the program that made them."""
        return self._table("by line", ("line",), lambda place: resolve(place.origin.site))

    def by_module(self) -> Table:
        """Bytes by the module that made them or that they belong to."""
        return self._table("by module", ("module",), lambda place: place.origin.module)

    def by_operation(self) -> Table:
        """Bytes by the operation that made them."""
        return self._table("by operation", ("what",), lambda place: place.origin.what)

    def saved(self) -> Table:
        """Bytes that graphs keep for backward, by the node that keeps them and the lines."""
        columns = ("node", "keeps", "kept_by", "line")
        return self._table("kept for backward", columns, _keeping)

    def entries(self) -> Table:
        """Everything, by all that is known of it."""
        columns = ("what", "line", "module", "kind", "node", "keeps", "kept_by")
        return self._table("everything", columns, lambda place: place)

    def _table(
        self, title: str, columns: tuple[str, ...], key: Callable[[Place], Any]
    ) -> Table:  # fmt: skip
        return Table(title, columns, grouped(self.places, self._nbytes, self._storages, key))

    def __str__(self) -> str:
        from clew.inspect.memory.text import plain_text

        return plain_text(self)

    def __repr__(self) -> str:
        return f"<Snapshot {self.bytes:,} B, iteration {self.iteration}>"

    def __rich__(self) -> Any:
        from clew.inspect.memory.text import snapshot

        return snapshot(self)


def _keeping(place: Place) -> Any:
    if place.keeper is None or place.kind == PARAMETER:
        return None
    keeper = place.keeper
    return keeper.node, keeper.name, resolve(keeper.site), resolve(place.origin.site)


def grouped(
    places: list[Place], nbytes: np.ndarray, storages: np.ndarray, key: Callable[[Place], Any]
) -> list[Entry]:
    """An entry for each value of `key` at the places where something is; None is left out."""
    groups: dict[Any, Entry] = {}
    for index in np.flatnonzero((nbytes != 0) | (storages != 0)):
        place = places[index]
        value = key(place)
        if value is None and key is _keeping:
            continue
        entry = groups.get(value)
        if entry is None:
            entry = groups[value] = described(place)
        count = int(nbytes[index])
        entry.bytes += count
        entry.storages += int(storages[index])
        kind = KINDS[place.kind]
        entry.kinds[kind] = entry.kinds.get(kind, 0) + count
    return list(groups.values())


def described(place: Place) -> Entry:
    """An entry without bytes for what stands at a place."""
    keeper, origin = place.keeper, place.origin
    entry = Entry(line=resolve(origin.site), module=origin.module, what=origin.what)
    if keeper is not None:
        entry.node, entry.keeps = keeper.node, keeper.name
        entry.kept_by = resolve(keeper.site)
    return entry
