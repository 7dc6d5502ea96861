"""The public graph API: `Node`, gradient edges, saved-tensor hooks, multi-tensor hooks.

Layer 4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew.autograd.node import GradientEdge
from clew.autograd.saved import hook_stack
from clew.tensor import Tensor


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge of a tensor; usable as ``inputs`` of `grad` and `backward`, without the tensor.

    Raises:
        RuntimeError: the tensor does not require grad.
    """
    if not tensor.requires_grad:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require "
            "gradients"
        )
    return GradientEdge(*tensor._gradient_edge())


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
        if hook_stack.disabled is not None:
            raise RuntimeError(hook_stack.disabled)
        hook_stack.pairs.append((self.pack_hook, self.unpack_hook))

    def __exit__(self, *exception: Any) -> None:
        hook_stack.pairs.pop()


class disable_saved_tensors_hooks:
    """While entered, entering `saved_tensors_hooks` raises a RuntimeError with this message."""

    def __init__(self, error_message: str) -> None:
        self.message = error_message

    def __enter__(self) -> None:
        if hook_stack.pairs:
            raise RuntimeError(self.message)
        self.before = hook_stack.disabled
        hook_stack.disabled = self.message

    def __exit__(self, *exception: Any) -> None:
        hook_stack.disabled = self.before


class save_on_cpu(saved_tensors_hooks):
    """Keep copies of the saved tensors instead of the tensors; on a CPU that is all it does."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda tensor: tensor.detach().clone(), lambda packed: packed)
