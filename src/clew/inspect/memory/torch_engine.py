"""Writes down what real PyTorch's tensors on the CPU do.

Never imports torch by itself: it looks at the module that the program has loaded.

A dispatch mode sees the outputs of every operation, those of backward and of optimizers included;
an untyped storage, whose Python object lives as long as the memory, is counted once.  Saved
tensors are seen by saved-tensor hooks (Note [Hooks and versions]).

What is not seen: what a kernel uses in passing; what custom C++ code makes without dispatching;
tensors that were saved before tracking began, or under saved-tensor hooks of the program's own
(checkpointing), which count as temporary.

Note [Hooks and versions]
    With saved-tensor hooks PyTorch no longer checks whether a saved tensor was written to.  So
    the pack hook keeps a detached alias, which shares the version counter, and the version; the
    unpack hook compares, and raises PyTorch's error.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, NamedTuple

from clew.inspect import torch_adapter
from clew.inspect.memory.engine import BEFORE, Engine
from clew.inspect.memory.log import (
    BUFFER,
    INPUT,
    MADE,
    OFTEN,
    PARAMETER,
    TEMPORARY,
    Log,
    Storage,
)
from clew.inspect.recorder import user_site, watched_torch_engine
from clew.observers import Calls
from clew.site import _OWN_FILES, Site

_MOST_MARKS = 100_000
"""So many calls of modules are remembered, to tell which one a node is from."""


class TorchEngine(Engine):
    """See the top of the module.

    Args:
        torch: the module.
        log: where to write.
    """

    name = "torch"

    def __init__(self, torch: Any, log: Log) -> None:
        self._calls = Calls()
        super().__init__(log, (_OWN_FILES, torch_adapter.own_folder()), self._calls)
        self.torch = torch
        self._stack = contextlib.ExitStack()
        self._leaves: Any = None
        self._waiting: list[_Later] = []
        self._newborn: list[Storage] = []  # what the last operation has made
        self._marks: tuple[list[int], list[str]] = ([], [])
        self._is_packing = False
        self._last = _Facts()

    # -- beginning and end

    def start(self) -> None:
        """Find what is there already, then listen."""
        torch = self.torch
        self._leaves = torch.utils.weak.WeakIdKeyDictionary()
        found = gc.get_objects()
        for x in found:
            if issubclass(type(x), torch.Tensor):
                self._find(x)
        for x in found:
            if issubclass(type(x), torch.nn.Module):
                for buffer in x._buffers.values():
                    storage = None if buffer is None else self.storage_of(buffer)
                    if storage is not None:
                        self.log.play(storage, BUFFER)
            elif issubclass(type(x), torch.optim.Optimizer):
                self._see_state(x)
        del found
        enter = self._stack.enter_context
        enter(watched_torch_engine(self._begin_pass, self._end_pass))
        enter(torch.autograd.graph.saved_tensors_hooks(self._pack, _unpack))
        for handle in self._handles():
            self._stack.callback(handle.remove)
        enter(_mode(self._saw))

    def stop(self) -> None:
        """Listen no longer."""
        self._stack.close()
        for handle in self._leaves.values():
            if handle is not None:
                handle.remove()

    def _handles(self) -> list[Any]:
        from torch.nn.modules import module
        from torch.optim import optimizer

        return [
            module.register_module_forward_pre_hook(self._enter_module),
            module.register_module_forward_hook(self._leave_module, always_call=True),
            optimizer.register_optimizer_step_pre_hook(self._begin_step),
            optimizer.register_optimizer_step_post_hook(self._end_step),
        ]

    def _find(self, tensor: Any) -> None:
        """A tensor from before tracking."""
        role = INPUT if tensor.is_leaf else TEMPORARY
        storage = self._storage(tensor, role, (None, "", BEFORE))
        if storage is not None:
            self._see_leaf(tensor, storage)
            if tensor.is_leaf and tensor.grad is not None:
                self._see_grad(tensor, tensor.grad)

    # -- what happens

    def _saw(self, func: Any, args: Any, kwargs: Any, out: Any) -> None:
        """An operation was computed, below autograd."""
        if self._is_packing:
            return
        log = self.log
        facts = _facts(func)
        if self._waiting:
            for later in self._waiting:
                later.node_name = facts.node
            self._waiting.clear()
        for tensor in _tensors((args, kwargs)):
            if tensor.requires_grad and tensor.is_leaf:
                storage = self.storage_of(tensor)
                if storage is not None and not _is_parameter(storage):
                    self._see_leaf(tensor, storage)
            elif facts.is_mutable:
                self._see_size(tensor)
        made: Any = None
        self._newborn.clear()
        for tensor in _tensors(out):
            owner = _owner(tensor)
            if owner is None or log.find(owner) is not None:
                continue
            if made is None:
                made = self._what_made(facts)
            role, (site, module, what) = made
            self._newborn.append(log.born(owner, owner.nbytes(), site, module, what, role))
        self._last = facts
        if len(log.queue) > OFTEN:
            log.flush()

    def _what_made(self, facts: _Facts) -> tuple[int, tuple[Site | None, str, str]]:
        """Kind and origin of what an operation has made."""
        if self._passes:
            node = self.torch._C._current_autograd_node()
            if node is not None:
                name = torch_adapter.kind(node)
                return TEMPORARY, (self._passes[-1], self._module_of(node), name)
            return TEMPORARY, (self._passes[-1], "", facts.name)
        role, what = TEMPORARY, facts.name
        if facts.is_factory and not _is_first_gradient(facts.name):
            role, what = self._role_of_made(), self._step or MADE
        return role, (user_site(), self.modules.path, what)

    def _module_of(self, node: Any) -> str:
        starts, paths = self._marks
        position = bisect_right(starts, node._sequence_nr()) - 1
        return paths[position] if 0 <= position < len(paths) - 1 else ""

    def _see_size(self, tensor: Any) -> None:
        """An operation that writes may have given a storage another size."""
        owner = _owner(tensor)
        storage = None if owner is None else self.log.find(owner)
        if storage is None:
            return
        self.log.place(storage)  # by now its size is known
        if owner.nbytes() != storage.nbytes:
            self.log.resize(storage, owner.nbytes())

    def _enter_module(self, module: Any, args: Any) -> None:
        modules = self._calls.modules
        self.modules.name([*modules, module])
        modules.append(module)
        self._mark()

    def _leave_module(self, module: Any, args: Any, output: Any) -> None:
        if self._calls.modules:  # else the call began before tracking
            self._calls.modules.pop()
        self._mark()

    def _mark(self) -> None:
        starts, paths = self._marks
        starts.append(self.torch._C._autograd._get_sequence_nr())
        paths.append(self.modules.path)
        if len(starts) > _MOST_MARKS:
            del starts[: _MOST_MARKS // 2], paths[: _MOST_MARKS // 2]

    def _begin_pass(self, roots: Any) -> None:
        self._pass = user_site()
        self._passes.append(self._pass)

    def _end_pass(self) -> None:
        self._passes.pop()
        self._pass = self._passes[-1] if self._passes else None
        if not self._passes:
            self.log.end(self.log.passes)

    def _begin_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._step = f"{type(optimizer).__name__}.step"

    def _end_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._see_state(optimizer)
        self._step = None
        self.log.end(self.log.steps, id(optimizer))

    # -- storages

    def storage_of(self, tensor: Any) -> Storage | None:
        return self._storage(tensor, INPUT, (None, "", BEFORE))

    def tensors_in(self, value: Any) -> Iterator[Any]:
        return _tensors(value)

    def _storage(self, tensor: Any, role: int, made: Any) -> Storage | None:
        owner = _owner(tensor)
        if owner is None:
            return None
        log = self.log
        site, module, what = made
        return log.find(owner) or log.born(owner, owner.nbytes(), site, module, what, role)

    def _see_leaf(self, tensor: Any, storage: Storage) -> None:
        wants_grad = tensor.requires_grad and tensor.is_leaf
        if not wants_grad and not isinstance(tensor, self.torch.nn.Parameter):
            return
        self.log.play(storage, PARAMETER)
        if tensor in self._leaves:  # it has other memory now
            return
        handle = None
        if wants_grad:
            handle = tensor.register_post_accumulate_grad_hook(
                lambda leaf: None if leaf.grad is None else self._see_grad(leaf, leaf.grad)
            )
        self._leaves[tensor] = handle

    # -- saved tensors

    def _pack(self, tensor: Any) -> _Packed:
        """See Note [Hooks and versions]."""
        self._is_packing = True
        try:
            packed = _Packed(tensor)
        finally:
            self._is_packing = False
        storage = self.storage_of(tensor)
        if storage is not None and not _is_parameter(storage):
            node: Any = self._made_just_now(tensor, storage)
            name = "result"
            if not node:  # the operation that runs next will tell which
                node, name = _Later(), "input"
                self._waiting.append(node)
            self.log.keep(storage, packed, user_site(), node, name)
        return packed

    def _made_just_now(self, tensor: Any, storage: Storage) -> str:
        """The name of the node that keeps its own result; "" if the tensor is no such result.

        A node is made before it packs its inputs, and packs its results when it is theirs.
        """
        node = tensor.grad_fn
        if node is None:
            is_last = not tensor.requires_grad and any(s is storage for s in self._newborn)
            return self._last.node if is_last else ""
        is_newest = node._sequence_nr() == self.torch._C._autograd._get_sequence_nr() - 1
        return torch_adapter.kind(node) if is_newest else ""


class _Later:
    """The name of a node that is not known yet."""

    __slots__ = ("node_name",)

    def __init__(self) -> None:
        self.node_name = "a node"


def _is_parameter(storage: Storage) -> bool:
    """Whether that is booked; it does no harm if it is in the queue still."""
    return storage.place is not None and storage.place.kind == PARAMETER


class _Packed:
    """What the pack hook makes of a saved tensor; dies with it."""

    __slots__ = ("__weakref__", "producer", "tensor", "version")

    def __init__(self, tensor: Any) -> None:
        node = tensor.grad_fn
        self.producer = "" if node is None else node.name().rstrip("0123456789")
        self.tensor = tensor.detach()
        self.version = tensor._version


def _unpack(packed: _Packed) -> Any:
    """See Note [Hooks and versions].

    Raises:
        RuntimeError: the tensor was written to since it was saved; PyTorch's own text.
    """
    tensor, version = packed.tensor, packed.tensor._version
    if version == packed.version:
        return tensor
    kind, shape = tensor.type(), list(tensor.shape)
    producer = packed.producer.removesuffix("Backward")
    which = f", which is output 0 of {producer}," if producer else ""
    raise RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [{kind} {shape}]{which} is at version {version}; expected version "
        f"{packed.version} instead. Hint: enable anomaly detection to find the operation that "
        "failed to compute its gradient, with torch.autograd.set_detect_anomaly(True, "
        "check_nan=False)."
    )


def _owner(tensor: Any) -> Any:
    """The storage object of a tensor on the CPU; None for others and for those without storage."""
    if tensor.device.type != "cpu":
        return None
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError, ValueError):  # sparse, opaque, uninitialised
        return None


def _is_first_gradient(name: str) -> bool:
    """Whether `backward` itself makes the gradient that it begins with."""
    if name != "ones_like":
        return False
    frame: Any = sys._getframe()
    while frame is not None and frame.f_code.co_name != "_make_grads":
        frame = frame.f_back
    return frame is not None


class _Facts(NamedTuple):
    """What is to know of an operation.

    Attributes:
        name: ``addmm``.
        node: the name of the node that it makes, as far as that can be guessed.
        is_factory: it makes tensors from no other.
        is_mutable: it writes to an argument.
    """

    name: str = ""
    node: str = "a node"
    is_factory: bool = False
    is_mutable: bool = False


@functools.cache
def _facts(func: Any) -> _Facts:
    schema = func._schema
    name = schema.name.partition("::")[2]
    words = name.strip("_").removesuffix("_forward").split("_")
    node = "".join(word[:1].upper() + word[1:] for word in words) + "Backward0"
    takes_tensors = any("Tensor" in str(argument.type) for argument in schema.arguments)
    copies_shape = name.endswith("_like") or name.startswith("new_")
    is_factory = not takes_tensors or copies_shape or name == "lift_fresh"
    return _Facts(name, node, is_factory, schema.is_mutable)


def _tensors(value: Any) -> Iterator[Any]:
    """The tensors in nested dicts, lists and tuples."""
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from _tensors(part)
    elif hasattr(value, "untyped_storage"):
        yield value


def _mode(saw: Any) -> Any:
    """A dispatch mode that tells `saw` of each operation."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Ledger(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            out = func(*args, **(kwargs or {}))
            saw(func, args, kwargs, out)
            return out

    return Ledger()
