"""SparseAdam, which clew does not have: it has no sparse tensors."""

from __future__ import annotations

from typing import Any

from clew.optim.optimizer import Optimizer


class SparseAdam(Optimizer):
    """Raises NotImplementedError: this variant of Adam is for sparse gradients."""

    def __init__(self, params: Any, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "clew has no sparse tensors, so no SparseAdam: use Adam, whose gradients are dense "
            "(and embeddings with sparse=False)"
        )
