"""Writes down what clew's own tensors do: listens to dispatch, engine, modules and optimizers.

A storage is the array that owns the memory (`storage.root`).  It is born when a tensor, or a
gradient on its way through a backward pass, first stands on it, and dies when NumPy lets it go,
of which a weak reference tells; views and detached tensors stand on the same one.  What a kernel
uses in passing, inside one call, is not counted.
"""

from __future__ import annotations

import gc
import itertools
import sys
import weakref
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import numpy as np

from clew.autograd.node import FIRST, Node, next_sequence_nr
from clew.autograd.saved import PackedTensor, SavedTensor, SavedTuple, SavedViewOutput
from clew.autograd.saved_small import SavedSmall
from clew.inspect.memory.engine import BEFORE, Engine
from clew.inspect.memory.log import (
    _GRADIENT,
    BUFFER,
    INPUT,
    MADE,
    OFTEN,
    PARAMETER,
    SEED,
    TEMPORARY,
    Described,
    Kept,
    Log,
    Storage,
)
from clew.observers import Observer, calls, observers
from clew.op import Op
from clew.site import _OWN_FILES, here
from clew.storage import root
from clew.tensor import Tensor

_array_of = Tensor._array.__get__  # type: ignore[attr-defined]
"""The array of a tensor, also of an uninitialised parameter, which refuses to show it."""

_ndarray = np.ndarray

_PACKED = frozenset({SavedTensor, SavedSmall, SavedViewOutput, PackedTensor})
"""What may stand in a node for a tensor."""


class ClewEngine(Engine, Observer):
    """See the top of the module."""

    name = "clew"

    def __init__(self, log: Log) -> None:
        super().__init__(log, (_OWN_FILES,), calls, "_observed_call")
        # What every operation asks for.
        self._marks = self.modules.marks
        self._queue, self._note = log.queue, log.note
        self.nodes_recorded = 0
        self._first_node = 0
        self._noted = 0
        self._states: dict[int, int] = {}
        self._packed: weakref.WeakKeyDictionary[SavedSmall, Described] = weakref.WeakKeyDictionary()

    # -- beginning and end

    def start(self) -> None:
        """Find what is there already, then listen."""
        found = gc.get_objects()
        for x in _instances(found, Tensor):
            self._find(x)
        for x in _instances(found, _loaded("clew.nn.modules.module", "Module")):
            for buffer in x._buffers.values():
                if buffer is not None:
                    self.log.play(self._storage(_array_of(buffer), INPUT, BEFORE), BUFFER)
        for node in _instances(found, Node):
            for name, saved in node.kept():
                self._see_saved(node, name, saved)
        for x in _instances(found, _loaded("clew.optim.optimizer", "Optimizer")):
            self._see_state(x)
        self._first_node = next_sequence_nr()
        observers.append(self)

    def stop(self) -> None:
        """Listen no longer."""
        observers.remove(self)

    def nodes_alive(self) -> int:
        """How many of the nodes that were recorded are still there."""
        first = self._first_node
        nodes = _instances(gc.get_objects(), Node)
        return sum(first < node.seq < FIRST for node in nodes)

    def _find(self, tensor: Tensor) -> None:
        """A tensor from before tracking."""
        try:
            in_graph = tensor._node is not None
            storage = self._storage(_array_of(tensor), TEMPORARY if in_graph else INPUT, BEFORE)
        except AttributeError:  # it is being made, in another thread
            return
        self._see_leaf(tensor, storage)
        if tensor._grad is not None:
            self._see_grad(tensor, tensor._grad)

    # -- what happens

    def on_op(
        self, op: Any, inputs: tuple[Any, ...], outputs: tuple[Any, ...], node: Any,
        attrs: dict[str, Any],
    ) -> None:  # fmt: skip
        modules = calls.modules
        module = (self._marks.get(id(modules[-1])) or self.modules.mark()) if modules else ""
        is_op = op.__class__ is Op
        if not (is_op and op.view):
            note = self._note
            site = here(1) if node is None else node.site
            made = (perf_counter(), site, module, op if is_op else op.__name__, TEMPORARY)
            for out in outputs:
                if out is not None:
                    owner = out._array
                    if owner.base is not None:
                        owner = root(owner)
                    storage = Storage(owner, note)  # log.born(), see Note [Queue]
                    storage.key, storage.nbytes, storage.made = id(owner), owner.nbytes, made
                    note(storage)
        if node is not None:
            self.nodes_recorded += 1
            if node.info is None:
                node.info = module or None
            elif module:
                node.metadata.update(module)
            if not is_op:
                self._see_all(node)
            elif node.saved:
                self._see_plain(node)
        if len(self._queue) > OFTEN:
            self.log.flush()

    def on_inplace(self, op: Any, target: Any, node: Any) -> None:
        if node is not None:
            self.nodes_recorded += 1
            if mark := self.modules.mark():
                node.metadata.update(mark)
            self._see_all(node)

    def on_tensor(self, tensor: Any) -> None:
        storage = self._storage(_array_of(tensor), self._role_of_made(), self._step or MADE)
        if tensor._requires_grad or tensor.__class__ is not Tensor:
            self._see_leaf(tensor, storage)

    def on_backward_start(self, task: Any) -> None:
        self._passes.append(task.freed.site)
        self._pass = task.freed.site

    def on_backward_end(self, task: Any) -> None:
        if self._passes:  # else the pass began before tracking
            self._passes.pop()
        self._pass = self._passes[-1] if self._passes else None
        if not self._passes:
            self.log.end(self.log.passes)

    def on_gradients(self, node: Any, buffers: dict[Any, list[Any]]) -> None:
        if node is None:
            self._begun(buffers)
            return
        note, made = self._note, None
        for following, output_nr in zip(node.next_nodes, node.next_nrs):
            buffer = buffers.get(following)
            owner = buffer and buffer[output_nr]
            if owner.__class__ is not _ndarray:  # a tensor, which an op made, or nothing
                continue
            if made is None:
                made = (perf_counter(), self._pass, node.info or "", node.name(), TEMPORARY)
            if owner.base is not None:
                owner = root(owner)
            storage = Storage(owner, note)  # log.born(), see Note [Queue]
            storage.key, storage.nbytes, storage.made = id(owner), owner.nbytes, made
            note(storage)
        hooks = node.hooks
        if hooks is not None:
            for retain in hooks.retain.values():
                tensor = retain.tensor()
                if tensor is not None:
                    self.on_grad(tensor)

    def _begun(self, buffers: dict[Any, list[Any]]) -> None:
        """The gradients that a pass begins with."""
        log, site = self.log, self._pass
        for grad in itertools.chain.from_iterable(buffers.values()):
            if grad.__class__ is _ndarray:
                owner = root(grad)
                log.born(owner, owner.nbytes, site, "", SEED)
                log.is_first_gradient(id(owner), site)

    def on_accumulated(self, leaf: Any) -> None:
        grad = leaf._grad
        if grad is not None:
            array, of = grad._array, leaf._array
            owner = array if array.base is None else root(array)
            of = of if of.base is None else root(of)
            self._note((_GRADIENT, id(owner), id(of), self._pass))

    def on_grad(self, leaf: Any) -> None:
        if leaf._grad is not None:
            self._see_grad(leaf, leaf._grad)

    def before_optimizer_step(self, optimizer: Any) -> None:
        self._step = f"{type(optimizer).__name__}.step"
        self._noted = len(self.log.queue)

    def on_optimizer_step(self, optimizer: Any) -> None:
        log = self.log
        count = sum(map(len, optimizer.state.values()))
        if len(log.queue) != self._noted or self._states.get(id(optimizer)) != count:
            self._see_state(optimizer)
            self._states[id(optimizer)] = count
        self._step = None
        log.end(log.steps, id(optimizer))
        if len(log.queue) > OFTEN:
            log.flush()

    # -- storages

    def _storage(self, array: np.ndarray, role: int, what: str) -> Storage:
        """The storage that `array` stands on; if it is new, of that kind and made by that."""
        owner = array if array.base is None else root(array)
        storage = self.log.find(owner)
        if storage is None:
            site = None if what is BEFORE else here(2)
            storage = self.log.born(owner, owner.nbytes, site, self.modules.path, what, role)
        return storage

    def _see_leaf(self, tensor: Any, storage: Storage) -> None:
        if (tensor._requires_grad and tensor._node is None) or _is_parameter(tensor):
            site, module, what = self.log.place(storage).origin
            if site is None and tensor._meta is not None:
                site = tensor._meta.site
            self.log.play(storage, PARAMETER, (site, module, what))

    def storage_of(self, tensor: Any) -> Storage | None:
        return self._storage(_array_of(tensor), INPUT, BEFORE)

    def tensors_in(self, value: Any) -> Iterator[Any]:
        return _tensors(value)

    def _is_parameters(self, owner: np.ndarray) -> bool:
        """Whether that is booked as the memory of a parameter."""
        storage = self.log.storages.get(id(owner))
        return storage is not None and storage() is owner and storage.place.kind == PARAMETER

    # -- what nodes keep

    def _see_plain(self, node: Any) -> None:
        """What the node of an operation keeps."""
        # As _see_all() and log.keep(), whose calls take longer than the rest.
        note = self._note
        keeper = (node.site, node.op)
        for saved, save in zip(node.saved, node.plan.saves):
            if saved.__class__ is SavedTensor and saved.packed is None:
                owner = saved.tensor._array
                if owner.base is not None:
                    owner = root(owner)
                    if self._is_parameters(owner):  # which need not be noted: it lives anyway
                        continue
                kept = Kept(saved, note)
                kept.key, kept.by, kept.name = id(owner), keeper, save.name
                note(kept)
            elif saved.__class__ in _PACKED:
                self._see_saved(node, save.name, saved)
            elif saved.__class__ is SavedTuple:
                for part in saved.items:
                    if part is not None:
                        self._see_saved(node, save.name, part)

    def _see_all(self, node: Any) -> None:
        """What any node keeps."""
        for name, saved in node.kept():
            self._see_saved(node, name, saved)

    def _see_saved(self, node: Any, name: str, saved: Any) -> None:
        if isinstance(saved, SavedTensor) and saved.packed is None:
            tensors: Any = (saved.tensor,)
        else:
            tensors = _tensors(saved.packed)
        for tensor in tensors:
            array = tensor._array
            owner = array if array.base is None else root(array)
            if isinstance(saved, SavedSmall) and self.log.find(owner) is None:
                # The node itself has made it.
                self.log.born(owner, owner.nbytes, node.site, self.modules.path, node.op)
            by = (node.site, node.name(), name)
            self._see_kept(saved, owner, by)
            if isinstance(saved, SavedSmall):
                self._packed[saved] = by

    def on_kept_whole(self, saved: Any) -> None:
        by = self._packed.pop(saved, None)
        if by is not None:
            self._see_kept(saved, root(saved.tensor._array), by)

    def _see_kept(self, saved: Any, owner: np.ndarray, by: Described) -> None:
        self.log.keep(self._storage(owner, TEMPORARY, BEFORE), saved, *by)


def _loaded(module: str, name: str) -> Any:
    """A class, or None if its module is not loaded: then there are no instances."""
    return getattr(sys.modules.get(module), name, None)


def _instances(objects: list[Any], kind: Any) -> Iterator[Any]:
    # By type(): isinstance asks proxies, which may compute something.
    return (x for x in objects if kind is not None and issubclass(type(x), kind))


def _is_parameter(tensor: Tensor) -> bool:
    kind = _loaded("clew.nn.parameter", "Parameter")
    return kind is not None and isinstance(tensor, kind)


def _tensors(value: Any) -> Iterator[Tensor]:
    """The tensors in nested dicts, lists and tuples, or in what hooks made of a saved one."""
    if isinstance(value, PackedTensor):
        value = value.packed
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _tensors(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part)
