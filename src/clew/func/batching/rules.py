"""The table of batching rules, what rules are written with, and the loop for ops without one.

Note [Batching rules]
    A rule runs an op for all examples of one `vmap` at once.  It is called as
    ``rule(op, call, attrs)``; the `Call` holds the tensors of the level outside, where each has
    its batch dimension, and what one example looks like.  It returns the result (a tensor, or a
    tuple for an op of several outputs), whose dimension 0 counts the examples; or ``Same(result)``
    if it is the same for all.  All that a rule does, it does by ops (`run`): so the level outside
    may be another `vmap`, and what is recorded is recorded there.

    Most ops need no rule of their own: an elementwise op is known by its declaration, an op along
    a dimension by the name of its attribute (``kinds.py``).  An op that nothing is known of runs
    once for each example, with PyTorch's warning.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from clew.dispatch import apply
from clew.op import REGISTRY, Op
from clew.tensor import Tensor

Shape = tuple[int, ...]
Rule = Callable[[Op, "Call", dict[str, Any]], Any]

RULES: dict[str, Rule] = {}
"""Rules by the name of the op."""


class Same:
    """A result that does not depend on the example."""

    __slots__ = ("result",)

    def __init__(self, result: Any) -> None:
        self.result = result


class Call:
    """The inputs of one batched call of an op.

    Attributes:
        values: tensors of the level outside, numbers, or None.
        dims: for each, the dimension that counts examples; None if there is none.
        size: how many examples there are.
        randomness: what the `vmap` was told of random numbers.
    """

    __slots__ = ("dims", "randomness", "size", "values")

    def __init__(
        self, values: Sequence[Any], dims: Sequence[int | None], size: int, randomness: str
    ) -> None:
        self.values = list(values)
        self.dims = list(dims)
        self.size = size
        self.randomness = randomness

    def __len__(self) -> int:
        return len(self.values)

    def is_batched(self, i: int) -> bool:
        """Whether input `i` differs from example to example."""
        return self.dims[i] is not None

    def shape(self, i: int) -> Shape:
        """The shape of input `i` in one example; that of a number is ()."""
        value, dim = self.values[i], self.dims[i]
        if not isinstance(value, Tensor):
            return ()
        shape: Shape = tuple(value._array.shape)
        return shape if dim is None else shape[:dim] + shape[dim + 1 :]

    def ndim(self, i: int) -> int:
        """The number of dimensions of input `i` in one example."""
        return len(self.shape(i))

    def front(self, i: int) -> Any:
        """Input `i` with its examples along dimension 0; as it is if it has none."""
        value, dim = self.values[i], self.dims[i]
        return value if dim is None or dim == 0 else moved(value, dim, 0)

    def full(self, i: int) -> Any:
        """Input `i` with its examples along dimension 0, repeated (without a copy) if it has none.

        None stays None.
        """
        value = self.values[i]
        if value is None or self.dims[i] is not None:
            return self.front(i)
        if not isinstance(value, Tensor):
            value = run("full", self._some(), size=(), value=value)
        return run("expand", value, size=(self.size, *value._array.shape))

    def _some(self) -> Tensor:
        return next(x for x in self.values if isinstance(x, Tensor))

    def as_types(self, like: int, position: int) -> Call:
        """A call in which one input has the type of another."""
        values = list(self.values)
        values[position] = run("to_dtype", values[position], dtype=values[like].dtype)
        return Call(values, self.dims, self.size, self.randomness)


def run(name: str, *inputs: Any, **attrs: Any) -> Any:
    """Run an op by name; attributes that are not given have their defaults."""
    op = REGISTRY[name]
    return apply(op, inputs, {**op.default_attrs, **attrs})


def moved(x: Any, source: int, target: int) -> Any:
    """A view of `x` with one dimension moved."""
    order = [d for d in range(x._array.ndim) if d != source]
    order.insert(target, source)
    return run("permute", x, dims=tuple(order))


def reshaped(x: Any, *size: int) -> Any:
    """`x` under another shape, a view where its strides allow that."""
    return x if tuple(x._array.shape) == size else x.reshape(size)


def padded(x: Any, ndim: int) -> Any:
    """A tensor of examples with dimensions of size one put in, so that each has `ndim`."""
    shape = tuple(x._array.shape)
    missing = ndim - (len(shape) - 1)
    return x if missing <= 0 else run("view", x, size=(shape[0], *(1,) * missing, *shape[1:]))


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Decorate the batching rule of the ops of these names."""

    def declare(function: Rule) -> Rule:
        for name in names:
            RULES[name] = function
        return function

    return declare


def one_by_one(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Run the op once for each example and stack the results, with PyTorch's warning."""
    warnings.warn(
        "There is a performance drop because we have not yet implemented the batching rule for "
        f"aten::{op.label}. Please file us an issue on GitHub so that we can prioritize its "
        "implementation.",
        UserWarning,
        stacklevel=2,
    )
    return looped(op, call, attrs)


def looped(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Run the op once for each example and stack the results."""
    if call.size == 0:
        return _of_no_examples(op, call, attrs)
    rows = []
    for n in range(call.size):
        inputs = [
            x if dim is None else run("select", x, dim=dim, index=n)
            for x, dim in zip(call.values, call.dims)
        ]
        rows.append(apply(op, inputs, attrs))
    if isinstance(rows[0], tuple):
        return tuple(None if column[0] is None else stacked(column) for column in zip(*rows))
    return stacked(rows)


def _of_no_examples(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """The result for no examples: of the shape that zeros give, but empty."""
    inputs = [
        x if dim is None else run("full", x, size=call.shape(i), value=0)
        for i, (x, dim) in enumerate(zip(call.values, call.dims))
    ]
    result = apply(op, inputs, attrs)
    parts = result if isinstance(result, tuple) else (result,)
    empty = tuple(
        None if p is None else run("full", p, size=(0, *p._array.shape), value=0) for p in parts
    )
    return empty if isinstance(result, tuple) else empty[0]


def stacked(rows: Sequence[Any]) -> Any:
    """Tensors of one shape along a new dimension 0."""
    return apply(REGISTRY["stack"], tuple(rows), {"dim": 0})


def total(shape: Sequence[int]) -> int:
    """The number of elements of a tensor of this shape."""
    return math.prod(shape)
