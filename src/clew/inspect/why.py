"""`clew.why` and `clew.who_holds`: answers about one tensor, of clew or of real PyTorch.

Imports the words of the doctor, and who holds what.  What an engine does not tell is said to be
unknown, with the way to get it.
"""

from __future__ import annotations

import sys
from typing import Any

from clew.inspect.doctor.explain import is_tensor, source_line
from clew.inspect.holders import Chain, chain_to
from clew.inspect.watch.paths import OWN, variable_of
from clew.site import SourceLine, resolve

_KEY = "clew.watch"
MOST_LEAVES = 5


class Answer:
    """A text, and the facts in it.

    Attributes:
        requires_grad: the tensor's flag.
        cut: what kept the tensor out of a graph: ``detach()``, ``no_grad``, ...; None if nothing.
        lines: (what, line) of the lines that matter.
        paths: for each leaf that the graph leads to, the names of the nodes on a shortest way.
    """

    def __init__(self, requires_grad: bool) -> None:
        self.requires_grad = requires_grad
        self.cut: str | None = None
        self.lines: list[tuple[str, SourceLine]] = []
        self.paths: list[list[str]] = []
        self.text = ""

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text


def why(tensor: Any) -> Answer:
    """Why a tensor requires grad, by the way to its leaves; or why it does not, by what cut it off.

    Args:
        tensor: of clew or of real PyTorch.

    Raises:
        TypeError: it is no tensor.

    >>> x = torch.ones(2, requires_grad=True)
    >>> y = (x * 2).detach()
    >>> clew.why(y).cut
    'detach()'
    """
    if not is_tensor(tensor):
        raise TypeError(f"why() takes a tensor, got {type(tensor).__name__}")
    answer = Answer(bool(tensor.requires_grad))
    if answer.requires_grad:
        _explain_path(tensor, answer)
    else:
        _explain_cut(tensor, answer)
    return answer


def _explain_path(tensor: Any, answer: Answer) -> None:
    node = tensor.grad_fn
    if node is None:
        where = _leaf_line(tensor)
        if where is not None:
            answer.lines.append(("made", where))
        kind = "a parameter" if type(tensor).__name__ == "Parameter" else "a leaf"
        place = f", made on {where.file}:{where.line}" if where else ""
        answer.text = f"It requires grad because it is {kind} that was told to{place}."
        return
    ways, total = _ways_to_leaves(node)
    lines = ["It requires grad because it was computed from tensors that do:"]
    for nodes, leaf in ways:
        answer.paths.append([_name(n) for n in nodes])
        steps = " <- ".join(_step(n) for n in nodes)
        lines.append(f"  {steps} <- {_leaf(leaf)}")
        answer.lines += [(_name(n), at) for n in nodes if (at := _node_line(n)) is not None]
    if total > len(ways):
        lines.append(f"  and {total - len(ways)} more")
    if not answer.lines and not _is_clew(tensor):
        lines.append(
            "PyTorch does not note the lines of nodes: run inside `with clew.doctor():`, or under "
            "torch.autograd.set_detect_anomaly(True), to have them."
        )
    answer.text = "\n".join(lines)


def _ways_to_leaves(root: Any) -> tuple[list[tuple[list[Any], Any]], int]:
    """The shortest ways from a node to leaves, and how many leaves there are."""
    before: dict[Any, Any] = {root: None}
    level, found = [root], []
    while level:
        below = []
        for node in level:
            for following, _ in node.next_functions:
                if following is None or following in before:
                    continue
                before[following] = node
                below.append(following)
                if getattr(following, "variable", None) is not None:
                    found.append(following)
        level = below
    ways = []
    for end in found[:MOST_LEAVES]:
        way, node = [], before[end]
        while node is not None:
            way.append(node)
            node = before[node]
        ways.append((way[::-1], end.variable))
    return ways, len(found)


def _explain_cut(tensor: Any, answer: Answer) -> None:
    kind, where = _cut(tensor)
    if kind is not None:
        answer.cut = kind
        if where is not None:
            answer.lines.append(("cut", where))
        place = f" on {where.file}:{where.line}: {where.text}" if where else ""
        answer.text = (
            f"It does not require grad: it comes from tensors that do, and {kind}{place} cut it "
            "off from them."
        )
        return
    name = str(tensor.dtype).removeprefix("torch.")
    if not (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
        answer.text = f"It does not require grad: numbers of type {name} have no gradient."
    elif _is_clew(tensor):
        answer.text = (
            "It does not require grad: nothing that it was computed from does. Values that came "
            "by way of item(), tolist(), numpy() or torch.tensor() are plain numbers."
        )
    else:
        answer.text = (
            "It does not require grad. PyTorch does not note whether it was cut off (by detach, "
            "no_grad, item, numpy) or never had a history: run the program inside "
            "`with clew.doctor():`, and ask there."
        )


def _cut(tensor: Any) -> tuple[str | None, SourceLine | None]:
    """What cut a tensor off, and on which line: from clew's own note, or a watcher's."""
    known = getattr(tensor, "_cut", None)
    if known is not None:
        return known[0], resolve(known[1])
    for stream in _streams():
        if stream.engine.is_tensor(tensor):
            origin = stream.provenance(tensor)
            if origin is not None and origin.cuts:
                cut = origin.cuts[-1]
                return cut.kind, cut.path[-1].source if cut.path else None
    return None, None


def _streams() -> list[Any]:
    """The streams of the doctors that are at work now."""
    doctor = sys.modules.get("clew.inspect.doctor")
    return [] if doctor is None else [p.stream for p in doctor.AT_WORK]


def _is_clew(tensor: Any) -> bool:
    return hasattr(tensor, "_counter")


def _name(node: Any) -> str:
    return str(node.name()).removeprefix("torch::autograd::")


def _step(node: Any) -> str:
    at = _node_line(node)
    return f"{_name(node)} (line {at.line}: {at.text})" if at else _name(node)


def _node_line(node: Any) -> SourceLine | None:
    """The line that recorded a node: noted by clew, by a watcher, or in anomaly mode."""
    site = getattr(node, "site", None)
    if site is not None:
        return resolve(site)
    metadata = getattr(node, "metadata", None) or {}
    info = metadata.get(_KEY)
    if info is not None and info.path:
        found: SourceLine = info.path[-1].source
        return found
    for entry in reversed(metadata.get("traceback_", ())):
        parts = entry.strip().splitlines()
        words = parts[0].split('"') if parts else []
        if len(words) > 2 and "/site-packages/torch/" not in words[1] and OWN not in words[1]:
            line = "".join(c for c in words[2].split(",")[1] if c.isdigit())
            return source_line(words[1], int(line))
    return None


def _leaf(tensor: Any) -> str:
    shape = f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"
    where = _leaf_line(tensor)
    name = variable_of(tensor, _user_frames())
    words = f"leaf {name} {shape}" if name else f"leaf {shape}"
    return f"{words}, made on {where.file}:{where.line}" if where else words


def _leaf_line(tensor: Any) -> SourceLine | None:
    meta = getattr(tensor, "_meta", None)
    return resolve(getattr(meta, "site", None))


def _user_frames() -> list[Any]:
    found, frame = [], sys._getframe(1)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(OWN):
            found.append(frame)
        frame = frame.f_back  # type: ignore[assignment]
    return found


def who_holds(target: Any) -> Chain | None:
    """The chain of variables, lists, attributes and closures that keeps a tensor or node alive.

    For a node of PyTorch, which lives in C++, the tensors that lead to it are looked for.

    Returns:
        The chain, whose text begins with the variable; None if no variable leads to it.

    >>> history = [torch.ones(2, requires_grad=True) * 2]
    >>> print(clew.who_holds(history[0].grad_fn))
    history (list...) -> [0] -> MulBackward0
    """
    if not hasattr(target, "next_functions") or hasattr(target, "edges"):
        return chain_to(target)
    return _holder_of_cpp_node(target)


def _holder_of_cpp_node(node: Any) -> Chain | None:
    """Who holds the tensor that leads to a node of PyTorch on the shortest way."""
    import gc

    torch = sys.modules["torch"]
    best: tuple[int, Any, list[Any]] | None = None
    for thing in gc.get_objects():
        if type(thing).__name__ in ("Tensor", "Parameter") and isinstance(thing, torch.Tensor):
            way = _way(thing.grad_fn, node) if thing.grad_fn is not None else None
            if way is not None and (best is None or len(way) < best[0]):
                best = (len(way), thing, way)
    if best is None:
        return None
    _, tensor, way = best
    chain = chain_to(tensor)
    if chain is not None:
        chain.links += [_name(n) for n in way]
    return chain


def _way(start: Any, end: Any) -> list[Any] | None:
    """The nodes from one to another, both included; None if no edge leads there."""
    before: dict[Any, Any] = {start: None}
    level = [start]
    while level:
        below = []
        for node in level:
            if node is end:
                way = []
                while node is not None:
                    way.append(node)
                    node = before[node]
                return way[::-1]
            for following, _ in node.next_functions:
                if following is not None and following not in before:
                    before[following] = node
                    below.append(following)
        level = below
    return None
