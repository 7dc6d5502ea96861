"""Record calls and writes: what a node keeps, and where its edges lead.  Layer 4.

Note [Numbers in rules]
    A Python program's ``x * 2`` is the product of two tensors in PyTorch, for its binding makes a
    tensor of the number.  Its formulas for derivatives are C++, in which a number stays one, and
    arithmetic with it has nodes of its own (`MulBackward1`, without an edge for the number); and
    ``1 - x`` writes to a tensor full of ones.  The node tells whose code computed something, so it
    matters whether a rule runs, or the user's code inside of a pass (`call_user` in ``modes.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from clew import storage
from clew.autograd import anomaly
from clew.autograd.modes import state
from clew.autograd.node import OpNode, node_class
from clew.autograd.saved import SavedTuple, save_input, save_output, saved_tensor
from clew.autograd.saved_small import keep, pack
from clew.autograd.views import rebase
from clew.op import REGISTRY, Op
from clew.plan import DTYPE, INPUT, INPUTS, OUTPUT, SHAPE, SHAPES, STRIDES, Plan, plan_for
from clew.site import here
from clew.tensor import Tensor


def record(
    op: Op,
    inputs: Sequence[Any],
    attrs: dict[str, Any],
    mask: int,
    outs: Sequence[Any],
) -> OpNode | None:
    """Make the node of a call; None if no input that requires grad has a rule, or the only output
    is of a type that cannot require grad."""
    if mask == 1 and op.in_rules is not None and state.now.in_rules:
        op, inputs, mask = _with_number(op, inputs)
    if op.overloads:
        op = op.recorded(inputs, attrs)
    plan = op.plans.get(mask) or plan_for(op, mask, len(inputs))
    if not plan.calls:
        return None
    metas = metas_of(op, plan, outs)
    if metas is None:
        return None
    nodes, nrs, known = edges_of(plan, inputs, mask)
    if known != mask:
        if known == NOTHING:
            return None
        if plan.saves_by_edge:
            plan = plan_for(op, known, len(inputs))
    saved = _save(plan, inputs, outs) if plan.saves else ()
    if plan.packings:
        saved = pack(plan, saved, outs, attrs)
    make = op.node_class or node_class(op)
    # Between here and the user stand this function, `apply` and the op's public function.
    node: OpNode = make(plan, nodes, nrs, saved, attrs, metas, here(2))
    if anomaly.state.enabled:
        anomaly.note_traceback(node)
    return node


def _with_number(op: Op, inputs: Sequence[Any]) -> tuple[Op, Sequence[Any], int]:
    """What arithmetic of a tensor and a number is in a rule; see Note [Numbers in rules].

    Returns:
        The op that is recorded, its inputs, and which of them require grad.
    """
    if inputs[1].__class__ not in (bool, int, float, complex):
        return op, inputs, 1
    if op.name == "rsub":
        return REGISTRY["sub"], (inputs[1], inputs[0]), 2
    assert op.in_rules is not None
    return op.in_rules, inputs, 1


_KINDS = 64
"""How many shapes of results a plan remembers."""


def metas_of(op: Op, plan: Plan, outs: Sequence[Any]) -> tuple[Any, ...] | None:
    """Shape and dtype of each output that may require grad; None if the only one may not.

    Equal ones of one output are the same object, so that a node in a training loop costs no tuples
    for them.
    """
    if len(outs) != 1:
        graded = outs[: op.graded]
        return tuple([None if o is None else (o._array.shape, o._array.dtype) for o in graded])
    out = outs[0]
    array = out._array
    shape, dtype = array.shape, array.dtype
    metas: tuple[Any, ...] | None = plan.metas.get(shape)
    if metas is None or metas[0][1] is not dtype:
        if dtype.kind not in "fcV":
            return None
        if len(plan.metas) >= _KINDS:
            plan.metas.clear()
        metas = plan.metas[shape] = ((shape, dtype),)
    return metas


Route = tuple[tuple[Any, ...], tuple[int, ...], int]

NOTHING = -1
"""In the place of a mask: nothing is recorded of inference tensors alone, whatever their flags."""


def _are_inference(inputs: Sequence[Any]) -> bool:
    return all(x.is_inference() for x in inputs if isinstance(x, Tensor))


def edges_of(plan: Plan, inputs: Sequence[Any], mask: int) -> Route:
    """The nodes that the gradients of the inputs go to, and the numbers of the inputs among the
    outputs of these; and the mask without the inputs that have no edge.

    A view made under `no_grad` of a leaf requires grad, for the leaf does, but has none.
    """
    nodes: list[Any] = []
    nrs = plan.zeros
    for i in plan.inputs:
        if not mask >> i & 1:
            nodes.append(None)
            continue
        x = inputs[i]
        node, meta = x._node, x._meta
        if node is not None and meta is None:
            nr = x._output_nr
        elif (
            node is None
            and meta is not None
            and meta.base is None
            and meta.accumulator
            and (node := meta.accumulator())
        ):  # a leaf that is in a graph already
            nr = 0
        else:
            if meta is not None and meta.inference and _are_inference(inputs):
                return (), (), NOTHING
            node, nr = x._gradient_edge()
            if node is None:
                mask &= ~(1 << i)
        if nr:
            at = len(nodes)
            nrs = (*nrs[:at], nr, *nrs[at + 1 :])
        nodes.append(node)
    return tuple(nodes), nrs, mask


def _save(plan: Plan, inputs: Sequence[Any], outs: Sequence[Tensor] | None) -> tuple[Any, ...]:
    """The values that the plan names; see Note [Save contract].

    Without `outs` their places are left empty, for `_save_outputs`.
    """
    saved: list[Any] = []
    hooks = state.now.saved_hooks
    for kind, index in plan.places:
        if kind == INPUT:
            x = inputs[index]
            if not isinstance(x, Tensor):
                saved.append(x)
                continue
            tensor = x
            if hooks or ((meta := tensor._meta) is not None and (
                meta.base is not None or meta.kept_small is not None or meta.recipe is not None
                or meta.inference
            )):  # fmt: skip
                saved.append(_save_one(x, packed=len(saved) in plan.packings))
            else:
                saved.append(saved_tensor(x, tensor._counter))
        elif kind == OUTPUT:
            saved.append(None if outs is None else save_output(outs[index]._alias(), index))
        else:
            saved.append(_other_value(kind, index, inputs))
    return tuple(saved)


def _other_value(kind: int, index: int, inputs: Sequence[Any]) -> Any:
    """A value that a plan names which is neither an input nor an output."""
    x = inputs[index]
    if kind == SHAPE:
        return x._array.shape if isinstance(x, Tensor) else ()
    if kind == STRIDES:
        return storage.element_strides(x._array)
    if kind == DTYPE:
        return x.dtype if isinstance(x, Tensor) else None
    if kind == INPUTS:
        return SavedTuple(tuple([_save_one(x) for x in inputs[index:]]))
    if kind == SHAPES:
        return tuple([x._array.shape for x in inputs[index:]])
    return tuple([x.dtype for x in inputs[index:]])


def _save_outputs(plan: Plan, saved: tuple[Any, ...], outs: Sequence[Tensor]) -> tuple[Any, ...]:
    """What `_save` without outputs gave, with the outputs in their places."""
    return tuple(
        save_output(outs[save.index]._alias(), save.index) if save.kind == OUTPUT else value
        for save, value in zip(plan.saves, saved)
    )


def _save_one(x: Any, packed: bool = False) -> Any:
    if not isinstance(x, Tensor):
        return x
    packable = x._meta is not None and not x._meta.inference and not packed
    if packable and not state.now.saved_hooks:
        return keep(x)
    return save_input(x)


class Pending(NamedTuple):
    """What is known of a write's node before the write: all but the saved outputs."""

    op: Op
    plan: Plan
    next_nodes: tuple[Any, ...]
    next_nrs: tuple[int, ...]
    saved: tuple[Any, ...]


def before_write(
    op: Op, operands: tuple[Any, ...], attrs: dict[str, Any], mask: int
) -> Pending | None:
    """Note the history of the operands and save them, as they are before the first is written to.

    That one may be another operand too.  None if no operand that requires grad has a rule.
    """
    op = (op.in_place or op).recorded(operands, attrs)
    plan = plan_for(op, mask, len(operands))
    if not plan.calls:
        return None
    nodes, nrs, known = edges_of(plan, operands, mask)
    if known != mask:
        if known == NOTHING:
            return None
        if plan.saves_by_edge:
            plan = plan_for(op, known, len(operands))
    if plan.saves_first_input:
        from clew.dispatch import apply

        # The rule wants the value from before the write, with its history.
        first = apply(REGISTRY["clone"], (operands[0],), {"memory_format": None})
        operands = (first, *operands[1:])
    return Pending(op, plan, nodes, nrs, _save(plan, operands, None))


def after_write(pending: Pending, target: Tensor, attrs: dict[str, Any]) -> OpNode:
    """Make the node of a write and give it to what was written to."""
    op, plan, nodes, nrs, saved = pending
    saved = pack(plan, _save_outputs(plan, saved, (target,)), (target,), attrs)
    make = op.node_class or node_class(op)
    metas = metas_of(op, plan, (target,)) or ()
    node: OpNode = make(plan, nodes, nrs, saved, attrs, metas, here(2))
    if anomaly.state.enabled:
        anomaly.note_traceback(node)
    rebase(target, node)
    return node
