"""A running `vmap`: gives each op to its batching rule, and records it if need be.

Note [Two graphs]
    A batched tensor can require grad in two ways.  Its value, a tensor of the level outside, may:
    then the ops that a batching rule runs are recorded there, and nothing needs doing here.  Or
    the tensor itself was made to require grad by a transform *inside* this `vmap`: then the op is
    recorded here, as an op on examples.  Its node keeps batched tensors, and its rule, run on
    them, passes through dispatch and comes back to this level.  So ``grad(vmap(f))`` and
    ``vmap(grad(f))`` need no code of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clew import dispatch
from clew.autograd.modes import state
from clew.autograd.transforms import Level
from clew.autograd.transforms import like as like_outside
from clew.autograd.transforms import sample as sample_outside
from clew.autograd.views import Creation, check_inplace, mark_view, refuse_inference
from clew.fields import new
from clew.func.batching import kinds
from clew.func.batching.batch import Batch
from clew.func.batching.randoms import DRAWS, NOT_THE_SAME, check_allowed
from clew.func.batching.rules import Call, Same, moved, run, stacked
from clew.functions.values import of_values
from clew.op import Op
from clew.recording import after_write, before_write, record
from clew.tensor import Tensor


class VmapLevel(Level):
    """One `vmap` that runs now.

    Attributes:
        size: the number of examples.
        randomness: "error", "different", "same", or "refused" where the user has no choice.
        records: whether ops on batched tensors that require grad are recorded.
    """

    def __init__(self, size: int, randomness: str) -> None:
        self.size = size
        self.randomness = randomness
        self.records = True

    # -- tensors

    def holds(self, x: Any) -> bool:
        """Whether `x` is a tensor of this level."""
        if not isinstance(x, Tensor):
            return False
        array: Any = x._array
        return array.__class__ is Batch and array.level is self

    def wrap(self, value: Any, bdim: int | None) -> Any:
        """A tensor of the level outside, as one example."""
        out = new(Tensor)
        out._array = Batch(value, bdim, self)
        out._counter = value._counter
        out._node = out._grad = out._meta = out._cut = None
        out._output_nr = 0
        out._requires_grad = False
        return out

    def lifted(self, x: Any) -> Any:
        """`x` as a tensor of this level, with the same place in the graph; perhaps `x` itself."""
        return x if self.holds(x) else self.wrap(x, None)

    def unwrap(self, x: Any, bdim: int) -> Any:
        """All examples of `x`, along `bdim`, as a tensor of the level outside."""
        batch = x._array if self.holds(x) else None
        value = x if batch is None else batch.value
        ndim = value._array.ndim + (batch is None or batch.bdim is None)
        target = _wrapped(bdim, ndim)
        if batch is not None and batch.bdim is not None:
            return value if batch.bdim == target else moved(value, batch.bdim, target)
        shape = value._array.shape
        wide = run("unsqueeze", value, dim=target)
        return run("expand", wide, size=(*shape[:target], self.size, *shape[target:]))

    # -- ops

    def apply(self, op: Op, inputs: Sequence[Any], attrs: dict[str, Any]) -> Any:
        values, dims, mask, _ = self._taken(inputs)
        with self.lowered():
            if op.name in DRAWS or any(d is not None for d in dims):
                result = kinds.rule_for(op)(op, self._call(values, dims), attrs)
            else:
                result = Same(dispatch.apply(op, values, attrs))
        bdim: int | None = 0
        if result.__class__ is Same:
            result, bdim = result.result, None
        if bdim is None and not mask:
            return result
        outs: Any = result if isinstance(result, tuple) else (result,)
        outs = [None if o is None else self.wrap(o, bdim) for o in outs]
        if op.view:
            creation = Creation.MULTI_OUTPUT if isinstance(result, tuple) else Creation.NORMAL
            for out in outs:
                mark_view(out, self.lifted(inputs[0]), creation)
        if mask and state.now.grad_enabled and self.records and op.rules:
            self._record(op, inputs, attrs, mask, outs)
        return tuple(outs) if isinstance(result, tuple) else outs[0]

    def _call(self, values: list[Any], dims: list[int | None]) -> Call:
        return Call(values, dims, self.size, self.randomness)

    def _taken(self, inputs: Sequence[Any]) -> tuple[list[Any], list[int | None], int, bool]:
        """The values of inputs and their batch dimensions; which require grad at this level; and
        whether any is of this level."""
        values: list[Any] = []
        dims: list[int | None] = []
        mask, bit, mine = 0, 1, False
        for x in inputs:
            array: Any = x._array if isinstance(x, Tensor) else None
            if array.__class__ is Batch and array.level is self:
                mine = True
                values.append(array.value)
                dims.append(array.bdim)
                if x.requires_grad:
                    mask |= bit
            else:
                values.append(x)
                dims.append(None)
            bit <<= 1
        return values, dims, mask, mine

    def _record(
        self, op: Op, inputs: Sequence[Any], attrs: dict[str, Any], mask: int, outs: Sequence[Any]
    ) -> None:
        """Make the node of a call of which an input requires grad at this level."""
        inputs = [self.lifted(x) if isinstance(x, Tensor) else x for x in inputs]
        node = record(op, inputs, attrs, mask, outs)
        if node is None:
            return
        for nr, out in enumerate(outs):
            if out is not None and nr not in op.no_grad_outputs and out._array.dtype.kind in "fcV":
                out._edge = (node, nr)
                out._requires_grad = True

    # -- writes

    def apply_inplace(
        self, op: Op, target: Any, inputs: Sequence[Any], attrs: dict[str, Any], name: str
    ) -> Any:
        operands = (target, *inputs)
        values, dims, mask, mine = self._taken(operands)
        if not mine and op.name not in DRAWS:
            with self.lowered():
                return dispatch.apply_inplace(op, target, inputs, attrs, name)
        if dims[0] is None and any(d is not None for d in dims):
            raise RuntimeError(_unbatched_target(op, name, self._call(values, dims)))
        records = bool(mask) and state.now.grad_enabled and self.records
        check_inplace(target, name, records)
        refuse_inference(target)
        operands = tuple(self.lifted(x) if isinstance(x, Tensor) else x for x in operands)
        pending = before_write(op, operands, attrs, mask) if records else None
        with self.lowered():
            kinds.write(op, self._call(values, dims), attrs, name)
        if pending is not None:
            after_write(pending, target, attrs)
        return target

    # -- random numbers

    def sample(self, draw: Any, shape: tuple[int, ...]) -> Any:
        check_allowed(self._call([], []))
        with self.lowered():
            if self.randomness == "same":
                return sample_outside(draw, shape)
            value = sample_outside(draw, (self.size, *shape))
        return self.wrap(value, 0)

    def like(self, tensor: Any, make: Any, shape: Any) -> Any:
        if not self.holds(tensor) or tensor._array.bdim is None:
            inner = tensor._array.value if self.holds(tensor) else tensor
            with self.lowered():
                return like_outside(inner, make, shape)
        with self.lowered():
            value = like_outside(tensor._array.value, make, (self.size, *shape))
        return self.wrap(value, 0)

    def of_values(self, function: Any, tensors: Sequence[Any]) -> Any:
        """`function` of the values of tensors: example by example where they have some."""
        values, dims, _, _ = self._taken(tensors)
        with self.lowered():
            if all(d is None for d in dims):
                return of_values(function, *values)
            rows = [
                of_values(function, *(x if d is None else run("select", x, dim=d, index=n)
                                      for x, d in zip(values, dims)))
                for n in range(self.size)
            ]  # fmt: skip
            return self.wrap(stacked(rows), 0)

    def multinomial(self, weights: Any, draw: Any) -> Any:
        check_allowed(self._call([], []))
        if not self.holds(weights) or weights._array.bdim is None:
            rows = weights._array.value if self.holds(weights) else weights
            with self.lowered():
                if self.randomness == "same":
                    return draw(rows)
                rows = run("expand", rows, size=(self.size, *rows._array.shape))
                return self.wrap(draw(rows), 0)
        if self.randomness == "same":
            raise RuntimeError(NOT_THE_SAME)
        with self.lowered():
            return self.wrap(draw(self.unwrap(weights, 0)), 0)

    # -- custom Functions

    def call_function(self, function: Any, args: Any, kwargs: Any) -> Any:
        from clew.func.batching.functions import call_batched

        return call_batched(self, function, args, kwargs)


def _wrapped(dim: int, ndim: int) -> int:
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got "
            f"{dim})"
        )
    return dim % ndim


def _unbatched_target(op: Op, name: str, call: Call) -> str:
    if op.promotion is not None and op.label in ("add", "sub", "mul", "div"):
        wide = (call.size, *call.shape(0))
        return (
            f"output with shape {list(call.shape(0))} doesn't match the broadcast shape "
            f"{list(wide)}"
        )
    what = "inplace arithmetic" if op.label in ("copy", "index_put") else name
    return (
        f"vmap: {what}(self, *extra_args) is not possible because there exists a Tensor `other` in "
        "extra_args that has more elements than `self`. This happened due to `other` being vmapped "
        "over but `self` not being vmapped over in a vmap. Please try to use out-of-place "
        f"operators instead of {what}. If said operator is being called inside the PyTorch "
        "framework, please file a bug report instead."
    )
