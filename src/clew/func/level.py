"""A running `grad` or `vjp`: what it gives to its function, and what it takes back.

Note [Reverse levels]
    Inside ``grad`` the inputs are new leaves.  To the level outside, each is its input: a
    `LevelInput` node leads on to where the gradient of that goes.  All levels share one graph, so
    a derivative of a derivative is a backward pass of a recorded backward pass, as under
    ``create_graph``.  What the pass gives is cut off from the graph unless it leads out of the
    level: to an input that requires grad outside, or to another tensor that the function uses.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from clew import dispatch
from clew.autograd.algebra import ARRAY, TENSOR
from clew.autograd.dual import carry_over
from clew.autograd.engine import run_backward
from clew.autograd.modes import enable_grad, set_grad_enabled, state
from clew.autograd.node import AccumulateGrad, Node
from clew.autograd.transforms import Level, LevelInput, note_new, stack
from clew.dispatch import TENSORS
from clew.func.batching.batch import Batch
from clew.func.batching.functions import require_setup_context
from clew.func.batching.level import VmapLevel
from clew.op import Op
from clew.storage import new_counter
from clew.tensor import Tensor


class GradLevel(Level):
    """One `grad` or `vjp` that runs, or whose function for cotangents is still there.

    Attributes:
        batch: the innermost `vmap` outside of it, or None.
        grad_enabled: whether the code outside records.
    """

    def __enter__(self) -> Any:
        super().__enter__()
        self.batch: VmapLevel | None = next(
            (x for x in reversed(self.below) if isinstance(x, VmapLevel)), None
        )
        self.grad_enabled = state.now.grad_enabled
        self._mode = enable_grad()
        self._mode.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._mode.__exit__(*exception)
        super().__exit__(*exception)

    # -- ops: only writes need a look

    def apply(self, op: Op, inputs: Sequence[Any], attrs: dict[str, Any]) -> Any:
        with self.lowered():
            result = dispatch.apply(op, inputs, attrs)
        if not op.view:
            self.own(result if isinstance(result, tuple) else (result,))
        return result

    def apply_inplace(
        self, op: Op, target: Any, inputs: Sequence[Any], attrs: dict[str, Any], name: str
    ) -> Any:
        self.refuse_captured(target, inputs, name)
        with self.lowered():
            return dispatch.apply_inplace(op, target, inputs, attrs, name)

    def call_function(self, function: Any, args: Any, kwargs: Any) -> Any:
        require_setup_context(function)
        return super().call_function(function, args, kwargs)

    # -- inputs

    def input(self, x: Tensor, differentiable: bool) -> Any:
        """An argument as the function sees it: a leaf, if it is to be differentiated."""
        given = x
        if self.batch is not None:
            x = self.batch.lifted(x)
        if not differentiable:
            inner = x._alias(None if x._node is None else x._gradient_edge())
            if x.requires_grad and x._node is None:
                inner = x
            else:
                self._take(inner, given)
            return inner
        inner = x._alias()
        self._take(inner, given)
        inner._requires_grad = True
        array = x._array
        node = LevelInput(x._gradient_edge(), (array.shape, array.dtype))
        inner._ensure_meta().accumulator = weakref.ref(node)
        inner._level_input = node  # as long as the leaf, which the node does not know
        return inner

    @staticmethod
    def _take(inner: Any, x: Any) -> None:
        """Let a new alias be a tensor of this level, with the tangents of those outside."""
        inner._counter = new_counter()
        note_new(inner)
        carry_over(inner, x)

    # -- results

    def output(self, x: Any, record: bool) -> Any:
        """A result as the code outside sees it: with its history, if that leads out of the level
        and is wanted (`record`)."""
        if not isinstance(x, Tensor):
            return x
        array: Any = x._array
        if array.__class__ is Batch and array.level.serial > self.serial:
            value = self.output(array.value, record)
            return x if value is array.value else array.level.wrap(value, array.bdim)
        if not x.requires_grad or (record and leads_out([x._gradient_edge()[0]], self)):
            return x
        found = x._alias()  # cut off here, but not in the levels outside
        carry_over(found, x, lambda tangent: self.output(tangent, record))
        return found

    def gradients(
        self, outputs: Sequence[Any], inputs: Sequence[Any], cotangents: Sequence[Any], keep: bool,
        record: bool,
    ) -> list[Any]:  # fmt: skip
        """The gradients of the function's outputs in its inputs; zeros where there is none."""
        roots = [(x, v) for x, v in zip(outputs, cotangents) if x.requires_grad]
        found: list[Any] = [None] * len(inputs)
        if roots:
            edges = [x._gradient_edge() for x in inputs]
            starts = [(x._gradient_edge(), v) for x, v in roots]
            found = self._backward(starts, edges, keep, record)
        return [
            TENSORS.zeros_like(x.detach()) if g is None else self.output(g, record)
            for g, x in zip(found, inputs)
        ]

    def _backward(self, starts: Any, edges: Any, keep: bool, record: bool) -> list[Any]:
        """The backward pass, recorded if what it computes depends on something outside."""
        outside = record and (
            leads_out([edge[0] for edge, _ in starts], self)
            or any(_requires_grad(v) for _, v in starts)
        )
        plain = not any(isinstance(x, VmapLevel) or x.forward for x in stack.levels)
        if not outside and plain:
            arrays = [(edge, v._array) for edge, v in starts]
            with set_grad_enabled(False):
                found = run_backward(arrays, ARRAY, keep_graph=keep, accumulate=False, inputs=edges)
            return [ARRAY.wrap(g) for g in found]
        home = self.batch
        recorded = home is None or home.records
        if home is not None and not outside:
            home.records = False
        try:
            # Without a vmap outside of this level its graph is the program's, else that vmap's.
            with set_grad_enabled(outside if home is None else record):
                keep = keep or outside  # the recorded pass leads through what this one has saved
                return run_backward(starts, TENSOR, keep_graph=keep, accumulate=False, inputs=edges)
        finally:
            if home is not None:
                home.records = recorded


def _requires_grad(x: Tensor) -> bool:
    """Whether `x`, or what it is a batch of, requires grad."""
    array: Any = x._array
    return x.requires_grad or (array.__class__ is Batch and _requires_grad(array.value))


def leads_out(roots: Sequence[Node | None], level: Level) -> bool:
    """Whether a graph reaches a node or a leaf that was made outside of a level."""
    seen: set[Node] = set()
    waiting = [node for node in roots if node is not None]
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, AccumulateGrad):
            if (getattr(node.variable._counter, "born", 0) or 0) < level.serial:
                return True
        elif node.seq < level.first:
            return True
        waiting += [following for following, _ in node.edges if following is not None]
    return False
