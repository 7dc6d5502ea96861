"""What stands in memory: `track` writes down each allocation and release of tensors' memory.

>>> with clew.memory.track() as m:
...     x = clew.ones(4, 3, requires_grad=True)
...     loss = (x.exp() * 2).sum()
>>> exp = next(entry for entry in m.now.by_operation() if entry.what == "exp")
>>> exp.bytes, exp.kind
(48, 'saved for backward')
"""

from clew.allocator import Pool, give_back, pool, set_pool
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
    "KINDS", "Diff", "Entry", "Iteration", "Ledger", "Pool", "Snapshot", "Table", "Timeline",
    "allocated", "give_back", "holding", "pool", "set_pool", "track",
]  # fmt: skip


def holding() -> Snapshot:
    """What the tensors that are alive hold now, by kind; no tracking is needed."""
    with track() as ledger:
        pass
    return ledger.now


def allocated() -> int:
    """The bytes that the tensors that are alive hold now, each storage counted once."""
    return holding().bytes
