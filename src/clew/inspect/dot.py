"""Graphs as DOT: `make_dot` with torchviz's signature, and the object it returns."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path
from typing import Any

from clew.inspect.fold import Group, fold
from clew.inspect.model import Graph, GraphNode, Saved
from clew.inspect.render import render_bytes
from clew.inspect.text import bytes_text, site_text

_LEAF, _OP, _ROOT, _SAVED, _BASE = "lightblue", "lightgrey", "darkolivegreen1", "orange", "white"


def make_dot(
    var: Any,
    params: Any = None,
    show_attrs: bool = False,
    show_saved: bool = False,
    max_attr_chars: int = 50,
    *,
    clusters: bool = True,
    roll: bool = True,
) -> Dot:
    """A picture of the graph that led to a tensor; torchviz's call.

    Blue boxes are leaves, grey ones operations (with the bytes they keep and the line that
    recorded them), green is the tensor itself, orange are saved tensors.  A red frame says that a
    kept tensor was changed since, a dashed one that a backward pass recorded the operation.

    Args:
        var: a tensor, or a sequence of them.
        params: names of leaves: a dict, ``dict(model.named_parameters())``, or a module.
        show_attrs: list each operation's attributes and what it keeps.
        show_saved: draw saved tensors as boxes of their own.
        max_attr_chars: cut longer attributes.
        clusters: draw a frame around what each module's forward recorded, where that is known
            (`clew.inspect.record`).
        roll: draw blocks that repeat once, with ×N on their frame.

    Returns:
        A `Dot` with `source`, `render(filename, format=...)` and a picture in notebooks.
    """
    from clew.inspect.walk import graph

    return dot_of(
        graph(var, params=params), show_attrs=show_attrs, show_saved=show_saved,
        max_attr_chars=max_attr_chars, clusters=clusters, roll=roll,
    )  # fmt: skip


class Dot:
    """A graph in the DOT language.

    Attributes:
        source: the text.
        format: the format that `render` uses when it is given none.
    """

    def __init__(self, source: str, format: str = "pdf") -> None:
        self.source = source
        self.format = format

    def __str__(self) -> str:
        return self.source

    def pipe(self, format: str | None = None) -> bytes:
        """The picture as bytes."""
        return render_bytes(self.source, format or self.format)

    def render(
        self,
        filename: Any = "graph",
        directory: Any = None,
        view: bool = False,
        cleanup: bool = False,
        format: str | None = None,
    ) -> str:
        """Write ``filename`` (the DOT text) and ``filename.<format>`` (the picture).

        Args:
            filename: where to write, without the picture's ending.
            directory: a folder for both.
            view: show the picture in what this computer shows such files with.
            cleanup: leave only the picture.
            format: svg, pdf or png.

        Returns:
            The path of the picture.
        """
        path = Path(directory or "") / filename
        kind = format or self.format
        picture = path.with_name(f"{path.name}.{kind}")
        data = self.pipe(kind)
        path.parent.mkdir(parents=True, exist_ok=True)
        picture.write_bytes(data)
        if not cleanup:
            path.write_text(self.source, encoding="utf-8")
        if view:
            webbrowser.open(picture.resolve().as_uri())
        return os.fspath(picture)

    def save(self, filename: Any = "graph.gv", directory: Any = None) -> str:
        """Write the DOT text; its path."""
        path = Path(directory or "") / filename
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.source, encoding="utf-8")
        return os.fspath(path)

    def _repr_svg_(self) -> str:
        return self.pipe("svg").decode()


def dot_of(
    graph: Graph,
    *,
    show_attrs: bool = False,
    show_saved: bool = False,
    max_attr_chars: int = 50,
    clusters: bool = True,
    roll: bool = True,
) -> Dot:
    """The DOT text of a graph's plain data; the arguments are those of `make_dot`."""
    lines = [
        "digraph {",
        f"  graph [label={_quoted(_caption(graph))} labelloc=t fontname=Helvetica fontsize=11]",
        "  node [shape=box style=filled fontname=Helvetica fontsize=10 height=0.2]",
        "  edge [color=grey40]",
    ]
    shown = _Shown(graph, clusters, roll)
    lines += _roots(graph, shown)
    drawn: dict[int, int] = {}
    for item, depth in shown.items:
        indent = "  " * (depth + 1)
        if isinstance(item, str):
            lines.append(indent + item)
            continue
        node = graph.nodes[item]
        label = _label(node, show_attrs, max_attr_chars)
        lines.append(f"{indent}n{node.id} [label={_quoted(label)} {_style(node)}]")
    if show_saved:
        for node in graph.nodes:
            if shown.stands_for[node.id] == node.id:
                lines += _saved_boxes(node, drawn)
    # Drawn in the direction of the computation, as torchviz draws it.
    lines += [f"  n{target} -> n{source}" for source, target in shown.edges()]
    return Dot("\n".join([*lines, "}"]) + "\n")


class _Shown:
    """Which nodes are drawn, in which clusters.

    Attributes:
        items: (node id or a line that opens or closes a cluster, depth), in the order of the text.
        stands_for: for each node the node that is drawn for it: of blocks that repeat, the one at
            its place in the first block.
    """

    def __init__(self, graph: Graph, clusters: bool, roll: bool) -> None:
        self.graph = graph
        self.items: list[tuple[Any, int]] = []
        self.stands_for = list(range(len(graph)))
        self._blocks: dict[int, dict[int, int]] = {}  # by node: its block in each repetition
        if not clusters and not roll:
            self.items = [(node.id, 0) for node in graph.nodes]
            return
        stack: list[tuple[Any, int]] = [(fold(graph, ranges=False), 0)]
        while stack:
            item, depth = stack.pop()
            if not isinstance(item, Group):
                self.items.append((item, depth))
                continue
            children = item.children
            if roll and item.repeat > 1:
                self._stand_in(item)
                children = children[:1]
            if item.kind != "graph" and clusters and item.kind != "leaves":
                self.items.append((f"subgraph cluster_{item.id} {{", depth))
                self.items.append((_cluster_style(item, roll), depth + 1))
                stack.append(("}", depth))
                depth += 1
            stack += [(child, depth) for child in reversed(children)]

    def _stand_in(self, repetition: Group) -> None:
        blocks = [list(b.members()) if isinstance(b, Group) else [b] for b in repetition.children]
        for number, block in enumerate(blocks):
            for mine, first in zip(block, blocks[0]):
                self._blocks.setdefault(mine, {})[repetition.id] = number
                if number:
                    self.stands_for[mine] = self.stands_for[first]

    def edges(self) -> list[tuple[int, int]]:
        """(node, node that its gradient goes to): those of the drawn nodes, one for each input,
        then those that nodes which are not drawn have to others, once each."""
        found: list[tuple[int, int]] = []
        known: set[tuple[int, int]] = set()
        for own in (True, False):
            for source, target in self.graph.edges:
                edge = (self.stands_for[source], self.stands_for[target])
                if (edge == (source, target)) is not own or self._joins_blocks(source, target):
                    continue
                if own or (edge not in known and edge[0] != edge[1]):
                    found.append(edge)
                    known.add(edge)
        return found

    def _joins_blocks(self, source: int, target: int) -> bool:
        """Whether an edge leads from one block of a repetition to another, which is not drawn."""
        mine, other = self._blocks.get(source, {}), self._blocks.get(target, {})
        return any(other.get(repetition, number) != number for repetition, number in mine.items())


def _cluster_style(group: Group, roll: bool) -> str:
    title = f"{group.title}  {group.type}".rstrip()
    if group.repeat > 1 and roll:
        title += f"  ×{group.repeat}"
    dashed = "dashed" if group.kind == "repeat" else "rounded"
    return (
        f"label={_quoted(title)} labeljust=l fontsize=10 color=grey60 "
        f'style="{dashed}" bgcolor="#00000008"'
    )


def _roots(graph: Graph, shown: _Shown) -> list[str]:
    """A green box for each tensor that the graph leads to."""
    if not graph.roots:
        return [f"  root [label={_quoted(graph.title + ': no graph')} fillcolor={_ROOT}]"]
    lines = []
    for number, (node, _) in enumerate(graph.roots):
        name = "root" if not number else f"root{number}"
        shape, dtype = graph.nodes[node].outputs[0] if graph.nodes[node].outputs else ((), "")
        text = graph.title if len(graph.roots) == 1 else f"{dtype} [{', '.join(map(str, shape))}]"
        lines.append(f"  {name} [label={_quoted(text)} fillcolor={_ROOT}]")
        lines.append(f"  n{shown.stands_for[node]} -> {name}")
    return lines


def _caption(graph: Graph) -> str:
    return (
        f"{len(graph)} nodes, {bytes_text(graph.saved_bytes)} kept for backward, "
        f"{bytes_text(graph.parameter_bytes)} of parameters"
    )


def _label(node: GraphNode, show_attrs: bool, max_chars: int) -> str:
    shapes = ", ".join(f"[{', '.join(map(str, s))}]" for s, _ in node.outputs)
    if node.leaf:
        return "\n".join(filter(None, (node.label, f"AccumulateGrad {shapes}")))
    lines = [f"{node.name} {shapes}"]
    if node.freed:
        lines.append("freed")
    elif node.saved:
        changed = " (changed since)" if any(s.changed for s in node.saved) else ""
        lines.append(f"keeps {bytes_text(node.saved_bytes)}{changed}")
    if node.site is not None:
        lines.append(site_text(node.site))
    if show_attrs:
        facts = {k: str(v) for k, v in node.attrs.items()}
        facts |= {s.name: f"[saved {', '.join(map(str, s.shape))}]" for s in node.saved}
        lines += [f"{k}: {v[:max_chars]}{'...' * (len(v) > max_chars)}" for k, v in facts.items()]
    return "\n".join(lines)


def _style(node: GraphNode) -> str:
    """Blue leaves; a red frame where backward will raise; dashed what a backward recorded."""
    style = f"fillcolor={_LEAF if node.leaf else _OP}"
    if any(s.changed for s in node.saved):
        style += " color=red penwidth=2"
    if node.order and not node.leaf:
        style += ' style="filled,dashed"'
    return style


def _saved_boxes(node: GraphNode, drawn: dict[int, int]) -> list[str]:
    """A box for each memory that is kept, drawn once however many nodes keep it."""
    lines = []
    for saved in node.saved:
        if saved.storage not in drawn:
            # By number, not by address: the same program gives the same text.
            drawn[saved.storage] = len(drawn)
            color = _BASE if saved.role == "parameter" else _SAVED
            label = _quoted(_saved_label(saved))
            lines.append(f"  s{drawn[saved.storage]} [label={label} fillcolor={color}]")
        lines.append(
            f"  s{drawn[saved.storage]} -> n{node.id} [style=dashed dir=none color=orange3 "
            f"label={_quoted(saved.name)} fontsize=8]"
        )
    return lines


def _saved_label(saved: Saved) -> str:
    shape = f"[{', '.join(map(str, saved.shape))}]"
    return f"{saved.role} {saved.dtype} {shape}\n{bytes_text(saved.storage_nbytes)}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
