"""R16, graphs that only the garbage collector can free, or that nobody can."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from typing import Any

from clew.inspect.doctor.finding import human, several
from clew.inspect.doctor.rules.base import Rule, leaf_names
from clew.inspect.holders import is_in_sight
from clew.inspect.watch import Call, Leaf, NodeInfo, Path, reach

HOOKS = 3


class GraphInGrad(Rule):
    """R16a: after ``backward(create_graph=True)`` a leaf's gradient has a graph that leads back to
    the leaf, and nobody clears it."""

    id = "R16"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.pending: dict[Leaf, Call] = {}
        self.left: dict[Path, int] = {}
        self.collecting = False
        self.dying: list[tuple[Any, Call]] = []
        self._watch = self._note_collection
        gc.callbacks.append(self._watch)

    def _note_collection(self, phase: str, info: dict[str, int]) -> None:
        self.collecting = phase == "start"

    def on_backward(self, call: Call, reached: list[NodeInfo]) -> None:
        self._look(call)
        if not (call.create and call.accumulates) or call.error is not None:
            return
        for leaf in call.leaves:
            if self._has_graph(leaf):
                self.pending[leaf] = call
                tensor = leaf.ref()
                weakref.finalize(tensor, self._gone, leaf).atexit = False

    def _has_graph(self, leaf: Leaf) -> bool:
        tensor = leaf.ref()
        return tensor is not None and self.stream.engine.has_graph(self.stream.engine.grad(tensor))

    def _gone(self, leaf: Leaf) -> None:
        """A leaf has died: in a cycle if the collector did it while the gradient was there."""
        call = self.pending.pop(leaf, None)
        if call is not None and self.collecting and self.stream.open:
            self.left[call.path] = self.left.get(call.path, 0) + self.options.repetitions

    def on_clear(self, leaf: Leaf, lost: list[Call], path: Path) -> None:
        self.pending.pop(leaf, None)

    def on_op(self, name: str, inputs: Sequence[Any], info: Any, path: Path) -> None:
        if self.pending:
            for leaf in [x for x in self.pending if x.ref() is not None]:
                if not self._has_graph(leaf):
                    del self.pending[leaf]

    def _look(self, call: Call) -> None:
        """At the next pass: what still has a graph was not cleared."""
        paths = set()
        for leaf, before in list(self.pending.items()):
            if self._has_graph(leaf):
                paths.add(before.path)
            del self.pending[leaf]
        for path in paths:
            self.left[path] = self.left.get(path, 0) + 1

    def finish(self) -> None:
        gc.callbacks.remove(self._watch)
        for leaf, call in list(self.pending.items()):
            tensor = leaf.ref()
            if tensor is not None and self._has_graph(leaf) and not is_in_sight(tensor):
                self.left[call.path] = self.left.get(call.path, 0) + self.options.repetitions
        for path, count in self.left.items():
            if count >= self.options.repetitions:
                self._report(path)

    def _report(self, path: Path) -> None:
        self.report(
            "warning", path,
            "This backward(create_graph=True) leaves a cycle: the parameter holds its .grad, the "
            ".grad its graph, and the graph the parameter. The memory of the whole graph stays "
            "when everything else has let go of it (in PyTorch even the garbage collector cannot "
            "free it).",
            "Use torch.autograd.grad(loss, parameters, create_graph=True), which puts nothing into "
            ".grad; or set p.grad = None at the end of the step.",
            [("backward", path)],
            kind="grad",
        )  # fmt: skip


class TensorOnCtx(Rule):
    """R16b: a custom Function keeps a tensor as an attribute of ctx: its own output, which makes a
    cycle, or another, which backward does not free."""

    id = "R16"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.seen: dict[tuple[Any, str, bool], int] = {}

    def on_function(self, node: Any, info: NodeInfo, outputs: Sequence[Any]) -> None:
        engine = self.stream.engine
        if type(node)._forward_cls.__module__.partition(".")[0] in ("clew", "torch"):
            return
        for name, value in list(getattr(node, "__dict__", {}).items()):
            if not engine.is_tensor(value) or name.startswith("_"):
                continue
            if not (value.dtype.is_floating_point or value.dtype.is_complex):
                continue  # a mask, an index
            own = any(engine.storage(value) == engine.storage(out) for out in outputs)
            kind = type(node).__name__
            key = (kind, name, own)
            self.seen[key] = self.seen.get(key, 0) + 1
            if self.seen[key] == self.options.repetitions:
                self._report(kind, name, own, engine.nbytes(value), info)

    def _report(self, kind: str, name: str, own: bool, nbytes: int, info: NodeInfo) -> None:
        function = kind.removesuffix("Backward")
        what = (
            f"its own output, so the output holds the node, the node ctx, and ctx the output: a "
            f"cycle that stays ({human(nbytes)} each time) until the garbage collector runs"
            if own
            else f"a tensor ({human(nbytes)}) that backward does not free: it stays as long as "
            "anything holds the graph"
        )
        self.report(
            "warning", info.path,
            f"{function} keeps ctx.{name}, {what}; and nothing notices if it is changed in place.",
            f"Call ctx.save_for_backward({name}) in forward, read ctx.saved_tensors in backward.",
            [("called", info.path)],
            kind=f"ctx.{name}", function=function, attribute=name, own_output=own,
            bytes=nbytes,
        )  # fmt: skip


class HookCycle(Rule):
    """R16c: the hook of a result holds a tensor whose graph leads to the node that holds the hook.
    R16d: hooks are registered again and again on one tensor."""

    id = "R16"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.cycles: dict[Path, list[Any]] = {}
        self.handles: dict[tuple[int, Path], list[Any]] = {}

    def on_hook(self, tensor: Any, hook: Any, handle: Any, path: Path) -> None:
        engine = self.stream.engine
        node = engine.node(tensor)
        if node is None:
            self._count_repeated(tensor, handle, path)
            return
        info = engine.info(node)
        held = list(_held_by(hook, engine))
        if info is None or not any(self._leads_to(t, tensor, info) for t in held):
            return
        handles = self.cycles.setdefault(path, [])
        handles[:] = [h for h in handles if not _removed(h)]
        handles.append(handle)

    def _leads_to(self, held: Any, tensor: Any, info: NodeInfo) -> bool:
        if held is tensor:
            return True
        node = self.stream.engine.node(held)
        start = None if node is None else self.stream.engine.info(node)
        return start is not None and info in reach([start])

    def _count_repeated(self, tensor: Any, handle: Any, path: Path) -> None:
        handles = self.handles.setdefault((id(tensor), path), [])
        handles[:] = [h for h in handles if not _removed(h) and _is_there(h)]
        handles.append(handle)
        if len(handles) < HOOKS:
            return
        leaf = self.stream.leaf(tensor)
        name = leaf_names(self.stream, [leaf])[0]
        self.report(
            "warning", path,
            f"A hook is registered on {name} again and again on this line: {len(handles)} are "
            "active now, so each backward calls it one time more than the one before, and what "
            "the hooks hold is never let go.",
            "Register it once, outside the loop, or keep the handle and call handle.remove().",
            [("registered", path)],
            kind="repeated", hooks=len(handles), tensor=name,
        )  # fmt: skip

    def finish(self) -> None:
        for path, handles in self.cycles.items():
            left = [h for h in handles if not _removed(h)]
            if len(left) >= self.options.repetitions:
                self.report(
                    "warning", path,
                    "This hook holds a tensor whose graph leads to the very node that holds the "
                    f"hook: a cycle, made {several(len(left), 'time')}. In PyTorch it passes "
                    "through C++, so the garbage collector cannot free it and the graph stays for "
                    "good.",
                    "Let the hook hold no tensor of this graph: pass values computed before "
                    "(y.detach()), or a weakref; or remove the hook after backward.",
                    [("registered", path)],
                    kind="hook", times=len(left),
                )  # fmt: skip


def _held_by(hook: Any, engine: Any) -> Any:
    """The tensors that a hook holds: in its closure, its defaults, its bound arguments."""
    stack, seen = [(hook, 0)], set()
    while stack:
        thing, depth = stack.pop()
        if id(thing) in seen or depth > 3:
            continue
        seen.add(id(thing))
        if engine.is_tensor(thing):
            yield thing
            continue
        parts: list[Any] = [c.cell_contents for c in getattr(thing, "__closure__", None) or ()
                            if _filled(c)]  # fmt: skip
        parts += getattr(thing, "__defaults__", None) or ()
        parts += [getattr(thing, name, None) for name in ("__self__", "func")]
        parts += getattr(thing, "args", None) or () if hasattr(thing, "func") else ()
        if isinstance(thing, (list, tuple)):
            parts += thing[:16]
        elif isinstance(thing, dict):
            parts += list(thing.values())[:16]
        elif depth and hasattr(thing, "__dict__") and not isinstance(thing, type):
            parts += list(vars(thing).values())[:32]
        stack += [(part, depth + 1) for part in parts if part is not None]


def _filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _removed(handle: Any) -> bool:
    """Whether a hook was taken off its tensor, rather than gone with it."""
    reference = getattr(handle, "hooks_dict_ref", None)
    table = reference() if reference is not None else None
    return table is not None and handle.id not in table


def _is_there(handle: Any) -> bool:
    reference = getattr(handle, "hooks_dict_ref", None)
    return reference is None or reference() is not None
