"""Write a graph to a file of the kind that its name's ending says."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from clew.inspect.dot import dot_of
from clew.inspect.graph_page import html_of
from clew.inspect.model import Graph
from clew.inspect.model_explorer import model_explorer_json
from clew.inspect.render import FORMATS

MOST_BOXES = 3000
"""Graphviz needs minutes for more."""

_TEXTS: dict[str, Callable[[Graph], str]] = {
    "html": html_of,
    "json": model_explorer_json,
    "dot": lambda graph: dot_of(graph).source,
    "gv": lambda graph: dot_of(graph).source,
}


def save(graph: Graph, path: str | os.PathLike[str]) -> None:
    """See `Graph.save`."""
    ending = Path(path).suffix.removeprefix(".").lower()
    if ending in _TEXTS:
        data = _TEXTS[ending](graph).encode()
    elif ending in FORMATS:
        data = _picture(graph, ending)
    else:
        raise ValueError(
            f"the ending of {os.fspath(path)!r} says no format: use .html, .svg, .pdf, .png, .dot, "
            ".gv or .json"
        )
    Path(path).write_bytes(data)


def _picture(graph: Graph, format: str) -> bytes:
    dot = dot_of(graph)
    boxes = dot.source.count("fillcolor=")
    if boxes > MOST_BOXES:
        raise ValueError(
            f"{boxes:,} boxes are too many for a picture that Graphviz lays out and people read: "
            "save the graph as .html, which folds them"
        )
    return dot.pipe(format)
