"""The generated tests catch what they are there for: each fails for an op with one fault."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import test_generated as generated

import clew
from clew.op import Op, parse_signature
from ops.recorder import RuleError
from ops.samples import Sample

X = np.array([[0.7, -0.3, 1.2], [0.4, 0.9, -1.1]])


def make(signature: str, forward: Callable[..., Any], **options: Any) -> Op:
    """An op that is in no registry."""
    return Op(parse_signature(signature), forward, options)


def square(**options: Any) -> Op:
    """A right one, in which to put faults."""
    rule = {"self": lambda F, grad, self: grad * (2 * self)}
    return make("square(self)", np.square, **{**rule, **options})


def _writes(x: np.ndarray) -> Any:
    x += 1
    return x * 2


def _by_memory(x: np.ndarray) -> Any:
    return np.ravel(x, order="K").reshape(x.shape)


def _write_other(x: np.ndarray) -> None:
    x *= 2


_numbers = itertools.count(1)


def _looks(F: Any, grad: Any, self: Any) -> Any:
    return grad * 2 * self if F.sum_all(self) > 0 else grad * self * 2


def _only_arrays(F: Any, grad: Any, self: Any) -> Any:
    return np.multiply(grad, self) * 2


FAULTS: dict[str, tuple[str, Op]] = {
    "writes to its input": ("test_forward", make("faulty(self)", _writes)),
    "gives something else each time": (
        "test_forward", make("faulty(self)", lambda x: x * next(_numbers))
    ),
    "depends on memory": ("test_memory", make("faulty(self)", _by_memory)),
    "wrong derivative": ("test_first_order", square(self=lambda F, grad, self: grad * self)),
    "gradient of another shape": (
        "test_first_order", square(self=lambda F, grad, self: F.sum_all(grad * 2 * self))
    ),
    "no gradient": ("test_first_order", square(self=lambda F, grad: None)),
    "rule of arrays only": ("test_first_order", square(self=_only_arrays)),
    "no second derivative": (
        "test_second_order", square(self=lambda F, grad, self: grad * 2 * F.cast_like(self, self))
    ),
    "rule looks at values": ("test_rules_are_recorded", square(self=_looks)),
    "rule uses NumPy": ("test_rules_are_recorded", square(self=_only_arrays)),
    "keeps more than it names": (
        "test_lets_go_of_everything_else",
        make("faulty(self)", lambda x: x[...], self=lambda F, grad, result: grad + 0 * result),
    ),
    "result in double precision": (
        "test_types",
        make("faulty(self)", lambda x: x.astype(float), self=lambda F, grad: grad),
    ),
    "rule in double precision": (
        "test_rules_keep_single_precision",
        make("faulty(self)", np.negative, self=lambda F, grad: grad * np.float64(-1)),
    ),
    "twin computes something else": (
        "test_in_place", make("faulty(self)", np.square, inplace=True, write=_write_other)
    ),
    "not linear": ("test_tangents", square(jvp="linear")),
    "not bilinear": (
        "test_tangents",
        make("faulty(self, other)", np.hypot, jvp="bilinear", self=lambda F, grad: grad,
             other=lambda F, grad: grad),
    ),
    "not elementwise": (
        "test_tangents",
        make("faulty(self)", lambda x: x.sum(0, keepdims=True) * np.ones_like(x),
             jvp="elementwise", self=lambda F, grad: grad),
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_fails_for(fault: str) -> None:
    name, op = FAULTS[fault]
    sample = Sample("usual", tuple(X + i for i in range(len(op.inputs))))
    more = (clew.float32,) if name == "test_types" else ()
    with pytest.raises((AssertionError, RuleError, RuntimeError, TypeError)):
        getattr(generated, name)(op, sample, *more)


def test_passes_for_an_op_without_fault() -> None:
    op, sample = square(jvp="elementwise", inplace=True), Sample("usual", (X,))
    for name in {name for name, _ in FAULTS.values()} - {"test_types"}:
        getattr(generated, name)(op, sample)
    generated.test_types(op, sample, clew.float32)


def test_names_the_rule() -> None:
    with pytest.raises(RuleError, match=r"^square\.grad\[self\]: looks at a value"):
        generated.test_rules_are_recorded(square(self=_looks), Sample("usual", (X,)))
