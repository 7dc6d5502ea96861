"""Tangents follow operations: a running level of forward mode.

Layer 4.  A level stands in the stack that dispatch looks at (Note [Transforms]): it lets the
levels outside of it run the op, and gives the result its tangent.  How tangents go through an op
stands in ``forward_rules.py``, how they are kept in ``dual.py``.

Note [Tangents of writes]
    A rule may need the values from before a write.  So what lies in the memory that is to be
    written to is copied first, a copy with tangents like any other result; afterwards the tangent
    is computed from the copies, and put into that of the tensor that was written to.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from clew import dispatch
from clew.autograd.dual import (
    carry_over,
    dual_at,
    forget,
    inherit_root,
    set_tangent,
    tangent_of,
    write_tangent,
)
from clew.autograd.forward_rules import differentiable, output_tangents, refuse_without_rule
from clew.autograd.modes import state
from clew.autograd.saved import SavedTensor, share_tangents
from clew.autograd.transforms import Level, note_new
from clew.autograd.views import CopySlices, TensorMeta
from clew.dispatch import TENSORS
from clew.op import Op
from clew.storage import new_counter, overlaps_itself, root
from clew.tensor import Tensor


class ForwardLevel(Level):
    """One running `jvp`, or a `dual_level`, which is no transform.

    Attributes:
        holders: what holds a tangent at this level.
    """

    forward = True

    def __init__(self, *, is_transform: bool = True) -> None:
        self.is_transform = is_transform
        self.holders: weakref.WeakSet[TensorMeta] = weakref.WeakSet()

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)
        forget(self)

    def input(self, x: Tensor, tangent: Tensor) -> Any:
        """An argument as the function sees it: with a tangent, and with memory of its own kind, so
        that the function may write to it."""
        if x._node is None and x.requires_grad:
            return dual_at(self, x, tangent)
        with self.lowered():
            dual = x._alias(None if x._node is None else x._gradient_edge())
            dual._ensure_meta().forward_root = True
            carry_over(dual, x)
        dual._counter = new_counter()
        note_new(dual)
        set_tangent(dual, self, tangent)
        return dual

    # -- ops

    def apply(self, op: Op, inputs: Sequence[Any], attrs: dict[str, Any]) -> Any:
        with self.lowered():
            result = dispatch.apply(op, inputs, attrs)
            outs: Any = result if isinstance(result, tuple) else (result,)
            if op.view:
                for out in outs:
                    inherit_root(out, inputs[0])
            elif self.is_transform:
                self.own(outs)
            tangents = self.tangents(inputs)
            if tangents is None or not op.rules:
                return result
            found = output_tangents(op, inputs, outs, attrs, tangents)
            if not op.view:
                found = _apart(found, (*inputs, *tangents))
        for out, tangent in zip(outs, found):
            if tangent is not None:
                set_tangent(out, self, tangent)
        if not op.view:
            share_with_saved(_node_of(op, outs), outs)
        return result

    def apply_inplace(
        self, op: Op, target: Any, inputs: Sequence[Any], attrs: dict[str, Any], name: str
    ) -> Any:
        if self.is_transform:
            self.refuse_captured(target, inputs, name)
        operands: list[Any] = [target, *inputs]
        tangents = self.tangents(operands)
        with self.lowered():
            if tangents is None or not differentiable(op, 0, target):
                return dispatch.apply_inplace(op, target, inputs, attrs, name)
            if op.rules:
                refuse_without_rule(op)
            for i, (x, tangent) in enumerate(zip(operands, tangents)):
                if isinstance(x, Tensor) and x._counter is target._counter:
                    operands[i] = TENSORS.clone(x, memory_format=None)
                    if tangent is not None:
                        tangents[i] = TENSORS.clone(tangent, memory_format=None)
            dispatch.apply_inplace(op, target, inputs, attrs, name)
            if op.rules:
                (found,) = output_tangents(op, operands, (target,), attrs, tangents)
            else:
                found = TENSORS.zeros_like(target)
            (found,) = _apart([found], tangents)
        write_tangent(target, self, found)
        share_with_saved(_node_of(op, (target,)), (target,))
        return target

    def tangents(self, inputs: Sequence[Any]) -> list[Any] | None:
        """The tangent of each input, None where there is none; None if no input has one."""
        if not state.now.carries_tangents or state.now.inference:
            return None
        tangents = [tangent_of(x, self) if isinstance(x, Tensor) else None for x in inputs]
        return None if all(t is None for t in tangents) else tangents

    # -- custom Functions

    def call_function(self, function: Any, args: Any, kwargs: Any) -> Any:
        from clew.autograd.forward_functions import call_with_tangents

        return call_with_tangents(self, function, args, kwargs)


def _apart(found: list[Any], others: Sequence[Any]) -> list[Any]:
    """Tangents on memory of their own: a rule may give back what it was given, or a view of it,
    and then a write to one tensor would change the tangent of another."""
    owners = {_owner(x) for x in others if isinstance(x, Tensor)}
    return [
        t if t is None or not (_owner(t) in owners or _overlaps(t))
        else TENSORS.clone(t, memory_format="contiguous")
        for t in found
    ]  # fmt: skip


def _owner(x: Tensor) -> int:
    return id(root(x._array)) if isinstance(x._array, np.ndarray) else id(x._counter)


def _overlaps(x: Tensor) -> bool:
    return isinstance(x._array, np.ndarray) and overlaps_itself(x._array)


def _node_of(op: Op, outs: Sequence[Any]) -> Any:
    """The node that `op` has recorded for its outputs, or for its write to one; None if none."""
    given = [out for out in outs if out is not None]
    for tensor in (*given, *[out._base for out in given[:1]]):
        node = None if tensor is None or tensor._node is None else tensor._edge[0]
        node = node.fn if isinstance(node, CopySlices) else node
        if getattr(node, "op", None) is op:
            return node
    return None


def share_with_saved(node: Any, outputs: Sequence[Any]) -> None:
    """An output that its own node keeps is kept as an alias, which has the same tangents."""
    for value in getattr(node, "saved", None) or ():
        if isinstance(value, SavedTensor) and value.output_nr is not None:
            share_tangents(value.tensor, outputs[value.output_nr])
