"""``torch._C._functions``: the classes of nodes, by PyTorch's names.  Layer 5."""

from __future__ import annotations

from typing import Any

from clew.autograd.node import AccumulateGrad, Node, node_class
from clew.autograd.stops import DelayedError, Error, UndefinedGrad, UndefinedGradBackward
from clew.autograd.views import CopySlices
from clew.op import REGISTRY

__all__ = [
    "AccumulateGrad",
    "CopySlices",
    "DelayedError",
    "Error",
    "UndefinedGrad",
    "UndefinedGradBackward",
]


class _OneOfSeveral(type):
    """The type of a class that stands for the nodes of several ops of one name."""

    classes: tuple[type, ...]

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.classes)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.classes)


def __getattr__(name: str) -> Any:
    """``MulBackward0`` and its like: what ``type(x.grad_fn)`` is, for ``isinstance``."""
    classes = tuple(
        node_class(op)
        for op in REGISTRY.values()
        if op.rules and op.node_name.rpartition("::")[2] == name
    )
    if not classes:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if len(classes) == 1:
        return classes[0]
    return _OneOfSeveral(name, (Node,), {"__slots__": (), "classes": classes})


def __dir__() -> list[str]:
    return sorted({*__all__, *(op.node_name.rpartition("::")[2] for op in REGISTRY.values())})
