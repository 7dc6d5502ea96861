"""Tangents through custom Functions: calls the user's ``jvp`` and checks what it returns.  Layer 4.

Note [Tangents of Functions]
    An output without a relation to an input has the tangent that ``jvp`` returned.  An output that
    is a view of an input must have a view of the input's tangent, and an input that the forward
    has written to must have its tangent written to: else a later write to one of the two would
    not be seen by the tangent of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clew.autograd.dual import base_of, inherit_root, set_tangent, write_tangent
from clew.autograd.forward_mode import ForwardLevel, share_with_saved
from clew.autograd.function import last_call
from clew.autograd.transforms import innermost
from clew.dispatch import TENSORS
from clew.errors import FunctionResultError
from clew.tensor import Tensor


def call_with_tangents(
    level: ForwardLevel, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Run a custom Function at a level, and give its outputs their tangents."""
    given = [*args, *kwargs.values()]
    has_tangents = level.tangents(given) is not None
    with level.lowered():
        below = innermost()
        if below is not None and (below.forward or not hasattr(below, "size")):
            result = function.apply(*args, **kwargs)
        else:  # the examples of a `vmap` are tensors like others to forward and jvp
            result = function._call(args, kwargs, function.forward)
    ctx, args, raw, outputs, dirty, constant = last_call.record
    for out in outputs:
        _find_root(out, args)
    if has_tangents:
        call = _Call(ctx, args, level.tangents(args), dirty, constant)
        with level.lowered():
            returned = call.jvp(len(outputs))
            for nr, out in enumerate(outputs):
                if isinstance(out, Tensor):
                    call.check(nr, raw[nr], out, returned[nr])
        for nr, out in enumerate(outputs):
            if isinstance(out, Tensor) and returned[nr] is not None:
                call.set(level, raw[nr], out, returned[nr])
        share_with_saved(ctx, outputs)
    return result


def _find_root(out: Any, args: Sequence[Any]) -> None:
    """Note which tensor a view that forward has made shares tangents with: forward ran outside of
    the level."""
    if not isinstance(out, Tensor) or out._base is None:
        return
    for x in args:
        if isinstance(x, Tensor) and x is not out and (out._base is x or out._base is x._base):
            inherit_root(out, x)
            return


class _Call:
    """The tangents of one call at one level."""

    def __init__(
        self, ctx: Any, args: Sequence[Any], tangents: Any, dirty: Any, constant: Any
    ) -> None:
        self.ctx = ctx
        self.args = args
        tangents = [None] * len(args) if tangents is None else tangents
        self.had = tangents
        self.tangents: list[Any] = [
            self._zeros(x) if t is None and ctx.materialize_grads else t
            for x, t in zip(args, tangents)
        ]
        self.dirty = {id(t) for t in dirty}
        self.constant = {id(t) for t in constant}

    @staticmethod
    def _zeros(x: Any) -> Any:
        if not isinstance(x, Tensor) or x._array.dtype.kind not in "fcV":
            return None
        return TENSORS.zeros_like(x).detach()

    def jvp(self, count: int) -> tuple[Any, ...]:
        """What the user's ``jvp`` returns, one for each output.

        Raises:
            RuntimeError: there are more or fewer, or one is no tensor.
        """
        self.ctx.in_jvp = True
        try:
            found = self.ctx._forward_cls.jvp(self.ctx, *self.tangents)
        finally:
            self.ctx.in_jvp = False
        returned = found if isinstance(found, tuple) else (found,)
        if len(returned) != count:
            raise self._error(
                "Function's jvp returned an invalid number of forward gradients (expected "
                f"{count} but got {len(returned)})",
                "return one value for each output of forward: its tangent, or None",
            )
        for nr, value in enumerate(returned):
            if value is not None and not isinstance(value, Tensor):
                raise self._error(
                    f"expected Variable or None (got {type(value).__name__}) for grad output {nr}.",
                    "return tensors, computed from the tangents that jvp is given",
                )
        return returned

    def check(self, nr: int, raw: Any, out: Any, tangent: Any) -> None:
        """Refuse a tangent that does not go with the output; see Note [Tangents of Functions]."""
        if id(raw) in self.constant or raw._array.dtype.kind not in "fcV":
            if tangent is not None:
                raise self._error(
                    f"Function's jvp returned a gradient at position {nr}, but  the corresponding "
                    "forward output is not a differentiable Tensor."
                    "You should return None at that position instead.",
                    "return None in the place of an output that has no derivative",
                )
            return
        if tangent is None:
            raise self._error(
                f"Function's jvp returned no gradient at position {nr}, but the corresponding "
                "forward output is a differentiable Tensor.",
                "return a tensor of zeros, or name the output in ctx.mark_non_differentiable",
            )
        place = next((i for i, x in enumerate(self.args) if x is raw), None)
        if place is not None and id(raw) in self.dirty:
            if self.tangents[place] is not None and tangent is not self.tangents[place]:
                raise self._error(
                    "An inplace custom Function is not modifying the forward mode gradients "
                    "inplace. If the forward is modifying an input inplace, then the jvp function "
                    "must modify the corresponding gradient inplace.",
                    "write to the tangent that jvp is given, and return it",
                )
        elif base_of(out) is not None:
            self._check_view(base_of(out), tangent)

    def _check_view(self, base: Any, tangent: Any) -> None:
        for x, given in zip(self.args, self.tangents):
            if given is None or not (x is base or base_of(x) is base):
                continue
            cure = "make the tangent of a view as the view was made, of the tangent of the input"
            if tangent._base is None:
                raise self._error(
                    "A custom Function's forward is returning a view (or an input as-is) but the "
                    "jvp is not returning a view.",
                    cure,
                )
            wanted = given if given._base is None else given._base
            if tangent._base is wanted:
                return
            if x is base:
                raise self._error(
                    "A custom Function is returning a view but the jvp is not returning a view of "
                    "the given grad input.",
                    cure,
                )
            raise self._error(
                "A custom Function is returning a view but the jvp is not returning a view of the "
                "same base as the given grad input.",
                cure,
            )

    def set(self, level: ForwardLevel, raw: Any, out: Any, tangent: Any) -> None:
        """Keep a tangent that was checked."""
        place = next((i for i, x in enumerate(self.args) if x is raw), None)
        if place is None or id(raw) not in self.dirty:
            set_tangent(out, level, tangent)
        elif self.had[place] is None:
            write_tangent(out, level, tangent)

    def _error(self, clause: str, cure: str) -> FunctionResultError:
        return FunctionResultError(clause, self.ctx, "jvp", cure)
