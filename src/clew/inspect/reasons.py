"""Why a node keeps a tensor, and what would free it.

Why: the gradients whose rules name it.

The rules are those of clew's declarations (Note [Save contract] in ``op.py``), which are PyTorch's,
so the answer holds for the nodes of both.
"""

from __future__ import annotations

import functools

from clew.autograd.shown import saved_name
from clew.inspect.model import GraphNode, Saved
from clew.op import REGISTRY, Op
from clew.plan import plan_for


def reason(node: str, saved: str) -> str:
    """``"the gradient of other is computed from it"`` for `saved` of a kind of node.

    Args:
        node: the node's name, ``MulBackward0``.
        saved: what the node calls the tensor, ``self``.

    Returns:
        "" if clew has no op of that name or no rule that names the tensor.
    """
    if saved == "saved_tensors":
        return "forward gave it to save_for_backward"
    targets = _targets(node).get(saved, ())
    if not targets:
        return ""
    whose = " and ".join(filter(None, (", ".join(targets[:-1]), targets[-1])))
    if len(targets) == 1:
        return f"the gradient of {whose} is computed from it"
    return f"the gradients of {whose} are computed from it"


@functools.cache
def _targets(node: str) -> dict[str, tuple[str, ...]]:
    """By the name of a saved value: the inputs whose rules name it."""
    found: dict[str, list[str]] = {}
    for op in _ops().get(node, ()):
        plan = plan_for(op, (1 << len(op.inputs)) - 1, len(op.inputs))
        for call in plan.calls:
            for position in call.arguments:
                label = saved_name(plan.saves[position])
                found.setdefault(label, []).extend(call.rule.targets)
    return {label: tuple(dict.fromkeys(targets)) for label, targets in found.items()}


@functools.cache
def _ops() -> dict[str, list[Op]]:
    """Ops by the name of their nodes, which several may share."""
    found: dict[str, list[Op]] = {}
    for op in REGISTRY.values():
        if op.rules:
            found.setdefault(op.node_name.rpartition("::")[2], []).append(op)
    return found


def fate(node: GraphNode) -> str:
    """What has freed, or would free, what a node keeps: one sentence."""
    if node.leaf:
        return "A leaf keeps nothing for backward; its tensor lives as long as your program has it."
    if node.freed:
        where = f" at {node.freed_at.file}:{node.freed_at.line}" if node.freed_at else ""
        return f"A backward pass{where} has freed it: a second pass through it raises."
    if not node.saved:
        return "It keeps nothing, so that any number of backward passes may go through it."
    return (
        "Freed when a backward pass without retain_graph=True goes through it, or when the last "
        "tensor whose graph this is has gone (del, a new value for its name, leaving a function)."
    )


def hold(saved: Saved) -> str:
    """What is special about a saved tensor's life; "" if nothing is."""
    if saved.changed:
        by = f" by {saved.writer}" if saved.writer else ""
        return (
            f"It was written to in place{by} after it was saved: backward raises here. Write to a "
            "clone(), or after backward."
        )
    if saved.role == "parameter":
        return "A parameter, which lives anyway: the graph only refers to it."
    if saved.storage_nbytes > saved.nbytes:
        return (
            "A part of a larger memory, all of which it keeps alive; a clone() of the part would "
            "not."
        )
    if saved.role == "packed":
        return "A saved-tensor hook has packed it."
    return ""
