"""What the ledgers write down: nodes, what they keep, backward passes, leaves, writes, cuts.

Imports only `paths`.  Records belong to no engine: they hold no node, and a tensor only weakly.

Note [A record lives as long as what it is about]
    The `NodeInfo` of a node is owned by the node itself (``node.metadata``) and by the infos of
    the nodes that lead to it, as the node is; so its death tells that the node is gone, on either
    engine, without asking who holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from clew.inspect.watch.paths import Path, common


class Cut:
    """A place where values left the graph.

    Attributes:
        kind: ``detach()``, ``.data``, ``no_grad``, ``item()`` or the op without a gradient.
        path: the lines that did it.
        component: the graph that the values came from.
        leaves: a mask of the leaves that they depend on.
        seq: the number of the node whose result they were.
        reached: a backward pass ran in a graph that used the values.
    """

    __slots__ = ("component", "kind", "leaves", "path", "reached", "seq")

    def __init__(
        self, kind: str, path: Path, component: Component | None, leaves: int, seq: int = -1
    ) -> None:
        self.kind = kind
        self.seq = seq
        self.path = path
        self.component = component
        self.leaves = leaves
        self.reached = False


class Provenance:
    """What a tensor without a history comes from: leaves (a mask), and through which cuts."""

    __slots__ = ("cuts", "grads_of", "leaves", "path")

    def __init__(
        self, leaves: int = 0, cuts: tuple[Cut, ...] = (), grads_of: int = 0, path: Path = ()
    ) -> None:
        self.leaves = leaves
        self.cuts = cuts
        self.grads_of = grads_of
        self.path = path


MOST_CUTS = 4
"""So many cuts, the latest, are remembered of a value: a running average has seen thousands."""


def joined(parts: list[Provenance], path: Path) -> Provenance | None:
    """The provenance of what is computed from tensors with these; None if there is nothing."""
    if not parts:
        return None
    leaves = grads = 0
    cuts: dict[Cut, None] = {}
    for part in parts:
        leaves |= part.leaves
        grads |= part.grads_of
        cuts.update(dict.fromkeys(part.cuts))
    return Provenance(leaves, tuple(cuts)[-MOST_CUTS:], grads, path)


class Component:
    """A connected graph: all that one forward recorded, apart from leaves.  A union-find set.

    Attributes:
        alive: how many of its nodes exist.
        used: a backward pass ran a node of it.
        nodes: how many were recorded.
        nbytes: bytes that it kept for backward, parameters left out.
        unrun: the numbers of nodes that no backward ran; `unused` those that kept something, as
            (number, path, bytes).
        cuts: the cuts through which values entered it.
        first, last: the first and the last op's lines.
        shared: how many outer lines all of its ops have in common.
        born, last_seq: when they came.
        merges: on which lines graphs became one, and how often.
    """

    __slots__ = (
        "alive", "born", "cut_away", "cuts", "first", "iterations", "last", "last_seq", "merges",
        "nbytes", "nodes", "parent", "shared", "unrun", "unused", "used",
    )  # fmt: skip

    def __init__(self, path: Path, seq: int, iteration: int) -> None:
        self.parent: Component | None = None
        self.alive = self.nodes = self.nbytes = 0
        self.used = False
        self.unused: list[tuple[int, Path, int]] = []
        self.unrun: set[int] = set()
        self.cuts: dict[Cut, None] = {}
        self.cut_away: dict[Cut, None] = {}
        self.first = self.last = path
        self.shared: int = len(path)
        self.last_seq = seq
        self.born = seq
        self.iterations = {iteration}
        self.merges: dict[Path, int] = {}

    def root(self) -> Component:
        """The set that this one has become part of."""
        found = self
        while found.parent is not None:
            if found.parent.parent is not None:
                found.parent = found.parent.parent
            found = found.parent
        return found

    def swallow(self, other: Component) -> None:
        """Make `other` part of this set."""
        other.parent = self
        self.alive += other.alive
        self.nodes += other.nodes
        self.nbytes += other.nbytes
        self.used |= other.used
        self.unused += other.unused
        self.unrun |= other.unrun
        self.cuts.update(other.cuts)
        self.cut_away.update(other.cut_away)
        self.shared = min(self.shared, other.shared, common(self.first, other.first))
        if other.born < self.born:
            self.first, self.born = other.first, other.born
        if other.last_seq > self.last_seq:
            self.last, self.last_seq = other.last, other.last_seq
        self.iterations |= other.iterations
        for path, count in other.merges.items():
            self.merges[path] = self.merges.get(path, 0) + count
        other.unused, other.cuts, other.merges = [], {}, {}


class NodeInfo:
    """A node of either engine, and what it was seen to do.

    Attributes:
        name: as ``MulBackward0``.
        path: the lines that recorded it.
        seq: the order in which nodes were seen; a later one is greater.
        iteration: in which iteration.
        inputs: the infos of the nodes that its edges lead to.
        direct: the leaves that its edges lead to.
        constants: of operands without a history that are known to come from somewhere: from
            where, and whether they are a single number.
        scalars: it had plain numbers among its operands.
        leaves: a mask of the leaves that it leads to.
        behind: a mask of those that its values depend on through cuts only, or also.
        runs: how many backward passes ran it, and the last of them.
        run_in: the iterations in which one did.
        nbytes: bytes that it keeps and that no backward has asked for.
        tensors: weak references to its results.
    """

    __slots__ = (
        "behind", "component", "constants", "direct", "inputs", "iteration", "last_call", "leaves",
        "name", "nbytes", "on_death", "path", "run_in", "runs", "scalars", "seq", "tensors",
        "__weakref__",
    )  # fmt: skip

    def __init__(
        self, name: str, path: Path, seq: int, iteration: int,
        on_death: Callable[[NodeInfo], None],
    ) -> None:  # fmt: skip
        self.name = name
        self.path = path
        self.seq = seq
        self.iteration = iteration
        self.on_death = on_death
        self.inputs: list[NodeInfo] = []
        self.direct: list[Leaf] = []
        self.constants: list[tuple[Provenance, bool]] = []
        self.scalars = False
        self.leaves = self.behind = 0
        self.runs = self.nbytes = 0
        self.run_in: set[int] = set()
        self.last_call: Call | None = None
        self.tensors: list[Any] = []
        self.component: Any = None

    def __del__(self) -> None:
        if self.component is not None:
            self.on_death(self)

    def tensor(self) -> Any:
        """One of its results that still exists, or None."""
        for reference in self.tensors:
            found = reference()
            if found is not None:
                return found
        return None


class Leaf:
    """A leaf that requires grad, and the contributions to its gradient.

    Attributes:
        ref: a weak reference to the tensor.
        bit: its bit in masks.
        is_parameter: it is an `nn.Parameter`.
        pending: the backward passes that added to its gradient since that was cleared.
        consumed: how many of them a step has used.
        seen: identity and version of the gradient when it was last looked at; `is_zero`: it was
            all zeros then.
        read: the user looked at the gradient.
        used_at: the lines that used it last.
    """

    __slots__ = (
        "bit", "consumed", "gradients", "hooked", "is_parameter", "is_zero", "key", "nbytes",
        "pending", "read", "ref", "seen", "shape", "steps_with", "used_at",
    )  # fmt: skip

    def __init__(self, ref: Any, bit: int, is_parameter: bool, key: Any, shape: str) -> None:
        self.ref = ref
        self.bit = bit
        self.is_parameter = is_parameter
        self.key = key
        self.shape = shape
        self.pending: list[Call] = []
        self.consumed = 0
        self.gradients = 0
        self.seen: tuple[int, int] | None = None
        self.is_zero = False
        self.read = self.hooked = False
        self.nbytes = 0
        self.used_at: Path = ()
        self.steps_with: set[int] = set()


class Saved:
    """A tensor kept for backward.

    Attributes:
        node: the node that keeps it, when it is known.
        storage: the memory behind it; `nbytes` of it, 0 for a parameter's.
        version: the version when it was kept.
        is_output: it is a result of the op that keeps it.
        unpacks: how often backward asked for it.
        retained_by: the last backward that used it and kept the graph.
        write: the last write to its memory since, if any; `silent` if its version hid that.
    """

    __slots__ = (
        "checksum", "is_output", "name", "nbytes", "node", "path", "retained_by", "silent",
        "storage", "tensor", "unpacks", "version", "view_bytes", "write",
    )  # fmt: skip

    def __init__(self, name: str, path: Path, storage: Storage, version: int) -> None:
        self.name = name
        self.path = path
        self.storage = storage
        self.version = version
        self.node: NodeInfo | None = None
        self.is_output = False
        self.nbytes = self.view_bytes = 0
        self.unpacks = 0
        self.retained_by: Call | None = None
        self.write: Write | None = None
        self.silent = False
        self.checksum: Any = None
        self.tensor: Any = None


class Storage:
    """Memory: what is kept of it, and who wrote to it last."""

    __slots__ = ("key", "nbytes", "saved", "write")

    def __init__(self, key: Any, nbytes: int) -> None:
        self.key = key
        self.nbytes = nbytes
        self.saved: set[Saved] = set()
        self.write: Write | None = None


class Write:
    """An in-place write.

    Attributes:
        name: the op, as ``add_``, or ``optimizer step of SGD``.
        path: the lines that did it.
        optimizer: whose step it was part of, or None.
        recorded: it was to be part of the graph.
    """

    __slots__ = ("count", "name", "optimizer", "path", "recorded")

    def __init__(self, name: str, path: Path, optimizer: Any, recorded: bool) -> None:
        self.name = name
        self.path = path
        self.optimizer = optimizer
        self.recorded = recorded


class Call:
    """A backward pass.

    Attributes:
        path: the lines that asked for it.
        keep, create: ``retain_graph`` and ``create_graph``.
        accumulates: it adds to ``.grad`` (`autograd.grad` does not).
        iteration: in which iteration.
        roots: the infos of what it started from; `leaf_root` if one was a leaf.
        ran: how many nodes it ran; `again` of them had been run before.
        leaves: those whose gradient it added to.
        held: bytes that its graph kept after it, in `count` saved tensors; `kept` are left.
        until: the lines at which the last of them was let go of.
        reused: something of its graph was asked for later.
        used: a step or the user used what it added.
        steppers: the optimizers that stepped between it and the next pass.
        closed: the next pass has begun.
        culprits: what it could not use, if it failed for that.
    """

    __slots__ = (
        "accumulates", "again", "closed", "count", "create", "culprits", "error", "held", "index",
        "iteration", "keep", "kept", "leaf_root", "leaves", "lost", "old", "path", "ran", "reused",
        "roots", "steppers", "until", "used",
    )  # fmt: skip

    def __init__(self, index: int, path: Path, iteration: int, *, keep: bool, create: bool) -> None:
        self.index = index
        self.path = path
        self.iteration = iteration
        self.keep = keep
        self.create = create
        self.accumulates = True
        self.roots: list[NodeInfo] = []
        self.leaf_root: Any = None
        self.ran = self.again = self.old = 0
        self.leaves: list[Leaf] = []
        self.held = self.kept = self.count = 0
        self.culprits: list[Saved] = []
        self.until: Path = ()
        self.reused = self.used = self.lost = self.closed = False
        self.steppers: list[Any] = []
        self.error: BaseException | None = None


class Step:
    """An optimizer step: before it, what stood in the gradients that it uses."""

    __slots__ = ("index", "leaves", "number", "optimizer", "path", "pending")

    def __init__(self, optimizer: Any, path: Path, leaves: list[Leaf], number: int) -> None:
        self.optimizer = optimizer
        self.path = path
        self.leaves = leaves
        self.number = number
        self.index = 0
        # For each leaf: the passes since the last clear, and how many an earlier step had used.
        self.pending = {leaf: (tuple(leaf.pending), leaf.consumed) for leaf in leaves}


def note_unrun(component: Component, info: NodeInfo) -> None:
    """Note of a node that is gone whether no backward ever ran it."""
    if not info.runs:
        component.unrun.add(info.seq)
        if info.nbytes:
            component.unused.append((info.seq, info.path, info.nbytes))


def reach(roots: Iterable[NodeInfo]) -> list[NodeInfo]:
    """All infos that `roots` lead to, themselves included."""
    seen = dict.fromkeys(roots)
    stack = list(seen)
    while stack:
        for info in stack.pop().inputs:
            if info not in seen:
                seen[info] = None
                stack.append(info)
    return list(seen)
