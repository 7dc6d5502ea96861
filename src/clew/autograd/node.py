"""The nodes of the graph: plain data, and how each kind turns gradients into gradients.

Layer 3: imports ops and saved values; knows tensors only by their attributes.

Note [No cycles]
    A node points to the nodes of its inputs, never to its outputs, and a saved output is an alias
    without an edge.  A leaf holds its `AccumulateGrad` weakly, the node holds the leaf.  So
    dropping the last tensor of a graph frees it at once, without the garbage collector.

Note [Flat edges]
    Python's garbage collector walks a growing graph again and again, and what it walks are
    containers.  So an edge is no object: a node has the nodes that it leads to in one tuple and
    their output numbers in another, which for most nodes is a shared one of zeros; a tensor has
    its node and output number.  `edges` and `Tensor._edge` are made when somebody asks.
"""

from __future__ import annotations

import itertools
import re
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from numpy import ndarray

from clew.autograd.handles import Hooks, RemovableHandle, add_hook
from clew.autograd.modes import state
from clew.autograd.saved import (
    FIRST,
    Freed,
    PackedTensor,
    SavedTensor,
    SavedTuple,
    SavedViewOutput,
)
from clew.device import CPU, device
from clew.dtypes import dtype, of_numpy
from clew.errors import describe, spaced
from clew.op import NO_ATTRS, Op
from clew.plan import INPUT, NOT_IMPLEMENTED, Plan

_BACKWARD = re.compile(r"Backward(\d*)$")

next_sequence_nr = itertools.count().__next__
"""Nodes are numbered as they are made; the engine runs the highest ready number first."""

Edge = tuple["Node", int]
Meta = tuple[tuple[int, ...], Any]


class GradientEdge(NamedTuple):
    """The place in the graph where a gradient arrives: output `output_nr` of `node`.

    The third field is PyTorch's, whose nodes need it to stay alive; clew's do not.
    """

    node: Node
    output_nr: int
    ownership_token: Node | None = None


class InputMetadata(NamedTuple):
    """Shape and dtype of a gradient."""

    shape: tuple[int, ...]
    dtype: dtype
    device: device = CPU
    is_nested_tensor: bool = False
    is_cpp_nested_tensor: bool = False


class NodeHooks:
    """The hooks of a node, made when the first one is registered.

    Attributes:
        tensor: hooks of the tensors that the node produced, by output number.
        retain: what stores a retained gradient, by output number; runs after `tensor`.
        before: hooks on the node's incoming gradients.
        after: hooks on what the node returned.
    """

    __slots__ = ("after", "before", "retain", "tensor")

    def __init__(self) -> None:
        self.tensor: dict[int, Hooks] = {}
        self.retain: dict[int, Callable[[Any], None]] = {}
        self.before: Hooks = OrderedDict()
        self.after: Hooks = OrderedDict()


class Algebra:
    """What the engine asks of a kind of gradients; see ``algebra.py``."""

    def values(self, saved: Sequence[Any], node: Any) -> list[Any]:
        """What a node has saved, as its rules are given it."""
        raise NotImplementedError

    def fit(self, grad: Any, meta: Any, node: Any, index: int) -> Any:
        """The gradient in the shape and dtype of what it is the gradient of."""
        raise NotImplementedError


class Node:
    """A node of the graph.

    Attributes:
        next_nodes: for each input the node that its gradient goes to, or None.
        next_nrs: which output of that node the input is; see Note [Flat edges].
        metas: (shape, NumPy dtype) of each output, which incoming gradients must have.
        seq: the number that orders nodes by when they were made.
        site: the user's line that made it.
        hooks: its hooks, or None.
        info: what is noted on it: None, its `metadata`, or what it shares with other nodes.
    """

    __slots__ = (
        "hooks", "info", "metas", "next_nodes", "next_nrs", "seq", "site", "__weakref__",
    )  # fmt: skip

    next_nodes: tuple[Any, ...]
    next_nrs: tuple[int, ...]
    metas: tuple[Meta | None, ...]
    seq: int
    site: Any
    hooks: NodeHooks | None
    info: Mapping[str, Any] | None

    def __call__(self, *grads: Any) -> Any:
        """The gradients of the inputs, from those of the outputs, outside any backward pass.

        Raises:
            TypeError: there are more or fewer gradients than outputs.
        """
        from clew.autograd.algebra import TENSOR

        expected = len(self.metas)
        if len(grads) != expected:
            raise TypeError(f"expected {expected} arguments, got {len(grads)} arguments instead")
        in_rules, state.now.in_rules = state.now.in_rules, True
        try:
            results = tuple(self.run(list(grads), TENSOR, None))
        finally:
            state.now.in_rules = in_rules
        return results[0] if len(results) == 1 else results

    def name(self) -> str:
        """PyTorch's name of this kind of node."""
        return type(self).__name__

    def short_name(self) -> str:
        """The name as PyTorch's messages print it: ``Exp`` of ``ExpBackward0``, ``Pow1`` of
        ``PowBackward1``."""
        return _BACKWARD.sub(r"\1", self.name().removesuffix("0"))

    @property
    def edges(self) -> tuple[tuple[Any, int], ...]:
        """For each input, (node, output number) that its gradient goes to, or (None, 0)."""
        return tuple(zip(self.next_nodes, self.next_nrs))

    @edges.setter
    def edges(self, edges: Sequence[tuple[Any, int]]) -> None:
        self.next_nodes = tuple([node for node, _ in edges])
        self.next_nrs = tuple([nr for _, nr in edges])

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The edges, as PyTorch shows them."""
        return self.edges

    @property
    def metadata(self) -> dict[str, Any]:
        """A dict for whoever wants to note something on this node."""
        if self.info.__class__ is not dict:
            self.info = dict(self.info or ())
        return self.info

    def _sequence_nr(self) -> int:
        return self.seq

    @property
    def _input_metadata(self) -> tuple[InputMetadata, ...]:
        """What the gradients that arrive here must be like."""
        metas = self.metas
        return tuple(InputMetadata(m[0], of_numpy(m[1])) for m in metas if m is not None)

    def _hooks(self) -> NodeHooks:
        if self.hooks is None:
            self.hooks = NodeHooks()
        return self.hooks

    def register_hook(self, fn: Callable[[Any, Any], Any]) -> RemovableHandle:
        """Call ``fn(grad_inputs, grad_outputs)`` after the node ran; it may return new ones."""
        return add_hook(self._hooks().after, fn)

    def register_prehook(self, fn: Callable[[Any], Any]) -> RemovableHandle:
        """Call ``fn(grad_outputs)`` before the node runs; it may return new grad_outputs."""
        return add_hook(self._hooks().before, fn)

    def run(self, grads: list[Any], algebra: Any, need: Sequence[bool] | None) -> Sequence[Any]:
        """One gradient (or None) for each edge; `need` says which are wanted (None: all)."""
        raise NotImplementedError

    def release(self, freed: Freed) -> None:
        """Let go of the saved values."""

    def kept(self) -> list[tuple[str, SavedTensor | PackedTensor]]:
        """(name, saved tensor) of all that the node keeps now."""
        return []

    def edge_of_saved(self, saved: SavedTensor) -> Node | None:
        """The node that had made a saved input when it was saved, where that is known."""
        return None

    def is_released(self) -> bool:
        """Whether a backward pass has let go of the saved values."""
        return False

    def outputs_are_made_by(self, maker: Node) -> None:
        """Note that the output, written into a view, has `maker` as its node."""

    def __repr__(self) -> str:
        """``<MulBackward0 keeps self float32 [3] 12 B; at train.py:7, in step: z = x * y>``."""
        kept = ", ".join(f"{name} {value.summary()}" for name, value in self.kept())
        state = "released" if self.is_released() else f"keeps {kept or 'nothing'}"
        return f"<{self._kind()} {state}{spaced(';', self.site)}>"

    def _kind(self) -> str:
        return self.name().removeprefix("torch::autograd::")


class OpNode(Node):
    """The node of an op.  Each op has a subclass of its own, which gives it PyTorch's name and what
    it shows as ``_saved_self``, ``_raw_saved_self`` and the like.

    Attributes:
        op: the op, an attribute of the subclass.
        plan: what is kept and which rules run.
        saved: what is kept.
        attrs: the attributes of the call.
    """

    __slots__ = ("attrs", "plan", "saved")

    op: Any = None

    def name(self) -> str:
        return self.op.node_name

    def __init__(
        self,
        plan: Plan,
        next_nodes: tuple[Any, ...],
        next_nrs: tuple[int, ...],
        saved: Any,
        attrs: dict[str, Any],
        metas: tuple[Meta | None, ...],
        site: Any,
    ) -> None:
        self.plan = plan
        self.next_nodes = next_nodes
        self.next_nrs = next_nrs
        self.saved = saved
        self.attrs = attrs
        self.metas = metas
        self.site = site
        self.seq = next_sequence_nr()
        self.hooks = None
        self.info = None

    def run(self, grads: list[Any], algebra: Any, need: Sequence[bool] | None) -> Sequence[Any]:
        saved = self.saved
        if type(saved) is Freed:
            saved.raise_for(self)
        plan = self.plan
        if (
            plan.mixes
            and (grad := grads[0]).__class__ is ndarray
            and grad.ndim > 1
            and not grad.flags.c_contiguous
            and (ordered := algebra.in_order(self, grad))
        ):
            return ordered.run_node(self, grads, need)
        values = algebra.values(saved, self) if saved else saved
        F = algebra.namespace
        results: list[Any] = [None] * len(self.next_nodes)
        plain = plan.plain_calls
        if plain is not None:
            if (grad := grads[0]) is not None:
                for function, edge, arguments, attrs in plain:
                    if need is not None and not need[edge]:
                        continue
                    kept = values if arguments is None else [values[i] for i in arguments]
                    if attrs:
                        named = {name: self.attrs[name] for name in attrs}
                        results[edge] = function(F, grad, *kept, **named)
                    else:
                        results[edge] = function(F, grad, *kept)
            return results
        for rule, function, attrs, edges, required, arguments in plan.calls:
            if need is not None and not [i for i in edges if need[i]]:
                continue
            incoming = grads if rule.all_grads else grads[0]
            if incoming is None or (rule.all_grads and not [g for g in grads if g is not None]):
                continue
            kept = [values[i] for i in arguments]
            named = {name: self.attrs[name] for name in attrs} if attrs else NO_ATTRS
            if not rule.joint:
                results[edges[0]] = function(F, incoming, *kept, **named)
                continue
            wanted = [r and (need is None or need[i]) for i, r in zip(edges, required)]
            if self.op.variadic_input and self.hooks is not None and self.hooks.after:
                wanted = [True] * len(edges)  # PyTorch computes all of a list, and hooks see them
            parts = function(F, incoming, *kept, **named, need=wanted)
            for i, part in zip(edges, parts):
                results[i] = part
        return results

    def release(self, freed: Freed) -> None:
        if self.plan.holds_tensors:
            self.saved = freed

    def is_released(self) -> bool:
        return isinstance(self.saved, Freed)

    def outputs_are_made_by(self, maker: Node) -> None:
        for value in self.saved:
            if isinstance(value, PackedTensor) and value.output_nr is not None:
                value.maker = weakref.ref(maker)
        self.saved = tuple(
            SavedViewOutput(value, maker)
            if isinstance(value, SavedTensor) and value.output_nr is not None else value
            for value in self.saved
        )  # fmt: skip

    def kept(self) -> list[tuple[str, SavedTensor | PackedTensor]]:
        """(name, saved tensor) of all that the node keeps now."""
        if self.is_released():
            return []
        found = []
        for value, save in zip(self.saved, self.plan.saves):
            parts = value.items if isinstance(value, SavedTuple) else (value,)
            found += [(save.name, p) for p in parts if isinstance(p, _SAVED)]
        return found

    def edge_of_saved(self, saved: SavedTensor) -> Node | None:
        for value, save in zip(self.saved, self.plan.saves):
            if value is saved and save.kind == INPUT:
                edge = self.plan.inputs.index(save.index) if save.index in self.plan.inputs else -1
                return self.next_nodes[edge] if edge >= 0 else None
        return None


class RefusingNode(OpNode):
    """The node of an op without a derivative: it runs, to refuse, before all others, and even if
    nobody asks for what it would give."""

    __slots__ = ()

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.seq = FIRST - 1

    def run(self, grads: list[Any], algebra: Any, need: Sequence[bool] | None) -> Sequence[Any]:
        if not self.plan.calls and self.op.name == "replaced_memory":
            self.op.rules["self"].function(None, None)  # refuses, though nothing can be reached
        return super().run([0 if g is None else g for g in grads], algebra, None)


_SAVED = (SavedTensor, PackedTensor)


def node_class(op: Op) -> type[OpNode]:
    """The class of an op's nodes, made when the first one is recorded."""
    if op.node_class is None:
        from clew.autograd.shown import properties_of

        name = op.node_name.rpartition("::")[2]  # of C++, where some of PyTorch's nodes come from
        kind = RefusingNode if op.node_name == NOT_IMPLEMENTED else OpNode
        fields = {"__slots__": (), "__module__": __name__, "op": op}
        op.node_class = type(name, (kind,), fields | properties_of(op))
    found: type[OpNode] = op.node_class
    return found


class AccumulateGrad(Node):
    """The node of a leaf: adds what arrives into the leaf's ``grad``."""

    __slots__ = ("lock", "variable")

    def __init__(self, variable: Any) -> None:
        self.variable = variable
        self.lock = threading.Lock()
        try:
            array = variable._array
            self.metas = ((array.shape, array.dtype),)  # of now, though the data may be replaced
        except ValueError:
            self.metas = (None,)  # a parameter of a lazy module
        self.next_nodes = self.next_nrs = ()
        self.seq = FIRST
        self.site = None
        self.hooks = None
        self.info = None

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def run(self, grads: list[Any], algebra: Any, need: Sequence[bool] | None) -> Sequence[Any]:
        raise TypeError("AccumulateGrad is run by the engine, which knows who owns the gradient")

    def __repr__(self) -> str:
        return f"<{self._kind()} of {describe(self.variable)}>"
