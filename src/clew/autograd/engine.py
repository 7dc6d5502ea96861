"""Run backward: from the roots through the graph, in PyTorch's order.

Layer 3.  The engine knows no op and no Tensor class: an *algebra* (see ``autograd/algebra.py``)
says what a gradient is (a raw array, or a Tensor under ``create_graph``), how two are added, and
how one is fitted to a shape and dtype.

The whole of it, as pseudo-code::

    count, for every node that the roots reach, the edges that lead to it
    put the roots' gradients into the buffers of their nodes
    while a node has all its gradients:               (highest sequence number first)
        run its hooks and its rules
        fit each result to the shape and dtype that its edge asks for
        add it to the buffer of the edge's node
        let go of the node's saved values, unless the graph is kept

Note [Order]
    A node is ready when every edge that leads to it has delivered.  Among the ready ones the
    highest sequence number (the latest recorded) runs first; `AccumulateGrad` before all others.
    Nodes that are ready at the same time with the same number run in the order of arrival.

Note [Re-entrant backward]
    A rule or hook may call backward again (checkpointing does).  The inner call is an ordinary
    call of this function with buffers of its own; `current_task` is restored when it ends.

Note [Owned gradients]
    A gradient array may be added to in place, or become ``leaf.grad`` itself, only if nobody else
    can see its memory.  The algebra tells for each result whether it is so; anything a hook has
    seen or the user has given is not.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

from clew.autograd.hooks import call_after, call_before, call_post_accumulate, call_tensor_hooks
from clew.autograd.node import AccumulateGrad, Edge, Node
from clew.autograd.saved import Freed
from clew.observers import observers

_next_task_id = itertools.count().__next__


class GraphTask:
    """One backward pass.

    Attributes:
        algebra: what a gradient is in this pass.
        keep_graph: saved values stay.
        accumulate: leaves reached add to their ``grad``.
        captures: by node, the (output number, position) pairs of gradients to return.
        captured: the gradients to return.
        wanted: the nodes that lead to a capture or a listed leaf; None if all are wanted.
        callbacks: run when the pass is over.
        node: the node that runs now.
    """

    def __init__(
        self, algebra: Any, *, keep_graph: bool, accumulate: bool, inputs: Sequence[Edge] | None
    ) -> None:
        self.id = _next_task_id()
        self.algebra = algebra
        self.keep_graph = keep_graph
        self.accumulate = accumulate
        self.captures: dict[Node, list[tuple[int, int]]] = {}
        self.captured: list[Any] = [None] * len(inputs or ())
        self.wanted: set[Node] | None = None
        self.callbacks: list[Callable[[], None]] = []
        self.freed = Freed()
        self.node: Node | None = None
        if inputs is not None and not accumulate:
            for position, (node, output_nr) in enumerate(inputs):
                self.captures.setdefault(node, []).append((output_nr, position))


class _Current(threading.local):
    task: GraphTask | None = None


current = _Current()


class _Buffer:
    """The gradients that have arrived for one node."""

    __slots__ = ("grads", "owned")

    def __init__(self, size: int) -> None:
        self.grads: list[Any] = [None] * size
        self.owned = [False] * size

    def add(self, output_nr: int, grad: Any, owned: bool, algebra: Any) -> None:
        known = self.grads[output_nr]
        if known is None:
            self.grads[output_nr] = grad
            self.owned[output_nr] = owned
        else:
            self.grads[output_nr] = algebra.add(known, grad, self.owned[output_nr])
            self.owned[output_nr] = True


def run_backward(
    roots: Sequence[tuple[Edge, Any, bool]],
    algebra: Any,
    *,
    keep_graph: bool,
    accumulate: bool,
    inputs: Sequence[Edge] | None = None,
) -> list[Any]:
    """Send gradients from `roots` through the graph.

    Args:
        roots: (edge, gradient, whether the engine owns it) for each tensor to start from.
        algebra: the kind of the gradients.
        keep_graph: do not release saved values.
        accumulate: add to the ``grad`` of leaves (of those in `inputs`, if given).
        inputs: edges whose gradients to return (or to accumulate only, with `accumulate`).

    Returns:
        The gradients of `inputs`, None where nothing arrived; empty under `accumulate`.
    """
    task = GraphTask(algebra, keep_graph=keep_graph, accumulate=accumulate, inputs=inputs)
    dependencies, parents = _explore([edge[0] for edge, _, _ in roots], inputs is not None)
    if inputs is not None:
        task.wanted = _leading_to(inputs, parents, accumulate)
    outer, current.task = current.task, task
    for observer in observers:
        observer.on_backward_start(task)
    try:
        _run(task, roots, dependencies)
        for callback in task.callbacks:  # a callback may queue another
            callback()
    finally:
        current.task = outer
        for observer in observers:
            observer.on_backward_end(task)
    return task.captured


def _explore(
    roots: list[Node], want_parents: bool
) -> tuple[dict[Node, int], dict[Node, list[Node]]]:
    """How many edges lead to each node that the roots reach, and from which nodes."""
    dependencies: dict[Node, int] = {}
    parents: dict[Node, list[Node]] = {}
    seen = set(roots)
    stack = list(seen)
    while stack:
        node = stack.pop()
        for following, _ in node.edges:
            if following is None:
                continue
            dependencies[following] = dependencies.get(following, 0) + 1
            if want_parents:
                parents.setdefault(following, []).append(node)
            if following not in seen:
                seen.add(following)
                stack.append(following)
    return dependencies, parents


def _leading_to(
    inputs: Sequence[Edge], parents: dict[Node, list[Node]], include: bool
) -> set[Node]:
    """The nodes that must run for gradients to reach `inputs` (which run too if `include`)."""
    wanted: set[Node] = {node for node, _ in inputs} if include else set()
    stack = [node for node, _ in inputs]
    while stack:
        for parent in parents.get(stack.pop(), ()):
            if parent not in wanted:
                wanted.add(parent)
                stack.append(parent)
    return wanted


def _run(
    task: GraphTask, roots: Sequence[tuple[Edge, Any, bool]], dependencies: dict[Node, int]
) -> None:
    """The loop; see the pseudo-code at the top of the module."""
    buffers: dict[Node, _Buffer] = {}
    ready: list[tuple[int, int, Node]] = []
    arrival = itertools.count().__next__
    for (node, output_nr), grad, owned in roots:
        if node not in buffers:
            buffers[node] = _Buffer(_inputs_of(node))
            if not dependencies.get(node):
                heapq.heappush(ready, (-node.seq, arrival(), node))
        buffers[node].add(output_nr, grad, owned, task.algebra)
    wanted, captures = task.wanted, task.captures
    while ready:
        node = heapq.heappop(ready)[2]
        buffer = buffers.pop(node)
        if wanted is not None and not _capture(task, node, buffer):
            continue
        task.node = node
        results = _run_node(task, node, buffer)
        for (following, output_nr), (grad, owned) in zip(node.edges, results):
            if following is None:
                continue
            left = dependencies[following] = dependencies[following] - 1
            if wanted is not None and following not in wanted and following not in captures:
                continue
            target = buffers.get(following)
            if target is None:
                target = buffers[following] = _Buffer(_inputs_of(following))
            if grad is not None:
                target.add(output_nr, grad, owned, task.algebra)
            if left == 0:
                heapq.heappush(ready, (-following.seq, arrival(), following))


def _inputs_of(node: Node) -> int:
    return len(node.metas) or 1


def _capture(task: GraphTask, node: Node, buffer: _Buffer) -> bool:
    """Keep the gradients that the caller asked for; whether the node must run as well.

    A node that runs gives its gradient away before its tensor hooks, one that does not after
    them, as in PyTorch.
    """
    assert task.wanted is not None
    runs = node in task.wanted
    if not runs:
        call_tensor_hooks(node, buffer.grads, task.algebra)
    for output_nr, position in task.captures.get(node, ()):
        task.captured[position] = buffer.grads[output_nr]
        buffer.owned[output_nr] = False
    return runs


def _run_node(task: GraphTask, node: Node, buffer: _Buffer) -> Sequence[tuple[Any, bool]]:
    """Hooks, rules and release of one node: (gradient, owned) for each of its edges."""
    algebra, grads = task.algebra, buffer.grads
    hooks = node.hooks
    try:
        if hooks is not None or isinstance(node, AccumulateGrad):
            if call_tensor_hooks(node, grads, algebra):
                buffer.owned = [False] * len(grads)
            if hooks is not None and hooks.before:
                call_before(node, grads, algebra)
                buffer.owned = [False] * len(grads)
        if isinstance(node, AccumulateGrad):
            _accumulate(task, node, grads[0], buffer.owned[0])
            results: Sequence[Any] = ()
        else:
            results = node.run(grads, algebra, _needed(task, node))
        owned: Sequence[bool] = ()
        if hooks is not None and hooks.after:
            results = call_after(node, results, grads, algebra)
        elif results:
            owned = algebra.owned(results, grads, buffer.owned, node)
        fitted = [
            _fit(task, node, i, grad, i < len(owned) and owned[i]) for i, grad in enumerate(results)
        ]
    except Exception as error:
        _explain(error, node)
        raise
    for observer in observers:
        observer.on_node(node)
    if not task.keep_graph:
        for observer in observers:
            observer.on_release(node)
        node.release(task.freed)
    return fitted


def _needed(task: GraphTask, node: Node) -> list[bool] | None:
    if task.wanted is None:
        return None
    return [following in task.wanted or following in task.captures for following, _ in node.edges]


def _fit(task: GraphTask, node: Node, index: int, grad: Any, owned: bool) -> tuple[Any, bool]:
    """The gradient in the shape and dtype that its edge asks for; the one place that does this."""
    following, output_nr = node.edges[index]
    if grad is None or following is None:
        return None, False
    meta = following.meta(output_nr)
    if meta is None:
        return grad, owned
    fitted = task.algebra.fit(grad, meta, node, index)
    return fitted, owned or fitted is not grad


def _accumulate(task: GraphTask, node: AccumulateGrad, grad: Any, owned: bool) -> None:
    """Add to the leaf's gradient, once per thread at a time, then run the leaf's own hooks."""
    if grad is None:
        return
    with node.lock:
        task.algebra.accumulate(node.variable, grad, owned)
    call_post_accumulate(node.variable)


def _explain(error: BaseException, node: Node) -> None:
    """Name the node in errors that come from rules and hooks."""
    from clew.errors import AutogradError, at

    if isinstance(error, AutogradError) or getattr(error, "_clew_node_named", False):
        return
    where = at(node.site)
    error.add_note(f"while {node.name()} ran backward" + (f", recorded {where}" if where else ""))
    error._clew_node_named = True  # type: ignore[attr-defined]


def queue_callback(callback: Callable[[], None]) -> None:
    """Call `callback` when the backward pass that runs now is over.

    Raises:
        RuntimeError: no backward pass runs in this thread.
    """
    if current.task is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    current.task.callbacks.append(callback)
