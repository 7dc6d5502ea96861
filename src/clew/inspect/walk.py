"""Fill the plain model of a graph from clew's own nodes.

Walks with a list of its own, never by recursion: a graph may be 100,000 nodes deep.
"""

from __future__ import annotations

import heapq
import itertools
import os
from collections.abc import Iterable
from typing import Any

from clew import dtypes
from clew.autograd.node import AccumulateGrad
from clew.autograd.saved import Freed, PackedTensor, SavedTensor
from clew.inspect.model import Graph, GraphNode, Saved
from clew.site import resolve
from clew.storage import root


def graph(tensor: Any, *, params: Any = None) -> Graph:
    """The graph that led to a tensor, as plain data.

    Args:
        tensor: a tensor, or a sequence of them (their graphs together).
        params: names of leaves: a dict, ``module.named_parameters()``, or a module.

    Raises:
        TypeError: it is no tensor.

    >>> x = torch.ones(3, requires_grad=True)
    >>> g = torch.graph((x * x).sum(), params={"x": x})
    >>> [node.name for node in g], g.parameter_bytes
    (['SumBackward0', 'MulBackward0', 'AccumulateGrad'], 12)
    """
    tensors = list(tensor) if isinstance(tensor, (tuple, list)) else [tensor]
    for t in tensors:
        if not hasattr(t, "_gradient_edge"):
            raise TypeError(f"a tensor is needed to show its graph, not {type(t).__name__}")
    roots = [t._gradient_edge()[0] for t in tensors]
    nodes = _ordered([r for r in roots if r is not None])
    ids = {node: i for i, node in enumerate(nodes)}
    names = _leaf_names(params)
    title = ", ".join(_title(t) for t in tensors)
    return Graph([_describe(node, ids, names) for node in nodes], title)


def _title(tensor: Any) -> str:
    """The tensor in a few words, with the line that made it in short."""
    shape, dtype = _shape_and_type(tensor._array)
    text = f"{dtype} [{', '.join(map(str, shape))}]"
    node = tensor._gradient_edge()[0]
    if node is None:
        return f"{text}, which does not require grad"
    site = resolve(node.site)
    made = node.name().removeprefix("torch::autograd::")
    return f"{text} of {made}" + (f", {os.path.basename(site.file)}:{site.line}" if site else "")


def _ordered(roots: Iterable[Any]) -> list[Any]:
    """All nodes that `roots` reach; a node comes after all that lead to it."""
    waiting: dict[Any, int] = {}
    stack = list(dict.fromkeys(roots))
    seen = set(stack)
    while stack:
        for following, _ in stack.pop().edges:
            if following is not None:
                waiting[following] = waiting.get(following, 0) + 1
                if following not in seen:
                    seen.add(following)
                    stack.append(following)
    arrival = itertools.count().__next__
    ready = [(-n.seq, arrival(), n) for n in dict.fromkeys(roots) if n not in waiting]
    heapq.heapify(ready)
    ordered = []
    while ready:
        node = heapq.heappop(ready)[2]
        ordered.append(node)
        for following, _ in node.edges:
            if following is not None:
                waiting[following] -= 1
                if not waiting[following]:
                    heapq.heappush(ready, (-following.seq, arrival(), following))
    return ordered


def _describe(node: Any, ids: dict[Any, int], names: dict[int, str]) -> GraphNode:
    edges = [None if f is None else (ids[f], nr) for f, nr in node.edges]
    if isinstance(node, AccumulateGrad):
        leaf = node.variable
        made = leaf._meta.site if leaf._meta is not None else None
        return GraphNode(
            ids[node], "AccumulateGrad", node.seq, [_shape_and_type(leaf._array)], edges,
            site=resolve(made), label=names.get(id(leaf)) or leaf.name, leaf=True,
        )  # fmt: skip
    metas = [(tuple(m[0]), dtypes.of_numpy(m[1]).name) for m in node.metas if m]
    saved = [_saved(name, kept) for name, kept in node.kept()]
    return GraphNode(
        ids[node], node.name().removeprefix("torch::autograd::"), node.seq, metas, edges, saved,
        dict(getattr(node, "attrs", {})), resolve(node.site),
        freed=isinstance(getattr(node, "saved", None), Freed),
    )  # fmt: skip


def _shape_and_type(array: Any) -> tuple[tuple[int, ...], str]:
    return array.shape, dtypes.of_numpy(array.dtype).name


def _saved(name: str, kept: SavedTensor | PackedTensor) -> Saved:
    if isinstance(kept, PackedTensor):
        return _packed(name, kept.packed)
    tensor = kept.tensor
    array = tensor._array
    owner = root(array)
    shape, dtype = _shape_and_type(array)
    changed = tensor._counter.value != kept.version
    return Saved(name, shape, dtype, array.nbytes, id(owner), owner.nbytes, _role(kept), changed)


def _packed(name: str, packed: Any) -> Saved:
    """What a hook made of a tensor, if that is a tensor; else only that it is there."""
    array = getattr(packed, "_array", None)
    if array is None:
        return Saved(name, (), type(packed).__name__, 0, id(packed), 0, "packed")
    owner = root(array)
    shape, dtype = _shape_and_type(array)
    return Saved(name, shape, dtype, array.nbytes, id(owner), owner.nbytes, "packed")


def _role(kept: SavedTensor) -> str:
    if kept.output_nr is not None:
        return "output"
    tensor = kept.tensor
    base = tensor._base if tensor._base is not None else tensor
    if base._edge is None and base._requires_grad:
        return "parameter"
    return "leaf" if tensor._edge is None else "input"


def _leaf_names(params: Any) -> dict[int, str]:
    """Names of leaves by the id of the tensor."""
    if params is None:
        return {}
    if hasattr(params, "named_parameters"):
        params = params.named_parameters()
    pairs = params.items() if hasattr(params, "items") else params
    return {id(tensor): name for name, tensor in pairs}
