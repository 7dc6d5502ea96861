"""Bytes by kind over time."""

from __future__ import annotations

import numpy as np

from clew.inspect.memory.history import (
    History,
    Rows,
    Totals,
    after,
    by_kind,
    curves,
)
from clew.inspect.memory.log import KINDS, Place


class Timeline:
    """What each change in the log left.

    Attributes:
        seconds: the time of each change since tracking began.
        kinds: bytes by kind after each change: a line for each change, a column for each of
            `clew.memory.KINDS`.
        total: their sums.
        first: how many changes came before; those of a long run are kept in detail near its end
            only, before that `Ledger.iterations` tell of it.
        ends: after how many changes iterations ended.
        ends_here: after how many of those that are kept.
    """

    def __init__(self, rows: Rows, settled: History, whole: History, places: list[Place]) -> None:
        self.rows = rows
        self.first = settled.row
        self._settled = settled
        self._places = places
        self._whole = whole
        numbers = np.array([place.kind for place in places], np.int64)
        start = by_kind(settled.nbytes, numbers)
        self.seconds = rows["seconds"]
        self.kinds = curves(start, rows, numbers)
        self.total = self.kinds.sum(axis=1)
        self.ends = [one.last for one in whole.rounds if one.last > self.first]
        self.ends_here = [end - self.first for end in self.ends]

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"<Timeline of {len(self):,} changes>"

    def of(self, kind: str) -> np.ndarray:
        """The bytes of one kind after each change.

        Raises:
            ValueError: there is no such kind.
        """
        return self.kinds[:, KINDS.index(kind)]

    def totals(self, row: int) -> Totals:
        """What was there after so many changes, all of them counted.

        Raises:
            IndexError: there were not so many, or they are no longer kept in detail.
        """
        count = row - self.first
        if not 0 <= count <= len(self):
            raise IndexError(
                f"there is no change {row}: {self.first} to {self.first + len(self)} are kept"
            )
        start = np.zeros(len(self._places), np.int64)
        nbytes, storages = start.copy(), start.copy()
        nbytes[: len(self._settled.nbytes)] = self._settled.nbytes
        storages[: len(self._settled.storages)] = self._settled.storages
        nbytes, storages = after(nbytes, storages, self.rows[:count])
        cause = int(self.rows["after"][count - 1]) if count else -1
        seconds = float(self.seconds[count - 1]) if count else self._settled.seconds
        iteration = sum(one.last < row for one in self._whole.rounds)
        return Totals(row, seconds, iteration, cause, nbytes, storages)
