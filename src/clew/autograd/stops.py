"""Nodes that let no gradient through: one refuses it, one gives none.  Layer 4."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clew.autograd.node import Node, next_sequence_nr
from clew.autograd.views import NO_EDGE
from clew.errors import TwiceDifferentiatedError
from clew.site import here
from clew.tensor import Tensor


class _Stop(Node):
    """Passes tensors on; what it does with their gradients is a subclass's."""

    __slots__ = ()

    def __init__(self, tensors: Sequence[Any]) -> None:
        self.edges = tuple(NO_EDGE if t is None else t._gradient_edge() for t in tensors)
        self.metas = tuple(None if t is None else (t._array.shape, t._array.dtype) for t in tensors)
        self.seq = next_sequence_nr()
        self.site = here()
        self.hooks = None
        self.info = None

    def outputs(self, tensors: Sequence[Any]) -> tuple[Any, ...]:
        """The tensors as what this node made."""
        return tuple(
            t if t is None or not t.requires_grad else t._alias((self, i))
            for i, t in enumerate(tensors)
        )


class Error(_Stop):
    """Refuses every gradient with a message: the end of what is once differentiable."""

    __slots__ = ("message",)

    def __init__(self, message: str, tensors: Sequence[Any]) -> None:
        super().__init__(tensors)
        self.message = message

    def name(self) -> str:
        return "torch::autograd::Error"

    def run(self, grads: list[Any], algebra: Any, need: Sequence[bool] | None) -> Sequence[Any]:
        raise TwiceDifferentiatedError(self.message, self)


def stop(message: str, tensors: Sequence[Any]) -> tuple[Any, ...]:
    """The tensors without their history, made by a node that refuses their gradients."""
    # Leaves that require grad, so that there is something to refuse the gradient of.
    leaves = [None if t is None else t.detach() for t in tensors]
    for leaf in leaves:
        if leaf is not None:
            leaf._requires_grad = True
    return Error(message, leaves).outputs(leaves)


class UndefinedGradBackward(_Stop):
    """Gives no gradient, whatever arrives."""

    __slots__ = ()

    def name(self) -> str:
        return "torch::autograd::UndefinedGradBackward"

    def run(self, grads: list[Any], algebra: Any, need: Sequence[bool] | None) -> Sequence[Any]:
        return [None] * len(self.edges)


class DelayedError(Node):
    """``DelayedError(message, n)(*tensors)``: the n tensors, with an `Error` as their node.

    Raises:
        TypeError: on the call, there are more or fewer tensors than `n`.
    """

    __slots__ = ("count", "message")

    def __init__(self, message: str, num_inputs: int) -> None:
        self.message, self.count = message, num_inputs

    def __call__(self, *tensors: Tensor) -> Any:
        """The tensors themselves where they require no grad."""
        if len(tensors) != self.count:
            raise TypeError(f"expected {self.count} arguments, got {len(tensors)} instead")
        made = Error(self.message, tensors).outputs(tensors)
        return made[0] if self.count == 1 else made


class UndefinedGrad(Node):
    """``UndefinedGrad()(*tensors)``: the tensors; backward through them finds no gradient."""

    __slots__ = ()

    def __init__(self) -> None:
        pass

    def __call__(self, *tensors: Tensor) -> Any:
        """The tensors themselves where they require no grad."""
        made = UndefinedGradBackward(tensors).outputs(tensors)
        return made[0] if len(tensors) == 1 else made
