"""Run samples: values, gradients, finite differences, the saved values of a node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import clew
from clew.autograd.algebra import ARRAY
from clew.autograd.forward_ad import dual_level, make_dual, unpack_dual
from clew.autograd.node import OpNode
from clew.dispatch import apply
from clew.op import Op
from clew.plan import Call
from clew.tensor import Tensor
from ops.samples import Sample

STEP = 1e-6
"""Of finite differences, whose error is then about 1e-9 for values near one."""


def tensors(sample: Sample, leaves: Sequence[int] = ()) -> list[Any]:
    """The inputs as tensors on the sample's own arrays; those in `leaves` require grad."""
    return [
        Tensor._from_array(x, i in leaves) if isinstance(x, np.ndarray) else x
        for i, x in enumerate(sample.inputs)
    ]


def call(op: Op, sample: Sample, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """The outputs, always a tuple."""
    found = apply(op, inputs, sample.fresh_attrs())
    return found if isinstance(found, tuple) else (found,)


def values(op: Op, sample: Sample) -> tuple[Any, ...]:
    """The outputs as arrays, None where there is none."""
    with clew.no_grad():
        outputs = call(op, sample, tensors(sample))
    return tuple(None if o is None else o._array for o in outputs)


def directions(arrays: Sequence[Any], seed: int) -> list[np.ndarray]:
    """A random array of the type and shape of each."""
    rng = np.random.default_rng(seed)
    units = [
        np.exp(1j * rng.uniform(-np.pi, np.pi, a.shape)) if a.dtype.kind == "c"
        else rng.choice([-1, 1], a.shape)
        for a in arrays
    ]  # fmt: skip
    return [
        np.asarray(rng.uniform(0.5, 1.5, a.shape) * unit).astype(a.dtype)
        for a, unit in zip(arrays, units)
    ]


def moved(sample: Sample, leaves: Sequence[int], tangents: Sequence[Any], step: float) -> Sample:
    """The sample with its inputs `leaves` moved along `tangents`."""
    inputs = list(sample.inputs)
    for i, tangent in zip(leaves, tangents):
        inputs[i] = np.asarray(inputs[i] + step * tangent)
    return replace(sample, inputs=tuple(inputs))


class Backward:
    """One call and its gradients.

    Attributes:
        inputs: the tensors of the call.
        leaves: those that require grad.
        outputs: the outputs that require grad.
        places: their positions among all outputs.
        cotangents: the gradients that backward starts from.
    """

    def __init__(
        self, op: Op, sample: Sample, leaves: Sequence[int], cotangents: Any = None
    ) -> None:
        self.inputs = tensors(sample, leaves)
        self.leaves = [self.inputs[i] for i in leaves]
        outputs = call(op, sample, self.inputs)
        self.places = [i for i, o in enumerate(outputs) if o is not None and o.requires_grad]
        self.outputs = [outputs[i] for i in self.places]
        arrays = [o._array for o in self.outputs]
        self.cotangents = [
            Tensor._from_array(c)
            for c in (directions(arrays, seed=1) if cotangents is None else cotangents)
        ]

    def grads(self, *, create_graph: bool = False) -> list[Any]:
        """The gradients of the leaves as tensors; None where the rule gives none."""
        return list(
            clew.autograd.grad(
                self.outputs,
                self.leaves,
                self.cotangents,
                retain_graph=True,
                create_graph=create_graph,
                allow_unused=True,
            )
        )


class Forward:
    """One call on dual tensors.

    Attributes:
        outputs: the outputs.
        tangents: their tangents as arrays, None where there is none.
    """

    def __init__(
        self, op: Op, sample: Sample, leaves: Sequence[int], tangents: Sequence[np.ndarray]
    ) -> None:
        with clew.no_grad(), dual_level():
            inputs = tensors(sample)
            for i, tangent in zip(leaves, tangents):
                inputs[i] = make_dual(inputs[i], Tensor._from_array(tangent))
            self.outputs = call(op, sample, inputs)
            given = [None if o is None else unpack_dual(o).tangent for o in self.outputs]
        self.tangents = [None if t is None else t._array for t in given]


def inner(grads: Sequence[Any], arrays: Sequence[np.ndarray]) -> float:
    """The inner product of gradients (None is zero) with arrays of their shapes.

    Complex numbers count as the pairs of real ones that they are.
    """
    return sum(_inner(g._array, a) for g, a in zip(grads, arrays) if g is not None)


def _inner(gradient: np.ndarray, array: np.ndarray) -> float:
    return float(np.sum(np.conjugate(gradient) * array).real)


def slope(
    op: Op, sample: Sample, leaves: Sequence[int], tangents: Sequence[Any]
) -> list[np.ndarray | None]:
    """The derivative of each floating output along `tangents`, by finite differences."""
    ahead = values(op, moved(sample, leaves, tangents, STEP))
    behind = values(op, moved(sample, leaves, tangents, -STEP))
    return [
        # What is infinite on both sides does not change.
        np.subtract(a, b, out=np.zeros_like(a), where=a != b) / (2 * STEP)
        if a is not None and a.dtype.kind in "fc"
        else None
        for a, b in zip(ahead, behind)
    ]


def assert_close(found: Any, expected: Any, what: str, tolerance: float = 1e-6) -> None:
    """Assert that two arrays agree, relative to the size of their elements or to one."""
    np.testing.assert_allclose(found, expected, tolerance, tolerance, err_msg=what)


def nodes_rules(
    op: Op, sample: Sample, leaves: Sequence[int]
) -> tuple[OpNode, list[tuple[Call, list[Any], dict[str, Any], list[bool]]]]:
    """The node of a call, and for each rule to run: saved values, attributes, what is needed."""
    backward = Backward(op, sample, leaves)
    node = backward.outputs[0].grad_fn
    assert isinstance(node, OpNode)
    saved = ARRAY.values(node.saved, node)
    return node, [
        (
            one,
            [saved[i] for i in one.arguments],
            {name: node.attrs[name] for name in one.attrs},
            list(one.required),
        )
        for one in node.plan.calls
    ]
