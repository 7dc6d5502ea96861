"""Give the outputs of a custom Function's forward their place in the graph.  Layer 4.

Note [Outputs of Functions]
    An output that is an input is replaced by a view of it, unless it was marked dirty: then the
    input's history is rewritten, like that of any in-place write.  What is not differentiable
    leaves without a history.  An output that is a view of something else keeps what it is a view
    of, but takes no recorded write: that would go around the Function's backward.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from clew.autograd.views import Creation, check_inplace, rebase, refuse_inference
from clew.errors import FunctionResultError, LeafModifiedError, describe
from clew.tensor import Tensor


def wrap_outputs(
    ctx: Any, inputs: Sequence[Tensor], outputs: tuple[Any, ...], records: bool
) -> tuple[Any, ...]:
    """What the caller gets; see Note [Outputs of Functions].

    Args:
        ctx: the node, whose marks (`dirty_tensors`, `non_differentiable`) are read.
        inputs: the tensors that the Function was given.
        outputs: what its forward returned, tensors and other things.
        records: whether the call is recorded.
    """
    _check_dirty(ctx, outputs)
    _check_non_differentiable(ctx)
    constant = {id(t) for t in ctx.non_differentiable}
    tensors = [o for o in outputs if isinstance(o, Tensor)]
    metas: list[Any] = [
        (o._array.shape, o._array.dtype) if isinstance(o, Tensor) else None for o in outputs
    ]
    ctx.metas = tuple(metas) or ((),)
    ctx.constant_outputs = frozenset(i for i, o in enumerate(outputs) if id(o) in constant)
    wrap = _Wrap(ctx, inputs, len(outputs))
    seen: dict[int, Tensor] = {}
    differentiable = 0
    for nr, out in enumerate(outputs):
        if isinstance(out, Tensor) and id(out) not in seen:
            records_this = records and id(out) not in constant and out._array.dtype.kind in "fcV"
            differentiable += records_this
            seen[id(out)] = wrap.one(out, nr, records_this)
    if differentiable > 1:
        for out in map(seen.__getitem__, map(id, tensors)):
            if out._base is not None:
                out._ensure_meta().creation = Creation.MULTI_OUTPUT
    return tuple(seen[id(o)] if isinstance(o, Tensor) else o for o in outputs)


class _Wrap:
    """The wrapping of one call's outputs."""

    def __init__(self, ctx: Any, inputs: Sequence[Tensor], count: int) -> None:
        self.ctx = ctx
        self.given = {id(t) for t in inputs}
        self.dirty = {id(t) for t in ctx.dirty_tensors}
        self.count = count

    def one(self, out: Tensor, nr: int, records: bool) -> Tensor:
        """Output `nr` as the caller gets it; `records` says whether it has a gradient."""
        is_input, is_dirty = id(out) in self.given, id(out) in self.dirty
        if not records:
            wrapped = _without_history(out, is_input, is_dirty)
        elif is_dirty:
            wrapped = self._written(out, nr, is_input)
        elif is_input:
            wrapped = out._alias((self.ctx, nr))
            _make_view(wrapped, out)
        else:
            wrapped = out
            out._edge, out._requires_grad = (self.ctx, nr), True
        if wrapped._base is not None and not (is_input and is_dirty):
            meta = wrapped._ensure_meta()
            meta.creation = Creation.CUSTOM_FUNCTION
            meta.view_version = wrapped._counter.value
        return wrapped

    def _written(self, out: Tensor, nr: int, is_input: bool) -> Tensor:
        """An output that the forward has written to."""
        if out._node is None and out.requires_grad:
            raise LeafModifiedError(out, self.ctx.name(), view=False, tense="has been")
        if not is_input:
            warnings.warn(
                "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that "
                "have been mutated should be passed to ctx.mark_dirty().",
                UserWarning,
                stacklevel=5,
            )
        if out._base is not None and self.count > 1:
            raise FunctionResultError(
                "If your Function modifies inplace an input that is a view of another Tensor, your "
                "Function cannot return more than one Tensor. This is not supported by the current "
                "autograd engine. You should either make sure the input is not a view (using "
                ".clone() for example) or make your Function only return one Tensor (potentially "
                "splitting it into two Functions: one doing the inplace that returns a single "
                "Tensor and a second one that does the other operations). You can ask on the forum "
                "https://discuss.pytorch.org/ if you need help to do this change.",
                self.ctx,
                writer(self.ctx),
                "give the Function x.clone(), or return the written tensor alone",
                ("tensor", describe(out)),
            )
        check_inplace(out, self.ctx.name(), records=True)
        refuse_inference(out)
        out._grad = None  # a retained one is of what was there before
        known = None if out._meta is None else out._meta.accumulator
        if out._node is None and known is not None and (leaf := known()) is not None:
            leaf.variable = out.detach()  # the tensor that it was the leaf of is no more
        rebase(out, self.ctx, nr)
        return out


def _without_history(out: Tensor, is_input: bool, is_dirty: bool) -> Tensor:
    """An output that has no gradient."""
    if not out.requires_grad:
        if is_input and not is_dirty:
            alias: Tensor = out._alias()
            _make_view(alias, out)
            return alias
        return out
    if is_input:
        return out.detach()
    if out._base is None:
        out.detach_()
    return out


def _make_view(alias: Tensor, source: Tensor) -> None:
    base, meta = source._base, alias._ensure_meta()
    if source.is_inference():
        meta.inference = True
    else:
        meta.base = source if base is None else base


def _check_non_differentiable(ctx: Any) -> None:
    for tensor in ctx.non_differentiable:
        if not isinstance(tensor, Tensor):
            raise FunctionResultError(
                "mark_non_differentiable only accepts variable arguments, but got "
                f"{type(tensor).__name__}",
                ctx,
                writer(ctx),
                "mark the outputs that have no gradient",
            )


def _check_dirty(ctx: Any, outputs: tuple[Any, ...]) -> None:
    returned = {id(o) for o in outputs}
    for position, tensor in enumerate(ctx.dirty_tensors):
        if not isinstance(tensor, Tensor):
            raise FunctionResultError(
                f"mark_dirty can only accept variables, but argument {position} is of type "
                f"{type(tensor).__name__}",
                ctx,
                writer(ctx),
                "mark the tensors that forward has written to",
            )
        tensor._counter.bump(ctx.name())
        if id(tensor) not in returned:
            raise FunctionResultError(
                "Some elements marked as dirty during the forward method were not returned as "
                "output. The inputs that are modified inplace must all be outputs of the "
                "Function.",
                ctx,
                writer(ctx),
                "return the marked tensors, or do not mark what forward does not write to",
                ("tensor", describe(tensor)),
            )


def writer(ctx: Any) -> str:
    """The method that the user filled the ctx in."""
    return "setup_context" if ctx._forward_cls._has_setup_context() else "forward"
