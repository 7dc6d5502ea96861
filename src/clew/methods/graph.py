"""What PyTorch lets programs see and take away of a tensor's place in the graph.  Layer 4."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from clew import autograd
from clew.publish import composite
from clew.tensor import Tensor


@composite(function=False)
def backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Accumulate the gradient of this tensor into the leaves; see `clew.autograd.backward`."""
    autograd.backward(self, gradient, retain_graph, create_graph, inputs=inputs)


class _Guarded:
    """A property that cannot be deleted."""

    def __init__(self, get: Any, put: Any, deletion: str, doc: str) -> None:
        self.get, self.put, self.deletion = get, put, deletion
        self.__doc__ = doc

    def __get__(self, tensor: Any, owner: type) -> Any:
        return self if tensor is None else self.get(tensor)

    def __set__(self, tensor: Any, value: Any) -> None:
        self.put(tensor, value)

    def __delete__(self, tensor: Any) -> None:
        raise RuntimeError(self.deletion)


def _set_grad_fn(tensor: Tensor, value: Any) -> None:
    if value is not None:
        raise RuntimeError("_grad_fn can be only set to None")
    tensor.detach_()


def _hooks_of(tensor: Tensor) -> Any:
    """The hooks that `register_hook` has put on a tensor: a dict, or None before the first."""
    if tensor._node is None:
        return None if tensor._meta is None else tensor._meta.hooks
    node, output_nr = tensor._gradient_edge()
    return None if node.hooks is None else node.hooks.tensor.get(output_nr)


def _set_hooks(tensor: Tensor, hooks: Any) -> None:
    if tensor._node is None:
        tensor._ensure_meta().hooks = hooks
        return
    node, output_nr = tensor._gradient_edge()
    node._hooks().tensor[output_nr] = OrderedDict() if hooks is None else hooks


def _late_hooks_of(tensor: Tensor) -> Any:
    return None if tensor._meta is None else tensor._meta.post_accumulate


def _set_late_hooks(tensor: Tensor, hooks: Any) -> None:
    tensor._ensure_meta().post_accumulate = hooks


def _install(name: str, guarded: _Guarded) -> None:
    setattr(Tensor, name, guarded)


_install(
    "_grad_fn",
    _Guarded(
        lambda tensor: tensor.grad_fn,
        _set_grad_fn,
        "Deletion of _grad_fn not allowed. Detach tensor instead!",
        "`grad_fn`; to be set to None, which is `detach_`.",
    ),
)
_install(
    "_backward_hooks",
    _Guarded(
        _hooks_of,
        _set_hooks,
        "Deletion of _backwards_hooks not allowed!",
        "The hooks on this tensor's gradient, by number; None before the first.",
    ),
)
_install(
    "_post_accumulate_grad_hooks",
    _Guarded(
        _late_hooks_of,
        _set_late_hooks,
        "Deletion of _post_accumulate_grad_hooks not allowed!",
        "The hooks that run after accumulation into this leaf, by number; None before the first.",
    ),
)
