"""User-defined operations: `Function` with its forward and backward.  Layer 4.

Note [Custom Functions]
    The ``ctx`` of a call *is* the node of the graph, as in PyTorch.  The forward runs without
    recording; then the outputs are given the node as their edge, see ``function_outputs.py``.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from clew.autograd import anomaly
from clew.autograd.function_outputs import wrap_outputs, writer
from clew.autograd.modes import call_user, no_grad, state
from clew.autograd.node import Node, next_sequence_nr
from clew.autograd.saved import (
    Freed,
    PackedTensor,
    SavedTensor,
    save_input,
    save_output,
)
from clew.autograd.stops import stop
from clew.autograd.transforms import innermost, running
from clew.errors import (
    FunctionResultError,
    FunctionTypeError,
    MissingMethodError,
    shape_of,
    typed,
)
from clew.observers import observers
from clew.site import here
from clew.tensor import Tensor


class FunctionCtx:
    """What a `Function`'s forward leaves for its backward.

    Attributes:
        needs_input_grad: for each argument, whether its gradient is asked for.
    """

    needs_input_grad: tuple[bool, ...] = ()
    saved_for_forward: tuple[Tensor | None, ...] | None = None
    in_jvp = False

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for backward, where they are found in `saved_tensors`."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `jvp`."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise FunctionTypeError(
                    "save_for_forward expects all arguments to be tensors; you should save "
                    "non-tensors as attributes on ctx.",
                    self,
                    writer(self),
                    "keep it as an attribute: ctx.scale = scale",
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say which inputs the forward has written to; each must be returned too."""
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say which outputs have no gradient."""
        self.non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward is given zeros (the default) or None for outputs without gradient."""
        self.materialize_grads = value


class FunctionNode(Node, FunctionCtx):
    """The node and ctx of a call of a `Function`; each has a subclass named after it."""

    _forward_cls: Any = None

    def __init__(self) -> None:
        self.edges = ()
        self.metas = ()
        self.seq = next_sequence_nr()
        self.site = here()
        self.hooks = None
        self.info = None
        self.to_save: tuple[Tensor | None, ...] = ()
        self.dirty_tensors: tuple[Tensor, ...] = ()
        self.non_differentiable: tuple[Tensor, ...] = ()
        self.materialize_grads = True
        self._materialize_non_diff_grads = True
        self.constant_outputs: frozenset[int] = frozenset()
        self.saved: Any = ()
        self.saved_from: tuple[int, ...] = ()
        self.tensor_arguments: tuple[int, ...] = ()
        self.argument_count = 0

    def name(self) -> str:
        return type(self).__name__

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors given to `save_for_backward`, in `jvp` those given to `save_for_forward`.

        Raises:
            RuntimeError: backward has released them, or one was changed in place.
        """
        if self.in_jvp:
            return self.saved_for_forward or ()
        if isinstance(self.saved, Freed):
            self.saved.raise_for(self)
        # An input that was detached in place since is given as it is: PyTorch refuses it only to
        # its own nodes.
        return tuple(
            [
                s.show(self) if s.__class__ is SavedTensor else s and s.unpack(self)
                for s in self.saved
            ]
        )

    saved_variables = saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple[Any, ...]:
        if isinstance(self.saved, Freed):
            self.saved.raise_for(self)
        return tuple(self.saved)

    def run(self, grads: list[Any], algebra: Any, need: Sequence[bool] | None) -> Sequence[Any]:
        given = [self._materialized(g, i, algebra) for i, g in enumerate(grads)]
        results = call_user(self.apply, *given)
        results = results if isinstance(results, tuple) else (results,)
        results = self._checked_count(results)
        picked: list[Any] = []
        for i, value in enumerate(results):
            if i in self.tensor_arguments:
                picked.append(self._checked(value, self.edges[len(picked)]))
            elif value is not None:
                raise FunctionResultError(
                    f"function {self.name()} returned a gradient different than None at position "
                    f"{i + 1}, but the corresponding forward input was not a Variable",
                    self,
                    self._backward_name(),
                    "return None in the place of an argument that is no tensor",
                )
        return [algebra.unwrap(value) for value in picked]

    def _materialized(self, grad: Any, index: int, algebra: Any) -> Any:
        if grad is not None:
            return algebra.wrap(grad)
        meta = self.metas[index]
        if index in self.constant_outputs and not self._materialize_non_diff_grads:
            return None
        if not self.materialize_grads or meta is None:
            return None
        return Tensor._from_array(np.zeros(meta[0], meta[1]))

    def _checked_count(self, results: tuple[Any, ...]) -> tuple[Any, ...]:
        count = self.argument_count
        if len(results) > count and all(r is None for r in results[count:]):
            results = results[:count]
        if len(results) != count:
            raise FunctionResultError(
                f"function {self.name()} returned an incorrect number of gradients (expected "
                f"{count}, got {len(results)})",
                self,
                self._backward_name(),
                "return one value for each argument of apply, in their order: its gradient, or "
                "None",
            )
        return results

    def _checked(self, value: Any, edge: tuple[Any, int]) -> Any:
        if value is not None and not isinstance(value, Tensor):
            raise FunctionResultError(
                f"expected Variable or None (got {type(value).__name__})",
                self,
                self._backward_name(),
                "return tensors, computed from the gradients that backward is given",
            )
        if value is None or edge[0] is None:
            return value
        meta = edge[0].metas[edge[1]]
        if meta is None or value._array.dtype.kind in "fV":
            return value
        if (value._array.dtype.kind == "c") != (meta[1].kind == "c"):
            raise FunctionResultError(
                "Expected isFloatingType(grad.scalar_type()) || (input_is_complex == "
                "grad_is_complex) to be true, but got false.  (Could this error message be "
                "improved?  If so, please report an enhancement request to PyTorch.)",
                self,
                self._backward_name(),
                "return a real gradient for a real input (grad.real), and a complex or floating "
                "point one for a complex input",
                ("gradient", f"{shape_of(value)}, of an input {typed(*meta)}"),
            )
        return value

    def _backward_name(self) -> str:
        """Which method the user wrote: ``backward`` or ``vjp``."""
        return "backward" if self._forward_cls.vjp is Function.vjp else "vjp"

    def apply(self, *grads: Any) -> Any:
        """Run the user's backward."""
        cls = self._forward_cls
        backward, vjp = cls.backward, cls.vjp
        if backward is not Function.backward and vjp is not Function.vjp:
            raise FunctionResultError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
                "should only implement one of them.",
                self,
                "vjp",
                "leave out one of the two: they are names of the same method",
            )
        return (vjp if vjp is not Function.vjp else backward)(self, *grads)

    def release(self, freed: Freed) -> None:
        if self.saved:
            self.saved = freed

    def is_released(self) -> bool:
        return isinstance(self.saved, Freed)

    def kept(self) -> list[tuple[str, Any]]:
        if self.is_released():
            return []
        return [("saved_tensors", s) for s in self.saved if s is not None]

    def edge_of_saved(self, saved: SavedTensor) -> Node | None:
        for value, position in zip(self.saved, self.saved_from):
            if value is saved and position >= 0:
                return self.edges[position][0]
        return None


BackwardCFunction = FunctionNode
"""PyTorch's name of what every ctx is an instance of."""


class _LastCall(threading.local):
    """What forward mode must know of the call of a Function that ended last in this thread: ctx,
    arguments, what forward returned, what the caller gets, and what was marked dirty and not
    differentiable."""

    record: Any = None


last_call = _LastCall()


class _FunctionMeta(type):
    """Gives each `Function` subclass the class of its nodes."""

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        super().__init__(name, bases, attrs)
        cls._backward_cls = type(f"{name}Backward", (FunctionNode,), {"_forward_cls": cls})


class Function(metaclass=_FunctionMeta):
    """An operation with a forward and a backward of one's own.

    Derive from it, write static methods ``forward(ctx, *args)`` and ``backward(ctx, *grads)``, and
    call ``MyFunction.apply(*args)``.  With a static ``setup_context(ctx, inputs, output)``, forward
    is written without ctx.

    >>> class Cube(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x**3
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return grad * 3 * x**2
    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad
    tensor(12.)
    """

    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        import warnings

        warnings.warn(
            f"{self.__class__} should not be instantiated. Methods on autograd functions are all "
            "static, so you should invoke them on the class itself. Instantiating an autograd "
            "function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use "
            "new-style autograd function with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; to be overridden."""
        raise MissingMethodError(
            "You must implement the forward function for custom autograd.Function.",
            "write @staticmethod def forward(ctx, x), which returns the outputs",
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Prepare ctx for backward when `forward` is written without it."""
        raise MissingMethodError(
            "setup_context is not implemented.",
            "write @staticmethod def setup_context(ctx, inputs, output), or give forward a first "
            "parameter ctx",
        )

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradient of each argument, from those of the outputs; to be overridden."""
        raise MissingMethodError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD.",
            "write @staticmethod def backward(ctx, grad), which returns a gradient for each "
            "argument of forward, None for those that need none",
            ctx,
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The tangent of each output, from those of the inputs; to be overridden."""
        raise MissingMethodError(
            "You must implement the jvp function for custom autograd.Function to use it with "
            "forward mode AD.",
            "write @staticmethod def jvp(ctx, tangent), which returns the tangent of each output",
            ctx,
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """The outputs of a batch of examples and their batch dimensions; to be overridden."""
        raise MissingMethodError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or "
            "set generate_vmap_rule=True.",
            "set generate_vmap_rule = True in the class, if its methods are made of tensor "
            "operations",
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run the forward, and record the call if an argument requires grad."""
        if running and (level := innermost()) is not None:
            return level.call_function(cls, args, kwargs)
        return cls._call(args, kwargs, cls.forward)

    @classmethod
    def _call(cls, args: tuple[Any, ...], kwargs: dict[str, Any], forward: Any) -> Any:
        """`apply`; what runs as the forward may be that for a batch of examples."""
        for before_op in observers.before_op:
            before_op(cls, args, kwargs)
        ctx: FunctionNode = cls._backward_cls()
        tensors = [a for a in args if isinstance(a, Tensor)]
        records = state.now.grad_enabled and any(t.requires_grad for t in tensors)
        ctx.needs_input_grad = tuple(isinstance(a, Tensor) and a.requires_grad for a in args)
        ctx.argument_count = len(args)
        ctx.tensor_arguments = tuple(i for i, a in enumerate(args) if isinstance(a, Tensor))
        if records:
            ctx.edges = tuple(t._gradient_edge() for t in tensors)
            if anomaly.state.enabled:
                anomaly.note_traceback(ctx)
        with no_grad():
            if cls._has_setup_context():
                args = _with_defaults(cls.forward, args, kwargs)
                output = forward(*args)
                cls.setup_context(ctx, args, output)
            else:
                output = forward(ctx, *args, **kwargs)
        outputs = output if isinstance(output, tuple) else (output,)
        wrapped = wrap_outputs(ctx, tensors, outputs, records)
        if running:
            marks = (ctx.dirty_tensors, ctx.non_differentiable)
            last_call.record = (ctx, args, outputs, wrapped, *marks)
        else:
            ctx.saved_for_forward = None
        if records:
            kept = _tensors_to_save(ctx)
            positions = {id(t): i for i, t in enumerate(tensors)}
            ctx.saved_from = tuple(positions.get(id(t), -1) for t in kept)
            ctx.saved = tuple(_keep(t, ctx) for t in kept)
        ctx.to_save = ctx.dirty_tensors = ctx.non_differentiable = ()
        for on_op in observers.on_op:
            outs = tuple(w for w in wrapped if isinstance(w, Tensor))
            on_op(cls, tuple(args), outs, ctx if records else None, kwargs)
        return wrapped if isinstance(output, tuple) else wrapped[0]

    @classmethod
    def _has_setup_context(cls) -> bool:
        return cls.setup_context is not Function.setup_context


def _with_defaults(
    forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """All arguments of a forward by position, as `setup_context` gets them."""
    bound = inspect.signature(forward).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args


def _tensors_to_save(ctx: FunctionNode) -> Sequence[Tensor | None]:
    for position, tensor in enumerate(ctx.to_save):
        if tensor is not None and not isinstance(tensor, Tensor):
            raise FunctionTypeError(
                f"save_for_backward can only save variables, but argument {position} is of type "
                f"{type(tensor).__name__}",
                ctx,
                writer(ctx),
                "keep what is no tensor as an attribute: ctx.scale = 3",
            )
    return ctx.to_save


def _keep(tensor: Any, ctx: Any) -> SavedTensor | PackedTensor | None:
    if tensor is None:
        return None
    edge = tensor._edge
    if edge is not None and edge[0] is ctx:
        return save_output(tensor._alias(), edge[1])
    return save_input(tensor)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a backward that cannot itself be differentiated: trying to raises an error."""

    @functools.wraps(backward)
    def wrapped(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            results = backward(ctx, *grads)
        if not state.now.grad_enabled:
            return results
        if not any(isinstance(g, Tensor) and g.requires_grad for g in grads):
            return results
        many = isinstance(results, tuple)
        stopped = stop(
            "trying to differentiate twice a function that was marked with @once_differentiable",
            results if many else (results,),
        )
        return stopped if many else stopped[0]

    return wrapped


class InplaceFunction(Function):
    """A `Function` that may work in place; kept for programs that derive from it."""

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace
