"""Why a node keeps a tensor: the gradients whose rules name it.

The rules are those of clew's declarations (Note [Save contract] in ``op.py``), which are PyTorch's,
so the answer holds for the nodes of both.
"""

from __future__ import annotations

import functools

from clew.autograd.node import saved_name
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
