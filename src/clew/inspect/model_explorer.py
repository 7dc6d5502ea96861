"""A graph in the JSON format of Google's Model Explorer: ``model-explorer graph.json`` shows it.

The format: a collection has graphs; a node has an id, a label, a namespace (``a/b``: the nested
boxes), attributes, incoming edges with the output and input that they join, and for each output
its metadata.  Source: the interfaces that google-ai-edge/model-explorer documents for its input.
"""

from __future__ import annotations

import json
from typing import Any

from clew.inspect.fold import Group, fold, short_name
from clew.inspect.model import Graph, GraphNode
from clew.inspect.text import bytes_text, site_text


def model_explorer_json(graph: Graph) -> str:
    """The text of the file."""
    return json.dumps(collection(graph), indent=1)


def collection(graph: Graph) -> dict[str, Any]:
    """The collection of graphs, with this one in it, as plain data."""
    spaces, groups = _namespaces(fold(graph))
    nodes = [_node(node, graph, spaces[node.id]) for node in reversed(graph.nodes)]
    name = graph.title or "graph"
    return {
        "label": "clew",
        "graphs": [{"id": name, "nodes": nodes, "groupNodeAttributes": groups}],
    }


def _namespaces(root: Group) -> tuple[dict[int, str], dict[str, dict[str, str]]]:
    """The namespace of each node, and the attributes of each namespace."""
    spaces: dict[int, str] = {}
    groups: dict[str, dict[str, str]] = {}
    stack = [(root, "")]
    while stack:
        group, space = stack.pop()
        for child in group.children:
            if not isinstance(child, Group):
                spaces[child] = space
                continue
            inner = f"{space}/{_plain(child)}".lstrip("/")
            facts = {"type": child.type, "module": child.path, "what": child.kind}
            if child.repeat > 1:
                facts["repeats"] = str(child.repeat)
            groups[inner] = {k: v for k, v in facts.items() if v}
            stack.append((child, inner))
    return spaces, groups


def _plain(group: Group) -> str:
    title = group.title.replace("/", "∕")  # a slash would open another box
    return f"{title} ×{group.repeat}" if group.repeat > 1 else title


def _node(node: GraphNode, graph: Graph, space: str) -> dict[str, Any]:
    incoming = [
        {
            "sourceNodeId": str(edge[0]),
            "sourceNodeOutputId": str(edge[1]),
            "targetNodeInputId": str(place),
        }
        for place, edge in enumerate(node.edges)
        if edge is not None
    ]
    outputs = [
        {"id": str(i), "attrs": [_pair("shape", f"{dtype}[{','.join(map(str, shape))}]")]}
        for i, (shape, dtype) in enumerate(node.outputs)
    ]
    inputs = [
        {"id": str(i), "attrs": [_pair("__tensor_tag", name)]}
        for i, name in enumerate(node.inputs)
    ]  # fmt: skip
    label = node.label or ("leaf" if node.leaf else short_name(node.name))
    return {
        "id": str(node.id),
        "label": label,
        "namespace": space,
        "attrs": _attributes(node, graph),
        "incomingEdges": incoming,
        "inputsMetadata": inputs,
        "outputsMetadata": outputs,
    }


def _attributes(node: GraphNode, graph: Graph) -> list[dict[str, str]]:
    facts = {"node": node.name, "module": graph.module_of(node), "line": site_text(node.site)}
    if node.site is not None:
        facts["source"] = node.site.text
    if node.saved:
        facts["keeps"] = bytes_text(node.saved_bytes)
    for saved in node.saved:
        shape = f"{saved.dtype}[{','.join(map(str, saved.shape))}]"
        mark = ", changed since" if saved.changed else ""
        facts[f"saved {saved.name}"] = (
            f"{shape} {bytes_text(saved.nbytes)}, {saved.role}{mark}; {saved.reason}".rstrip("; ")
        )
    if node.freed:
        facts["freed"] = site_text(node.freed_at) or "yes"
    if node.order:
        facts["recorded by a backward, order"] = str(node.order)
    if node.iteration is not None:
        facts["iteration"] = str(node.iteration)
    if node.seconds is not None:
        facts["backward"] = f"{node.seconds * 1e6:.1f} µs"
    facts |= {name: str(value) for name, value in node.attrs.items()}
    return [_pair(key, value) for key, value in facts.items() if value]


def _pair(key: str, value: str) -> dict[str, str]:
    return {"key": key, "value": value}
