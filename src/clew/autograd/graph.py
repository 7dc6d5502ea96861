"""The public graph API: `Node`, gradient edges, saved-tensor hooks, multi-tensor hooks.

Layer 4.
"""

from __future__ import annotations

import abc
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from clew.autograd import node as _node
from clew.autograd.engine import current, will_run
from clew.autograd.handles import RemovableHandle
from clew.autograd.modes import state
from clew.autograd.mutation import allow_mutation_on_saved_tensors
from clew.autograd.node import GradientEdge
from clew.errors import NoNodeError, RequiresGradError, SavedHookError
from clew.tensor import Tensor

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


class Node(abc.ABC):
    """What every node of the graph is an instance of; see `clew.autograd.node.Node`."""

    name: Callable[[], str]
    next_functions: tuple[tuple[Any, int], ...]
    metadata: dict[str, Any]
    register_hook: Callable[..., RemovableHandle]
    register_prehook: Callable[..., RemovableHandle]


Node.register(_node.Node)


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge of a tensor; usable as ``inputs`` of `grad` and `backward`, without the tensor.

    Raises:
        RuntimeError: the tensor does not require grad.
    """
    if not tensor.requires_grad:
        raise RequiresGradError(
            "It is not possible to get the gradient edge for a Tensor that does not require "
            "gradients",
            tensor,
            "call x.requires_grad_(), or compute it from a tensor that requires grad",
        )
    node, output_nr = tensor._gradient_edge()
    if node is None:  # a view made under no_grad of what requires grad
        raise NoNodeError("Expected gradient function to be set", tensor)
    return GradientEdge(node, output_nr)


def increment_version(tensor: Any) -> None:
    """Say that a tensor, or each of several, was written to by something that clew does not see.

    A backward that needs the overwritten values then raises instead of using wrong ones.
    Inference tensors have no version and are left alone.
    """
    tensors = (tensor,) if isinstance(tensor, Tensor) else tensor
    for written in tensors:
        if not written.is_inference():
            written._counter.bump("increment_version")


# -- saved tensors

_DISABLED = "leave the disable_saved_tensors_hooks block first"
_ENTERED = "leave the saved_tensors_hooks block first"


class saved_tensors_hooks:
    """While entered, tensors that are saved go through `pack_hook`, and back through `unpack_hook`.

    Args:
        pack_hook: takes the tensor, returns what to keep in its place.
        unpack_hook: takes that, returns a tensor of the same values.
    """

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        if state.now.hooks_refused is not None:
            raise SavedHookError(state.now.hooks_refused, _DISABLED)
        state.now.saved_hooks.append((self.pack_hook, self.unpack_hook))

    def __exit__(self, *exception: Any) -> None:
        state.now.saved_hooks.pop()


class disable_saved_tensors_hooks:
    """While entered, entering `saved_tensors_hooks` raises a RuntimeError with this message."""

    def __init__(self, error_message: str) -> None:
        self.message = error_message

    def __enter__(self) -> None:
        if state.now.saved_hooks:
            raise SavedHookError(self.message, _ENTERED)
        self.before = state.now.hooks_refused
        state.now.hooks_refused = self.message

    def __exit__(self, *exception: Any) -> None:
        state.now.hooks_refused = self.before


class save_on_cpu(saved_tensors_hooks):
    """Keep the saved tensors on the CPU, where they are."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda tensor: tensor.detach(), lambda packed: packed)


# -- hooks on several tensors


class _Handles(RemovableHandle):
    """Removes several hooks."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Take all the hooks out; again does nothing."""
        for handle in self.handles:
            handle.remove()


class _WhenAll:
    """Collects the gradients of each backward pass and calls once all have come."""

    def __init__(self, tensors: Sequence[Tensor], call: Callable[[list[Any]], None]) -> None:
        self.nodes = [tensor._gradient_edge()[0] for tensor in tensors]
        self.call = call
        self.lock = threading.Lock()
        self.found: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()
        self.missing: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    def take(self, index: int, grad: Any) -> None:
        """The gradient of one of the tensors has come."""
        task = current.task
        assert task is not None
        with self.lock:
            if task not in self.found:
                self.found[task] = [None] * len(self.nodes)
                self.missing[task] = sum(will_run(task, node) for node in self.nodes)
            self.found[task][index] = grad
            self.missing[task] -= 1
            done = self.missing[task] == 0
        if done:
            self.call(self.found.pop(task))

    def hook(self, index: int) -> Callable[[Any], None]:
        """The hook of one of the tensors."""
        return lambda grad: self.take(index, grad)


class _WhenAny:
    """Calls with the first gradient that comes in each backward pass."""

    def __init__(self, call: Callable[[Any], None]) -> None:
        self.call = call
        self.lock = threading.Lock()
        self.called: weakref.WeakSet[Any] = weakref.WeakSet()

    def __call__(self, grad: Any) -> None:
        with self.lock:
            first = current.task not in self.called
            self.called.add(current.task)
        if first:
            self.call(grad)


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[[Any], None], *, mode: str = "all"
) -> RemovableHandle:
    """Call a hook once per backward pass for several tensors.

    Args:
        tensors: what to wait for the gradients of.
        fn: in mode "all" it is given the list of all gradients, None for a tensor whose gradient
            this pass does not compute; in mode "any" the first gradient that comes.
        mode: "all" or "any".

    Returns:
        A handle that removes the hook.

    Raises:
        ValueError: there is no such mode.
        AssertionError: in mode "all", a tensor does not require grad.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    if mode == "any":
        first = _WhenAny(fn)
        return _Handles([t.register_hook(first) for t in tensors if t.requires_grad])
    for tensor in tensors:
        if tensor._gradient_edge()[0] is None:
            raise NoNodeError("Expected gradient function to be set", tensor)
    every = _WhenAll(tensors, fn)
    return _Handles([t.register_hook(every.hook(i)) for i, t in enumerate(tensors)])
