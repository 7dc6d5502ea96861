"""A graph as a tree in a terminal: groups, and in them nodes with what they keep.  Uses rich."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from clew.inspect.fold import Group, fold, short_name
from clew.inspect.model import Graph, GraphNode
from clew.inspect.text import bytes_text, site_text, totals


def tree(graph: Graph, *, most: int = 200) -> Tree:
    """The tree of a graph's groups, in the order of the forward computation.

    Of blocks that repeat only the first is shown, with how often it comes.

    Args:
        graph: the graph.
        most: so many lines at most.
    """
    top = Tree(Text.assemble((graph.title, "bold"), "  ", (totals(graph), "dim")))
    left = most
    stack: list[tuple[Any, Tree]] = [(c, top) for c in reversed(fold(graph).children)]
    if not stack:
        top.add(Text("no graph leads to it", "dim"))
    while stack:
        item, branch = stack.pop()
        if not left:
            branch.add(Text("... more ...", "dim"))
            break
        left -= 1
        if not isinstance(item, Group):
            branch.add(_node(graph.nodes[item]))
            continue
        inner = branch.add(_group(item, graph))
        children = item.children[:1] if item.repeat > 1 else item.children
        stack += [(child, inner) for child in reversed(children)]
    return top


def print_tree(graph: Graph) -> None:
    """Print the tree, coloured on a terminal."""
    Console(highlight=False).print(tree(graph))


def _group(group: Group, graph: Graph) -> Text:
    storages = {
        s.storage: s.storage_nbytes
        for member in group.members()
        for s in graph.nodes[member].saved
        if s.role != "parameter"
    }
    text = Text.assemble((group.title, "bold"))
    if group.type:
        text.append(f" {group.type}", "dim")
    if group.repeat > 1:
        text.append(f"  ×{group.repeat}", "bold magenta")
    kept = sum(storages.values())
    return text.append(f"  {bytes_text(kept)}" if kept else "", "yellow")


def _node(node: GraphNode) -> Text:
    shapes = " ".join(f"[{', '.join(map(str, shape))}]" for shape, _ in node.outputs)
    if node.leaf:
        return Text.assemble((node.label or "leaf", "blue"), f" {shapes}")
    text = Text.assemble(short_name(node.name), (f" {shapes}", "cyan"))
    kept = sum({s.storage: s.storage_nbytes for s in node.saved if s.role != "parameter"}.values())
    text.append(f"  {bytes_text(kept)}" if kept else "", "yellow")
    if node.freed:
        text.append("  freed", "dim")
    if any(s.changed for s in node.saved):
        text.append("  CHANGED SINCE", "bold red")
    return text.append(f"  {site_text(node.site)}" if node.site else "", "green")
