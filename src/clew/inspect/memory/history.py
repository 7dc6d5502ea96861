"""What the rows of a log mean: totals over time, the peak, iterations.  Imports NumPy and the log.

A `History` is the state after some rows: bytes and storages at each place, the highest total so far
and what it was made of, and the figures of each finished iteration.  `absorb` carries it on over
more rows, all at once, by cumulative sums.  Rows that have been absorbed can be dropped, so a
long run needs no more memory than its figures.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from clew.inspect.memory.log import KINDS, Place

Rows = np.ndarray


@dataclass
class Totals:
    """Bytes and storages at each place at one moment.

    Attributes:
        row: how many rows of the log led here.
        seconds: since tracking began.
        iteration: the iteration that ran, or that ended here.
        cause: the place that changed last; -1 if none has.
    """

    row: int
    seconds: float
    iteration: int
    cause: int
    nbytes: np.ndarray
    storages: np.ndarray

    @property
    def total(self) -> int:
        """All bytes."""
        return int(self.nbytes.sum())


@dataclass
class Round:
    """The figures of one iteration.

    Attributes:
        first: the row it begins with.
        last: the row before which it ends.
        end: seconds at its end.
        peak: the highest total within it, its beginning included.
        peak_row: how many rows led to that.
        peak_kinds: bytes by kind then.
        kinds: bytes by kind at its end.
        places: the places whose bytes or storages differ from those at the end of the one before.
        nbytes: by how many bytes, for each of `places`.
        storages: by how many storages.
    """

    first: int
    last: int
    end: float
    peak: int
    peak_row: int
    peak_kinds: list[int]
    kinds: list[int]
    places: np.ndarray
    nbytes: np.ndarray
    storages: np.ndarray


@dataclass
class History:
    """See the top of the module."""

    row: int = 0
    seconds: float = 0.0
    nbytes: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    storages: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    peak: Totals | None = None
    rounds: list[Round] = field(default_factory=list)
    _round_first: int = 0
    _round_start: tuple[np.ndarray, np.ndarray] | None = None
    _round_peak: tuple[int, int, list[int]] = (0, 0, [0, 0, 0, 0, 0, 0, 0])

    def copy(self) -> History:
        """One that can be carried on without changing this one."""
        return History(
            self.row, self.seconds, self.nbytes, self.storages, self.peak, list(self.rounds),
            self._round_first, self._round_start, self._round_peak,
        )  # fmt: skip

    def absorb(self, rows: Rows, ends: list[int], places: list[Place]) -> None:
        """Carry on over `rows`, in which iterations end at the row numbers `ends`."""
        self._widen(len(places))
        if self._round_start is None:
            self._round_start = (self.nbytes.copy(), self.storages.copy())
        kinds = np.array([place.kind for place in places], np.int64)
        start = self.row
        for end in ends:
            self._run(rows[self.row - start : end - start], kinds)
            self._finish(kinds)
        self._run(rows[self.row - start :], kinds)

    def _widen(self, count: int) -> None:
        missing = count - len(self.nbytes)
        if missing > 0:
            more = np.zeros(missing, np.int64)
            self.nbytes = np.concatenate([self.nbytes, more])
            self.storages = np.concatenate([self.storages, more])
            if self._round_start is not None:
                nbytes, storages = self._round_start
                self._round_start = np.concatenate([nbytes, more]), np.concatenate([storages, more])

    def _run(self, rows: Rows, kinds: np.ndarray) -> None:
        """Rows of one iteration."""
        if not len(rows):
            return
        totals = self.nbytes.sum() + np.cumsum(changes(rows))
        at = int(totals.argmax())
        highest = int(totals[at])
        if highest > self._round_peak[0] or self.peak is None or highest > self.peak.total:
            nbytes, storages = after(self.nbytes, self.storages, rows[: at + 1])
            if highest > self._round_peak[0]:
                self._round_peak = (highest, self.row + at + 1, by_kind(nbytes, kinds))
            if self.peak is None or highest > self.peak.total:
                self.peak = Totals(
                    self.row + at + 1, float(rows["seconds"][at]), len(self.rounds),
                    int(rows["after"][at]), nbytes, storages,
                )  # fmt: skip
        self.nbytes, self.storages = after(self.nbytes, self.storages, rows)
        self.row += len(rows)
        self.seconds = float(rows["seconds"][-1])

    def _finish(self, kinds: np.ndarray) -> None:
        """An iteration ends here."""
        assert self._round_start is not None
        nbytes = self.nbytes - self._round_start[0]
        storages = self.storages - self._round_start[1]
        changed = np.flatnonzero((nbytes != 0) | (storages != 0))
        now = by_kind(self.nbytes, kinds)
        peak, peak_row, peak_kinds = self._round_peak
        self.rounds.append(
            Round(
                self._round_first, self.row, self.seconds, peak, peak_row, peak_kinds, now,
                changed, nbytes[changed], storages[changed],
            )
        )  # fmt: skip
        self._round_first = self.row
        self._round_start = (self.nbytes, self.storages)
        self._round_peak = (sum(now), self.row, now)

    def at_end_of(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        """Bytes and storages at each place at the end of an iteration."""
        nbytes, storages = np.zeros_like(self.nbytes), np.zeros_like(self.storages)
        for one in self.rounds[: index + 1]:
            nbytes[one.places] += one.nbytes
            storages[one.places] += one.storages
        return nbytes, storages


def changes(rows: Rows) -> np.ndarray:
    """By how many bytes each row changes the total."""
    sign = (rows["after"] >= 0).astype(np.int64) - (rows["before"] >= 0)
    return sign * rows["nbytes"]


def after(nbytes: np.ndarray, storages: np.ndarray, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Bytes and storages at each place after `rows`."""
    nbytes, storages = nbytes.copy(), storages.copy()
    for column, sign in (("before", -1), ("after", 1)):
        there = rows[rows[column] >= 0]
        np.add.at(nbytes, there[column], sign * there["nbytes"])
        np.add.at(storages, there[column], sign)
    return nbytes, storages


def by_kind(nbytes: np.ndarray, kinds: np.ndarray) -> list[int]:
    """Bytes of each kind."""
    totals = np.zeros(len(KINDS), np.int64)
    np.add.at(totals, kinds[: len(nbytes)], nbytes)
    return [int(n) for n in totals]


def curves(start: list[int], rows: Rows, kinds: np.ndarray) -> np.ndarray:
    """Bytes of each kind after each row: one line for a row, one column for a kind."""
    steps = np.zeros((len(rows), len(KINDS)), np.int64)
    number = np.arange(len(rows))
    for column, sign in (("before", -1), ("after", 1)):
        there = rows[column] >= 0
        kind = kinds[rows[column][there]]
        np.add.at(steps, (number[there], kind), sign * rows["nbytes"][there])
    return np.asarray(start) + np.cumsum(steps, axis=0)
