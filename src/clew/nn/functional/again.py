"""What is not kept, for it can be computed again from what the graph keeps anyway.

Only for tensors inside of a function or module, whose sources nobody else can write to: then it
changes neither which writes in place are errors nor what any gradient is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from clew.autograd.saved import SavedTensor
from clew.autograd.saved_small import compute_again
from clew.autograd.transforms import running


def computed_again(dropped: Any, source: Any) -> Any:
    """`dropped`, which is `source` or made of it by `dropout`; nodes that keep it need not.

    It is computed from the mask and from what the node of `source` keeps, if that is its input or
    its result, as a whole.
    """
    node, made = getattr(dropped, "grad_fn", None), getattr(source, "grad_fn", None)
    kept = None if made is None or running else _kept_whole(made)
    if node is None or kept is None:
        return dropped
    name, values = kept
    if node is made:
        if name != "result":  # which is kept as it is
            compute_again(dropped, values)
    elif node.op.name == "dropout_by_mask" and node.next_nodes[0] is made:
        (mask,) = (saved for _, saved in node.kept())
        scale = node.attrs["scale"]
        compute_again(dropped, lambda: node.op.forward(values(), mask.array(node), scale=scale))
    return dropped


def _kept_whole(node: Any) -> tuple[str, Callable[[], np.ndarray]] | None:
    """Which of its input and its result an elementwise node keeps, and the result from that."""
    kept, op = node.kept(), getattr(node, "op", None)
    if (
        op is None
        or len(op.inputs) != 1
        or len(kept) != 1
        or kept[0][1].__class__ is not SavedTensor
    ):
        return None
    name, saved = kept[0]
    if name == "result":
        return name, lambda: saved.array(node)
    if op.domain is None or op.large is not None or op.write is not None:
        return None
    return name, lambda: op.forward(saved.array(node), **node.attrs)
