"""The memory ledger: each allocation and release of tensors' memory, by kind, line and module."""

from clew.inspect.memory.diff import Diff
from clew.inspect.memory.ledger import Iteration, Ledger, track
from clew.inspect.memory.log import KINDS
from clew.inspect.memory.tables import Entry, Snapshot, Table
from clew.inspect.memory.timeline import Timeline

__all__ = [
    "KINDS", "Diff", "Entry", "Iteration", "Ledger", "Snapshot", "Table", "Timeline", "track",
]  # fmt: skip
