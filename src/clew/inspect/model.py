"""A graph as plain data: what every picture, table and question is answered from.

Imports nothing of clew: an adapter fills it (``clew_adapter.py`` for clew's own graphs,
``torch_adapter.py`` for those of real PyTorch), and ``recording.py`` adds what only somebody who
watched the program knows: modules, iterations, and which nodes a backward pass made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Saved:
    """A tensor that a node keeps for its backward.

    Attributes:
        name: what the node calls it: ``self``, ``other``, ``result``, ...
        shape: its size.
        dtype: the name of its type.
        nbytes: bytes of the tensor itself.
        storage: a key of the memory behind it; equal keys are the same memory.
        storage_nbytes: bytes of that memory, all of which the tensor keeps alive.
        role: "parameter", "leaf", "input", "output" or "packed" (by a saved-tensor hook).
        changed: whether it was written to in place after it was saved.
        version: how often its memory had been written to when it was saved; None if unknown.
        version_now: how often by now; None if unknown.
        writer: "mul_, train.py:12" of the last write, where it is known.
        reason: which gradients are computed from it, in a few words; "" if unknown.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    storage: int
    storage_nbytes: int
    role: str
    changed: bool = False
    version: int | None = None
    version_now: int | None = None
    writer: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Scope:
    """One call of a module's forward.

    Attributes:
        id: its position in the list of scopes.
        parent: the call in which it happened, or None.
        name: what the parent module calls it (``layer1.0``); its class for an outermost module.
        type: the name of the module's class.
        path: the names from the outermost module on, joined by points.
        call: how many earlier calls of this module are in the graph.
    """

    id: int
    parent: int | None
    name: str
    type: str
    path: str
    call: int = 0


@dataclass
class GraphNode:
    """A node of the graph.

    Attributes:
        id: its position in the list of nodes; node 0 is the root.
        name: PyTorch's name of its kind.
        seq: the number that orders nodes by when they were made.
        outputs: (shape, dtype name) of what it produced.
        edges: (node id, output number) of where its gradients go; None for a constant input.
        saved: the tensors that it keeps.
        attrs: the operation's attributes.
        site: (file, line, function, text) of the user's line, or None.
        label: the name of a leaf, where one is known.
        leaf: whether it accumulates the gradient of a leaf.
        freed: whether a backward pass has released what it kept.
        freed_at: the line of that backward, where it is known.
        inputs: the names of the operation's inputs, one for each edge, where they are known.
        hooks: what is registered on it or on its tensors, one text each.
        scope: the module call that made it, an id of `Graph.scopes`; None if unknown.
        iteration: how many rounds of optimizer steps came before it; None if unknown.
        order: 0 for the program's own operations, 1 for those that a backward pass recorded
            (``create_graph=True``), 2 for those of a backward through such, and so on.
        seconds: how long its backward took, where it was measured.
    """

    id: int
    name: str
    seq: int
    outputs: list[tuple[tuple[int, ...], str]]
    edges: list[tuple[int, int] | None] = field(default_factory=list)
    saved: list[Saved] = field(default_factory=list)
    attrs: dict[str, Any] = field(default_factory=dict)
    site: Any = None
    label: str | None = None
    leaf: bool = False
    freed: bool = False
    freed_at: Any = None
    inputs: list[str] = field(default_factory=list)
    hooks: list[str] = field(default_factory=list)
    scope: int | None = None
    iteration: int | None = None
    order: int = 0
    seconds: float | None = None

    @property
    def saved_bytes(self) -> int:
        """Bytes of the tensors that this node keeps, each memory counted once."""
        return sum({s.storage: s.storage_nbytes for s in self.saved}.values())


@dataclass
class Graph:
    """All nodes that lead to a tensor.

    Attributes:
        nodes: the nodes, in the order in which backward runs them where nothing else decides:
            the root first, then the latest recorded first.
        title: the tensor that it is the graph of, in a few words.
        roots: (node id, output number) of the tensors that it is the graph of.
        scopes: the module calls that were recorded, each after the one in which it happened.
        engine: "clew" or "torch".
    """

    nodes: list[GraphNode]
    title: str
    roots: list[tuple[int, int]] = field(default_factory=list)
    scopes: list[Scope] = field(default_factory=list)
    engine: str = "clew"

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[GraphNode]:
        return iter(self.nodes)

    @property
    def edges(self) -> list[tuple[int, int]]:
        """(from, to) node ids of all edges; gradients flow along them."""
        return [(n.id, e[0]) for n in self.nodes for e in n.edges if e is not None]

    @property
    def leaves(self) -> list[GraphNode]:
        """The nodes that accumulate the gradients of leaves."""
        return [n for n in self.nodes if n.leaf]

    def module_of(self, node: GraphNode) -> str:
        """The path of the module whose forward made a node; "" if it was not recorded."""
        return "" if node.scope is None else self.scopes[node.scope].path

    def storages(self, *, parameters: bool = True) -> dict[int, int]:
        """Bytes of each memory that the graph keeps alive, by its key."""
        return {
            s.storage: s.storage_nbytes
            for n in self.nodes
            for s in n.saved
            if parameters or s.role != "parameter"
        }

    @property
    def saved_bytes(self) -> int:
        """Bytes kept for backward without the parameters, which live anyway; counted once."""
        return sum(self.storages(parameters=False).values())

    @property
    def parameter_bytes(self) -> int:
        """Bytes of the parameters that nodes keep; counted once."""
        return sum(self.storages().values()) - self.saved_bytes

    def by_line(self) -> list[tuple[Any, int]]:
        """(site, bytes) of the lines whose operations keep most, parameters left out.

        Memory that several lines keep counts for the line that kept it first.
        """
        seen: set[int] = set()
        lines: dict[Any, int] = {}
        for node in sorted(self.nodes, key=lambda n: n.seq):
            for s in node.saved:
                if s.role != "parameter" and s.storage not in seen:
                    seen.add(s.storage)
                    lines[node.site] = lines.get(node.site, 0) + s.storage_nbytes
        return sorted(lines.items(), key=lambda item: -item[1])

    def __str__(self) -> str:
        from clew.inspect.text import render

        return render(self)

    def __rich__(self) -> Any:
        from clew.inspect.text import renderable

        return renderable(self)

    def tree(self) -> Any:
        """A tree for a terminal: ``rich.print(graph.tree())``."""
        from clew.inspect.tree import tree

        return tree(self)

    def _repr_html_(self) -> str:
        """The interactive page in a notebook's cell."""
        from clew.inspect.graph_page import in_notebook

        return in_notebook(self)

    def save(self, path: Any) -> None:
        """Write the graph to a file; the ending says as what.

        ``.html``: an interactive page in one file, for which no program and no network is needed.
        ``.svg``, ``.pdf``, ``.png``: a picture, by Graphviz or the extra ``clew[see]``.
        ``.dot``, ``.gv``: its text.  ``.json``: for Google's Model Explorer.

        Raises:
            ValueError: another ending, or a graph too large for a picture.
            NoGraphviz: neither the ``dot`` program nor pygraphviz is installed (for pictures).
        """
        from clew.inspect.save import save

        save(self, path)
