"""How long the backward of each node takes, measured by hooks before and after it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from clew.inspect.model import Graph
from clew.inspect.walk import read


class Timer:
    """Times nodes, of clew or of PyTorch, from now until `stop`.

    Attributes:
        seconds: for each node, how long its backward took in all; 0 if it did not run.
    """

    def __init__(self, nodes: Sequence[Any]) -> None:
        self.seconds = [0.0] * len(nodes)
        self._handles: list[Any] = []
        for position, node in enumerate(nodes):
            self._watch(position, node)

    def _watch(self, position: int, node: Any) -> None:
        begin = 0.0

        def before(grads: Any) -> None:
            nonlocal begin
            begin = time.perf_counter()

        def after(*grads: Any) -> None:
            self.seconds[position] += time.perf_counter() - begin

        self._handles += [node.register_prehook(before), node.register_hook(after)]

    def stop(self) -> None:
        """Take the hooks off."""
        for handle in self._handles:
            handle.remove()
        self._handles = []


def timed_backward(
    tensor: Any,
    gradient: Any = None,
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    params: Any = None,
) -> Graph:
    """Run ``tensor.backward(...)`` and return the graph, with the seconds that each node took.

    What nodes keep is as it was before the backward.  The hooks that measure cost a few
    microseconds for each node, so that small nodes look slower than they are.

    Args:
        tensor: a tensor of clew or of real PyTorch.
        gradient, retain_graph, create_graph: as of ``backward``.
        params: names of leaves, as of `clew.graph`.

    >>> x = torch.ones(3, requires_grad=True)
    >>> graph = clew.inspect.timed_backward((x * 2).sum())
    >>> all(node.seconds > 0 for node in graph)
    True
    """
    graph, nodes = read(tensor, params=params)
    timer = Timer(nodes)
    try:
        tensor.backward(gradient, retain_graph=retain_graph, create_graph=create_graph)
    finally:
        timer.stop()
    set_seconds(graph, timer)
    return graph


def set_seconds(graph: Graph, timer: Timer) -> None:
    """Tell the nodes of a graph what a timer of the same nodes has measured."""
    for node, seconds in zip(graph.nodes, timer.seconds):
        node.seconds = seconds
