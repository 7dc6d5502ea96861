"""Put the nodes of a graph where recordings saw them made: in modules, iterations, orders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from clew.inspect.model import GraphNode, Scope
from clew.inspect.recording import Recording


def place(nodes: list[GraphNode], recordings: Sequence[Recording]) -> list[Scope]:
    """Tell nodes their scope, iteration, order and line (Note [Marks] in ``recording.py``).

    Returns:
        The scopes that they name.
    """
    scopes: list[Scope] = []
    rounds = 0
    for recording in recordings:
        before = len(scopes)
        others = [r for r in recordings if r.row is not recording.row]
        known = [n for n in nodes if not any(other.covers(n.seq) for other in others)]
        recording.tell(known, before, rounds)
        rounds += recording.rounds
        for scope in recording.scopes:
            parent = None if scope.parent is None else before + scope.parent
            scopes.append(replace(scope, id=before + scope.id, parent=parent))
    _place_leaves(nodes, scopes)
    return _renumbered(nodes, scopes)


def _place_leaves(nodes: list[GraphNode], scopes: list[Scope]) -> None:
    """A leaf belongs to the innermost module call that all its uses are in."""
    uses: dict[int, list[GraphNode]] = {}
    for node in nodes:
        for edge in node.edges:
            if edge is not None and nodes[edge[0]].leaf:
                uses.setdefault(edge[0], []).append(node)
    for leaf, users in uses.items():
        common = _ancestors(users[0].scope, scopes)
        for user in users[1:]:
            mine = set(_ancestors(user.scope, scopes))
            common = [s for s in common if s in mine]
        nodes[leaf].scope = common[0] if common else None
        nodes[leaf].order = min(u.order for u in users)


def _ancestors(scope: int | None, scopes: list[Scope]) -> list[int]:
    """A scope and those around it, innermost first."""
    found = []
    while scope is not None:
        found.append(scope)
        scope = scopes[scope].parent
    return found


def _renumbered(nodes: list[GraphNode], scopes: list[Scope]) -> list[Scope]:
    """Only the scopes that nodes are in, numbered anew, with calls counted among them."""
    used = sorted({a for n in nodes for a in _ancestors(n.scope, scopes)})
    numbers = {old: new for new, old in enumerate(used)}
    for node in nodes:
        node.scope = None if node.scope is None else numbers[node.scope]
    calls: dict[str, int] = {}
    kept = []
    for old in used:
        scope = scopes[old]
        parent = None if scope.parent is None else numbers[scope.parent]
        call = calls.get(scope.path, 0)
        calls[scope.path] = call + 1
        kept.append(replace(scope, id=numbers[old], parent=parent, call=call))
    return kept
