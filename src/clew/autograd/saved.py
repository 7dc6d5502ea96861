"""What a node keeps for its backward, and the check that nobody changed it meanwhile.

Layer 3: knows tensors only by their attributes, never by their class.

Note [Saved outputs]
    An input is kept as the very tensor the user has.  An output is kept as an alias that shares
    memory and version but has no edge: with one, node and output would keep each other alive.
    The edge is given back when a backward that is itself recorded asks for the tensor.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from clew.autograd.modes import call_user, no_grad, state
from clew.dtypes import described_type
from clew.errors import (
    DetachError,
    GraphFreedError,
    InferenceTensorError,
    SavedHookError,
    SavedHookTypeError,
    SavedTensorModifiedError,
    UnpackedError,
    defined,
    describe,
    made_by,
    recorded,
    shape_of,
    spaced,
    typed,
)
from clew.op import REGISTRY
from clew.site import here

FIRST = 2**64 - 1
"""The sequence number of `AccumulateGrad`: it runs as soon as it is ready."""

Hook = Callable[[Any], Any]

_HOOKED = (
    "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one "
    "pair of hooks is allowed at a time."
)
_HOOKED_CURE = "put both into one pair of hooks, or leave the saved_tensors_hooks block first"


class Saved:
    """What a node keeps in the place of a tensor; PyTorch's name of it is ``SavedTensor``."""

    __slots__ = ()

    def register_hooks(self, pack_hook: Hook, unpack_hook: Hook) -> None:
        """Keep what `pack_hook` makes of the tensor, and give back what `unpack_hook` makes of it.

        Raises:
            RuntimeError: there is no tensor, it has hooks already, or it was released.
        """
        raise NotImplementedError


class SavedTensor(Saved):
    """A tensor kept by a node, with the version it had.

    Attributes:
        tensor: an input itself, or an alias of an output (Note [Saved outputs]).
        version: its version when it was saved.
        output_nr: which output it is; None for an input.
        packed: what stands in for it since hooks were registered on it, or None.
    """

    __slots__ = ("output_nr", "packed", "tensor", "version", "__weakref__")

    def __init__(self, tensor: Any, version: int, output_nr: int | None = None) -> None:
        self.tensor = tensor
        self.version = version
        self.output_nr = output_nr
        self.packed: PackedTensor | None = None

    def summary(self) -> str:
        """What is kept in a few words: ``float32 [3] 12 B``."""
        if self.packed is not None:
            return self.packed.summary()
        tensor = self.tensor
        changed = " (changed since)" if tensor._counter.value != self.version else ""
        return f"{shape_of(tensor)} {tensor._array.nbytes:,} B{changed}"

    def __repr__(self) -> str:
        return f"<SavedTensor {self.summary()}, version {self.version}>"

    def check(self, node: Any) -> None:
        """Raise if the tensor is no longer what was saved."""
        tensor = self.tensor
        # What `detach_` takes out of a graph it notes in `_cut`.
        if tensor._node is None and tensor._cut is not None and self.output_nr is None:
            _refuse_detached(self, node)
        self.check_version(node)

    def check_version(self, node: Any) -> None:
        """Raise if the tensor was written to since."""
        if self.tensor._counter.value != self.version:
            raise modified(self, node)

    def show(self, node: Any) -> Any:
        """The tensor as `node` shows it, though it may have been detached in place since."""
        if self.packed is None and self.output_nr is None:
            self.check_version(node)
            return self.tensor
        return self.unpack(node)

    def array(self, node: Any) -> np.ndarray:
        """The values, for a first-order backward."""
        if self.packed is not None:
            return self.packed.array(node)
        self.check(node)
        array: np.ndarray = self.tensor._array
        return array

    def unpack(self, node: Any) -> Any:
        """The tensor, connected to the graph."""
        if self.packed is not None:
            return self.packed.unpack(node)
        self.check(node)
        if self.output_nr is None:
            return self.tensor
        alias = self.tensor._alias(self.edge(node))
        if self.tensor._meta is not None:
            share_tangents(alias, self.tensor)
        return alias

    def edge(self, node: Any) -> tuple[Any, int | None]:
        """Where the gradient of an output goes, which `node` keeps."""
        return node, self.output_nr

    def register_hooks(self, pack_hook: Hook, unpack_hook: Hook) -> None:
        """As of `Saved`."""
        if self.packed is not None:
            raise SavedHookError(_HOOKED, _HOOKED_CURE, ("tensor", describe(self.tensor)))
        self.packed = PackedTensor(self.tensor, (pack_hook, unpack_hook), self.output_nr, late=True)


def share_tangents(alias: Any, tensor: Any) -> None:
    """Let an alias of a tensor, made outside dispatch, have its tangents (forward mode)."""
    meta = tensor._meta
    if meta is not None and meta.tangents is not None:
        alias._ensure_meta().tangents = meta.tangents


class SavedViewOutput(SavedTensor):
    """An output that was written into a view, to which another node leads than keeps it.

    That node, the view's, leads to this one; so it is held weakly (Note [No cycles]).
    """

    __slots__ = ("maker",)

    def __init__(self, saved: SavedTensor, maker: Any) -> None:
        super().__init__(saved.tensor, saved.version, saved.output_nr)
        self.packed = saved.packed
        self.maker = weakref.ref(maker)

    def edge(self, node: Any) -> tuple[Any, int | None]:
        maker = self.maker()
        return super().edge(node) if maker is None else (maker, 0)


def _refuse_detached(saved: SavedTensor, node: Any) -> None:
    """A saved input that a node had made, and that was detached in place since."""
    maker = node.edge_of_saved(saved)
    if maker is not None and maker.seq != FIRST and saved.tensor._gradient_edge()[0] is not maker:
        raise DetachError(
            "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_()."
            "This is not supported, please use out-of-place `.detach()` instead",
            ("tensor", describe(saved.tensor)),
            ("saved by", recorded(node)),
            ("detached", spaced("", saved.tensor._cut[1]).strip() if saved.tensor._cut else None),
        )


class PackedTensor(Saved):
    """A tensor that went through saved-tensor hooks: what the pack hook made of it.

    Attributes:
        packed: that.
        hooks: the pack hook and the unpack hook.
        edge: where the gradient of an input goes; None for an output.
        output_nr: which output it is; None for an input.
        maker: as of `SavedViewOutput`, or None.
        meta: (shape, NumPy dtype) of the tensor.
        returned: what the unpack hook returned last, in words, if that has another shape or dtype.
    """

    __slots__ = (
        "edge", "hooks", "maker", "meta", "packed", "output_nr", "returned", "__weakref__",
    )  # fmt: skip

    def __init__(
        self, tensor: Any, hooks: tuple[Hook, Hook], output_nr: int | None, *, late: bool = False
    ) -> None:
        self.hooks = hooks
        self.output_nr = output_nr
        self.meta = (tensor._array.shape, tensor._array.dtype)
        self.returned: str | None = None
        self.maker: Any = None
        self.edge = tensor._gradient_edge() if output_nr is None else None
        version = tensor._counter.value
        if late:
            tensor = tensor.detach()
        if output_nr is not None and not late:
            # As PyTorch shows it: requiring grad, its node not yet known.
            tensor = tensor._alias()
            tensor._requires_grad = tensor._array.dtype.kind in "fcV"
        with no_grad():
            self.packed = hooks[0](tensor)
        if tensor._counter.value != version:
            raise SavedHookError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as "
                "input to pack hook cannot be modified by in-place operations as this can lead to "
                "unexpected side-effects. Please open an issue if you need to perform in-place "
                "operations on the input to a pack hook.",
                "write to a clone() of the tensor in the pack hook",
                ("hook", defined(hooks[0])),
                ("tensor", describe(tensor)),
            )

    def summary(self) -> str:
        """What is kept in a few words."""
        return f"packed as {type(self.packed).__name__}"

    def __repr__(self) -> str:
        return f"<PackedTensor {self.summary()}>"

    def unpack(self, node: Any) -> Any:
        """What the unpack hook returns, connected to the graph."""
        tensor = call_user(self.hooks[1], self.packed)
        if not hasattr(tensor, "_gradient_edge"):
            raise SavedHookTypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                f"{type(tensor).__name__}",
                self.hooks[1],
                node,
            )
        is_leaf = self.edge is not None and self.edge[0] is not None and self.edge[0].seq == FIRST
        if is_leaf and tensor._array.dtype.kind not in "fcV":
            raise UnpackedError(
                "Only Tensors of floating point and complex dtype can require gradients",
                self.hooks[1],
                node,
                typed(*self.meta),
                shape_of(tensor),
            )
        same = (tensor._array.shape, tensor._array.dtype) == self.meta
        self.returned = None if same else shape_of(tensor)
        edge = self.edge
        if edge is None:
            maker = self.maker() if self.maker is not None else None
            edge = (node, self.output_nr) if maker is None else (maker, 0)
        if edge[0] is None and not tensor.requires_grad:
            return tensor
        return tensor._placed(edge)

    def array(self, node: Any) -> np.ndarray:
        """The values, for a first-order backward."""
        array: np.ndarray = self.unpack(node)._array
        return array

    def register_hooks(self, pack_hook: Hook, unpack_hook: Hook) -> None:
        """Refused: the tensor has hooks."""
        raise SavedHookError(_HOOKED, _HOOKED_CURE, ("hook", defined(self.hooks[0])))


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


def saved_tensor(tensor: Any, counter: Any, output_nr: int | None = None) -> SavedTensor:
    """What is kept of a tensor as it is; as the class does it, without the cost of `__init__`."""
    saved = SavedTensor.__new__(SavedTensor)
    saved.tensor = tensor
    saved.version = counter.value
    saved.output_nr = output_nr
    saved.packed = None
    return saved


def save_input(tensor: Any) -> SavedTensor | PackedTensor:
    """Keep an input of an op.

    Raises:
        RuntimeError: it is an inference tensor.
    """
    if tensor._meta is not None and tensor._meta.inference:
        refuse_saving(tensor)
    if state.now.saved_hooks:
        return PackedTensor(tensor, state.now.saved_hooks[-1], None)
    return SavedTensor(tensor, tensor._counter.value)


def refuse_saving(tensor: Any) -> None:
    """Raise the error for an inference tensor that a graph should keep."""
    raise InferenceTensorError(
        "Inference tensors cannot be saved for backward. Please do not use Tensors created in "
        "inference mode in computation tracked by autograd. To work around this, you can make a "
        "clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` instead of "
        "`torch.inference_mode()`.",
        tensor,
        "use x.clone(), or compute x under no_grad instead of inference_mode",
    )


def save_output(alias: Any, output_nr: int) -> SavedTensor | PackedTensor:
    """Keep an output of an op, given as an alias without an edge; see Note [Saved outputs]."""
    if state.now.saved_hooks:
        return PackedTensor(alias, state.now.saved_hooks[-1], output_nr)
    return saved_tensor(alias, alias._counter, output_nr)


class SavedNone(Saved):
    """What is kept of an argument that was None, as users see it."""

    __slots__ = ()

    def register_hooks(self, pack_hook: Hook, unpack_hook: Hook) -> None:
        """Refused: there is no tensor."""
        raise SavedHookError(
            "Calling register_hooks on a saved tensor with value None is forbidden",
            "ask first whether the call has kept this value: node._saved_self is not None",
        )


class Freed(Saved):
    """What stands in for the saved values of a node after a backward has released them.

    Args:
        skip: as of `here`.
    """

    __slots__ = ("site",)

    def __init__(self, skip: int = 0) -> None:
        self.site = here(skip=1 + skip)

    def raise_for(self, node: Any) -> NoReturn:
        """Raise PyTorch's error for a second pass."""
        raise GraphFreedError(node, self.site)

    def register_hooks(self, pack_hook: Hook, unpack_hook: Hook) -> None:
        """Refused: the tensor is gone."""
        raise SavedHookError(
            "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate "
            "values of the graph are freed when you call .backward() or autograd.grad(). Specify "
            "retain_graph=True if you need to backward through the graph a second time or if you "
            "need to access saved variables after calling backward.",
            "register the hooks before the backward pass, or keep the graph",
            ("freed", spaced("by the backward", self.site)),
        )


def modified(saved: SavedTensor, node: Any) -> SavedTensorModifiedError:
    """The error for a saved tensor whose version is no longer the one saved."""
    tensor, counter = saved.tensor, saved.tensor._counter
    shape = ", ".join(map(str, tensor._array.shape))
    kind = f"{described_type(tensor._array.dtype)} [{shape}]"
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
    write = counter.writer_name
    return SavedTensorModifiedError(
        clause,
        _what(saved, node),
        f"{node.name()} as {role}{spaced(', recorded', node.site)}",
        f"by {write}{spaced('', counter.writer)}" if write else None,
        _cure(write, saved),
    )


def _producer(saved: SavedTensor, node: Any) -> str | None:
    """``output 0 of Exp``, as PyTorch names it."""
    if saved.output_nr is not None:
        maker, output_nr = saved.edge(node)
    else:
        maker, output_nr = saved.tensor.grad_fn, saved.tensor.output_nr
    return None if maker is None else f"output {output_nr} of {maker.short_name()}"


def _what(saved: SavedTensor, node: Any) -> str:
    """The tensor, and the line that made it; an in-place write has replaced its own edge since."""
    maker = node if saved.output_nr is not None else node.edge_of_saved(saved)
    if maker is None or maker.seq == FIRST:
        return describe(saved.tensor)
    return f"tensor {shape_of(saved.tensor)}{made_by(maker)}"


def _cure(write: str | None, saved: SavedTensor) -> str:
    tensor = saved.tensor
    by_optimizer = write is not None and write.startswith("optimizer step")
    is_leaf = saved.output_nr is None and tensor._node is None and tensor._requires_grad
    if by_optimizer or is_leaf:
        what = "the optimizer's step" if by_optimizer else "the write"
        return (
            f"call backward before {what}, or compute this loss again after it; "
            "retain_graph=True cannot help"
        )
    twin = (write or "").removesuffix("_")
    computes = twin != write and twin in REGISTRY and twin not in _OVERWRITES
    advice = f"use {twin} instead of {write}, or write" if computes else "write"
    return f"{advice} to a clone() of the tensor, or after backward"


_OVERWRITES = frozenset({"copy", "fill", "normal", "uniform", "zero"})
"""Ops whose out-of-place twin would not do: they do not compute from what they write to."""
