"""The recorder itself: what it prints, that it replays, and that it sees what rules must not do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clew  # noqa: F401  (fills the registry)
from clew.op import REGISTRY, Rule
from ops.recorder import RuleError, record

X = np.array([[1.0, 2.0], [3.0, 4.0]])
Y = np.array([[5.0, 6.0], [7.0, 8.0]])


def rule(function: Any) -> Rule:
    return Rule(function, ("self",), "example")


def test_prints_equations() -> None:
    trace = record(
        rule(lambda F, grad, self, *, dim: F.sum(-grad * self, dim, keepdim=True) / 2),
        [X], [Y], {"dim": 1},
    )  # fmt: skip
    assert str(trace).splitlines() == [
        "example.grad[self](grad, self)",
        "    t0 = neg(grad)",
        "    t1 = mul(t0, self)",
        "    t2 = sum(t1, dim=1, keepdim=True)",
        "    t3 = div(t2, 2)",
        "    return t3",
    ]


def test_replays_on_other_values() -> None:
    trace = record(rule(lambda F, grad, self: F.where(self > 2, 1 - grad, 0)), [X], [Y], {})
    (result,) = trace.replay({"grad": Y, "self": X})
    np.testing.assert_array_equal(result, [[0, 0], [-6, -7]])


def test_several_outputs_inputs_and_gradients() -> None:
    def of_both(F: Any, grads: Any, tensors: Any, *, need: Any) -> Any:
        first, second = F.unbind(grads[1], 0)
        return [first * tensors[0] if need[0] else None, second if need[1] else None]

    trace = record(rule(of_both), [None, X], [(Y[0], Y[1])], {}, need=[True, False])
    assert trace.arguments == ["grad1", "tensors0", "tensors1"]
    assert trace.results == ["t2", None]
    np.testing.assert_array_equal(
        trace.replay({"grad1": X, "tensors0": Y[0], "tensors1": Y[1]})[0], [5, 12]
    )


VIOLATIONS = {
    "bool": (lambda F, grad, self: grad if self else -grad, "looks at a value: bool"),
    "comparison": (lambda F, grad, self: grad if self == 0 else -grad, "looks at a value: bool"),
    "float": (lambda F, grad, self: grad * float(self), "looks at a value: float"),
    "int": (lambda F, grad, self: grad * int(self), "looks at a value: int"),
    "index": (lambda F, grad, self: F.select(grad, 0, range(2)[self]), "looks at a value: index"),
    "asarray": (lambda F, grad, self: grad * np.asarray(self), "gives a value to NumPy"),
    "ufunc": (lambda F, grad, self: np.exp(grad), "gives a value to NumPy"),
    "function": (lambda F, grad, self: np.sum(grad), "gives a value to NumPy"),
    "iteration": (lambda F, grad, self: next(iter(grad)), "takes a value apart"),
    "item": (lambda F, grad, self: grad[0], "takes a value apart"),
    "in place": (lambda F, grad, self: grad.__iadd__(self), "in place"),
    "write": (lambda F, grad, self: grad.__setitem__(0, 1), "writes to a value"),
    "own array": (lambda F, grad, self: F.mul(grad, X), "a value of its own: ndarray"),
    "operand": (lambda F, grad, self: grad * X, "a value of its own: ndarray"),
    "attribute": (lambda F, grad, self: F.full(grad, size=(2,), value=self), "attribute 'value'"),
    "no op": (lambda F, grad, self: F.no_such_op(grad), "no op named 'no_such_op'"),
    "method": (lambda F, grad, self: grad.sum(), "no attribute 'sum'"),
    "number": (lambda F, grad, self: 0.0, "returns a float"),
}


@pytest.mark.parametrize("name", VIOLATIONS)
def test_sees_what_rules_must_not_do(name: str) -> None:
    function, reason = VIOLATIONS[name]
    with pytest.raises(RuleError, match=r"^example\.grad\[self\]: ") as caught:
        record(rule(function), [X], [Y], {})
    assert reason in str(caught.value)


def test_the_example_of_the_module() -> None:
    trace = record(REGISTRY["mul"].rules["self"], [X], [Y], {})
    assert str(trace) == "mul.grad[self](grad, other)\n    t0 = mul(grad, other)\n    return t0"
