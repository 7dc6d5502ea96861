"""Fold a graph into groups: modules, recorded backwards, iterations, and blocks that repeat.

Every picture is drawn from this tree, so that they agree.

Note [Groups are intervals]
    In the order of the forward computation, what a module call does stands together, and so does
    each block of a repetition and each range of a long list.  A group therefore never leads out of
    itself and back: drawing it as one box makes no cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from clew.inspect.model import Graph, GraphNode

LONGEST_BLOCK = 64
"""So many things in a row are looked at as one block that may repeat."""

MOST_CHILDREN = 120
"""A longer list is cut into ranges."""


@dataclass
class Group:
    """Nodes that are drawn as one box until somebody unfolds it.

    Attributes:
        title: what it is called.
        type: what it is: the module's class, or a few words.
        kind: "graph", "module", "repeat", "block", "range", "leaves", "iteration", "backward" or
            "function".
        children: node ids and groups, in the order of the forward computation.
        repeat: how many blocks of the same form it holds; 1 if it is no repetition.
        path: the module's path, or "".
        id: its number, in the order of a walk from the outermost.
    """

    title: str
    type: str
    kind: str
    children: list[Any] = field(default_factory=list)
    repeat: int = 1
    path: str = ""
    id: int = 0

    def members(self) -> Iterator[int]:
        """The ids of all nodes in it."""
        stack: list[Any] = [self]
        while stack:
            item = stack.pop()
            if isinstance(item, Group):
                stack.extend(reversed(item.children))
            else:
                yield item

    def groups(self) -> Iterator[Group]:
        """It and all groups in it, each before those in it."""
        stack = [self]
        while stack:
            group = stack.pop()
            yield group
            stack.extend(c for c in reversed(group.children) if isinstance(c, Group))


def fold(graph: Graph, *, ranges: bool = True) -> Group:
    """The outermost group of a graph, with all others in it; `ranges` cuts long lists."""
    root = _by_path(graph)
    _roll_all(root, graph)
    if ranges:
        for group in list(root.groups()):
            _cut_into_ranges(group)
    for number, group in enumerate(root.groups()):
        group.id = number
    return root


# -- by what made them


def _by_path(graph: Graph) -> Group:
    root = Group(graph.title, "", "graph")
    forward = graph.nodes[::-1]
    iterations = _iterations(forward)
    functions = _functions(forward) if not graph.scopes else {}
    scopes: dict[Any, Group] = {}
    runs: dict[int, tuple[Any, Group]] = {}  # by depth: what the last group is of, and it
    for node in forward:
        place = root
        keys = _run_keys(node, iterations, functions)
        for depth, (key, make) in enumerate(keys):
            if depth not in runs or runs[depth][0] != (id(place), key):
                runs[depth] = ((id(place), key), make())
                place.children.append(runs[depth][1])
            place = runs[depth][1]
        place = _module_group(graph, node.scope, place, scopes)
        place.children.append(node.id)
    for group in list(root.groups()):
        group.children = [_unwrapped(child) for child in group.children]
    _put_leaves_first(root, forward)
    return root


def _unwrapped(item: Any) -> Any:
    """The only node of a module instead of a box around it."""
    while isinstance(item, Group) and item.kind == "module" and len(item.children) == 1:
        if isinstance(item.children[0], Group):
            break
        item = item.children[0]
    return item


def _put_leaves_first(root: Group, forward: Sequence[GraphNode]) -> None:
    """Let a leaf stand before the group of its first use, not between what is in it."""
    first_use: dict[int, tuple[int, int]] = {}  # by node: its first user, and as which input
    for node in forward:
        for number, edge in enumerate(node.edges):
            if edge is not None:
                first_use.setdefault(edge[0], (node.id, number))
    leaves = {n.id for n in forward if n.leaf}
    around = {_key(c): _key(group) for group in root.groups() for c in group.children}
    for group in root.groups():
        if all(isinstance(c, Group) or c not in leaves for c in group.children):
            continue
        places = {_key(c): i for i, c in enumerate(group.children)}

        def place(child: Any, places: dict[Any, int] = places) -> tuple[int, int, int]:
            key = _key(child)
            user, number = first_use.get(key, (None, 0)) if key in leaves else (None, 0)
            while user is not None and user not in places:
                user = around.get(user)
            return (places[key], 1, 0) if user is None else (places[user], 0, number)

        group.children.sort(key=place)
        group.children = _leaves_together(group.children, lambda c: place(c)[:2])


def _leaves_together(children: list[Any], place: Callable[[Any], Any]) -> list[Any]:
    """Put three leaves and more that one group is the first to use into a box of their own."""
    found: list[Any] = []
    runs = [list(run) for _, run in groupby(children, key=place)]
    for run, following in zip(runs, [*runs[1:], []]):
        user = following[0] if following else None
        if len(run) > 2 and isinstance(user, Group) and not isinstance(run[0], Group):
            found.append(Group(f"{len(run)} leaves", f"of {user.title}", "leaves", run))
        else:
            found += run
    return found


def _key(item: Any) -> Any:
    """A node's id, or something that no other group and no node has."""
    return ("group", id(item)) if isinstance(item, Group) else item


def _run_keys(
    node: GraphNode, iterations: dict[int, int], functions: dict[int, Any]
) -> list[tuple[Any, Callable[[], Group]]]:
    """What groups a node is in that have no module: as keys, with what makes the group."""
    keys: list[tuple[Any, Callable[[], Group]]] = []
    if iterations:
        number = iterations[node.id]
        keys.append(
            (("iteration", number), lambda: Group(f"iteration {number}", "", "iteration"))
        )  # fmt: skip
    if node.order:
        times = "backward" if node.order == 1 else f"backward, order {node.order}"
        keys.append(
            (("backward", node.order), lambda: Group(f"recorded {times}", "", "backward"))
        )  # fmt: skip
    elif node.id in functions:
        name, run = functions[node.id]
        keys.append((("function", run), lambda: Group(f"{name}()", "function", "function")))
    return keys


def _iterations(forward: Sequence[GraphNode]) -> dict[int, int]:
    """The iteration of each node where there are several; a leaf has that of its first use."""
    if len({n.iteration for n in forward if n.iteration is not None}) < 2:
        return {}
    found: dict[int, int] = {}
    current = 0
    for node in reversed(forward):
        current = node.iteration if node.iteration is not None else current
        found[node.id] = current
    return found


def _functions(forward: Sequence[GraphNode]) -> dict[int, Any]:
    """(name, number of the run) for nodes that several lines of one function made in a row."""
    found: dict[int, Any] = {}
    if len(forward) < 30:
        return found
    named = [n for n in forward if n.site is not None and not n.leaf]
    if len({(n.site.file, n.site.function) for n in named}) < 2:
        return found
    runs = groupby(named, key=lambda n: (n.site.file, n.site.function))
    for run, ((_, name), nodes) in enumerate(runs):
        members = list(nodes)
        if len(members) >= 3 and not name.startswith("<"):
            found.update((n.id, (name, run)) for n in members)
    waiting: list[int] = []  # leaves before the node that uses them first
    for node in forward:
        if node.leaf:
            waiting.append(node.id)
            continue
        if node.id in found:
            found.update((leaf, found[node.id]) for leaf in waiting)
        waiting = []
    return found


def _module_group(
    graph: Graph, scope: int | None, place: Group, known: dict[Any, Group]
) -> Group:  # fmt: skip
    """The group of a module call inside `place`, made with those around it where it is new."""
    if scope is None:
        return place
    key = (id(place), scope)
    if key not in known:
        call = graph.scopes[scope]
        around = _module_group(graph, call.parent, place, known)
        outer = None if call.parent is None else graph.scopes[call.parent].call
        again = f" (call {call.call + 1})" if call.call and call.call != outer else ""
        known[key] = Group(call.name + again, call.type, "module", path=call.path)
        around.children.append(known[key])
    return known[key]


# -- blocks that repeat


def _roll_all(root: Group, graph: Graph) -> None:
    """Put blocks that follow each other with the same form into one group, innermost first."""
    numbers: dict[Any, int] = {}
    forms: dict[int, int] = {}

    def form(item: Any) -> int:
        if isinstance(item, Group):
            return forms[id(item)]
        return numbers.setdefault(_form_of(graph.nodes[item]), len(numbers))

    for group in reversed(list(root.groups())):
        row = [form(child) for child in group.children]
        whole = (group.type, group.kind, tuple(row))
        forms[id(group)] = numbers.setdefault(whole, len(numbers))
        group.children = _rolled(group.children, row, graph)


def _form_of(node: GraphNode) -> Any:
    saved = tuple((s.name, s.shape, s.dtype) for s in node.saved)
    return node.name, tuple(node.outputs), len(node.edges), saved, node.order


def _rolled(children: list[Any], row: list[int], graph: Graph) -> list[Any]:
    found: list[Any] = []
    at = 0
    while at < len(children):
        length, times = _best_block(row, at)
        if times and not _worth_it(children[at : at + length], times, graph):
            times = 0
        if not times:
            found.append(children[at])
            at += 1
            continue
        blocks = [children[at + i * length : at + (i + 1) * length] for i in range(times)]
        found.append(_repetition(blocks, graph))
        at += length * times
    return found


def _best_block(row: list[int], at: int) -> tuple[int, int]:
    """(length, times) of the shortest block at a place whose repetitions reach furthest."""
    best = (0, 0)
    n = len(row)
    for length in range(1, min(LONGEST_BLOCK, (n - at) // 2) + 1):
        if row[at + length] != row[at]:
            continue
        end = at + length
        while end < n and row[end] == row[end - length]:
            end += 1
        times = (end - at) // length
        if times > 1 and times * length > best[0] * best[1]:
            best = (length, times)
    return best


def _worth_it(block: list[Any], times: int, graph: Graph) -> bool:
    """Whether a box with ×N says more than the things themselves."""
    size = sum(sum(1 for _ in c.members()) if isinstance(c, Group) else 1 for c in block)
    if all(not isinstance(c, Group) and graph.nodes[c].leaf for c in block):
        return False
    if any(isinstance(c, Group) for c in block):
        return size * times >= 6
    return times >= 3 and size * times >= 8


def _repetition(blocks: list[list[Any]], graph: Graph) -> Group:
    first, last = blocks[0], blocks[-1]
    if len(first) == 1 and isinstance(first[0], Group):
        title = f"{first[0].title} … {last[0].title}"
        return Group(
            title, first[0].type, "repeat", [b[0] for b in blocks], len(blocks), first[0].path
        )  # fmt: skip
    names = list(dict.fromkeys(_short(c, graph) for c in first if not _is_leaf(c, graph)))
    title = " · ".join(names[:3]) + (" …" if len(names) > 3 else "")
    made = [Group(f"{title} #{i + 1}", "", "block", block) for i, block in enumerate(blocks)]
    return Group(title, "", "repeat", list(made), len(made))


def _is_leaf(item: Any, graph: Graph) -> bool:
    return not isinstance(item, Group) and graph.nodes[item].leaf


def _short(item: Any, graph: Graph) -> str:
    if isinstance(item, Group):
        numbered = item.title.rpartition(".")[2].isdigit()
        return item.type if numbered and item.type else item.title
    return short_name(graph.nodes[item].name)


def short_name(name: str) -> str:
    """``Mul`` of ``MulBackward0``."""
    return name.rstrip("0123456789").removesuffix("Backward") or name


# -- long lists


def _cut_into_ranges(group: Group, first: int = 1) -> None:
    """Let no group have more than `MOST_CHILDREN` children; `first` is the number of the first."""
    step = 1
    while -(-len(group.children) // step) > MOST_CHILDREN:
        step *= MOST_CHILDREN
    if step == 1:
        return
    pieces = []
    for start in range(0, len(group.children), step):
        children = group.children[start : start + step]
        title = f"{first + start}–{first + start + len(children) - 1}"
        part = Group(title, "part of the list", "range", children)
        _cut_into_ranges(part, first + start)
        pieces.append(part)
    group.children = list(pieces)
