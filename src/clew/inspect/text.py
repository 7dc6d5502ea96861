"""A graph in a terminal: a table of its nodes and a summary.  Uses rich."""

from __future__ import annotations

import os
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from clew.inspect.model import Graph, GraphNode

LONGEST = 60
"""So many nodes are listed; the middle of a longer graph is left out."""


def bytes_text(n: int) -> str:
    """Bytes as people read them: ``512 B``, ``1.5 kB``, ``3.2 MB`` (powers of 1000)."""
    size = float(n)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{n} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{n} B"


def site_text(site: Any) -> str:
    """``train.py:12`` of a resolved site."""
    return "" if site is None else f"{os.path.basename(site.file)}:{site.line}"


def renderable(graph: Graph) -> Any:
    """A table of the nodes, and what they keep in all."""
    if not graph.nodes:
        return Text(f"{graph.title}: no graph leads to it")
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("#", justify="right", style="dim")
    table.add_column("node")
    table.add_column("output", style="cyan")
    table.add_column("next", style="dim")
    table.add_column("kept for backward")
    table.add_column("line", style="green")
    for node in _listed(graph):
        if node is None:
            table.add_row("", f"... {len(graph) - LONGEST} more ...", "", "", "", "")
        else:
            table.add_row(*_row(node))
    return Group(Text(graph.title), table, Text(totals(graph)))


def _listed(graph: Graph) -> list[GraphNode | None]:
    if len(graph) <= LONGEST:
        return list(graph.nodes)
    half = LONGEST // 2
    return [*graph.nodes[:half], None, *graph.nodes[-half:]]


def _row(node: GraphNode) -> tuple[str, ...]:
    name = f"{node.name} {node.label}" if node.label else node.name
    outputs = ", ".join(_shape(shape) for shape, _ in node.outputs)
    following = " ".join("-" if e is None else str(e[0]) for e in node.edges)
    kept = "freed" if node.freed else ", ".join(_kept(s) for s in node.saved)
    line = site_text(node.site)
    text = f"{line}  {node.site.text}" if node.site is not None and node.site.text else line
    return str(node.id), name, outputs, following, kept, text


def _shape(shape: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _kept(saved: Any) -> str:
    mark = " (parameter)" if saved.role == "parameter" else ""
    changed = " CHANGED SINCE" if saved.changed else ""
    return f"{saved.name} {_shape(saved.shape)} {bytes_text(saved.storage_nbytes)}{mark}{changed}"


def totals(graph: Graph) -> str:
    """Nodes and bytes in a few words."""
    parameters = graph.parameter_bytes
    text = f"{len(graph)} nodes, {bytes_text(graph.saved_bytes)} kept for backward"
    return text + (f" and {bytes_text(parameters)} of parameters" if parameters else "")


def render(graph: Graph) -> str:
    """The text of `renderable`, without colours."""
    console = Console(width=120, no_color=True, highlight=False, record=False)
    with console.capture() as capture:
        console.print(renderable(graph))
    return "\n".join(line.rstrip() for line in capture.get().splitlines())
