"""The Tensor class: an array, its version, its place in the graph, its gradient.

Layer 4.  This file holds what a tensor *is*; operations are installed on the class from their
declarations (``publish.py``), everything else that is written by hand stands in ``methods/``.
"""

from __future__ import annotations

import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from clew import dtypes
from clew.autograd import transforms
from clew.autograd.assigned import check_assigned
from clew.autograd.handles import RemovableHandle, add_hook
from clew.autograd.hooks import Retain
from clew.autograd.modes import state
from clew.autograd.node import FIRST, Node
from clew.autograd.transforms import running
from clew.autograd.views import NO_EDGE, TensorMeta, accumulator, refresh
from clew.device import CPU, device
from clew.errors import (
    DetachError,
    InferenceTensorError,
    RequiresGradError,
    at,
    describe,
    non_leaf_grad_text,
)
from clew.fields import TensorFields, new
from clew.observers import observers, tell_memory
from clew.site import here
from clew.size import Size
from clew.storage import VersionCounter, new_counter


class Tensor(TensorFields):
    """An n-dimensional array that knows how it was computed.

    Made by `clew.tensor`, `clew.zeros` and the like; the constructor itself takes what PyTorch's
    legacy one takes (see ``methods/legacy.py``).

    Beside the array, its version, the node that made it (`_node`, and which of its outputs it is,
    `_output_nr`), its gradient and its flag it holds what few tensors need (``_meta``) and, for the
    error of a backward that finds no path, what kept it out of a graph and where (``_cut``:
    ``("detach()", site)``).
    """

    __slots__ = ("__dict__", "__weakref__")

    _array: np.ndarray
    _counter: VersionCounter
    _cut: tuple[str, Any] | None
    _grad: Tensor | None
    _meta: TensorMeta | None
    _node: Node | None
    _output_nr: int
    _requires_grad: bool

    # NumPy must leave ``array * tensor`` to the tensor.
    __array_priority__ = 1000
    __hash__ = object.__hash__

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        from clew.methods.legacy import construct

        return construct(cls, args, kwargs)

    if TYPE_CHECKING:
        # Methods and operators are installed from the declarations; see publish.py.
        def __getattr__(self, name: str) -> Any: ...
        def __add__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __getitem__(self, index: Any) -> Any: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...

    # -- construction inside clew

    @classmethod
    def _from_array(cls, array: np.ndarray, requires_grad: bool = False, tell: bool = True) -> Any:
        """A leaf on this very array; `tell` the observers, unless another event does."""
        t = new(cls)
        t._array = array
        t._counter = new_counter()
        t._node = t._grad = t._meta = t._cut = None
        t._output_nr = 0
        t._requires_grad = requires_grad
        if requires_grad:
            t._ensure_meta().site = here()
        if state.now.inference:
            t._ensure_meta().inference = True
            t._cut = state.now.cut
        if tell and observers:
            tell_memory(t)
        if running:
            transforms.note_new(t)
        return t

    def _alias(self, edge: tuple[Any, int] | None = None) -> Any:
        """Another tensor on the same memory and version, made by the node of `edge`."""
        t = new(Tensor)
        t._array = self._array
        t._counter = self._counter
        t._grad = t._meta = t._cut = None
        t._node, t._output_nr = NO_EDGE if edge is None else edge
        t._requires_grad = edge is not None
        return t

    def _placed(self, edge: tuple[Any, int]) -> Any:
        """The same memory with a version of its own, at a place in the graph that is known."""
        node = edge[0]
        t = self._alias(None if node is None or node.seq == FIRST else edge)
        t._counter = new_counter()
        if node is not None and node.seq == FIRST:
            t._requires_grad = True
            t._ensure_meta().accumulator = weakref.ref(node)
        return t

    def _ensure_meta(self) -> TensorMeta:
        if self._meta is None:
            self._meta = TensorMeta()
        return self._meta

    # -- the graph

    @property
    def _edge(self) -> tuple[Node, int] | None:
        """The node that made this tensor, and which output it is; see Note [Flat edges]."""
        return None if self._node is None else (self._node, self._output_nr)

    @_edge.setter
    def _edge(self, edge: tuple[Node, int] | None) -> None:
        self._node, self._output_nr = NO_EDGE if edge is None else edge

    def _gradient_edge(self) -> tuple[Any, int]:
        """Where a gradient of this tensor goes: (node, output number), or (None, 0)."""
        meta = self._meta
        if meta is not None and meta.base is not None and meta.view_version != self._counter.value:
            refresh(self)
        if self._node is not None:
            return (self._node, self._output_nr)
        return (accumulator(self), 0) if self._requires_grad else NO_EDGE

    @property
    def grad_fn(self) -> Node | None:
        """The node that made this tensor; None for a leaf."""
        node = self._gradient_edge()[0]
        return None if self._node is None else node

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are computed for this tensor."""
        meta = self._meta
        return self._requires_grad or (
            # A view of what requires grad does, though made under no_grad it has no edge.
            meta is not None and meta.base is not None and meta.base.requires_grad
        )

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if self._node is not None and value:  # the edge of a view may be out of date, as PyTorch's
            raise RequiresGradError(
                "you can only change requires_grad flags of leaf variables.",
                self,
                "leave it: what is computed from a tensor that requires grad requires grad too",
            )
        if value and self._array.dtype.kind not in "fcV":
            raise _only_floating(self, "floating point and complex dtype")
        self.requires_grad_(value)

    @requires_grad.deleter
    def requires_grad(self) -> None:
        raise RuntimeError("requires_grad must be a bool")

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Start or stop recording operations on this leaf.

        Raises:
            RuntimeError: the tensor is no leaf (and is to stop), its type is not floating or
                complex, or it is an inference tensor.
        """
        if running:
            transforms.refuse_in_transform(transforms.NO_REQUIRES_GRAD)
        if self._node is not None and not requires_grad:
            raise RequiresGradError(
                "you can only change requires_grad flags of leaf variables. If you want to use a "
                "computed variable in a subgraph that doesn't require differentiation use "
                "var_no_grad = var.detach().",
                self,
                "use y.detach(); to freeze a model, turn the flag of its parameters off before "
                "the forward",
            )
        if requires_grad and self._array.dtype.kind not in "fcV":
            raise _only_floating(self, "floating point dtype")
        if requires_grad and self.is_inference() and not state.now.inference:
            raise InferenceTensorError(
                "Setting requires_grad=True on inference tensor outside InferenceMode is not "
                "allowed.",
                self,
                "use x.clone().requires_grad_()",
            )
        if self._node is None:
            if requires_grad and not self._requires_grad:
                self._ensure_meta().site = here()
            self._requires_grad = bool(requires_grad)
            if requires_grad:
                tell_memory(self)
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made this tensor."""
        return self.grad_fn is None

    @property
    def output_nr(self) -> int:
        """Which output of its node this tensor is."""
        return self._gradient_edge()[1]

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient, of this tensor's shape and dtype."""
        if self._grad is None and self._node is not None and not self.retains_grad:
            for on_dead_grad in observers.on_dead_grad:
                on_dead_grad(self)
            warnings.warn(non_leaf_grad_text(self), UserWarning, stacklevel=2)
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            check_assigned(self, value)
        self._grad = value
        for on_grad in observers.on_grad:
            on_grad(self)

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    @property
    def retains_grad(self) -> bool:
        """Whether this non-leaf keeps its gradient (see `retain_grad`), or did before `detach_`."""
        return self._meta is not None and self._meta.retains_grad

    def retain_grad(self) -> None:
        """Keep the gradient of this non-leaf in ``grad``; nothing to do for a leaf.

        Raises:
            RuntimeError: the tensor does not require grad.
        """
        if not self.requires_grad:
            raise RequiresGradError(
                "can't retain_grad on Tensor that has requires_grad=False",
                self,
                "compute it from a tensor that requires grad, outside no_grad",
            )
        if self._node is None or self.retains_grad:
            return
        node, output_nr = self._gradient_edge()
        self._ensure_meta().retains_grad = True
        node._hooks().retain[output_nr] = Retain(self)

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        """Call ``hook(grad)`` when the gradient is computed; a Tensor it returns replaces it.

        Raises:
            RuntimeError: the tensor does not require grad.
        """
        if not self.requires_grad:
            raise RequiresGradError(_NO_HOOK, self, _NO_HOOK_CURE)
        node, output_nr = self._gradient_edge()
        if self._node is None:
            meta = self._ensure_meta()
            if meta.hooks is None:
                meta.hooks = OrderedDict()
            table = meta.hooks
        else:
            table = node._hooks().tensor.setdefault(output_nr, OrderedDict())
        handle = add_hook(table, hook)
        for on_tensor_hook in observers.on_tensor_hook:
            on_tensor_hook(self, hook, handle)
        return handle

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Call ``hook(param)`` after a gradient was accumulated into this leaf.

        Raises:
            RuntimeError: the tensor does not require grad or is no leaf.
        """
        if not self.requires_grad:
            raise RequiresGradError(_NO_HOOK, self, _NO_HOOK_CURE)
        if self.grad_fn is not None:
            raise RequiresGradError(
                "post accumulate grad hooks cannot be registered on non-leaf tensors",
                self,
                "register it on the leaf, or use register_hook for the gradient of this tensor",
            )
        meta = self._ensure_meta()
        if meta.post_accumulate is None:
            meta.post_accumulate = OrderedDict()
        return add_hook(meta.post_accumulate, hook)

    def detach(self) -> Tensor:
        """This tensor without its history: the same memory and version, no gradient."""
        t = self._alias()
        if running:
            transforms.detach_examples(t)
        t._cut = self._cut_by("detach()")
        if self.is_inference():
            t._become_inference()
        for on_cut in observers.on_cut:
            on_cut("detach()", self, t)
        return t

    def _become_inference(self) -> None:
        """Be an alias of an inference tensor, with a version of its own if made outside."""
        meta = self._ensure_meta()
        meta.inference, meta.counted = True, not state.now.inference
        self._counter = new_counter()

    def _cut_by(self, name: str) -> tuple[str, Any] | None:
        """What cuts from the graph what `name` makes of this tensor, or what had cut it before."""
        return (name, here()) if self.requires_grad else self._cut

    def detach_(self) -> Tensor:
        """Take this tensor out of the graph that made it.

        Raises:
            RuntimeError: it is a view, whose base would still be in the graph.
        """
        if state.now.inference:
            return self
        meta = self._ensure_meta()
        if meta.base is not None:
            raise DetachError(
                "Can't detach views in-place. Use detach() instead. If you are using "
                "DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set as "
                "True, gradients are views of DDP buckets, and hence detach_() cannot be called on "
                "these gradients. To fix this error, please refer to the Optimizer.zero_grad() "
                "function in torch/optim/optimizer.py as the solution.",
                ("view", describe(self)),
                ("asked", at(here())),
            )
        if self._node is not None:
            for on_cut in observers.on_cut:
                on_cut("detach_()", self, self)
            self._cut = self._cut_by("detach_()")
            self._edge = None
        meta.tangents, self._requires_grad = None, False
        return self

    @property
    def data(self) -> Tensor:
        """The same memory with a version of its own: writes to it go unnoticed by autograd."""
        if running:
            transforms.refuse_data(self)
        t = self._alias()
        t._counter = new_counter()
        t._cut = self._cut_by(".data")
        if self.is_inference():
            t._become_inference()
        for on_cut in observers.on_cut:
            on_cut(".data", self, t)
        return t

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        if self.requires_grad and value._array.dtype.kind not in "fcV":
            raise RequiresGradError(
                "data set to a tensor that requires gradients must be floating point or complex "
                "dtype",
                self,
                "convert the new data first: x.data = new.to(x.dtype)",
            )
        if value._array.dtype != self._array.dtype and self._meta is not None:
            self._meta.accumulator = None  # as a leaf it is another one now
        if value._array.shape != self._array.shape:
            self._ensure_meta().reshaped = True
        self._array = value._array
        if value.is_inference() != self.is_inference():
            self._ensure_meta().inference = value.is_inference()
        tell_memory(self)

    @data.deleter
    def data(self) -> None:
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    @property
    def _version(self) -> int:
        if self.is_inference() and not self._meta.counted:  # type: ignore[union-attr]
            raise InferenceTensorError(
                "Inference tensors do not track version counter.",
                self,
                "ask x.is_inference() first, or use x.clone()",
            )
        return self._counter.value

    @property
    def _base(self) -> Tensor | None:
        return None if self._meta is None else self._meta.base

    def _is_view(self) -> bool:
        return self._base is not None

    def is_inference(self) -> bool:
        """Whether the tensor was made in inference mode."""
        return self._meta is not None and self._meta.inference

    # -- the array

    @property
    def shape(self) -> Any:
        """The size of each dimension, a `clew.Size`."""
        return Size(self._array.shape)

    @property
    def dtype(self) -> dtypes.dtype:
        """The type of the elements."""
        return dtypes.of_numpy(self._array.dtype)

    @property
    def device(self) -> device:
        """Where the memory is: the CPU."""
        return CPU

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim


_NO_HOOK = "cannot register a hook on a tensor that doesn't require gradient"
_NO_HOOK_CURE = "compute it from a tensor that requires grad, or call x.requires_grad_() first"


def _only_floating(tensor: Tensor, types: str) -> RequiresGradError:
    return RequiresGradError(
        f"only Tensors of {types} can require gradients",
        tensor,
        "convert it first: x.float().requires_grad_()",
    )
