"""The events of a running program, whichever engine runs it, and the graph that they tell of.

Imports `paths`, `records` and `gradients`.  An adapter (`clew_engine`, `torch_engine`) calls the
methods of a `Stream`; the stream keeps five ledgers and calls its listeners, the rules:

    L1  what is kept for backward: line, node, memory, version, how often asked for, until when
    L2  backward passes: line, graph kept or not, nodes run, iteration
    L3  gradients of leaves: which pass added, when cleared, which optimizer used them
    L4  writes in place: memory, op, line, whether an optimizer did it
    L5  cuts: detach, no_grad, item, numpy, .data

Note [Iterations]
    An iteration ends with a step of the optimizer that stepped first.  As long as none has
    stepped, it ends with the backward on the lines of the first backward.
"""

from __future__ import annotations

import itertools
import traceback
import weakref
from collections.abc import Iterable, Sequence, Set
from typing import Any

from clew.inspect.watch.gradients import Gradients
from clew.inspect.watch.listener import Listener
from clew.inspect.watch.origins import Origins
from clew.inspect.watch.paths import Path, Stack, common
from clew.inspect.watch.records import (
    Call,
    Component,
    NodeInfo,
    Provenance,
    Saved,
    Step,
    Storage,
    Write,
    note_unrun,
    reach,
)

KEY = "clew.watch"
"""Under which name a node's metadata holds its `NodeInfo`."""


class Stream(Origins, Gradients):
    """The ledgers of one watched program.

    Args:
        engine: the adapter, which answers questions about tensors and nodes.
        stack: takes paths.
        checksums: remember a checksum of all that is kept, to find changes that versions hide.
    """

    def __init__(self, engine: Any, stack: Stack, *, checksums: bool = False) -> None:
        super().__init__(engine)
        self._provenance: dict[int, tuple[Any, Provenance]] = {}
        self.stack = stack
        self.checksums = checksums
        self.listeners: list[Listener] = []
        self.troubles: list[str] = []
        self._heard: dict[str, list[Any]] = {}
        self.open = True
        self.iteration = 0
        self.clock: Any = None
        self.step_numbers: dict[int, int] = {}
        self.infos: weakref.WeakSet[NodeInfo] = weakref.WeakSet()
        self.alive: dict[int, int] = {}
        self.components: dict[Component, None] = {}
        self.storages: dict[Any, Storage] = {}
        self.live_bytes = self.peak_bytes = 0
        self.calls: list[Call] = []
        self.current: Call | None = None
        self._next = itertools.count().__next__
        self._first_backward: Path | None = None
        self._made_since = 0
        self._fresh: list[Saved] = []
        self._call_count = 0

    def tell(self, event: str, *what: Any) -> None:
        """Call the listeners."""
        if not self.open:
            return
        heard = self._heard.get(event)
        if heard is None:
            silent = getattr(Listener, event)
            heard = self._heard[event] = [
                getattr(listener, event)
                for listener in self.listeners
                if getattr(type(listener), event) is not silent
            ]
        for hear in heard:
            try:
                hear(*what)
            except Exception as error:  # a rule must not break the program that it watches
                self.trouble(error)

    def trouble(self, error: Exception) -> None:
        """Something is wrong with the watcher: note it, and let the program go on."""
        if len(self.troubles) < 10:
            self.troubles.append("".join(traceback.format_exception(error)))

    # -- L1: what is kept

    def packed(
        self, name: str, tensor: Any, version: int, path: Path, *, is_output: bool = False
    ) -> Saved:
        """Something is kept for backward by a node that is about to be known."""
        base = tensor._base if tensor._base is not None else tensor
        if self.engine.requires_grad(base) and self.engine.node(base) is None:
            self.leaf(base)  # its memory is there anyway
        key = self.engine.storage(tensor)
        storage = self.storages.get(key)
        if storage is None:
            storage = self.storages[key] = Storage(key, self.engine.storage_bytes(tensor))
        saved = Saved(name, path, storage, version)
        saved.is_output = is_output
        saved.view_bytes = self.engine.nbytes(tensor)
        if not storage.saved and key not in self.parameter_memory:
            self.live_bytes += storage.nbytes
            self.peak_bytes = max(self.peak_bytes, self.live_bytes)
        saved.nbytes = 0 if key in self.parameter_memory else storage.nbytes
        storage.saved.add(saved)
        if self.checksums:
            saved.checksum = self.engine.checksum(tensor)
        self._fresh.append(saved)
        self.tell("on_pack", saved)
        return saved

    def unpacked(self, saved: Saved, tensor: Any = None) -> None:
        """A backward asks for what is kept; with `tensor` given, its checksum is compared."""
        call = self.current
        saved.unpacks += 1
        if saved.checksum is not None and tensor is not None and not saved.silent:
            saved.silent = self.engine.checksum(tensor) != saved.checksum
        if saved.retained_by is not None and saved.retained_by is not call:
            saved.retained_by.reused = True
            saved.retained_by = None
        if call is not None and call.keep:
            saved.retained_by = call
        self.tell("on_unpack", saved, call)

    def dropped(self, saved: Saved) -> None:
        """What was kept is let go of."""
        if not self.open:
            return
        storage = saved.storage
        storage.saved.discard(saved)
        if not storage.saved:
            self.storages.pop(storage.key, None)
            if saved.nbytes:
                self.live_bytes -= storage.nbytes
        if saved.node is not None and not saved.unpacks:
            saved.node.nbytes += saved.nbytes
        call = saved.retained_by
        if call is not None:
            call.kept -= 1
            if call.kept == 0 and self.current is None:
                call.until = self.stack.path()

    # -- the graph

    def op(
        self, name: str, inputs: Sequence[Any], outputs: Iterable[Any], path: Path,
        *, scalars: bool = False,
    ) -> None:  # fmt: skip
        """An op ran; what it recorded is found from its outputs."""
        if self.current is not None:
            self._fresh.clear()
            return
        engine, info = self.engine, None
        outputs = list(outputs)
        results = {engine.storage(out) for out in outputs} if self._fresh else frozenset()
        for out in outputs:
            if engine.requires_grad(out):
                node = engine.node(out)
                if node is not None:
                    info = self.register(node, path, inputs, scalars, results)
                    if info is not None and len(info.tensors) < 4:
                        info.tensors.append(weakref.ref(out))
                    continue
            self._constant(name, inputs, out, path)
        self._fresh.clear()
        self._note_reads(inputs, path)
        self.tell("on_op", name, inputs, info, path)

    def register(
        self, node: Any, path: Path, inputs: Sequence[Any] = (), scalars: bool = False,
        results: Set[Any] = frozenset(),
    ) -> NodeInfo | None:  # fmt: skip
        """The info of a node; made now for it and for those before it, if they are new."""
        engine = self.engine
        known = engine.info(node)
        if known is not None:
            return known
        order, stack = [], [node]
        while stack:
            new = stack.pop()
            order.append(new)
            stack += [
                following
                for following in engine.edges(new)
                if engine.leaf(following) is None and engine.info(following) is None
            ]
        info = None
        for new in reversed(order):
            info = engine.info(new) or self._made(new, path)
        if info is not None:
            self._complete(info, inputs, scalars, results)
        return info

    def _made(self, node: Any, path: Path) -> NodeInfo:
        engine = self.engine
        info = NodeInfo(engine.name_of(node), path, self._next(), self.iteration, self._died)
        component: Component | None = None
        joins = 0
        for following in engine.edges(node):
            leaf = engine.leaf(following)
            if leaf is not None:
                known = self.leaf(leaf)
                known.used_at = path
                info.direct.append(known)
                info.leaves |= 1 << known.bit
                continue
            before = engine.info(following)
            if before is None:  # a cycle through hooks, or a node that vanished meanwhile
                continue
            info.inputs.append(before)
            info.leaves |= before.leaves
            info.behind |= before.behind
            theirs = before.component.root()
            if component is None:
                component = theirs
            elif theirs is not component:
                # A transposed weight that joins is no forward of its own.
                joins += min(component.nodes, theirs.nodes) > 1
                component = self._merge(component, theirs)
        if component is None:
            component = Component(path, info.seq, self.iteration)
            self.components[component] = None
        self._made_since += 1
        component.alive += 1
        component.nodes += 1
        component.iterations.add(self.iteration)
        component.last, component.last_seq = path, info.seq
        component.shared = common(component.first[: component.shared], path)
        if joins:
            component.merges[path] = component.merges.get(path, 0) + 1
        info.component = component
        self.alive[self.iteration] = self.alive.get(self.iteration, 0) + 1
        self.infos.add(info)
        engine.set_info(node, info)
        return info

    def _merge(self, first: Component, second: Component) -> Component:
        if first.nodes < second.nodes:
            first, second = second, first
        first.swallow(second)
        self.components.pop(second, None)
        return first

    def _complete(
        self, info: NodeInfo, inputs: Sequence[Any], scalars: bool, results: Set[Any]
    ) -> None:
        """What only the op knows: what it keeps, and where its constant operands come from."""
        component = info.component.root()
        for saved in self._fresh:
            saved.node = info
            saved.is_output = saved.is_output and saved.storage.key in results
            component.nbytes += saved.nbytes
        self._fresh.clear()
        info.scalars = scalars
        for x in inputs:
            if self.engine.requires_grad(x):
                continue
            known = self.provenance(x)
            if known is not None and known.leaves:
                info.constants.append((known, self.engine.nbytes(x) <= 8))
                info.behind |= known.leaves
                for cut in known.cuts:
                    component.cuts[cut] = None
                    cut.reached |= component.used

    def _died(self, info: NodeInfo) -> None:
        if not self.open:
            return
        count = self.alive.get(info.iteration, 0) - 1
        if count > 0:
            self.alive[info.iteration] = count
        else:
            self.alive.pop(info.iteration, None)
        component = info.component.root()
        component.alive -= 1
        note_unrun(component, info)
        if component.alive == 0:
            self.components.pop(component, None)
            self.tell("on_component_end", component)

    # -- L2: backward passes

    def backward_start(
        self, path: Path, roots: Sequence[Any], *, keep: bool, create: bool, accumulates: bool
    ) -> Call:
        """A pass begins; `roots` are nodes, or leaves themselves."""
        if self.current is not None:  # a pass within a pass (checkpointing) is part of it
            return self.current
        if self.calls and not self.calls[-1].closed:
            self.calls[-1].closed = True
            self.tell("on_closed", self.calls[-1])
        call = Call(self._call_count, path, self.iteration, keep=keep, create=create)
        self._call_count += 1
        call.accumulates = accumulates
        for root in roots:
            info = None if self.engine.is_tensor(root) else self.register(root, path)
            if info is None:
                call.leaf_root = weakref.ref(root) if self.engine.is_tensor(root) else None
            else:
                call.roots.append(info)
        self.poll_all()
        self.current = call
        self.tell("on_backward_start", call)
        return call

    def backward_end(
        self, call: Call, error: BaseException | None, nodes: set[NodeInfo] | None = None
    ) -> None:
        """A pass has ended; `nodes` are those that it ran, if not all that it can reach."""
        if self.current is not call:
            return
        call.error = error
        reached = [i for i in reach(call.roots) if nodes is None or i in nodes]
        if error is None:
            self._mark_run(call, reached)
            if call.accumulates:
                self.note_contributions(call, reached)
            call.used |= self.stepping is not None  # by a closure, of LBFGS say
        else:
            for info in reached:
                info.component.root().used = True  # as was intended
        self.current = None
        if call.keep:
            self._note_retained(call)
        self.calls.append(call)
        del self.calls[:-64]
        self.tell("on_backward", call, reached)
        call.roots = []  # an info must not outlive its node
        self._first_backward = self._first_backward or call.path
        if self.clock is None and call.path is self._first_backward:
            self._end_iteration()

    def _mark_run(self, call: Call, reached: list[NodeInfo]) -> None:
        call.ran = len(reached)
        for info in reached:
            if info.runs:
                call.again += 1
                call.old += info.iteration < self.iteration
            info.runs += 1
            info.run_in.add(self.iteration)
            info.last_call = call
            component = info.component.root()
            if not component.used:
                component.used = True
            for cut in component.cuts:
                cut.reached = True

    def _note_retained(self, call: Call) -> None:
        for storage in self.storages.values():
            mine = [s for s in storage.saved if s.retained_by is call]
            call.kept += len(mine)
            if mine and mine[0].nbytes:
                call.held += storage.nbytes
        call.count = call.kept

    # -- L4: writes

    def write(
        self, name: str, target: Any, path: Path, inputs: Sequence[Any] = (),
        packed: Sequence[Saved] = (),
    ) -> None:  # fmt: skip
        """Memory was written to in place; `packed` is what is kept of it in a packed form."""
        if self.current is not None:
            return
        engine = self.engine
        key = engine.storage(target)
        recorded = engine.requires_grad(target) and engine.node(target) is not None
        write = Write(name, path, self.stepping, recorded)
        storage = self.storages.get(key)
        if storage is not None:
            storage.write = write
        version = engine.version(target)
        for saved in (*(() if storage is None else storage.saved), *packed):
            if saved not in self._fresh:  # which the op itself has kept, after its write
                saved.write = write
                saved.silent |= engine.hides(saved, target, version)
        if recorded:
            node = engine.node(target)
            info = None if node is None else self.register(node, path, inputs, results={key})
            if info is not None and not info.tensors:
                info.tensors.append(weakref.ref(target))
        elif not engine.requires_grad(target):
            own = self.provenance(target)
            self._constant(name, inputs, target, path)
            if own is not None and self.provenance(target) is None:
                self.note(target, own)
        self._fresh.clear()
        self._note_manual_step(target, inputs, path)
        self.tell("on_write", write, storage or Storage(key, 0), target)

    # -- steps and iterations

    def step_start(self, optimizer: Any, path: Path) -> None:
        """An optimizer is about to step."""
        if self.stepping is not None:
            return
        self.stepping = optimizer
        self._step_path = path
        self._versions = self._note_optimizer(optimizer)

    def step_end(self, optimizer: Any) -> None:
        """An optimizer has stepped."""
        if self.stepping is not optimizer:
            return
        path = self._step_path
        leaves = [self.leaf(p) for p in self.engine.parameters_of(optimizer)
                  if self.engine.requires_grad(p) and self.engine.node(p) is None]  # fmt: skip
        self.poll(leaves, path)
        number = self.step_numbers.get(id(optimizer), 0) + 1
        self.step_numbers[id(optimizer)] = number
        step = Step(optimizer, path, leaves, number)
        self.tell("on_step_start", step)
        self._note_step_writes(optimizer, path)
        self.stepping = None
        self.consume(step)
        for call in self.calls:
            if not call.closed and optimizer not in call.steppers:
                call.steppers.append(optimizer)
        self.tell("on_step", step)
        if self.clock is None:
            self.clock = weakref.ref(optimizer)
            self.tell("on_clock")
            if not self._made_since:  # the backward before this step has ended the iteration
                self.tell("on_iteration", self.iteration - 1)
                return
        if self.clock() is optimizer or self.clock() is None:
            self.clock = weakref.ref(optimizer)
            self._end_iteration()

    def _note_step_writes(self, optimizer: Any, path: Path) -> None:
        name = f"optimizer step of {type(optimizer).__name__}"
        for p in self.engine.parameters_of(optimizer):
            if self._versions.get(id(p)) == self.engine.version(p):
                continue
            storage = self.storages.get(self.engine.storage(p))
            if storage is None:
                continue
            write = storage.write = Write(name, path, optimizer, False)
            for saved in storage.saved:
                saved.write = write

    def _note_optimizer(self, optimizer: Any) -> dict[int, int]:
        parameters = self.engine.parameters_of(optimizer)
        for p in parameters:
            if self.engine.requires_grad(p) and self.engine.node(p) is None:
                self.owners.setdefault(id(p), []).append(weakref.ref(optimizer)) if not any(
                    o() is optimizer for o in self.owners.get(id(p), ())
                ) else None
        return {id(p): self.engine.version(p) for p in parameters}

    def mark(self) -> None:
        """The program says that an iteration ends here."""
        self._end_iteration()

    def _end_iteration(self) -> None:
        self.tell("on_iteration", self.iteration)
        self.iteration += 1
        self._made_since = 0

    def finish(self) -> None:
        """The program has ended: what is left is told of."""
        if not self.open:
            return
        if self.calls and not self.calls[-1].closed:
            self.calls[-1].closed = True
            self.tell("on_closed", self.calls[-1])
        self._count_unasked()
        for component in list(self.components):
            for info in [i for i in self.infos if i.component.root() is component]:
                note_unrun(component, info)
            self.tell("on_component_end", component)

    def _count_unasked(self) -> None:
        for storage in self.storages.values():
            for saved in storage.saved:
                if not saved.unpacks and saved.node is not None:
                    saved.node.nbytes += saved.nbytes

    def close(self) -> None:
        """Nothing is told of any more."""
        self.open = False
