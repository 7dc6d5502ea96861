"""What PyTorch lets programs see and take away of a tensor's place in the graph.  Layer 4."""

from __future__ import annotations

from typing import Any

from clew.autograd.node import FIRST
from clew.tensor import Tensor


class _Guarded:
    """A property that cannot be deleted, and may be set to None at most."""

    def __init__(self, get: Any, clear: Any, deletion: str, doc: str) -> None:
        self.get, self.clear, self.deletion = get, clear, deletion
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, tensor: Any, owner: type) -> Any:
        return self if tensor is None else self.get(tensor)

    def __set__(self, tensor: Any, value: Any) -> None:
        if value is not None:
            raise RuntimeError(f"{self.name} can be only set to None")
        self.clear(tensor)

    def __delete__(self, tensor: Any) -> None:
        raise RuntimeError(self.deletion)


def _hooks_of(tensor: Tensor) -> Any:
    """The hooks that `register_hook` has put on a tensor: a dict, or None before the first."""
    if not tensor._requires_grad:
        return None
    node, output_nr = tensor._gradient_edge()
    if node.seq == FIRST:
        return tensor._ensure_meta().hooks
    return None if node.hooks is None else node.hooks.tensor.get(output_nr)


def _clear_hooks(tensor: Tensor) -> None:
    hooks = _hooks_of(tensor)
    if hooks is not None:
        hooks.clear()


def _late_hooks_of(tensor: Tensor) -> Any:
    return None if tensor._meta is None else tensor._meta.post_accumulate


def _clear_late_hooks(tensor: Tensor) -> None:
    if tensor._meta is not None:
        tensor._meta.post_accumulate = None


def _install(name: str, guarded: _Guarded) -> None:
    guarded.__set_name__(Tensor, name)
    setattr(Tensor, name, guarded)


_install(
    "_grad_fn",
    _Guarded(
        lambda tensor: tensor.grad_fn,
        lambda tensor: tensor.detach_(),
        "Deletion of _grad_fn not allowed. Detach tensor instead!",
        "`grad_fn`; to be set to None, which is `detach_`.",
    ),
)
_install(
    "_backward_hooks",
    _Guarded(
        _hooks_of,
        _clear_hooks,
        "Deletion of _backwards_hooks not allowed!",
        "The hooks on this tensor's gradient, by number; None before the first.",
    ),
)
_install(
    "_post_accumulate_grad_hooks",
    _Guarded(
        _late_hooks_of,
        _clear_late_hooks,
        "Deletion of _post_accumulate_grad_hooks not allowed!",
        "The hooks that run after accumulation into this leaf, by number; None before the first.",
    ),
)
