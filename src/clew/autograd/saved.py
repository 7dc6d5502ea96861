"""What a node keeps for its backward, and the check that nobody changed it meanwhile.

Layer 3: knows tensors only by their attributes, never by their class.

Note [Saved outputs]
    An input is kept as the very tensor the user has.  An output is kept as an alias that shares
    memory and version but has no edge: with one, node and output would keep each other alive.
    The edge is given back when a backward that is itself recorded asks for the tensor.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from clew.dtypes import legacy_type, of_numpy
from clew.errors import GraphFreedError, SavedTensorModifiedError, at, describe
from clew.site import here

Hook = Callable[[Any], Any]


class SavedTensor:
    """A tensor kept by a node, with the version it had."""

    __slots__ = ("output_nr", "tensor", "version", "__weakref__")

    def __init__(self, tensor: Any, version: int, output_nr: int | None = None) -> None:
        self.tensor = tensor
        self.version = version
        self.output_nr = output_nr

    def array(self, node: Any) -> np.ndarray:
        """The values, for a first-order backward."""
        tensor = self.tensor
        if tensor._counter.value != self.version:
            raise modified(self, node)
        return tensor._array

    def unpack(self, node: Any) -> Any:
        """The tensor, connected to the graph."""
        tensor = self.tensor
        if tensor._counter.value != self.version:
            raise modified(self, node)
        if self.output_nr is None:
            return tensor
        return tensor._alias((node, self.output_nr))

    def storage_array(self) -> np.ndarray | None:
        """The values without any check, for those who count bytes."""
        return self.tensor._array


class PackedTensor:
    """A tensor that went through saved-tensor hooks: what the pack hook made of it."""

    __slots__ = ("edge", "hooks", "packed", "output_nr", "requires_grad", "__weakref__")

    def __init__(self, tensor: Any, hooks: tuple[Hook, Hook], output_nr: int | None) -> None:
        self.hooks = hooks
        self.output_nr = output_nr
        self.requires_grad = output_nr is not None or tensor._requires_grad
        self.edge = tensor._gradient_edge() if output_nr is None else None
        self.packed = hooks[0](tensor)

    def unpack(self, node: Any) -> Any:
        """What the unpack hook returns, connected to the graph."""
        tensor = self.hooks[1](self.packed)
        if not hasattr(tensor, "_gradient_edge"):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of "
                f"type {type(tensor).__name__}"
            )
        if not self.requires_grad:
            return tensor
        edge = (node, self.output_nr) if self.output_nr is not None else self.edge
        return tensor._alias(edge)

    def array(self, node: Any) -> np.ndarray:
        """The values, for a first-order backward."""
        return self.unpack(node)._array

    def storage_array(self) -> np.ndarray | None:
        """Nothing: what the hook keeps is the user's."""
        return None


class SavedTuple:
    """The tensors of a variadic input, kept together; None stands for an absent one."""

    __slots__ = ("items",)

    def __init__(self, items: tuple[Any, ...]) -> None:
        self.items = items

    def array(self, node: Any) -> tuple[Any, ...]:
        """The values, for a first-order backward."""
        return tuple(None if item is None else item.array(node) for item in self.items)

    def unpack(self, node: Any) -> tuple[Any, ...]:
        """The tensors, connected to the graph."""
        return tuple(None if item is None else item.unpack(node) for item in self.items)


class _HookStack(threading.local):
    """The saved-tensor hooks of this thread, innermost last, and why they are disabled if so."""

    def __init__(self) -> None:
        self.pairs: list[tuple[Hook, Hook]] = []
        self.disabled: str | None = None


hook_stack = _HookStack()


def save_input(tensor: Any) -> SavedTensor | PackedTensor:
    """Keep an input of an op."""
    if hook_stack.pairs:
        return PackedTensor(tensor, hook_stack.pairs[-1], None)
    return SavedTensor(tensor, tensor._counter.value)


def save_output(alias: Any, output_nr: int) -> SavedTensor | PackedTensor:
    """Keep an output of an op, given as an alias without an edge; see Note [Saved outputs]."""
    if hook_stack.pairs:
        return PackedTensor(alias, hook_stack.pairs[-1], output_nr)
    return SavedTensor(alias, alias._counter.value, output_nr)


class Freed:
    """What stands in for the saved values of a node after a backward has released them."""

    __slots__ = ("site",)

    def __init__(self) -> None:
        self.site = here()

    def raise_for(self, node: Any) -> None:
        """Raise PyTorch's error for a second pass."""
        raise GraphFreedError(node, self.site)


def modified(saved: SavedTensor, node: Any) -> SavedTensorModifiedError:
    """The error for a saved tensor whose version is no longer the one saved."""
    tensor, counter = saved.tensor, saved.tensor._counter
    shape = ", ".join(map(str, tensor._array.shape))
    kind = f"torch.{legacy_type(tensor._array.dtype)} [{shape}]"
    producer = _producer(saved, node)
    which = f", which is {producer}," if producer else ""
    clause = (
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [{kind}]{which} is at version {counter.value}; expected version "
        f"{saved.version} instead. Hint: enable anomaly detection to find the operation that "
        "failed to compute its gradient, with torch.autograd.set_detect_anomaly(True, "
        "check_nan=False)."
    )
    role = "its own result" if saved.output_nr is not None else "an input"
    where = at(node.site)
    saved_by = f"{node.name()} keeps it as {role}" + (f", recorded {where}" if where else "")
    writer, write = at(counter.writer), counter.writer_name
    changed = f"by {write} {writer}" if writer else (f"by {write}" if write else None)
    return SavedTensorModifiedError(
        clause, _what(saved, node), saved_by, changed, _cure(write, saved)
    )


def _producer(saved: SavedTensor, node: Any) -> str | None:
    """``output 0 of Exp``, as PyTorch names it."""
    if saved.output_nr is not None:
        return f"output {saved.output_nr} of {node.short_name()}"
    edge = saved.tensor._gradient_edge() if saved.tensor._edge is not None else None
    return None if edge is None else f"output {edge[1]} of {edge[0].short_name()}"


def _what(saved: SavedTensor, node: Any) -> str:
    """The tensor, and the line that made it; an in-place write has replaced its own edge since."""
    array = saved.tensor._array
    shape = ", ".join(map(str, array.shape))
    text = f"{of_numpy(array.dtype).name} [{shape}]"
    maker = node if saved.output_nr is not None else node.edge_of_saved(saved)
    if maker is None or saved.tensor._edge is None:
        return describe(saved.tensor)
    place = at(maker.site)
    return f"tensor {text}, made by {maker.name()}" + (f" {place}" if place else "")


def _cure(write: str | None, saved: SavedTensor) -> str:
    if write and write.startswith("optimizer step"):
        return (
            "call backward before the optimizer's step, or compute this loss again after it; "
            "retain_graph=True cannot help"
        )
    out_of_place = write.rstrip("_") if write and write.endswith("_") else None
    advice = f"use {out_of_place} instead of {write}" if out_of_place else "do not write in place"
    return f"{advice}, or write to a clone() of the tensor, or write after backward"
