"""The tangents of an op's outputs, from its declaration.  Layer 4.

Note [Forward rules]
    An op says with ``jvp=`` how tangents go through it:

    - "linear": the op itself, on the tangents (zeros for an operand that has none);
    - "bilinear": the sum of the op with one operand at a time replaced by its tangent;
      "bilinear plus bias" if the operand `bias` is only added to that;
    - "elementwise": the rules of backward with the tangent in place of the gradient, for there a
      derivative is one number for each element (or a symmetric matrix, which will do too).  Rules
      are of the conjugate, so the tangent is conjugated on its way in and out.  Of functions of
      complex numbers this holds for those that have a complex derivative or a real result.
      What an op with a `domain` does if it says nothing;
    - a function, called like a rule: ``f(F, *arguments, **attributes)``, where an argument is an
      input or output by its name, or ``<input>_t``, the tangent of an input (None if it has none).
      It returns the tangent of the output, or a tuple of those of several;
    - "twice": the rules are applied twice.  ``v -> v J`` is what the rules compute.  That is
      linear in ``v``, and its own derivative sends tangents ``u`` to ``J u``.  What
      any other op does if it says nothing;
    - None: PyTorch has no rule, and there is an error that says so.

Rules run on Tensors, so tangents are recorded like everything else, and have tangents themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from clew.autograd.algebra import TENSOR
from clew.autograd.engine import run_backward
from clew.autograd.modes import enable_grad, inference_mode, state
from clew.dispatch import TENSORS, apply
from clew.errors import NoDerivativeError
from clew.op import Op
from clew.plan import DTYPE, DTYPES, INPUT, INPUTS, OUTPUT, SHAPE, SHAPES, STRIDES, Plan, plan_for
from clew.storage import element_strides
from clew.tensor import Tensor

Tangents = Sequence[Any]


def output_tangents(
    op: Op, inputs: Sequence[Any], outputs: Sequence[Any], attrs: dict[str, Any], tangents: Tangents
) -> list[Any]:
    """The tangent of each output, None where it has no derivative.

    Args:
        op: the op that ran.
        inputs: what it ran on, tensors and other things.
        outputs: its results; None is one that was not asked for.
        attrs: its attributes.
        tangents: those of the inputs, None where there is none.

    Raises:
        NotImplementedError: the op has no rule.
    """
    refuse_without_rule(op)
    has = [differentiable(op, nr, out) for nr, out in enumerate(outputs)]
    if not any(has):
        return [None] * len(outputs)
    kind = op.jvp
    if callable(kind):
        found = _by_function(op, inputs, outputs, attrs, tangents)
    else:
        found = _KINDS[kind.split()[0]](op, inputs, outputs, attrs, tangents)
    return [_fitted(t, out) if h else None for t, out, h in zip(found, outputs, has)]


def differentiable(op: Op, nr: int, out: Any) -> bool:
    """Whether output `nr` of an op has a derivative."""
    return out is not None and nr not in op.no_grad_outputs and out._array.dtype.kind in "fcV"


def refuse_without_rule(op: Op) -> None:
    """Raise if an op with a derivative has no rule for tangents, as some have none in PyTorch."""
    if op.jvp is None and op.rules:
        raise _no_rule(op)


def _no_rule(op: Op) -> NotImplementedError:
    return NotImplementedError(
        f"Trying to use forward AD with {op.label} that does not support it because it has not "
        "been implemented yet.\nPyTorch has no rule for it either. Use reverse mode "
        "(torch.autograd.grad) for this operation."
    )


def _linear(
    op: Op, inputs: Sequence[Any], outputs: Any, attrs: dict[str, Any], tangents: Tangents
) -> Any:
    last = len(op.inputs) - 1
    values = list(inputs)
    for i, (x, tangent) in enumerate(zip(inputs, tangents)):
        if tangent is not None:
            values[i] = tangent
        elif op.inputs[min(i, last)] in op.rules and x is not None:
            values[i] = TENSORS.zeros_like(x) if isinstance(x, Tensor) else 0
    found = apply(op, values, attrs)
    return found if isinstance(found, tuple) else (found,)


def _bilinear(
    op: Op, inputs: Sequence[Any], outputs: Any, attrs: dict[str, Any], tangents: Tangents
) -> Any:
    *_, addend = op.jvp.split()
    added = op.inputs.index(addend) if addend in op.inputs else None
    factors = [i for i, t in enumerate(tangents) if t is not None and i != added]
    values = list(inputs)
    if added is not None:
        values[added] = tangents[added]
        if not factors:  # the addend alone, next to a product with zeros
            factors = [next(i for i in range(len(inputs)) if i != added)]
            tangents = [TENSORS.zeros_like(x) if isinstance(x, Tensor) else x for x in inputs]
    total = None
    for i in factors:
        if added is not None and values[added] is None and inputs[added] is not None:
            values[added] = TENSORS.zeros_like(inputs[added])
        part = apply(op, [*values[:i], tangents[i], *values[i + 1 :]], attrs)
        total = part if total is None else TENSORS.add(total, part)
        if added is not None:
            values[added] = None
    return (total,)


def _elementwise(
    op: Op, inputs: Sequence[Any], outputs: Any, attrs: dict[str, Any], tangents: Tangents
) -> Any:
    plan = _plan(op, inputs, tangents)
    values = [_saved(save, inputs, outputs) for save in plan.saves]
    total = None
    for rule, function, names, edges, _, arguments in plan.calls:
        kept = [values[i] for i in arguments]
        named: dict[str, Any] = {name: attrs[name] for name in names}
        for position, edge in enumerate(edges):
            tangent = tangents[plan.inputs[edge]]
            if tangent is None:
                continue
            if rule.joint:
                named["need"] = [i == position for i in range(len(edges))]
            try:
                part = function(TENSORS, _conj(tangent), *kept, **named)
            except NoDerivativeError:
                raise _no_rule(op) from None
            part = part[position] if rule.joint else part
            if part is not None:
                total = _conj(part) if total is None else TENSORS.add(total, _conj(part))
    return (total,)


def _twice(
    op: Op, inputs: Sequence[Any], outputs: Any, attrs: dict[str, Any], tangents: Tangents
) -> Any:
    """The rules applied twice; see Note [Forward rules]."""
    recorded = state.now.grad_enabled
    with inference_mode(False), enable_grad():
        plan = _plan(op, inputs, tangents)
        values = [_usable(_saved(save, inputs, outputs)) for save in plan.saves]
        trials = [
            _trial(out) if differentiable(op, nr, out) else None for nr, out in enumerate(outputs)
        ]
        roots: list[Any] = []
        for part, i in _backward(plan, attrs, values, trials):
            tangent = tangents[i]
            if part is None or tangent is None or not part.requires_grad:
                continue
            meta = (tangent._array.shape, part._array.dtype)
            fitted = TENSOR.fit(part, meta, _Named(op), i)
            roots.append((fitted._gradient_edge(), _typed(tangent, meta[1])))
    edges = [t._gradient_edge() for t in trials if t is not None]
    found: list[Any] = [None] * len(edges)
    if roots:
        before, state.now.grad_enabled = state.now.grad_enabled, recorded
        try:
            found = run_backward(roots, TENSOR, keep_graph=True, accumulate=False, inputs=edges)
        finally:
            state.now.grad_enabled = before
    parts = iter(found)
    return [None if t is None else next(parts) for t in trials]


def _backward(
    plan: Plan, attrs: dict[str, Any], values: list[Any], grads: list[Any]
) -> list[tuple[Any, int]]:
    """(gradient, input) of each input that the plan serves."""
    found = []
    for rule, function, names, edges, required, arguments in plan.calls:
        kept = [values[i] for i in arguments]
        named = {name: attrs[name] for name in names}
        incoming = grads if rule.all_grads else grads[0]
        if incoming is None:
            continue
        if rule.joint:
            parts = function(TENSORS, incoming, *kept, **named, need=list(required))
        else:
            parts = (function(TENSORS, incoming, *kept, **named),)
        found += [(part, plan.inputs[edge]) for part, edge in zip(parts, edges)]
    return found


def _trial(out: Any) -> Any:
    """A gradient to try the rules with: any will do."""
    trial = TENSORS.zeros_like(out).detach()
    trial._requires_grad = True
    return trial


class _Named:
    """Stands in for the node in the message of a rule of the wrong shape."""

    def __init__(self, op: Op) -> None:
        self.op = op
        self.site = None

    def name(self) -> str:
        return self.op.node_name


def _by_function(
    op: Op, inputs: Sequence[Any], outputs: Sequence[Any], attrs: dict[str, Any], tangents: Tangents
) -> Any:
    code = op.jvp.__code__
    names = code.co_varnames[1 : code.co_argcount]
    named = code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]
    given = {f"{name}_t": t for name, t in zip(op.inputs, tangents)}
    given.update(zip(op.inputs, inputs))
    given.update(zip(op.outputs, outputs))
    found = op.jvp(TENSORS, *[given[name] for name in names], **{n: attrs[n] for n in named})
    return found if isinstance(found, tuple) else (found,)


_KINDS: dict[str, Callable[..., Any]] = {
    "linear": _linear, "bilinear": _bilinear, "elementwise": _elementwise, "twice": _twice,
}  # fmt: skip


# -- what rules are given, and what becomes of their results


def _plan(op: Op, inputs: Sequence[Any], tangents: Tangents) -> Plan:
    mask = sum(1 << i for i, tangent in enumerate(tangents) if tangent is not None)
    return plan_for(op, mask, len(inputs))


def _saved(save: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
    """The value that a rule asks for, as a Tensor or plain value."""
    kind, index, _ = save
    if kind == OUTPUT:
        return outputs[index]
    if kind in (INPUTS, SHAPES, DTYPES):
        rest = inputs[index:]
        if kind == INPUTS:
            return tuple(rest)
        return tuple(x._array.shape if kind == SHAPES else x.dtype for x in rest)
    x = inputs[index]
    if kind == INPUT:
        return x
    if not isinstance(x, Tensor):
        return () if kind == SHAPE else None
    if kind == SHAPE:
        return x._array.shape
    if kind == DTYPE:
        return x.dtype
    assert kind == STRIDES
    return element_strides(x._array)


def _usable(value: Any) -> Any:
    """A value that may be saved for backward: an inference tensor may not, its copy may."""
    if isinstance(value, tuple):
        return tuple(_usable(v) for v in value)
    if isinstance(value, Tensor) and value.is_inference():
        return TENSORS.clone(value, memory_format=None)
    return value


def _conj(x: Any) -> Any:
    return TENSORS.conj(x) if x._array.dtype.kind == "c" else x


def _typed(tangent: Any, dtype: np.dtype) -> Any:
    """A tangent in the type of what it is a tangent of."""
    if tangent._array.dtype == dtype:
        return tangent
    if tangent._array.dtype.kind == "c" and dtype.kind != "c":
        tangent = TENSORS.real(tangent)
    return TENSORS.to_dtype(tangent, dtype=dtype)


def _fitted(tangent: Any, out: Any) -> Any:
    """A tangent in the shape and type of the output; zeros if it does not depend on anything."""
    if tangent is None:
        return TENSORS.zeros_like(out)
    tangent = _typed(tangent, out._array.dtype)
    if tangent._array.shape != out._array.shape:
        tangent = TENSORS.expand(tangent, size=out._array.shape)
    return tangent
