"""Fill the plain model of a graph, of clew's tensors or real PyTorch's.

An adapter knows one engine; here is what is the same for both.  Walks with a list of its own,
never by recursion: a graph may be 100,000 nodes deep.
"""

from __future__ import annotations

import contextlib
import gc
import heapq
import itertools
import os
from collections.abc import Iterable, Iterator
from typing import Any

from clew.inspect import clew_adapter, torch_adapter
from clew.inspect.model import Graph, GraphNode
from clew.inspect.placing import place
from clew.inspect.recording import Recording, recordings


def graph(tensor: Any, *, params: Any = None) -> Graph:
    """The graph that led to a tensor, as plain data.

    Inside `clew.inspect.record()` and after it, nodes that were made in it also know their module,
    iteration and, for PyTorch's, line.

    Args:
        tensor: a tensor of clew or of real PyTorch, or a sequence of them (their graphs together);
            a node (``grad_fn``) or gradient edge stands for its tensor.
        params: names of leaves: a dict, ``module.named_parameters()``, or a module.

    Raises:
        TypeError: it is no tensor.

    >>> x = torch.ones(3, requires_grad=True)
    >>> g = torch.graph((x * x).sum(), params={"x": x})
    >>> [node.name for node in g], g.parameter_bytes
    (['SumBackward0', 'MulBackward0', 'AccumulateGrad'], 12)
    """
    return read(tensor, params=params)[0]


def read(tensor: Any, *, params: Any = None) -> tuple[Graph, list[Any]]:
    """The graph as plain data, and the engine's own nodes in the same order; see `graph`."""
    with _no_collections():
        return _read(tensor, params)


@contextlib.contextmanager
def _no_collections() -> Iterator[None]:
    """Hundreds of thousands of objects that stay are made: looking for garbage among them again
    and again takes twice as long as making them."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _read(tensor: Any, params: Any) -> tuple[Graph, list[Any]]:
    several = isinstance(tensor, (tuple, list)) and not hasattr(tensor, "node")
    tensors = [getattr(t, "node", t) for t in (tensor if several else [tensor])]
    adapter = adapter_of(tensors)
    roots = [e for e in map(adapter.edge_of, tensors) if e[0] is not None]
    nodes = ordered([node for node, _ in roots], adapter)
    ids = {node: i for i, node in enumerate(nodes)}
    seen = recordings(adapter.name)
    described = [_describe(node, ids, adapter) for node in nodes]
    scopes = place(described, seen)
    _name_leaves(nodes, described, adapter, params, seen)
    title = ", ".join(_title(t, adapter, described, ids) for t in tensors)
    ends = [(ids[n], nr) for n, nr in roots]
    return Graph(described, title, ends, scopes, adapter.name), nodes


def adapter_of(values: Iterable[Any]) -> Any:
    """The adapter of the engine that all `values` are of; clew's if there are none.

    Raises:
        TypeError: one is no tensor, or they are of two engines.
    """
    adapters = {a.name: a for v in values for a in [_adapter(v)]}
    if len(adapters) > 1:
        raise TypeError("tensors of clew and of PyTorch have no graph in common: give one kind")
    return next(iter(adapters.values()), clew_adapter)


def _adapter(value: Any) -> Any:
    for adapter in (clew_adapter, torch_adapter):
        if adapter.owns(value):
            return adapter
    hint = ""
    if hasattr(value, "parameters"):
        hint = ": call the module and give what it returns"
    raise TypeError(f"a tensor is needed to show its graph, not {type(value).__name__}{hint}")


def ordered(roots: Iterable[Any], adapter: Any) -> list[Any]:
    """All nodes that `roots` reach; a node comes after all that lead to it, the latest first."""
    waiting: dict[Any, int] = {}
    roots = list(dict.fromkeys(roots))
    stack = list(roots)
    edges = {}
    while stack:
        node = stack.pop()
        if node in edges:
            continue
        edges[node] = following = [f for f, _ in adapter.edges(node) if f is not None]
        for f in following:
            waiting[f] = waiting.get(f, 0) + 1
            if f not in edges:
                stack.append(f)
    arrival = itertools.count().__next__
    ready = [(-adapter.seq(n), arrival(), n) for n in roots if n not in waiting]
    heapq.heapify(ready)
    found = []
    while ready:
        node = heapq.heappop(ready)[2]
        found.append(node)
        for f in edges[node]:
            waiting[f] -= 1
            if not waiting[f]:
                heapq.heappush(ready, (-adapter.seq(f), arrival(), f))
    return found


def _describe(node: Any, ids: dict[Any, int], adapter: Any) -> GraphNode:
    described: GraphNode = adapter.describe(node)
    described.id = ids[node]
    described.edges = [None if f is None else (ids[f], nr) for f, nr in adapter.edges(node)]
    return described


def _name_leaves(
    nodes: list[Any],
    described: list[GraphNode],
    adapter: Any,
    params: Any,
    seen: list[Recording],
) -> None:
    """Give leaves the names that the user, or the modules that were seen, have for them."""
    names: dict[int, str] = {}
    for recording in seen:
        names |= adapter.named_leaves(recording.named_parameters())
    names |= adapter.named_leaves(_pairs(params))
    for node, plain in zip(nodes, described):
        if plain.leaf:
            plain.label = names.get(id(adapter.leaf_of(node))) or plain.label


def _pairs(params: Any) -> Iterable[tuple[str, Any]]:
    if params is None:
        return ()
    if hasattr(params, "named_parameters"):
        params = params.named_parameters()
    return params.items() if hasattr(params, "items") else params


def _title(tensor: Any, adapter: Any, described: list[GraphNode], ids: dict[Any, int]) -> str:
    """The tensor in a few words, with the line that made it in short."""
    shape, dtype = adapter.shape_and_type(tensor)
    text = f"{dtype} [{', '.join(map(str, shape))}]"
    node = adapter.edge_of(tensor)[0]
    if node is None:
        return f"{text}, which does not require grad"
    plain = described[ids[node]]
    if plain.leaf:
        return f"{text}, a leaf"
    site = plain.site
    where = f", {os.path.basename(site.file)}:{site.line}" if site else ""
    return f"{text} of {plain.name}{where}"
