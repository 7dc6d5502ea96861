"""What stands in memory: `track` writes down each allocation and release of tensors' memory.

>>> with clew.memory.track() as m:
...     x = clew.ones(4, 3, requires_grad=True)
...     loss = (x.exp() * 2).sum()
>>> m.now.kinds["saved for backward"], m.now.kinds["parameter"]
(48, 48)
"""

from clew.inspect.memory import (
    KINDS,
    Diff,
    Entry,
    Iteration,
    Ledger,
    Snapshot,
    Table,
    Timeline,
    track,
)

__all__ = [
    "KINDS", "Diff", "Entry", "Iteration", "Ledger", "Snapshot", "Table", "Timeline", "allocated",
    "holding", "track",
]  # fmt: skip


def holding() -> Snapshot:
    """What the tensors that are alive hold now, by kind; no tracking is needed."""
    with track() as ledger:
        pass
    return ledger.now


def allocated() -> int:
    """The bytes that the tensors that are alive hold now, each storage counted once."""
    return holding().bytes
