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
    call of `run_backward` with buffers of its own; `current.task` is restored when it ends.
    Calls may be nested as deep as the user's program likes: when half of Python's stack is used
    up, the inner call goes on in a thread of its own, which takes the caller's modes along.

Note [Sole references]
    A gradient array may be added to in place, or become ``leaf.grad`` itself, only if nobody else
    holds it.  The algebra asks the interpreter how many references there are, as PyTorch asks for
    the use count of a tensor; so a gradient is held by its buffer alone by the time it is used.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from clew.autograd import anomaly, deep_stack
from clew.autograd.hooks import (
    call_after,
    call_before,
    call_post_accumulate,
    call_tensor_hooks,
)
from clew.autograd.node import AccumulateGrad, Edge, Node
from clew.autograd.saved import Freed
from clew.errors import AutogradError, CallbackError, describe, spaced
from clew.observers import observers

_next_task_id = itertools.count().__next__


class GraphTask:
    """One backward pass.

    Attributes:
        id: a number that no other pass has.
        algebra: what a gradient is in this pass.
        keep_graph: saved values stay.
        captures: by node, the (output number, position) pairs of gradients to return.
        captured: the gradients to return.
        wanted: the nodes that lead to a capture or a listed leaf; None if all are wanted.
        goals: what gradients are computed for: the wanted and the captured; None if for all.
        callbacks: run when the pass is over.
        freed: what takes the place of saved values that are released.
        node: the node that runs now.
        reached: the nodes that the roots lead to.
        root: the only root, where nothing leads to it.
    """

    __slots__ = (
        "__weakref__", "algebra", "callbacks", "captured", "captures", "freed", "goals", "id",
        "keep_graph", "node", "reached", "root", "wanted",
    )  # fmt: skip

    def __init__(
        self, algebra: Any, *, keep_graph: bool, accumulate: bool, inputs: Sequence[Edge] | None
    ) -> None:
        self.id = _next_task_id()
        self.algebra = algebra
        self.keep_graph = keep_graph
        self.captures: dict[Node, list[tuple[int, int]]] = {}
        self.captured: list[Any] = [None] * len(inputs or ())
        self.wanted: set[Node] | None = None
        self.goals: set[Node] | None = None
        self.callbacks: list[Callable[[], None]] = []
        # Neither here nor in `run_backward` nor in what calls that is the user's code.
        self.freed = Freed(skip=3)
        self.node: Node | None = None
        self.reached: dict[Node, int] = {}
        self.root: Node | None = None
        if inputs is not None and not accumulate:
            for position, (node, output_nr) in enumerate(inputs):
                self.captures.setdefault(node, []).append((output_nr, position))


class _Current(threading.local):
    task: GraphTask | None = None


current = _Current()


def run_backward(
    roots: Sequence[tuple[Edge, Any]],
    algebra: Any,
    *,
    keep_graph: bool,
    accumulate: bool,
    inputs: Sequence[Edge] | None = None,
) -> list[Any]:
    """Send gradients from `roots` through the graph.

    Args:
        roots: (edge, gradient) for each tensor to start from.
        algebra: the kind of the gradients.
        keep_graph: do not release saved values.
        accumulate: add to the ``grad`` of leaves (of those in `inputs`, if given).
        inputs: edges whose gradients to return (or to accumulate only, with `accumulate`).

    Returns:
        The gradients of `inputs`, None where nothing arrived; empty under `accumulate`.
    """
    task = GraphTask(algebra, keep_graph=keep_graph, accumulate=accumulate, inputs=inputs)
    dependencies, parents = _explore([edge[0] for edge, _ in roots], inputs is not None)
    task.reached = dependencies
    if len(roots) == 1 and not dependencies[roots[0][0][0]]:
        task.root = roots[0][0][0]
    if inputs is not None:
        task.wanted = _leading_to(inputs, parents, accumulate)
        task.goals = task.wanted.union(task.captures)
    outer, current.task = current.task, task
    try:
        for on_backward_start in observers.on_backward_start:
            on_backward_start(task)
        if outer is not None and deep_stack.is_near_its_end():
            deep_stack.call(partial(_run_elsewhere, task, roots, dependencies))
        else:
            _run_to_the_end(task, roots, dependencies)
    finally:
        current.task = outer
        for on_backward_end in observers.on_backward_end:
            on_backward_end(task)
    return task.captured


def _run_elsewhere(
    task: GraphTask, roots: Sequence[tuple[Edge, Any]], dependencies: dict[Node, int]
) -> None:
    current.task = task
    _run_to_the_end(task, roots, dependencies)


def _run_to_the_end(
    task: GraphTask, roots: Sequence[tuple[Edge, Any]], dependencies: dict[Node, int]
) -> None:
    task.algebra.run(_run, task, roots, dependencies)
    for callback in task.callbacks:  # a callback may queue another
        callback()


def will_run(task: GraphTask, node: Node) -> bool:
    """Whether the pass computes the gradients that arrive at `node`.

    Raises:
        RuntimeError: it is a leaf's, whose gradient the pass returns and does not accumulate.
    """
    if node is task.root:  # PyTorch takes it for outside the graph
        return False
    if node in task.captures and not node.next_nodes and node in task.reached:
        raise RuntimeError(
            "A leaf node was passed to _will_engine_execute_node but we are currently running "
            "autograd.grad(). This is currently not supported."
        )
    return node in task.reached and (task.goals is None or node in task.goals)


def _explore(
    roots: list[Node], want_parents: bool
) -> tuple[dict[Node, int], dict[Node, list[Node]]]:
    """How many edges lead to each node that the roots reach, and from which nodes."""
    dependencies = dict.fromkeys(roots, 0)
    parents: dict[Node, list[Node]] = {root: [] for root in roots} if want_parents else {}
    stack = list(dependencies)
    while stack:
        node = stack.pop()
        for following in node.next_nodes:
            if following is None:
                continue
            if following in dependencies:
                dependencies[following] += 1
                if want_parents:
                    parents[following].append(node)
            else:
                dependencies[following] = 1
                stack.append(following)
                if want_parents:
                    parents[following] = [node]
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


def _run(task: GraphTask, roots: Sequence[tuple[Edge, Any]], dependencies: dict[Node, int]) -> None:
    """The loop; see the pseudo-code at the top of the module."""
    buffers: dict[Node, list[Any]] = {}
    ready: list[tuple[int, int, Node]] = []
    arrival = itertools.count().__next__
    for (node, output_nr), grad in roots:
        if node not in buffers:
            buffers[node] = [None] * len(node.metas)
            if not dependencies[node]:
                heapq.heappush(ready, (-node.seq, arrival(), node))
        if buffers[node][output_nr] is None:
            buffers[node][output_nr] = grad
        else:
            task.algebra.add_into(buffers[node], output_nr, grad)
    for on_gradients in observers.on_gradients:
        on_gradients(None, buffers)
    wanted, captures = task.wanted, task.captures
    while ready:
        node = heapq.heappop(ready)[2]
        while True:
            grads = buffers.pop(node)
            ends = wanted is not None and node not in wanted
            if (ends or node in captures) and not _capture(task, node, grads):
                break
            task.node = node
            followers = _run_node(task, node, grads, buffers, dependencies)
            if ready or len(followers) != 1:
                for node in followers:
                    heapq.heappush(ready, (-node.seq, arrival(), node))
                break
            node = followers[0]  # of one there is nothing to sort


def _capture(task: GraphTask, node: Node, grads: list[Any]) -> bool:
    """Keep the gradients that the caller asked for; whether the node must run as well.

    A node that runs gives its gradient away before its tensor hooks, one that does not after
    them, as in PyTorch.
    """
    assert task.wanted is not None
    runs = node in task.wanted
    if not runs:
        call_tensor_hooks(node, grads, task.algebra)
    for output_nr, position in task.captures.get(node, ()):
        task.captured[position] = grads[output_nr]
    return runs


_MAYBE_UNCHECKED = (ValueError, TypeError, IndexError, RuntimeError)
"""What rules on arrays raise that are given other values than forward had checked."""


def _run_node(
    task: GraphTask,
    node: Node,
    grads: list[Any],
    buffers: dict[Node, list[Any]],
    dependencies: dict[Node, int],
) -> Sequence[Node]:
    """Hooks, rules and release of one node; the nodes that have all their gradients now."""
    if observers.before_node:
        for before_node in observers.before_node:
            before_node(node)
    algebra, hooks, goals, needed = task.algebra, node.hooks, task.goals, None
    try:
        if type(node) is AccumulateGrad:
            _accumulate(node, grads, task)
            return ()
        if hooks is not None:
            call_tensor_hooks(node, grads, algebra)
            if hooks.before:
                call_before(node, grads, algebra)
        if goals is not None:
            needed = [following in goals for following in node.next_nodes]
        try:
            results = node.run(grads, algebra, needed)
        except _MAYBE_UNCHECKED as error:
            if isinstance(error, AutogradError):
                raise
            results = algebra.run_checked(node, grads, needed, error)
        if hooks is not None and hooks.after:
            results = _fitted(node, results, algebra)  # before the hooks, as in PyTorch
            results = call_after(node, results, grads, algebra)
        if anomaly.state.enabled and anomaly.state.check_nan:
            algebra.check_nan(node, results)
        ready = _deliver(node, results, needed, algebra, buffers, dependencies)
    except Exception as error:
        _explain(error, node)
        raise
    if observers:
        _tell(task, node, buffers)
    if not task.keep_graph:
        node.release(task.freed)
    return ready


def _tell(task: GraphTask, node: Node, buffers: dict[Node, list[Any]]) -> None:
    """Let observers know that a node has run."""
    for on_gradients in observers.on_gradients:
        on_gradients(node, buffers)
    if observers.on_node:
        for on_node in observers.on_node:
            on_node(node)
    if observers.on_release and not task.keep_graph:
        for on_release in observers.on_release:
            on_release(node)


def _fitted(node: Node, results: Sequence[Any], algebra: Any) -> list[Any]:
    """What a node gives for each of its edges, in the shape and dtype of what it is for."""
    fitted = list(results)
    for i, (following, output_nr) in enumerate(node.edges):
        if fitted[i] is not None and following is not None:
            meta = following.metas[output_nr]
            if meta is not None:
                fitted[i] = algebra.fit(fitted[i], meta, node, i)
    return fitted


def _deliver(
    node: Node,
    results: Sequence[Any],
    needed: list[bool] | None,
    algebra: Any,
    buffers: dict[Node, list[Any]],
    dependencies: dict[Node, int],
) -> list[Node]:
    """Fit each gradient to what it is the gradient of, and put it into the buffer there.

    This is the one place where broadcasting and casts are undone.

    Returns:
        The nodes that have all their gradients now.
    """
    ready = []
    for index, following in enumerate(node.next_nodes):
        if following is None:
            continue
        left = dependencies[following] = dependencies[following] - 1
        if needed is not None and not needed[index]:
            continue
        if not left:
            ready.append(following)
        metas, output_nr, grad = following.metas, node.next_nrs[index], results[index]
        if grad is not None and (meta := metas[output_nr]) is not None:
            grad = algebra.fit(grad, meta, node, index)
        buffer = buffers.get(following)
        if buffer is None:
            if len(metas) == 1:
                buffers[following] = [grad]
                continue
            buffer = buffers[following] = [None] * len(metas)
        if buffer[output_nr] is None:
            buffer[output_nr] = grad
        elif grad is not None:
            algebra.add_into(buffer, output_nr, grad)
    return ready


def _accumulate(node: AccumulateGrad, grads: list[Any], task: GraphTask) -> None:
    """Hooks of the leaf, then add to its gradient (one thread at a time), then its late hooks."""
    algebra = task.algebra
    meta = node.variable._meta
    if meta.hooks:
        call_tensor_hooks(node, grads, algebra)
    hooks = node.hooks
    if hooks is not None and hooks.before:
        call_before(node, grads, algebra)
    if grads[0] is not None and node.variable._node is not None:
        raise RuntimeError("leaf variable has been moved into the graph interior")
    if grads[0] is not None and node.variable._requires_grad:  # detach_() may have taken it out
        with node.lock:
            algebra.accumulate(node.variable, grads, task.freed.site)
    if meta.post_accumulate:
        call_post_accumulate(node)
    if hooks is not None and hooks.after:
        call_after(node, (), grads, algebra)
    if observers:
        for on_accumulated in observers.on_accumulated:
            on_accumulated(node.variable)
        for on_node in observers.on_node:
            on_node(node)


def _explain(error: BaseException, node: Node) -> None:
    """Name the node in errors that come from rules and hooks."""
    if anomaly.state.enabled:
        anomaly.explain(node)
    if isinstance(error, AutogradError) and error.names_node:
        return
    if getattr(error, "_clew_node_named", False):
        return
    leaf = getattr(node, "variable", None)
    if leaf is not None:
        error.add_note(f"while the gradient of a {describe(leaf)} was accumulated")
    else:
        error.add_note(f"while {node.name()} ran backward{spaced(', recorded', node.site)}")
    error._clew_node_named = True  # type: ignore[attr-defined]


def queue_callback(callback: Callable[[], None]) -> None:
    """Call `callback` when the backward pass that runs now is over.

    Raises:
        RuntimeError: no backward pass runs in this thread.
    """
    if current.task is None:
        raise CallbackError("Final callbacks can only be installed during backward pass.", callback)
    current.task.callbacks.append(callback)
