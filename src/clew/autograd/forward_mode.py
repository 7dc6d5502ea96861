"""Tangents follow operations: what dispatch and custom Functions do while a level is entered.

Layer 4.  Dispatch knows nothing of forward mode: it tells its observers of every op, and while a
level is entered (see ``dual.py``) one of them is `FORWARD`, which gives the results their
tangents.  How tangents go through an op stands in ``forward_rules.py``.

Note [Tangents of writes]
    An op in place is told of twice.  Before, its rule may need the old values: what lies in the
    written memory is copied, a copy that has tangents like any other result.  Afterwards the
    tangent is computed from the copies, and put into that of the tensor that was written to.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from clew.autograd.dual import (
    Level,
    forget,
    inherit_root,
    only_below,
    set_tangent,
    tangent_of,
    visible,
    write_tangent,
)
from clew.autograd.forward_rules import differentiable, output_tangents, refuse_without_rule
from clew.autograd.modes import levels
from clew.autograd.saved import SavedTensor, share_tangents
from clew.dispatch import TENSORS
from clew.observers import Observer, observers
from clew.op import Op
from clew.storage import overlaps_itself, root
from clew.tensor import Tensor


class _Write:
    """A write in place that is under way: what it was called with, from before it."""

    def __init__(self, target: Tensor, inputs: Sequence[Any], attrs: dict[str, Any]) -> None:
        self.target = target
        self.inputs = inputs
        self.attrs = attrs


class _Writes(threading.local):
    def __init__(self) -> None:
        self.pending: list[_Write] = []


class ForwardMode(Observer):
    """The observer that gives results of ops their tangents."""

    def __init__(self) -> None:
        self.writes = _Writes()

    def on_op(
        self, op: Any, inputs: tuple[Any, ...], outputs: tuple[Any, ...], node: Any,
        attrs: dict[str, Any],
    ) -> None:  # fmt: skip
        """Compute the tangents of the outputs from those of the inputs."""
        if op.__class__ is not Op:  # a custom Function, see forward_functions.py
            return
        if op.view:
            for out in outputs:
                inherit_root(out, inputs[0])
        for level in visible():
            tangents = _tangents_of(inputs, level)
            if tangents is None or not op.rules:
                continue
            with only_below(level):
                found = output_tangents(op, inputs, outputs, attrs, tangents)
                if not op.view:
                    found = _apart(found, (*inputs, *tangents))
            for out, tangent in zip(outputs, found):
                if tangent is not None:
                    set_tangent(out, level, tangent)
            _share_with_saved(outputs, node)

    def before_inplace(
        self, op: Any, target: Any, inputs: tuple[Any, ...], attrs: dict[str, Any]
    ) -> None:
        """Keep what the write will change and its rule may need; see Note [Tangents of writes]."""
        operands: list[Any] = [target, *inputs]
        if all(_tangents_of(operands, level) is None for level in visible()):
            return
        if op.rules:
            refuse_without_rule(op)
        for i, x in enumerate(operands):
            if isinstance(x, Tensor) and x._counter is target._counter:
                operands[i] = TENSORS.clone(x, memory_format=None)
        self.writes.pending.append(_Write(target, operands, attrs))

    def on_inplace(self, op: Any, target: Any, node: Any) -> None:
        """Compute the tangent of what was written to."""
        pending = self.writes.pending
        while pending:
            write = pending.pop()  # one that raised may have been left behind
            if write.target is target:
                break
        else:
            return
        for level in visible():
            tangents = _tangents_of(write.inputs, level)
            if tangents is None or not differentiable(op, 0, target):
                continue
            with only_below(level):
                if op.rules:
                    (tangent,) = output_tangents(op, write.inputs, (target,), write.attrs, tangents)
                else:
                    tangent = TENSORS.zeros_like(target)
                (tangent,) = _apart([tangent], tangents)
            write_tangent(target, level, tangent)
        _share_with_saved((target,), node)


FORWARD = ForwardMode()


def enter() -> Level:
    """Enter a level, inside all that are entered."""
    if not levels:
        observers.append(FORWARD)
    level = Level()
    levels.append(level)
    return level


def leave(level: Level) -> None:
    """Leave a level; its tangents are gone."""
    levels.remove(level)
    if not levels:
        observers.remove(FORWARD)
        FORWARD.writes.pending.clear()
    forget(level)


def _tangents_of(inputs: Sequence[Any], level: Level) -> list[Any] | None:
    """The tangent of each input, None where there is none; None if no input has one."""
    tangents = [tangent_of(x, level) if isinstance(x, Tensor) else None for x in inputs]
    return None if all(t is None for t in tangents) else tangents


def _apart(found: list[Any], others: Sequence[Any]) -> list[Any]:
    """Tangents on memory of their own: a rule may give back what it was given, or a view of it,
    and then a write to one tensor would change the tangent of another."""
    owners = {id(root(x._array)) for x in others if isinstance(x, Tensor)}
    return [
        t if t is None or not (id(root(t._array)) in owners or overlaps_itself(t._array))
        else TENSORS.clone(t, memory_format="contiguous")
        for t in found
    ]  # fmt: skip


def _share_with_saved(outputs: Sequence[Any], node: Any) -> None:
    """An output that its own node keeps is kept as an alias, which has the same tangents."""
    for value in getattr(node, "saved", None) or ():
        if isinstance(value, SavedTensor) and value.output_nr is not None:
            share_tangents(value.tensor, outputs[value.output_nr])
