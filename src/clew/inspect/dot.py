"""Graphs as DOT: `make_dot` with torchviz's signature, and the object it returns."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from clew.inspect.model import Graph, GraphNode, Saved
from clew.inspect.render import FORMATS, render_bytes
from clew.inspect.text import bytes_text, site_text

_LEAF, _OP, _ROOT, _SAVED, _BASE = "lightblue", "lightgrey", "darkolivegreen1", "orange", "white"


def make_dot(
    var: Any,
    params: Any = None,
    show_attrs: bool = False,
    show_saved: bool = False,
    max_attr_chars: int = 50,
) -> Dot:
    """A picture of the graph that led to a tensor; torchviz's call.

    Blue boxes are leaves, grey ones operations (with the bytes they keep and the line that
    recorded them), green is the tensor itself, orange are saved tensors.

    Args:
        var: a tensor, or a sequence of them.
        params: names of leaves: a dict, ``dict(model.named_parameters())``, or a module.
        show_attrs: list each operation's attributes and what it keeps.
        show_saved: draw saved tensors as boxes of their own.
        max_attr_chars: cut longer attributes.

    Returns:
        A `Dot` with `source`, `render(filename, format=...)` and a picture in notebooks.
    """
    from clew.inspect.walk import graph

    return dot_of(
        graph(var, params=params), show_attrs=show_attrs, show_saved=show_saved,
        max_attr_chars=max_attr_chars,
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
            view: ignored: clew opens no windows.
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
        return os.fspath(picture)

    def save(self, filename: Any = "graph.gv", directory: Any = None) -> str:
        """Write the DOT text; its path."""
        path = Path(directory or "") / filename
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.source, encoding="utf-8")
        return os.fspath(path)

    def write(self, path: Any) -> None:
        """Write a picture or the DOT text, whichever the ending of `path` says.

        Raises:
            ValueError: another ending than svg, pdf, png, dot, gv.
        """
        kind = Path(path).suffix.removeprefix(".").lower()
        if kind in ("dot", "gv"):
            Path(path).write_text(self.source, encoding="utf-8")
        elif kind in FORMATS:
            Path(path).write_bytes(self.pipe(kind))
        else:
            raise ValueError(
                f"the ending of {os.fspath(path)!r} says no format: use .svg, .pdf, .png or .dot"
            )

    def _repr_svg_(self) -> str:
        return self.pipe("svg").decode()


def dot_of(
    graph: Graph, *, show_attrs: bool = False, show_saved: bool = False, max_attr_chars: int = 50
) -> Dot:
    """The DOT text of a graph's plain data."""
    lines = [
        "digraph {",
        f"  graph [label={_quoted(_caption(graph))} labelloc=t fontname=Helvetica fontsize=11]",
        "  node [shape=box style=filled fontname=Helvetica fontsize=10 height=0.2]",
        "  edge [color=grey40]",
    ]
    if graph.nodes:
        lines.append(f"  root [label={_quoted(graph.title)} fillcolor={_ROOT}]")
        lines.append("  n0 -> root")
    else:
        lines.append(f"  root [label={_quoted(graph.title + ': no graph')} fillcolor={_ROOT}]")
    drawn: dict[int, int] = {}
    for node in graph.nodes:
        label = _label(node, show_attrs, max_attr_chars)
        color = _LEAF if node.leaf else _OP
        lines.append(f"  n{node.id} [label={_quoted(label)} fillcolor={color}]")
        if show_saved:
            lines += _saved_boxes(node, drawn)
    for source, target in graph.edges:
        # Drawn in the direction of the computation, as torchviz draws it.
        lines.append(f"  n{target} -> n{source}")
    return Dot("\n".join([*lines, "}"]) + "\n")


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
        lines.append(f"keeps {bytes_text(node.saved_bytes)}")
    if node.site is not None:
        lines.append(site_text(node.site))
    if show_attrs:
        facts = {k: str(v) for k, v in node.attrs.items()}
        facts |= {s.name: f"[saved {', '.join(map(str, s.shape))}]" for s in node.saved}
        lines += [f"{k}: {v[:max_chars]}{'...' * (len(v) > max_chars)}" for k, v in facts.items()]
    return "\n".join(lines)


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
