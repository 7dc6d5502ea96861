"""How each kind of op runs on a batch of examples; see ``level.py`` and ``rules.py``.

May import the core of clew.
"""

from __future__ import annotations


def load_rules() -> None:
    """Import the modules that fill the table of rules; nothing after the first time."""
    from clew.func.batching import (
        convolutions,
        dynamic,
        embeddings,
        indexing,
        joins,
        losses,
        matrices,
        norms,
        randoms,
        reductions,
        views,
    )
