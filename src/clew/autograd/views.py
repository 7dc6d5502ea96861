"""Views and in-place writes: keep the history of a base and of its views right.

Layer 3: knows tensors only by their attributes.

Note [Views]
    A differentiable view remembers its base (never another view) and the version at which its
    own edge was made.  A write through the view or through the base raises the shared version.
    When the edge of a view is next asked for and the version has moved on, the edge is made anew:
    an `AsStridedBackward0` that reads the view's geometry from the base's new history; or, for a
    view made under `_force_original_view_tracking`, or of complex numbers as real ones or the
    other way round, the nodes of the operations that made it.

Note [Rewriting history]
    A write to a view is a write to part of its base.  `CopySlices` becomes the base's node: it
    splits the incoming gradient into the part outside the view, which goes on to the base's old
    history, and the part inside, which goes through the operation that wrote.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from clew.autograd.modes import enable_grad, state
from clew.autograd.node import AccumulateGrad, Node, next_sequence_nr, node_class
from clew.autograd.saved import Freed
from clew.errors import (
    EXPANDED,
    InferenceTensorError,
    LeafModifiedError,
    ViewModifiedError,
    spaced,
)
from clew.op import REGISTRY, Op
from clew.ops.strided import refuse_outside
from clew.plan import plan_for
from clew.site import here
from clew.storage import Geometry, geometry

NO_EDGE: tuple[None, int] = (None, 0)


class Creation(Enum):
    """How a view came to be, which decides whether it may be written to."""

    NORMAL = 0
    MULTI_OUTPUT = 1
    NO_GRAD = 2
    INFERENCE = 3
    CUSTOM_FUNCTION = 4


class TensorMeta:
    """What only some tensors need: views, hooks, names.  Made when first needed.

    Attributes:
        base: the tensor that this one is a differentiable view of.
        creation: how the view was made.
        view_version: the version at which the view's edge was made.
        replay: makes the view of its base again, for views whose operations are tracked.
        accumulator: a weak reference to the leaf's `AccumulateGrad`.
        hooks: hooks of a leaf.
        post_accumulate: hooks to run after a leaf's gradient was accumulated.
        retains_grad: whether a non-leaf keeps its gradient.
        reshaped: the data was replaced by some of another shape.
        site: the line that made a leaf that requires grad.
        inference: made in inference mode.
        kept_small: a weak reference to what keeps a packed form of it (``saved_small.py``).
        recipe: how it is computed again, or None (``saved_small.py``).
        counted: an inference tensor that has a version all the same: it was detached from one
            outside of inference mode, and takes writes there.
        name: a name given by the user.
        tangents: by level of forward mode, or None; see ``dual.py``.
        forward_base: the tensor that a view shares tangents with, where that is not `base`.
        forward_root: this view shares tangents with nothing.
    """

    # Defaults stand on the class: a view is made often and sets three of these.
    base: Any = None
    creation = Creation.NORMAL
    view_version = 0
    replay: Any = None
    accumulator: Any = None
    hooks: Any = None
    post_accumulate: Any = None
    retains_grad = False
    reshaped = False
    site: Any = None
    inference = False
    kept_small: Any = None
    recipe: Any = None
    counted = False
    name: str | None = None
    tangents: dict[Any, Any] | None = None
    forward_base: Any = None
    forward_root = False


def has_tangent(tensor: Any) -> bool:
    """Whether a tensor has a tangent at some level of forward mode."""
    return tensor._meta is not None and bool(tensor._meta.tangents)


_NORMAL = Creation.NORMAL

_OF_ANOTHER_KIND = frozenset({"view_as_real", "view_as_complex"})
"""Views that `as_strided` cannot make."""

_making_accumulator = threading.Lock()


def accumulator(tensor: Any) -> AccumulateGrad:
    """The one `AccumulateGrad` of a leaf, which lives as long as a graph leads to it."""
    meta = tensor._ensure_meta()
    node: AccumulateGrad | None = meta.accumulator() if meta.accumulator is not None else None
    if node is None:
        # Two threads may ask at once; with a node each they would not wait for each other later.
        with _making_accumulator:
            node = meta.accumulator() if meta.accumulator is not None else None
            if node is None:
                node = AccumulateGrad(tensor)
                meta.accumulator = weakref.ref(node)
    return node


def mark_view(
    out: Any, source: Any, creation: Creation, call: tuple[Any, Op, dict[str, Any]] | None = None
) -> bool:
    """Note what `out` is a view of, and by which call; see Note [Views].

    Returns:
        Whether it can have a history: a view of an inference tensor is one itself, and no view.
    """
    meta = out._meta
    if meta is None:
        meta = out._meta = TensorMeta()
    above = source._meta
    if above is not None and above.inference:
        meta.inference = True
        return False
    meta.view_version = source._counter.value
    now = state.now
    if now.inference:
        creation = Creation.INFERENCE
    elif not now.grad_enabled:
        creation = Creation.NO_GRAD
    if above is None or (base := above.base) is None:
        meta.base = source
    else:
        meta.base = base
        if creation is _NORMAL or above.creation is Creation.INFERENCE:
            creation = above.creation
    if creation is not _NORMAL:
        meta.creation = creation
    if call is not None:
        if now.view_replay or call[1].name in _OF_ANOTHER_KIND:
            meta.replay = _replay(source, call)
        elif above is not None and above.replay is not None:
            meta.replay = _strided_after(above.replay, call[0], geometry(out._array))
    return True


def _replay(source: Any, call: tuple[Any, Op, dict[str, Any]]) -> Callable[[Any], Any]:
    """What makes the view that `call` makes of `source` of the base of `source` again."""
    apply, op, attrs = call
    meta = source._meta
    if meta is None or meta.base is None:
        return lambda base: apply(op, (base,), attrs)
    above = meta.replay
    if above is not None:
        return lambda base: apply(op, (above(base),), attrs)
    size, stride, offset = geometry(source._array)
    place = {"size": size, "stride": stride, "storage_offset": offset}

    def function(base: Any) -> Any:
        below = {**place, "base": geometry(base._array)}
        return apply(op, (apply(REGISTRY["as_strided"], (base,), below),), attrs)

    return function


def _strided_after(above: Callable[[Any], Any], apply: Any, place: Geometry) -> Any:
    """What makes a view at `place` of what `above` makes again of a base."""
    size, stride, offset = place
    attrs = {"size": size, "stride": stride, "storage_offset": offset}

    def function(base: Any) -> Any:
        view = above(base)
        below = {**attrs, "base": geometry(view._array)}
        return apply(REGISTRY["as_strided"], (view,), below)

    return function


def refresh(tensor: Any) -> None:
    """Make the edge of a view anew if its base was written to; see Note [Views]."""
    meta = tensor._meta
    base = meta.base
    if tensor._node is None and not base.requires_grad:
        return
    if meta.creation is not Creation.NORMAL:
        raise _view_error(tensor, meta, None)
    if meta.replay is None:
        node = _as_strided_node(tensor, base)
    else:
        with enable_grad():
            node = meta.replay(base)._edge[0]
    move_retained(tensor, node)
    tensor._edge = (node, 0)
    tensor._requires_grad = True
    meta.view_version = tensor._counter.value


def _as_strided_node(view: Any, base: Any) -> Node:
    place, below = geometry(view._array), geometry(base._array)
    saved: tuple[Any, ...] = ()
    if view._array.dtype == base._array.dtype:
        op = REGISTRY["as_strided"]
        size, stride, offset = place
        attrs = {"size": size, "stride": stride, "storage_offset": offset, "base": below}
    else:
        op = REGISTRY["reread"]
        attrs = {"view": place, "base": below, "kind": view.dtype}
        saved = (base.dtype,)
    metas = ((view._array.shape, view._array.dtype),)
    node, nr = base._gradient_edge()
    return node_class(op)(
        plan_for(op, 1, 1), (node,), (nr,), saved, attrs, metas, view._counter.writer
    )


def move_retained(tensor: Any, node: Node, output_nr: int = 0) -> None:
    """`retain_grad` follows the tensor to the node that makes it now."""
    if tensor._meta is None or not tensor._meta.retains_grad or tensor._node is None:
        return
    old, old_nr = tensor._edge
    if old.hooks is not None:
        keep = old.hooks.retain.pop(old_nr, None)
        if keep is not None:
            node._hooks().retain[output_nr] = keep


def refuse_inference(tensor: Any) -> None:
    """Refuse a write to an inference tensor outside of inference mode."""
    meta = tensor._meta
    if meta is not None and meta.inference and not (state.now.inference or meta.counted):
        raise InferenceTensorError(
            "Inplace update to inference tensor outside InferenceMode is not allowed."
            "You can make a clone to get a normal tensor before doing inplace update."
            "See https://github.com/pytorch/rfcs/pull/17 for more details.",
            tensor,
            "write to x.clone(), or do the write inside inference_mode",
        )


def check_inplace(tensor: Any, name: str, records: bool) -> None:
    """Refuse an in-place write that autograd cannot follow, before anything is changed.

    Args:
        tensor: what will be written to.
        name: the operation, for messages.
        records: whether the write will be recorded (some operand requires grad, and grad mode).
    """
    if not records:
        return
    meta = tensor._meta
    if meta is not None and meta.base is not None:
        _check_view(tensor, meta, name)
    if tensor._node is None and tensor.requires_grad:
        raise LeafModifiedError(tensor, name, view=False)


def _check_view(tensor: Any, meta: TensorMeta, name: str) -> None:
    base = meta.base
    if meta.creation is not Creation.NORMAL:
        raise _view_error(tensor, meta, name)
    if base._node is None and tensor.requires_grad:
        raise LeafModifiedError(tensor, name, view=True)


def _view_error(tensor: Any, meta: TensorMeta, write: str | None) -> ViewModifiedError:
    """Why this view takes no write; no `write`: its base was written to, and it is stale."""
    clause, cure = _view_clause(tensor._edge, meta.creation, indirect=write is None)
    counter = tensor._counter
    if write is None:
        written = spaced(f"by {counter.writer_name}, through its base or another view",
                         counter.writer)  # fmt: skip
    else:
        written = spaced(f"by {write}", here())
    return ViewModifiedError(clause, tensor, written, cure)


def _view_clause(edge: Any, creation: Creation, *, indirect: bool) -> tuple[str, str]:
    """PyTorch's text, and what to do instead."""
    done = "its base or another view of its base has been" if indirect else "is being"
    output = f"Output {edge[1]} of {edge[0].short_name()} is a view" if edge is not None else ""
    unrecorded = creation in (Creation.NO_GRAD, Creation.INFERENCE)
    if output and not unrecorded:
        prefix = f"{output} and {done} modified inplace. "
    else:
        view = f"{output} of a view which was" if output else "A view was"
        mode, now = (
            ("inference", "in normal mode") if creation is Creation.INFERENCE
            else ("no_grad", "with grad mode enabled")
        )  # fmt: skip
        prefix = f"{view} created in {mode} mode and {done} modified inplace {now}. "
    if creation is Creation.MULTI_OUTPUT:
        return (
            f"{prefix}This view is the output of a function that returns multiple views. Such "
            "functions do not allow the output views to be modified inplace. You should replace "
            "the inplace operation by an out-of-place one.",
            "index the tensor (x[0]) instead of splitting it, or use y = y + 1",
        )
    if creation is Creation.CUSTOM_FUNCTION:
        return (
            f"{prefix}This view was created inside a custom Function (or because an input was "
            "returned as-is) and the autograd logic to handle view+inplace would override the "
            "custom backward associated with the custom Function, leading to incorrect gradients. "
            "This behavior is forbidden. You can fix this by cloning the output of the custom "
            "Function.",
            "clone the output of the custom Function",
        )
    block = "no_grad" if creation is Creation.NO_GRAD else "inference_mode"
    return (
        f"{prefix}Given that this use case is ambiguous and error-prone, it is forbidden. You can "
        "clarify your code by moving both the view and the inplace either both inside the "
        f"{block} block (if you don't want the inplace to be tracked) or both outside (if "
        "you want the inplace to be tracked).",
        f"make the view outside {block}, or write inside it",
    )


def rebase(tensor: Any, node: Node, output_nr: int = 0) -> None:
    """Record that `node` wrote `tensor` in place; see Note [Rewriting history]."""
    meta = tensor._meta
    if meta is None or meta.base is None:
        move_retained(tensor, node, output_nr)
        tensor._edge = (node, output_nr)
        tensor._requires_grad = True
        return
    base = meta.base
    copy = CopySlices(base, tensor, node)
    move_retained(base, copy)
    base._edge = (copy, 0)
    base._requires_grad = True
    refresh(tensor)
    node.outputs_are_made_by(tensor._edge[0])


class CopySlices(Node):
    """The node of a base after a write to one of its views; see Note [Rewriting history]."""

    __slots__ = ("base", "fn", "freed", "kind", "reshaped", "view")

    def __init__(self, base: Any, view: Any, fn: Node) -> None:
        self.fn: Node | None = fn
        self.freed: Freed | None = None
        self.base: Geometry = geometry(base._array)
        self.view: Geometry = geometry(view._array)
        self.kind = None if view._array.dtype == base._array.dtype else view.dtype
        self.reshaped = view._meta.reshaped or (base._meta is not None and base._meta.reshaped)
        self.edges = (base._gradient_edge(), *fn.edges[1:])
        self.metas = ((base._array.shape, base._array.dtype),)
        self.seq = next_sequence_nr()
        self.site = here()
        self.hooks = None
        self.info = None

    def name(self) -> str:
        return "torch::autograd::CopySlices"

    def run(self, grads: list[Any], algebra: Any, need: Sequence[bool] | None) -> Sequence[Any]:
        fn = self.fn
        if fn is None:
            assert self.freed is not None
            self.freed.raise_for(self)
        grad = grads[0]
        if grad is None:
            return [None] * len(self.next_nodes)
        if self.view.offset < self.base.offset:  # the base was restrided in place
            offset = self.view.offset - self.base.offset
            raise RuntimeError(f"Tensor: invalid storage offset {offset}")
        if self.reshaped:  # the view may lie beyond what the base is now
            size, stride, offset = self.view
            inside = Geometry(size, stride, offset - self.base.offset)
            refuse_outside(inside, getattr(grad, "_array", grad))
        F = algebra.namespace
        part = F.take_strided(grad, view=self.view, base=self.base, kind=self.kind)
        results = list(fn.run([part], algebra, need))
        inside = results[0]
        meta = fn.metas[0]
        if inside is not None:
            inside = algebra.fit(inside, meta, fn, 0)
            if any(s == 0 and n > 1 for n, s in zip(self.view.size, self.view.stride)):
                raise RuntimeError(EXPANDED)  # PyTorch writes to this view of the gradient
        if self.next_nodes[0] is None or (need is not None and not need[0]):
            results[0] = None
            return results
        results[0] = F.put_strided(grad, inside, view=self.view, base=self.base, kind=self.kind)
        return results

    def release(self, freed: Freed) -> None:
        if self.fn is not None:
            self.fn.release(freed)
        # With it goes what only it holds: the nodes of the view from before the write.
        self.fn, self.freed = None, freed

    def kept(self) -> Any:
        return [] if self.fn is None else self.fn.kept()

    def is_released(self) -> bool:
        return self.freed is not None
