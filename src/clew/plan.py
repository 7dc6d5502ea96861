"""What an op saves and which rules run, for one choice of inputs that require grad.

Layer 2: imports only `op`.  A `Plan` is worked out once for each op and mask (bit i set: input i
requires grad) and shared by all nodes of that kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from clew.op import Op, Rule

INPUT, OUTPUT, SHAPE, DTYPE, STRIDES, INPUTS, SHAPES, DTYPES = range(8)
"""Kinds of saved values; the plural ones are of all tensors of a variadic input."""

NOT_IMPLEMENTED = "torch::autograd::NotImplemented"
"""The node of an op whose derivative PyTorch does not have."""

_SUFFIXES = (("_shape", SHAPE, SHAPES), ("_dtype", DTYPE, DTYPES))


class Save(NamedTuple):
    """One value that a node keeps: what kind, of which input or output, under which name."""

    kind: int
    index: int  # type: ignore[assignment]  # a field, not tuple's method
    name: str


class Call(NamedTuple):
    """One rule to run.

    Attributes:
        rule: the rule.
        function: what it calls.
        attrs: the attributes that it takes.
        edges: the edges of the node that it serves.
        required: for each of them, whether its input requires grad.
        arguments: where its arguments stand among the saved values.
    """

    rule: Rule
    function: Callable[..., Any]
    attrs: tuple[str, ...]
    edges: tuple[int, ...]
    required: tuple[bool, ...]
    arguments: tuple[int, ...]


class Plan:
    """The saves and calls of an op for one mask and number of inputs.

    Attributes:
        inputs: the inputs that a node of this op has edges for: those with a rule; of a
            `NotImplemented` node, of these only those that require grad.
        saves_by_edge: whether what is saved depends on which inputs have an edge.  PyTorch does
            not ask where there is one gradient only, or a list of them.
        saves: what to keep.
        places: their kinds and indices, in tuples that are quick to take apart.
        calls: which rules to run.
        packings: how less is kept of what may be packed, by position among the saves.
        plain_calls: for each call its function, edge, arguments (None: all that is saved, in order)
            and attributes; None if a rule is one of several inputs or outputs.
        holds_tensors: whether a tensor is among what is kept.
        mixes: whether the op is elementwise and one is: what the rules combine may lie differently
            in memory.
        saves_first_input: whether the first input is (an in-place twin must copy it first).
        metas: by shape, the metas of nodes of one output, so that they are shared.
        zeros: a 0 for each edge; see Note [Flat edges].
    """

    __slots__ = ("calls", "holds_tensors", "inputs", "metas", "mixes", "packings", "places",
                 "plain_calls", "saves", "saves_by_edge", "saves_first_input", "zeros")  # fmt: skip

    def __init__(self, op: Op, mask: int, count: int) -> None:
        rules = dict.fromkeys(rule for name, rule in op.rules.items() if name != op.without)
        served = {rule: _served_inputs(op, rule, count) for rule in rules}
        self.inputs = tuple(sorted(i for inputs in served.values() for i in inputs))
        # `set_` has a formula in PyTorch, which says that there is none; the others have no entry.
        undeclared = op.node_name == NOT_IMPLEMENTED and op.name != "replaced_memory"
        self.saves_by_edge = len(self.inputs) > 1 and not op.variadic_input and not undeclared
        if undeclared:
            self.inputs = tuple([i for i in self.inputs if mask >> i & 1])
            served = {r: tuple([i for i in s if mask >> i & 1]) for r, s in served.items()}
        self.metas: dict[tuple[int, ...], Any] = {}
        self.zeros = (0,) * len(self.inputs)
        required = {rule: tuple(bool(mask >> i & 1) for i in served[rule]) for rule in rules}
        needed = [rule for rule in rules if any(required[rule])]
        saves = {_resolve(op, name) for rule in needed for name in rule.names}
        saves |= {_resolve(op, name) for name in kept_in_any_case(op)}
        # PyTorch saves by name, inputs before the forward and outputs after it.
        self.saves = tuple(sorted(saves, key=lambda save: (save.kind == OUTPUT, save.name)))
        self.places = tuple([(save.kind, save.index) for save in self.saves])
        self.packings = {
            i: op.packings[save.name] for i, save in enumerate(self.saves)
            if save.name in op.packings and not _needs_values(op, save.name, mask)
        }  # fmt: skip
        calls: list[Call] = []
        for rule in needed:
            positions = tuple(self.saves.index(_resolve(op, name)) for name in rule.names)
            edges = tuple(self.inputs.index(i) for i in served[rule])
            calls.append(Call(rule, rule.function, rule.attrs, edges, required[rule], positions))
        # PyTorch runs a node's rules in the order of their inputs' names.
        self.calls = tuple(sorted(calls, key=lambda call: call.rule.targets))
        self.plain_calls = _plain_calls(self.calls, len(self.saves))
        self.holds_tensors = any(s.kind in (INPUT, OUTPUT, INPUTS) for s in saves)
        self.mixes = self.holds_tensors and bool(op.domain or op.promote or op.mixes)
        self.saves_first_input = any(s.kind == INPUT and s.index == 0 for s in saves)


def _needs_values(op: Op, name: str, mask: int) -> bool:
    """Whether what may be packed is needed as it is, for the gradient of another input."""
    other = op.packings[name].unless
    return bool(other) and bool(mask >> op.inputs.index(other) & 1)


def kept_in_any_case(op: Op) -> list[str]:
    """What several gradients need: PyTorch keeps it whichever of them are asked for."""
    uses = Counter(
        name for rule in dict.fromkeys(op.rules.values()) for name in rule.names
        for _ in range(2 if len(rule.targets) > 1 else 1)
    )  # fmt: skip
    return [name for name, count in uses.items() if count > 1]


PlainCall = tuple[Callable[..., Any], int, tuple[int, ...] | None, tuple[str, ...]]


def _plain_calls(calls: Sequence[Call], saved: int) -> tuple[PlainCall, ...] | None:
    found = []
    for rule, function, attrs, edges, _, arguments in calls:
        if rule.joint or rule.all_grads:
            return None
        whole = arguments == tuple(range(saved))
        found.append((function, edges[0], None if whole else arguments, attrs))
    return tuple(found)


def _served_inputs(op: Op, rule: Rule, count: int) -> tuple[int, ...]:
    indices: list[int] = []
    for target in rule.targets:
        index = op.inputs.index(target)
        if _is_variadic(op, index):
            indices.extend(range(index, count))
        else:
            indices.append(index)
    return tuple(indices)


def _resolve(op: Op, name: str) -> Save:
    if name in op.inputs:
        index = op.inputs.index(name)
        return Save(INPUTS if _is_variadic(op, index) else INPUT, index, name)
    if name in op.outputs:
        return Save(OUTPUT, op.outputs.index(name), name)
    if name.endswith("_strides") and name.removesuffix("_strides") in op.inputs:
        return Save(STRIDES, op.inputs.index(name.removesuffix("_strides")), name)
    for suffix, one, many in _SUFFIXES:
        base = name.removesuffix(suffix)
        if base != name and base in op.inputs:
            index = op.inputs.index(base)
            return Save(many if _is_variadic(op, index) else one, index, name)
    raise ValueError(f"a rule of op {op.name} names {name!r}, which is no input or output of it")


def _is_variadic(op: Op, index: int) -> bool:
    return op.variadic_input and index == len(op.inputs) - 1


def plan_for(op: Op, mask: int, count: int) -> Plan:
    """The plan of `op` for `mask`, from the op's cache."""
    key = (mask, count) if op.variadic_input else mask
    plan = op.plans.get(key)
    if plan is None:
        plan = op.plans[key] = Plan(op, mask, count)
    return plan
