"""Custom Functions in a batch: their own ``vmap``, or one made of their methods.

Note [Batched Functions]
    With ``generate_vmap_rule`` a Function's methods are themselves run on examples: the forward in
    a `vmap` of its own, and so `setup_context` and the backward.  That makes another Function, of
    batches, which is what the level outside sees and records.  The gradient of an argument that
    all examples share is the sum of what they give.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from clew.autograd.function import Function
from clew.autograd.modes import state
from clew.func.batching.batch import Batch
from clew.func.batching.rules import moved, run
from clew.tensor import Tensor
from clew.utils._pytree import (
    _broadcast_to_and_flatten,
    tree_flatten,
    tree_map,
    tree_structure,
    tree_unflatten,
)

_MORE = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


class VmapInfo(NamedTuple):
    """What a Function's ``vmap`` is told of the `vmap` that runs it."""

    batch_size: int
    randomness: str


def require_setup_context(function: Any) -> None:
    """Refuse a Function whose forward is given the ctx: its call cannot be taken apart.

    Raises:
        RuntimeError: it has no `setup_context`.
    """
    if not function._has_setup_context():
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, "
            f"jacrev, ...), it must override the setup_context staticmethod. {_MORE}"
        )


def call_batched(level: Any, function: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
    """Call a Function inside the `vmap` of `level`."""
    require_setup_context(function)
    leaves = tree_flatten(args)[0]
    if not any(level.holds(x) for x in leaves):
        with level.lowered():
            return function.apply(*args, **kwargs)

    def forward(*args: Any) -> Any:
        return _forward(level, function, args)

    mine = [x for x in args if level.holds(x)]
    if state.now.grad_enabled and level.records and any(x.requires_grad for x in mine):
        lifted = tuple(level.lifted(x) if isinstance(x, Tensor) else x for x in args)
        return function._call(lifted, kwargs, forward)
    if kwargs:
        from clew.autograd.function import _with_defaults

        args = _with_defaults(function.forward, args, kwargs)
    return forward(*args)


def _forward(level: Any, function: Any, args: tuple[Any, ...]) -> Any:
    """The outputs, by the Function's own rule or by one made of its methods."""
    own = function.vmap is not Function.vmap
    name = function.__name__
    if function.generate_vmap_rule and own:
        raise RuntimeError(
            f"You tried to vmap over {name}, but it has both generate_vmap_rule=True and an "
            "overridden vmap staticmethod. Please set generate_vmap_rule=False or delete the "
            f"overridden vmap staticmethod to avoid ambiguity. {_MORE}"
        )
    if not function.generate_vmap_rule and not own:
        raise RuntimeError(
            f"You tried to vmap over {name}, but it does not have vmap support. Please override "
            f"and implement the vmap staticmethod or set generate_vmap_rule=True. {_MORE}"
        )
    values, dims = _taken(level, args)
    with level.lowered():
        if own:
            info = VmapInfo(level.size, level.randomness)
            output, out_dims = _checked(function.vmap(info, dims, *values))
        else:
            batched = _batched_function(function, dims, level)
            output = batched.apply(*values)
            out_dims = batched.out_dims
    return _wrapped(level, output, out_dims)


def _taken(level: Any, args: Any) -> tuple[Any, Any]:
    """Arguments as the level outside has them, and a container of their batch dimensions."""

    def value(x: Any) -> Any:
        return x._array.value if level.holds(x) else x

    def dim(x: Any) -> Any:
        return x._array.bdim if level.holds(x) else None

    return tree_map(value, args), tree_map(dim, args)


def _checked(found: Any) -> tuple[Any, Any]:
    if not (isinstance(found, tuple) and len(found) == 2):
        got = f"{len(found)} returns" if isinstance(found, tuple) else f"a {type(found)}"
        raise RuntimeError(
            "Expected the vmap staticmethod to have two returns, an output and out_dims with "
            f"pytree structure compatible with the output. Got {got} instead"
        )
    return found


def _wrapped(level: Any, output: Any, out_dims: Any) -> Any:
    leaves, spec = tree_flatten(output)
    dims = _broadcast_to_and_flatten(out_dims, spec)
    if dims is None:
        raise RuntimeError(
            "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) "
            f"tuple. Expected out_dims={out_dims} to be compatible with the structure of `output`. "
            f"out_dims has structure {tree_structure(out_dims)} but output has structure {spec}. "
            f"{_MORE}"
        )
    wrapped = [x if d is None else level.wrap(x, d % x._array.ndim) for x, d in zip(leaves, dims)]
    return tree_unflatten(wrapped, spec)


# -- a Function of batches


def _batched_function(function: Any, in_dims: tuple[Any, ...], outside: Any) -> Any:
    """A Function whose methods are those of `function`, each run in a `vmap`."""
    from clew.func.batching.level import VmapLevel

    size, randomness = outside.size, outside.randomness

    class Batched(Function):
        generate_vmap_rule = True
        out_dims: Any = None

        @staticmethod
        def forward(*values: Any) -> Any:
            with VmapLevel(size, randomness) as level:
                output = function.forward(*_given(level, values, in_dims))
            output, Batched.out_dims = _taken(level, output)
            return output

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            with VmapLevel(size, randomness) as level:
                inner = _Setting(ctx, level)
                given = _given(level, inputs, in_dims)
                function.setup_context(inner, given, _given(level, output, Batched.out_dims))
            ctx._output_dims = Batched.out_dims

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            with VmapLevel(size, randomness) as level:
                saved = _given(level, ctx.saved_tensors, ctx._saved_dims)
                dims = ctx._output_dims
                dims = dims if isinstance(dims, tuple) else (dims,)
                given = _given(level, grads, _zero_for_none(grads, dims))
                method = function.vjp if function.vjp is not Function.vjp else function.backward
                found = method(_Reading(ctx, saved), *given)
            found = found if isinstance(found, tuple) else (found,)
            with level.lowered():
                return tuple(_fitted(level, g, d) for g, d in zip(found, in_dims))

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            with VmapLevel(size, randomness) as level:
                dims = getattr(ctx, "_saved_dims_forward", ())
                saved = _given(level, ctx.saved_tensors, dims) if dims else ()
                given = _given(level, tangents, _zero_for_none(tangents, in_dims))
                found = function.jvp(_Reading(ctx, saved), *given)
            found = found if isinstance(found, tuple) else (found,)
            dims = ctx._output_dims if isinstance(ctx._output_dims, tuple) else (ctx._output_dims,)
            with level.lowered():
                return tuple(
                    t if t is None or d is None else level.unwrap(t, d) for t, d in zip(found, dims)
                )

    Batched.__name__ = Batched.__qualname__ = f"Vmapped{function.__name__}"
    Batched._backward_cls.__name__ = f"Vmapped{function.__name__}Backward"
    return Batched


def _zero_for_none(grads: Sequence[Any], dims: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(None if g is None else d for g, d in zip(grads, dims))


def _given(level: Any, values: Any, dims: Any) -> Any:
    """Values with their batch dimensions, as examples."""
    leaves, spec = tree_flatten(values)
    flat = _broadcast_to_and_flatten(dims, spec)
    assert flat is not None  # they were taken from these values
    return tree_unflatten(
        [level.wrap(x, d) if isinstance(x, Tensor) and d is not None else x
         for x, d in zip(leaves, flat)], spec,
    )  # fmt: skip


def _fitted(level: Any, grad: Any, dim: Any) -> Any:
    """The gradient of an argument, as that argument lies: summed where all examples share it."""
    if not isinstance(grad, Tensor) or isinstance(dim, (tuple, list, dict)):
        return grad if isinstance(grad, Tensor) else None
    array: Any = grad._array
    own = array.__class__ is Batch and array.level is level
    if dim is not None:
        return level.unwrap(grad, dim)
    if not own or array.bdim is None:
        return array.value if own else grad
    return run("sum", array.value if array.bdim == 0 else moved(array.value, array.bdim, 0),
               dim=(0,), keepdim=False, dtype=None)  # fmt: skip


class _Setting:
    """The ctx of `setup_context` on examples: what it keeps, the ctx of batches keeps."""

    def __init__(self, ctx: Any, level: Any) -> None:
        self.__dict__["_ctx"] = ctx
        self.__dict__["_level"] = level
        ctx._saved_dims = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors of the level outside, and their batch dimensions."""
        values, self._ctx._saved_dims = _taken(self._level, tensors)
        self._ctx.save_for_backward(*values)

    def save_for_forward(self, *tensors: Any) -> None:
        """As `save_for_backward`, for ``jvp``."""
        values, self._ctx._saved_dims_forward = _taken(self._level, tensors)
        self._ctx.save_for_forward(*values)

    def mark_dirty(self, *tensors: Any) -> None:
        """Passed on, as tensors of the level outside."""
        self._ctx.mark_dirty(*_taken(self._level, tensors)[0])

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Passed on, as tensors of the level outside."""
        self._ctx.mark_non_differentiable(*_taken(self._level, tensors)[0])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._ctx, name, value)


class _Reading:
    """The ctx of a backward on examples."""

    def __init__(self, ctx: Any, saved: Any) -> None:
        self.__dict__["_ctx"] = ctx
        self.__dict__["saved_tensors"] = saved

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._ctx, name, value)
