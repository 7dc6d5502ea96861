"""`track` and the ledger that it gives: what stands in memory, what stood there at the peak.

The engines write the log, `History` reads it, `tables.py` sorts what it says by line, module and
kind.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clew.inspect import torch_adapter
from clew.inspect.memory.clew_engine import ClewEngine
from clew.inspect.memory.diff import Diff
from clew.inspect.memory.history import History, Round, Totals
from clew.inspect.memory.log import KINDS, Log
from clew.inspect.memory.tables import Snapshot, Table
from clew.inspect.memory.timeline import Timeline

LIMIT = 500_000
"""So many rows are kept in detail; of older ones, the figures of their iterations and the peak."""


def track(engine: str | None = None, *, limit: int = LIMIT) -> Ledger:
    """Write down every allocation and release of tensors' memory inside a ``with``.

    What is there on entry is found and counted too. Where real PyTorch is loaded, its tensors are
    tracked as well as clew's::

        with clew.memory.track() as m:
            train()
        print(m)

    Args:
        engine: "clew" or "torch" to track that one only.
        limit: so many changes are kept in detail (40 bytes each).

    Raises:
        ValueError: there is no such engine.
        RuntimeError: real PyTorch is asked for and not loaded.
    """
    return Ledger(engine, limit=limit)


class Iteration:
    """One iteration: from the end of the one before (or the beginning) to its own end.

    Attributes:
        index: its number, from 0.
        peak: the most bytes that were there at once.
        peak_kinds: how many of each kind were among them.
        bytes: how many are there at its end.
        kinds: how many of each kind are there at its end.
        grew: how many more than at the end of the iteration before.
        seconds: at its end, since tracking began.
    """

    def __init__(self, index: int, figures: Round) -> None:
        self.index = index
        self.peak = figures.peak
        self.peak_kinds = dict(zip(KINDS, figures.peak_kinds))
        self.bytes = sum(figures.kinds)
        self.kinds = dict(zip(KINDS, figures.kinds))
        self.grew = int(figures.nbytes.sum())
        self.seconds = figures.end

    def __repr__(self) -> str:
        return f"<Iteration {self.index}: peak {self.peak:,} B, {self.bytes:,} B at its end>"


class Ledger:
    """What `track` gives; ask it during the ``with`` or afterwards.

    Everything counts bytes of storages, each once.  An iteration ends with an optimizer's step
    (with several optimizers: with the last before the first one steps again), with each `mark` if
    there are marks, and without either with each backward pass.
    """

    def __init__(self, engine: str | None = None, *, limit: int = LIMIT) -> None:
        self._log = Log(limit, self._settle)
        self._settled = History()
        self._basis: str | None = None
        self._engines = _engines(engine, self._log)
        self._read: tuple[Any, History] | None = None

    def __enter__(self) -> Ledger:
        for engine in self._engines:
            engine.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        for engine in reversed(self._engines):
            engine.stop()
        self._log.close()

    def mark(self) -> None:
        """End an iteration here; from the first mark on, nothing else ends one."""
        self._log.end(self._log.marks)
        self._log.flush()

    # -- what stands there

    @property
    def peak(self) -> Snapshot:
        """The moment when most bytes were there (the first such moment)."""
        history = self._history()
        return self._snapshot(history.peak or self._totals(history))

    @property
    def now(self) -> Snapshot:
        """What is there now, or was when the ``with`` ended."""
        return self._snapshot(self._totals(self._history()))

    def at(self, row: int) -> Snapshot:
        """What was there after so many changes (see `timeline`).

        Raises:
            IndexError: there were not so many, or they are no longer kept in detail.
        """
        return self._snapshot(self.timeline.totals(row))

    @property
    def iterations(self) -> list[Iteration]:
        """The finished iterations."""
        return [Iteration(i, figures) for i, figures in enumerate(self._history().rounds)]

    @property
    def timeline(self) -> Timeline:
        """Bytes by kind after each change."""
        self._log.flush()
        return Timeline(self._log.read(), self._settled, self._history(), self._log.places)

    def diff(self, i: int = 0, j: int = -1) -> Diff:
        """What grew between the ends of iterations `i` and `j`, by line, kind and module.

        Raises:
            IndexError: there is no such iteration.
        """
        history = self._history()
        count = len(history.rounds)
        for index in (i, j):
            if not -count <= index < count:
                raise IndexError(
                    f"there is no iteration {index}: {count} have ended. An iteration ends with "
                    "an optimizer's step, or where you call mark()"
                )
        return Diff(history, i % count, j % count, self._log)

    def by_line(self) -> Table:
        """The peak by line; of other moments, ask a `Snapshot`."""
        return self.peak.by_line()

    def by_module(self) -> Table:
        """The peak by module."""
        return self.peak.by_module()

    def by_kind(self) -> Table:
        """The peak by kind."""
        return self.peak.by_kind()

    def saved(self) -> Table:
        """What graphs kept for backward at the peak, by node and line, and why."""
        return self.peak.saved()

    # -- showing

    def report(self, lines: int = 10) -> str:
        """The peak by kind, line, module and node, and the iterations, as text."""
        from clew.inspect.memory.text import text_of

        return text_of(self, lines)

    def __str__(self) -> str:
        return self.report()

    def __rich__(self) -> Any:
        from clew.inspect.memory.text import renderable

        return renderable(self)

    def _repr_html_(self) -> str:
        from clew.inspect.memory.page import in_notebook

        return in_notebook(self)

    def to_dict(self) -> dict[str, Any]:
        """All figures as plain data, which `save` writes as JSON."""
        from clew.inspect.memory.plain import to_dict

        return to_dict(self)

    @property
    def nodes_recorded(self) -> int:
        """How many nodes clew's graphs have got."""
        return sum(getattr(engine, "nodes_recorded", 0) for engine in self._engines)

    def nodes_alive(self) -> int:
        """How many of them are still there; looks through all objects."""
        return sum(engine.nodes_alive() for engine in self._engines if engine.name == "clew")

    def save(self, path: str | os.PathLike[str], title: str = "") -> None:
        """Write a page to look at (``.html``), or all figures as data (``.json``).

        Args:
            path: of the file.
            title: of the page.

        Raises:
            ValueError: another ending.
        """
        from clew.inspect.memory.page import page
        from clew.inspect.memory.plain import dumps

        ending = Path(path).suffix
        makers = {".html": lambda: page(self, title or "memory"), ".json": lambda: dumps(self)}
        if ending not in makers:
            raise ValueError(f"cannot write a ledger as {ending or 'a file without ending'}: "
                             "use .html or .json")  # fmt: skip
        Path(path).write_text(makers[ending](), encoding="utf-8")

    @property
    def engines(self) -> list[str]:
        """Whose tensors are tracked: "clew", "torch"."""
        return [engine.name for engine in self._engines]

    @property
    def module_types(self) -> dict[str, str]:
        """The class of the module at each path."""
        return dict(self._log.modules)

    # -- reading the log

    def _history(self) -> History:
        log = self._log
        log.flush()
        state = (log.length, len(log.steps), len(log.marks), len(log.passes))
        if self._read is None or self._read[0] != state:
            history = self._settled.copy()
            history.absorb(self._log.read(), self._ends(), log.places)
            self._read = (state, history)
        return self._read[1]

    def _choose_basis(self) -> str:
        """What ends iterations."""
        return "marks" if self._log.marks else "steps" if self._log.steps else "passes"

    def _ends(self) -> list[int]:
        """The row numbers at which iterations end that are not settled yet."""
        log = self._log
        basis = self._basis or self._choose_basis()
        if basis == "steps":
            ends = ends_of_steps(log.steps)
        else:
            ends = [row for row, _ in (log.marks if basis == "marks" else log.passes)]
        return [end for end in ends if end >= self._settled.row]

    def _settle(self) -> None:
        """Read the older half of the rows for good, and drop them."""
        log = self._log
        if self._basis is None:
            self._basis = self._choose_basis()
        half = (log.dropped + log.length) // 2
        ends = self._ends()
        if self._basis == "steps":  # another optimizer may yet join the last round of steps
            ends = ends[:-1]
        ends = [end for end in ends if end <= half]
        if ends:
            half = ends[-1]
            log.steps[:] = [step for step in log.steps if step[0] > half]
            log.marks[:] = [mark for mark in log.marks if mark[0] > half]
            log.passes[:] = [end for end in log.passes if end[0] > half]
        count = half - log.dropped
        self._settled.absorb(log.read(count), ends, log.places)
        log.drop(count)

    def _totals(self, history: History) -> Totals:
        last = self._log.read()[-1:]
        cause = int(last["after"][0]) if len(last) else -1
        return Totals(
            history.row, history.seconds, len(history.rounds), cause, history.nbytes,
            history.storages,
        )  # fmt: skip

    def _snapshot(self, totals: Totals) -> Snapshot:
        return Snapshot(totals, self._log)


def ends_of_steps(steps: Sequence[tuple[int, int]]) -> list[int]:
    """Where iterations end: with the last step before an optimizer steps for the second time."""
    ends: list[int] = []
    stepped: set[int] = set()
    last = None
    for row, optimizer in steps:
        if optimizer in stepped:
            assert last is not None
            ends.append(last)
            stepped.clear()
        stepped.add(optimizer)
        last = row
    return ends if last is None else [*ends, last]


def _engines(name: str | None, log: Log) -> list[Any]:
    if name not in (None, "clew", "torch"):
        raise ValueError(f"there is no engine {name!r}: use 'clew' or 'torch'")
    torch = torch_adapter.loaded()
    engines: list[Any] = [] if name == "torch" else [ClewEngine(log)]
    if name != "clew" and torch is not None:
        from clew.inspect.memory.torch_engine import TorchEngine

        engines.append(TorchEngine(torch, log))
    elif name == "torch":
        raise RuntimeError("real PyTorch is not loaded: import torch before tracking it")
    return engines
