"""The function transforms that run now: what dispatch asks before it does its own work.

Layer 3: knows transforms only by their methods; they stand in ``clew/func``.

Note [Transforms]
    ``vmap(grad(f))`` runs `f` inside two transforms.  Each is a level; a thread's levels are a
    stack, and an op is given to the innermost.  A level does its part and calls the op again with
    itself taken off the stack (`lowered`), so that the level outside of it comes next; when none
    is left, dispatch runs the kernel.  The list `running` is that of all threads: empty, as it is
    in most programs, it costs an op no more than a look.
"""

from __future__ import annotations

import itertools
import threading
from typing import Any

from clew.autograd.modes import state
from clew.autograd.node import Node, next_sequence_nr
from clew.autograd.views import check_inplace, refuse_inference

running: list[Any] = []
"""The levels of all threads."""

_serials = itertools.count(1).__next__


class _Stack(threading.local):
    """This thread's levels, the innermost last."""

    levels: tuple[Any, ...] = ()


stack = _Stack()


def innermost() -> Any:
    """The level that gets this thread's ops; None outside of all transforms."""
    levels = stack.levels
    return levels[-1] if levels else None


def refuse_in_transform(text: str) -> None:
    """Raise this text inside a transform.

    Raises:
        RuntimeError: a transform runs.
    """
    if any(level.is_transform for level in stack.levels):
        raise RuntimeError(text)


def refuse_data(tensor: Any) -> None:
    """Refuse the ``data`` of an example of `vmap`.

    Raises:
        RuntimeError: it is one.
    """
    if hasattr(tensor._array, "bdim"):
        raise RuntimeError("accessing `data` under vmap transform is not allowed")


def detach_examples(tensor: Any) -> None:
    """Take the examples behind a tensor that was detached out of their graph too."""
    array = tensor._array
    if hasattr(array, "bdim"):
        tensor._array = array.holding(array.value.detach())


NO_REQUIRES_GRAD = (
    "You are attempting to call Tensor.requires_grad_() (or perhaps using "
    "torch.autograd.functional.* APIs) inside of a function being transformed by a functorch "
    "transform. This is unsupported, please attempt to use the functorch transforms (e.g. grad, "
    "vjp, jacrev, jacfwd, hessian) or call requires_grad_() outside of a function being "
    "transformed instead."
)
NO_BACKWARD = (
    "backward() called inside a functorch transform. This is not supported, please use "
    "functorch.grad or functorch.vjp instead or call backward() outside of functorch transforms."
)


def note_new(tensor: Any) -> None:
    """Note to which level the memory of a new tensor belongs."""
    if stack.levels:
        tensor._counter.born = stack.levels[-1].serial


class Level:
    """One running transform, entered by ``with``.

    Attributes:
        serial: higher than that of every level that was entered before.
        depth: how many levels this thread had then, itself included, as PyTorch counts them.
        first: the number of the first node that can have been made inside.
        is_transform: it runs a function, to which much is forbidden; a `dual_level` does not.
        forward: it carries tangents.
    """

    serial: int
    is_transform = True
    forward = False
    depth: int
    first: int
    below: tuple[Any, ...]

    def __enter__(self) -> Any:
        self.serial = _serials()
        self.first = next_sequence_nr()
        self.below = stack.levels
        self.depth = len(self.below) + 1
        stack.levels = (*self.below, self)
        running.append(self)
        return self

    def __exit__(self, *exception: Any) -> None:
        stack.levels = self.below
        running.remove(self)

    def lowered(self) -> _Lowered:
        """A ``with`` in which the level outside of this one is the innermost."""
        return _Lowered(self.below)

    def apply(self, op: Any, inputs: Any, attrs: dict[str, Any]) -> Any:
        """Run an op, as `clew.dispatch.apply` does."""
        raise NotImplementedError

    def apply_inplace(
        self, op: Any, target: Any, inputs: Any, attrs: dict[str, Any], name: str
    ) -> Any:
        """Run an op in place, as `clew.dispatch.apply_inplace` does."""
        raise NotImplementedError

    def own(self, outs: Any) -> None:
        """Note that new tensors were made inside, so that the function may write to them."""
        for out in outs:
            if out is not None:
                out._counter.born = self.serial

    def refuse_captured(self, target: Any, inputs: Any, name: str) -> None:
        """Refuse to write to a tensor that the function has not made.

        Raises:
            RuntimeError: it has not.
        """
        if (getattr(target._counter, "born", 0) or 0) >= self.serial:
            return
        records = state.now.grad_enabled and any(
            getattr(x, "requires_grad", False) for x in (target, *inputs)
        )
        check_inplace(target, name, records)
        refuse_inference(target)
        raise RuntimeError(
            "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to "
            f"call in-place operation (aten::{name}) that would mutate a captured Tensor. This is "
            "not supported; please rewrite the function being transformed to explicitly accept "
            "the mutated Tensor(s) as inputs."
        )

    def sample(self, draw: Any, shape: tuple[int, ...]) -> Any:
        """A new random tensor: ``draw(shape)``, of one shape or another."""
        with self.lowered():
            made = sample(draw, shape)
        self.own((made,))
        return made

    def like(self, tensor: Any, make: Any, shape: Any) -> Any:
        """``make(shape)``, for which `tensor` is the model: it has examples where that has them."""
        with self.lowered():
            made = like(tensor, make, shape)
        self.own((made,))
        return made

    def multinomial(self, weights: Any, draw: Any) -> Any:
        """``draw(weights)``, indices drawn by weights in the last dimension."""
        with self.lowered():
            return draw(weights)

    def call_function(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Run a custom Function, as its ``apply`` does."""
        with self.lowered():
            return function.apply(*args, **kwargs)


class _Lowered:
    __slots__ = ("before", "levels")

    def __init__(self, levels: tuple[Any, ...]) -> None:
        self.levels = levels

    def __enter__(self) -> None:
        self.before = stack.levels
        stack.levels = self.levels

    def __exit__(self, *exception: Any) -> None:
        stack.levels = self.before


def sample(draw: Any, shape: tuple[int, ...]) -> Any:
    """A new random tensor, drawn as the running transforms say."""
    level = innermost()
    return draw(shape) if level is None else level.sample(draw, shape)


def like(tensor: Any, make: Any, shape: Any) -> Any:
    """A new tensor, ``make(shape)``, with as many examples as the one that is its model."""
    level = innermost()
    return make(shape) if level is None else level.like(tensor, make, shape)


def all_values(tensor: Any) -> Any:
    """The values of a tensor as an array; of one that `vmap` sees as an example, those of all."""
    array = tensor._array
    while hasattr(array, "bdim"):
        array = array.value._array
    return array


class LevelInput(Node):
    """Where the gradient of a transform's input arrives, and how it goes on outside.

    To the level's function its input is a leaf; outside it is what it was, with its history.
    """

    __slots__ = ()

    def __init__(self, edge: tuple[Any, int], meta: tuple[Any, Any]) -> None:
        self.edges = (edge,)
        self.metas = (meta,)
        self.seq = next_sequence_nr()
        self.site = None
        self.hooks = None
        self.info = None

    def run(self, grads: list[Any], algebra: Any, need: Any) -> Any:
        return grads
