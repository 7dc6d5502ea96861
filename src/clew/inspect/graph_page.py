"""The interactive page of a graph: its data as JSON, and the page around it."""

from __future__ import annotations

import html
import linecache
import math
from typing import Any

from clew.inspect import page
from clew.inspect.fold import Group, fold, short_name
from clew.inspect.model import Graph, GraphNode, Saved
from clew.inspect.reasons import fate, hold

_AROUND = 2
"""So many lines of source are shown before and after a node's own."""

_LONGEST_ATTRIBUTE = 200


def html_of(graph: Graph) -> str:
    """A page that shows a graph; it needs no network and no other file."""
    return page.build(
        title=graph.title or "empty graph",
        kind="graph",
        data=data_of(graph),
        body="graph.html",
        styles=["graph.css"],
        scripts=[
            "vendor/dagre.min.js", "tree.js", "layout.js", "draw.js", "minimap.js", "panel.js",
            "search.js", "input.js", "graph.js",
        ],
    )  # fmt: skip


def in_notebook(graph: Graph, height: int = 560) -> str:
    """The page in a frame, for a notebook's cell."""
    source = html.escape(html_of(graph))
    return (
        f'<iframe srcdoc="{source}" width="100%" height="{height}" '
        'style="border:1px solid #8884;border-radius:8px"></iframe>'
    )


def data_of(graph: Graph) -> dict[str, Any]:
    """What the page's scripts read; absent values are left out."""
    root = fold(graph)
    table = _Table()
    nodes = [_node(node, graph, table) for node in graph.nodes]
    if len({n.iteration for n in graph.nodes if n.iteration is not None}) < 2:
        for node in nodes:
            node.pop("iteration", None)  # it says something only where there are several
    groups = _groups(root, graph)
    for group in root.groups():
        for child in group.children:
            if isinstance(child, int):
                nodes[child]["group"] = group.id
    return {
        "title": graph.title,
        "engine": graph.engine,
        "roots": graph.roots,
        "savedBytes": graph.saved_bytes,
        "parameterBytes": graph.parameter_bytes,
        "timed": any(n.seconds is not None for n in graph.nodes),
        "nodes": nodes,
        "groups": groups,
        "sites": table.sites,
        "texts": table.texts,
        "lines": [[table.site(site), nbytes] for site, nbytes in graph.by_line()[:12] if site],
    }


class _Table:
    """Lines and sentences, each once; others name them by position."""

    def __init__(self) -> None:
        self.sites: list[dict[str, Any]] = []
        self.texts: list[str] = []
        self._positions: dict[Any, int] = {}

    def site(self, site: Any) -> int | None:
        if site is None:
            return None
        if site not in self._positions:
            self._positions[site] = len(self.sites)
            self.sites.append(_site(site))
        return self._positions[site]

    def text(self, text: str) -> int | None:
        if not text:
            return None
        if text not in self._positions:
            self._positions[text] = len(self.texts)
            self.texts.append(text)
        return self._positions[text]


def _site(site: Any) -> dict[str, Any]:
    first = max(site.line - _AROUND, 1)
    around = [
        linecache.getline(site.file, i).rstrip() for i in range(first, site.line + _AROUND + 1)
    ]
    while around and not around[-1] and first + len(around) - 1 > site.line:
        around.pop()
    found = {"file": site.file, "line": site.line, "function": site.function, "text": site.text}
    return found | ({"first": first, "around": around} if site.text else {})


def _node(node: GraphNode, graph: Graph, table: _Table) -> dict[str, Any]:
    found = {
        "name": node.name,
        "short": short_name(node.name),
        "seq": None if node.leaf else node.seq,
        "outputs": node.outputs,
        "edges": node.edges,
        "inputs": node.inputs,
        "saved": [_saved(s, table) for s in node.saved],
        "bytes": sum({s.storage: s.storage_nbytes for s in _own(node)}.values()),
        "attrs": {k: str(v)[:_LONGEST_ATTRIBUTE] for k, v in node.attrs.items()},
        "site": table.site(node.site),
        "label": node.label,
        "module": table.text(graph.module_of(node)),
        "leaf": node.leaf,
        "freed": node.freed,
        "freedAt": table.site(node.freed_at),
        "fate": table.text(fate(node)),
        "hooks": node.hooks,
        "iteration": node.iteration,
        "order": node.order,
        "seconds": node.seconds,
    }
    return {k: v for k, v in found.items() if _is_told(v)}


def _saved(saved: Saved, table: _Table) -> dict[str, Any]:
    found = {
        "name": saved.name,
        "shape": list(saved.shape),
        "dtype": saved.dtype,
        "bytes": saved.nbytes,
        "storage": table.text(f"memory {saved.storage}"),
        "pins": saved.storage_nbytes,
        "role": saved.role,
        "changed": saved.changed,
        "version": saved.version,
        "versionNow": saved.version_now,
        "reason": table.text(saved.reason),
        "hold": table.text(hold(saved)),
    }
    return {k: v for k, v in found.items() if _is_told(v)}


def _is_told(value: Any) -> bool:
    """Whether a value says something; 0 does, it may be a position."""
    return value is not None and value is not False and (value == 0 or bool(value))


def _own(node: GraphNode) -> list[Saved]:
    """What a node keeps apart from parameters, which live anyway."""
    return [s for s in node.saved if s.role != "parameter"]


def _groups(root: Group, graph: Graph) -> list[dict[str, Any]]:
    """All groups in the order of their numbers, with the memory in each counted once."""
    found = []
    for group in root.groups():
        members = list(group.members())
        storages = {
            s.storage: s.storage_nbytes for m in members for s in _own(graph.nodes[m])
        }  # fmt: skip
        seconds = [t for m in members if (t := graph.nodes[m].seconds) is not None]
        found.append(
            {
                "title": group.title,
                "type": group.type,
                "kind": group.kind,
                "repeat": group.repeat,
                "path": group.path,
                "children": [
                    -c.id if isinstance(c, Group) else c for c in group.children
                ],  # a group has a number above 0 here: the outermost is in none
                "count": len(members),
                "bytes": sum(storages.values()),
                "seconds": math.fsum(seconds) if seconds else None,
            }
        )
    return found
