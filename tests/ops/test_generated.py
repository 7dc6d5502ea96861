"""The tests that every op gets from its declaration, one for each op and sample.

``pytest tests/ops -k "softplus"`` runs those of one op.  The samples are in ``samples.py`` and
beside it.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import clew
from clew.autograd.algebra import ARRAY
from clew.autograd.forward_ad import dual_level, make_dual, unpack_dual
from clew.autograd.node import OpNode
from clew.dispatch import apply_inplace
from clew.op import Op
from clew.plan import INPUT, INPUTS, kept_in_any_case
from ops.calls import (
    Backward,
    Forward,
    assert_close,
    call,
    directions,
    inner,
    moved,
    nodes_rules,
    slope,
    tensors,
    values,
)
from ops.recorder import record
from ops.samples import (
    DOMAINS,
    Sample,
    case_id,
    declared_for,
    differentiable,
    in_dtype,
    load,
    scattered,
)

OPS = load()


def cases(wanted: Callable[[Op, Sample], bool]) -> Any:
    """Parametrise a test by the samples of all ops for which `wanted` holds."""
    chosen = [(op, s) for op, found in OPS.values() for s in found if wanted(op, s)]
    return pytest.mark.parametrize("op, sample", chosen, ids=[case_id(*case) for case in chosen])


def has_gradient(op: Op, sample: Sample) -> bool:
    return bool(differentiable(op, sample)) and not sample.refuses


def has_derivative(op: Op, sample: Sample) -> bool:
    return has_gradient(op, sample) and not sample.convention


def is_real(op: Op, sample: Sample) -> bool:
    """Whether no complex number comes in or out."""
    arrays = [x for x in (*sample.inputs, *values(op, sample)) if isinstance(x, np.ndarray)]
    return all(x.dtype.kind != "c" for x in arrays)


# -- the samples themselves


def test_every_op_has_samples() -> None:
    assert [name for name, (_, found) in OPS.items() if not found] == []


def test_samples_are_of_ops() -> None:
    assert declared_for() - OPS.keys() == set()


def test_domains_are_known() -> None:
    unknown = {n: op.domain for n, (op, _) in OPS.items() if op.domain not in {None, *DOMAINS}}
    assert unknown == {}, "see Note [Domains] in clew/op.py"


# -- forward


@cases(lambda op, sample: True)
def test_forward(op: Op, sample: Sample) -> None:
    """The same call gives the same, and leaves its inputs alone."""
    before = [x.copy() if isinstance(x, np.ndarray) else x for x in sample.inputs]
    first, second = values(op, sample), values(op, sample)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)
    for x, old in zip(sample.inputs, before):
        np.testing.assert_array_equal(x, old)


@cases(lambda op, sample: not sample.laid_out)
def test_memory(op: Op, sample: Sample) -> None:
    """How the inputs lie in memory changes neither values nor gradients."""
    spread = scattered(sample)
    for a, b in zip(values(op, sample), values(op, spread), strict=True):
        if a is not None:
            assert_close(b, a, "value", 1e-12)
    if has_gradient(op, sample):
        leaves = differentiable(op, sample)
        plain, other = (Backward(op, s, leaves).grads() for s in (sample, spread))
        for a, b in zip(plain, other, strict=True):
            if a is not None:
                assert_close(b._array, a._array, "gradient", 1e-12)


# -- derivatives


@cases(has_gradient)
def test_first_order(op: Op, sample: Sample) -> None:
    """Rules on arrays agree with finite differences, and with the same rules on tensors."""
    leaves = differentiable(op, sample)
    backward = Backward(op, sample, leaves)
    grads = backward.grads()
    for i, g in zip(leaves, grads):
        if g is not None:
            assert g._array.shape == sample.inputs[i].shape
            assert g._array.dtype == sample.inputs[i].dtype
    for g, h in zip(grads, backward.grads(create_graph=True), strict=True):
        if g is not None:
            assert_close(h._array, g._array, "through tensors", 1e-12)
    if sample.convention:
        return
    tangents = directions([sample.inputs[i] for i in leaves], seed=2)
    if not any(t.size for t in tangents):
        return
    slopes = slope(op, sample, leaves, tangents)
    expected = inner(backward.cotangents, [np.asarray(slopes[p]) for p in backward.places])
    assert_close(inner(grads, tangents), expected, "finite differences")


@cases(lambda op, sample: has_derivative(op, sample) and not sample.once)
def test_second_order(op: Op, sample: Sample) -> None:
    """The gradient's own gradient, in inputs and cotangents, agrees with finite differences."""
    leaves = differentiable(op, sample)
    backward = Backward(op, sample, leaves)
    for c in backward.cotangents:
        c.requires_grad_()
    weights = directions([x._array for x in backward.leaves], seed=3)
    grads = backward.grads(create_graph=True)
    recorded = [
        (g, clew.Tensor._from_array(w))
        for g, w in zip(grads, weights)
        if g is not None and g.requires_grad
    ]
    wanted = [*backward.leaves, *backward.cotangents]
    tangents = directions([x._array for x in wanted], seed=4)
    second: list[Any] = [None] * len(wanted)
    if recorded:
        second = list(
            clew.autograd.grad(
                [g for g, _ in recorded], wanted, [w for _, w in recorded], allow_unused=True
            )
        )

    def gradient_along(step: float) -> float:
        count = len(leaves)
        there = moved(sample, leaves, tangents[:count], step)
        cotangents = [
            np.asarray(c._array + step * t)
            for c, t in zip(backward.cotangents, tangents[count:], strict=True)
        ]
        return inner(Backward(op, there, leaves, cotangents).grads(), weights)

    step = 1e-6
    expected = (gradient_along(step) - gradient_along(-step)) / (2 * step)
    assert_close(inner(second, tangents), expected, "finite differences")


@cases(lambda op, sample: bool(sample.refuses))
def test_refuses_to_be_differentiated(op: Op, sample: Sample) -> None:
    backward = Backward(op, sample, differentiable(op, sample))
    with pytest.raises((RuntimeError, NotImplementedError), match=re.escape(sample.refuses)):
        backward.grads()


# -- rules


@cases(has_gradient)
def test_rules_are_recorded(op: Op, sample: Sample) -> None:
    """Rules run on symbols, and what they record gives what they give, on other values too."""
    node, rules = nodes_rules(op, sample, differentiable(op, sample))
    metas = [None if i in op.no_grad_outputs else meta for i, meta in enumerate(node.metas)]
    grads = [None if m is None else directions([np.empty(*m)], 5)[0] for m in metas]
    for one, saved, attrs, need in rules:
        trace = record(one.rule, grads, saved, attrs, need if one.rule.joint else None)
        for factor in (1, 1.015625):
            other_grads = [_scaled(g, factor) for g in grads]
            other = [_scaled(value, factor) for value in saved]
            expected = _run_rule(one.rule, other_grads, other, attrs, need)
            found = trace.replay(_arguments(one.rule, other_grads, other))
            for a, b in zip(found, expected, strict=True):
                assert (a is None) == (b is None), str(trace)
                if a is not None:
                    assert_close(a, b, str(trace), 1e-12)


def _scaled(value: Any, factor: float) -> Any:
    if isinstance(value, tuple):
        return tuple(_scaled(v, factor) for v in value)
    if not (isinstance(value, np.ndarray) and value.dtype.kind in "fc"):
        return value
    return np.asarray(value * factor)


def _run_rule(rule: Any, grads: Any, saved: Any, attrs: Any, need: Any) -> list[Any]:
    incoming = grads if rule.all_grads else grads[0]
    named = {**attrs, "need": need} if rule.joint else attrs
    with np.errstate(all="ignore"):
        found = rule.function(ARRAY.namespace, incoming, *saved, **named)
    return list(found) if rule.joint else [found]


def _arguments(rule: Any, grads: Any, saved: Any) -> dict[str, np.ndarray]:
    """The arrays that a rule is given, by the recorder's names."""
    named: list[tuple[str, Any]] = (
        [(f"grad{i}", g) for i, g in enumerate(grads)] if rule.all_grads else [("grad", grads[0])]
    )
    for name, value in zip(rule.names, saved):
        if isinstance(value, tuple):
            named += [(f"{name}{i}", v) for i, v in enumerate(value)]
        else:
            named.append((name, value))
    return {name: value for name, value in named if isinstance(value, np.ndarray)}


# -- what a node keeps


def _masks(leaves: list[int]) -> Iterator[list[int]]:
    """Each alone, and all together."""
    yield from ([i] for i in leaves)
    if len(leaves) > 1:
        yield leaves


@cases(lambda op, sample: bool(differentiable(op, sample)))
def test_saves_what_its_rules_name(op: Op, sample: Sample) -> None:
    assert all(o is None or o.grad_fn is None for o in call(op, sample, tensors(sample)))
    last = len(op.inputs) - 1
    for leaves in _masks(differentiable(op, sample)):
        node = Backward(op, sample, leaves).outputs[0].grad_fn
        assert isinstance(node, OpNode)
        rules = {op.rules[op.inputs[min(i, last)]] for i in leaves}
        named = {n for r in rules for n in r.names} | set(kept_in_any_case(op))
        assert {save.name for save in node.plan.saves} == named


@cases(lambda op, sample: bool(differentiable(op, sample)))
def test_lets_go_of_everything_else(op: Op, sample: Sample) -> None:
    """Inputs that no rule names die with the user's own references."""
    leaves = differentiable(op, sample)
    inputs = tensors(sample, leaves)
    for i in leaves:
        inputs[i] = inputs[i] * 1  # an input that no leaf keeps alive
    memory = {i: weakref.ref(inputs[i]._array) for i in leaves}
    outputs = call(op, sample, inputs)
    node = next(o for o in outputs if o is not None and o.requires_grad).grad_fn
    del inputs, outputs
    saves = node.plan.saves
    kept = {s.index for s in saves if s.kind == INPUT}
    tail = min((s.index for s in saves if s.kind == INPUTS), default=len(sample.inputs))
    alive = {i for i, ref in memory.items() if ref() is not None}
    assert alive == {i for i in leaves if i in kept or i >= tail}


# -- types


@pytest.mark.parametrize("target", [clew.float32, clew.float16, clew.bfloat16], ids=str)
@cases(lambda op, sample: has_gradient(op, sample) and is_real(op, sample))
def test_types(op: Op, sample: Sample, target: Any) -> None:
    """Results and gradients have the type of the inputs, and nothing is computed in a wider one."""
    narrow = in_dtype(sample, target)
    try:
        values(op, narrow)
    except RuntimeError:  # the op has no kernel for this type
        assert target is not clew.float32
        return
    backward = Backward(op, narrow, differentiable(op, sample))
    if "dtype" not in sample.attrs or sample.attrs["dtype"] is None:
        assert {o.dtype for o in backward.outputs} == {target}
    assert {g.dtype for g in backward.grads() if g is not None} <= {target}


@cases(lambda op, sample: has_gradient(op, sample) and is_real(op, sample))
def test_rules_keep_single_precision(op: Op, sample: Sample) -> None:
    narrow = in_dtype(sample, clew.float32)
    node, rules = nodes_rules(op, narrow, differentiable(op, narrow))
    metas = [None if i in op.no_grad_outputs else meta for i, meta in enumerate(node.metas)]
    grads = [None if m is None else np.ones(*m) for m in metas]
    is_double = grads[0] is not None and grads[0].dtype == np.float64
    for one, saved, attrs, need in rules:
        for result in _run_rule(one.rule, grads, saved, attrs, need):
            assert is_double or result is None or result.dtype != np.float64


# -- in place


def fits_in_place(op: Op, sample: Sample) -> bool:
    """Whether the result can be written into the first input."""
    target = sample.inputs[0]
    return bool(op.inplace) and isinstance(target, np.ndarray) and (
        np.shape(values(op, sample)[0]) == target.shape
    )  # fmt: skip


@cases(fits_in_place)
def test_in_place(op: Op, sample: Sample) -> None:
    """The twin gives the value and the gradients of the op itself."""
    leaves = differentiable(op, sample)
    target, *others = tensors(sample, leaves)
    written = target.clone()
    apply_inplace(op, written, others, sample.fresh_attrs())
    (expected,) = values(op, sample)
    assert_close(written._array, expected.astype(written._array.dtype), "value", 1e-14)
    assert target._version == 0
    assert written._version == 1
    if not has_gradient(op, sample):
        return
    backward = Backward(op, sample, leaves)
    found = clew.autograd.grad(
        written, [([target, *others])[i] for i in leaves], backward.cotangents, allow_unused=True
    )
    for a, b in zip(found, backward.grads(), strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert_close(a._array, b._array, "gradient", 1e-12)


# -- forward mode


def has_tangents(op: Op, sample: Sample) -> bool:
    return op.jvp is not None and has_gradient(op, sample) and not sample.once


@cases(has_tangents)
def test_tangents(op: Op, sample: Sample) -> None:
    """Tangents are the slopes of finite differences, and belong to the gradients: the inner product
    of a tangent with what backward starts from is that of the gradients with the inputs' tangents.

    Where the gradient is a convention, tangents keep to it, but for ops that have rules of their
    own for them.
    """
    leaves = differentiable(op, sample)
    tangents = directions([sample.inputs[i] for i in leaves], seed=6)
    found = Forward(op, sample, leaves, tangents)
    backward = Backward(op, sample, leaves)
    for nr, (out, t) in enumerate(zip(found.outputs, found.tangents, strict=True)):
        assert (t is not None) == (nr in backward.places), f"output {nr}"
        if t is not None:
            assert (t.shape, t.dtype) == (out._array.shape, out._array.dtype)
    given: list[Any] = [found.tangents[p] for p in backward.places]
    own = op.jvp == "linear" or callable(op.jvp)
    narrow = any(t.dtype.itemsize < 8 for t in given)
    if not (sample.convention and own) and any(t.size for t in tangents):
        products = inner(backward.cotangents, given), inner(backward.grads(), tangents)
        assert_close(*products, "gradients", 1e-6 if narrow else 1e-9)
    if not sample.convention or (op.jvp == "linear" and not narrow):
        for a, b in zip(found.tangents, slope(op, sample, leaves, tangents), strict=True):
            if a is not None and b is not None:
                assert_close(a, b, f"jvp={op.jvp!r}")


@cases(lambda op, sample: has_tangents(op, sample) and len(differentiable(op, sample)) > 1)
def test_tangents_of_each_input(op: Op, sample: Sample) -> None:
    """The tangents of the inputs act alone, and their effects add up."""
    leaves = differentiable(op, sample)
    tangents = directions([sample.inputs[i] for i in leaves], seed=6)
    together = Forward(op, sample, leaves, tangents).tangents
    alone = [Forward(op, sample, [i], [t]).tangents for i, t in zip(leaves, tangents)]
    for whole, *parts in zip(together, *alone, strict=True):
        if whole is not None:
            assert_close(sum(parts), whole, "sum", 1e-9)


@cases(lambda op, sample: fits_in_place(op, sample) and has_tangents(op, sample))
def test_tangents_in_place(op: Op, sample: Sample) -> None:
    """The twin gives the tangent of the op itself, into that of what it writes to."""
    leaves = differentiable(op, sample)
    tangents = directions([sample.inputs[i] for i in leaves], seed=6)
    expected = Forward(op, sample, leaves, tangents).tangents[0]
    with clew.no_grad(), dual_level():
        inputs = [x.clone() if isinstance(x, clew.Tensor) else x for x in tensors(sample)]
        own = None
        for i, tangent in zip(leaves, tangents):
            given = clew.Tensor._from_array(tangent)
            inputs[i] = make_dual(inputs[i], given)
            own = unpack_dual(inputs[i]).tangent if i == 0 else own
        apply_inplace(op, inputs[0], inputs[1:], sample.fresh_attrs())
        found: Any = unpack_dual(inputs[0]).tangent
        assert own is None or found is own
        assert_close(found._array, expected, "tangent", 1e-12)


REVERSE_ONLY = {"grid_sampler_2d", "grid_sampler_3d"}
"""Ops whose backward has no rule for tangents: its own backward has no derivative."""


@cases(
    lambda op, sample: (
        has_tangents(op, sample) and not sample.convention and op.name not in REVERSE_ONLY
    )
)
def test_tangents_of_gradients(op: Op, sample: Sample) -> None:
    """Forward over reverse mode gives what reverse over reverse mode gives."""
    leaves = differentiable(op, sample)
    tangents = directions([sample.inputs[i] for i in leaves], seed=7)
    weights = directions([sample.inputs[i] for i in leaves], seed=8)
    with dual_level():
        backward = Backward(op, sample, leaves)
        for i, leaf, tangent in zip(leaves, backward.leaves, tangents):
            backward.inputs[i] = make_dual(leaf, clew.Tensor._from_array(tangent))
        outputs = call(op, sample, backward.inputs)
        grads = clew.autograd.grad(
            [outputs[p] for p in backward.places], backward.leaves, backward.cotangents,
            allow_unused=True,
        )  # fmt: skip
        found = [None if g is None else unpack_dual(g).tangent for g in grads]
    backward = Backward(op, sample, leaves)
    grads = backward.grads(create_graph=True)
    pairs = [
        (g, clew.Tensor._from_array(w))
        for g, w in zip(grads, weights)
        if g is not None and g.requires_grad
    ]
    second: Any = [None] * len(leaves)
    if pairs:
        roots, given = zip(*pairs)
        second = clew.autograd.grad(roots, backward.leaves, given, allow_unused=True)
    assert_close(inner(found, weights), inner(second, tangents), "reverse over reverse", 1e-9)


@cases(lambda op, sample: op.jvp is None and has_gradient(op, sample))
def test_refuses_tangents(op: Op, sample: Sample) -> None:
    leaves = differentiable(op, sample)
    tangents = directions([sample.inputs[i] for i in leaves], seed=6)
    with pytest.raises(NotImplementedError, match="Trying to use forward AD with"):
        Forward(op, sample, leaves, tangents)
