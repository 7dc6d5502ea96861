"""What a gradient is during a backward pass: a raw array, or a Tensor that is itself recorded.

Layer 4.  The engine is given one of the two algebras here and never asks which.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from clew.dispatch import ARRAYS, TENSORS
from clew.quiet import quietly
from clew.storage import root
from clew.tensor import Tensor


class ArrayAlgebra:
    """First order: gradients are NumPy arrays, rules run on them directly."""

    namespace = ARRAYS

    def unpack(self, saved: Any, node: Any) -> Any:
        """The array of a saved tensor."""
        return saved.array(node)

    def call(self, rule: Any, grad: Any, values: list[Any], attrs: dict[str, Any]) -> Any:
        """Run a rule."""
        return quietly(rule, ARRAYS, grad, *values, **attrs)

    def add(self, first: Any, second: Any, owned: bool) -> Any:
        """The sum of two gradients of one shape; into `first` if it is the engine's own."""
        if owned and first.dtype == second.dtype:
            return quietly(np.add, first, second, out=first)
        return np.asarray(quietly(np.add, first, second))

    def fit(self, grad: Any, meta: Any, node: Any, index: int) -> Any:
        """The gradient in the shape and dtype of what it is the gradient of."""
        shape, dtype = meta
        if grad.__class__ is not np.ndarray:
            grad = np.asarray(grad)
        if grad.shape != shape:
            _check_shape(grad.shape, shape, node, index)
            grad = sum_to(grad, shape)
        if grad.dtype != dtype:
            if grad.dtype.kind == "c" and dtype.kind != "c":
                grad = grad.real
            grad = grad.astype(dtype)
        return grad

    def owned(
        self, results: Sequence[Any], grads: list[Any], grads_owned: list[bool], node: Any
    ) -> list[bool]:
        """For each result, whether only the engine can see its memory (Note [Owned gradients])."""
        if not node.owns_results:
            return [False] * len(results)
        alone = sum(r is not None for r in results) == 1
        return [r is not None and _is_owned(r, grads, grads_owned, node, alone) for r in results]

    def accumulate(self, leaf: Tensor, grad: np.ndarray, owned: bool) -> None:
        """Add into ``leaf.grad``, in place if there is one."""
        known = leaf._grad
        if known is None:
            keep = owned and grad.flags.c_contiguous and grad.flags.writeable
            if not keep:
                grad = _copied(grad, leaf._array)
            leaf._grad = Tensor._from_array(grad)
        elif known.__class__ is Tensor or isinstance(known, Tensor):
            quietly(np.add, known._array, grad, out=known._array)
            known._counter.bump("backward (gradient accumulation)")

    def wrap(self, grad: Any) -> Any:
        """The gradient as hooks and users see it."""
        return None if grad is None else Tensor._from_array(np.asarray(grad))

    def unwrap(self, grad: Any) -> Any:
        """The gradient that a hook or a user's backward gave."""
        return None if grad is None else grad._array

    def is_tensor(self, value: Any) -> bool:
        """Whether a hook's result can be a gradient."""
        return isinstance(value, Tensor)


class TensorAlgebra:
    """Under ``create_graph``: gradients are Tensors, and computing them is recorded."""

    namespace = TENSORS

    def unpack(self, saved: Any, node: Any) -> Any:
        """The saved tensor, connected to the graph."""
        return saved.unpack(node)

    def call(self, rule: Any, grad: Any, values: list[Any], attrs: dict[str, Any]) -> Any:
        """Run a rule."""
        return rule(TENSORS, grad, *values, **attrs)

    def add(self, first: Any, second: Any, owned: bool) -> Any:
        """The sum of two gradients."""
        return first + second

    def fit(self, grad: Any, meta: Any, node: Any, index: int) -> Any:
        """The gradient in the shape and dtype of what it is the gradient of."""
        shape, dtype = meta
        array = grad._array
        if array.shape != shape:
            _check_shape(array.shape, shape, node, index)
            grad = TENSORS.sum_to_size(grad, size=shape)
        if array.dtype != dtype:
            if array.dtype.kind == "c" and dtype.kind != "c":
                grad = TENSORS.real(grad)
            grad = TENSORS.to_dtype(grad, dtype=dtype)
        return grad

    def owned(
        self, results: Sequence[Any], grads: list[Any], grads_owned: list[bool], node: Any
    ) -> list[bool]:
        """Nothing: a recorded gradient is never written to."""
        return [False] * len(results)

    def accumulate(self, leaf: Tensor, grad: Tensor, owned: bool) -> None:
        """Add into ``leaf.grad``, out of place, so that the sum is recorded too."""
        known = leaf._grad
        leaf._grad = TENSORS.clone(grad) if known is None else TENSORS.add(known, grad)

    def wrap(self, grad: Any) -> Any:
        """The gradient as hooks and users see it."""
        return grad

    def unwrap(self, grad: Any) -> Any:
        """The gradient that a hook or a user's backward gave."""
        return grad

    def is_tensor(self, value: Any) -> bool:
        """Whether a hook's result can be a gradient."""
        return isinstance(value, Tensor)


ARRAY = ArrayAlgebra()
TENSOR = TensorAlgebra()


def _is_owned(
    result: Any, grads: list[Any], grads_owned: list[bool], node: Any, alone: bool
) -> bool:
    if result.__class__ is not np.ndarray:
        return False
    if result.base is None and not any(result is g for g in grads):
        return True
    owner = root(result)
    for grad, was_owned in zip(grads, grads_owned):
        if grad.__class__ is np.ndarray and root(grad) is owner:
            return was_owned and alone
    return all(root(array) is not owner for array in _kept_arrays(node))


def _kept_arrays(node: Any) -> list[np.ndarray]:
    arrays = [saved.storage_array() for _, saved in node.kept()]
    return [a for a in arrays if a is not None]


def _copied(grad: np.ndarray, like: np.ndarray) -> np.ndarray:
    """A copy laid out as `like` where that is dense, else contiguous."""
    order: Any = "F" if like.flags.f_contiguous and not like.flags.c_contiguous else "C"
    return np.array(grad, order=order)


def sum_to(grad: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Undo broadcasting: sum over the dimensions that `shape` lacks or has of size one."""
    extra = grad.ndim - len(shape)
    axes = tuple(range(extra)) + tuple(
        extra + i for i, n in enumerate(shape) if n == 1 and grad.shape[extra + i] != 1
    )
    if not axes:
        return grad
    return np.asarray(grad.sum(axis=axes, keepdims=True, dtype=grad.dtype)).reshape(shape)


def _check_shape(got: tuple[int, ...], want: tuple[int, ...], node: Any, index: int) -> None:
    padded = (1,) * (len(got) - len(want)) + want
    if len(padded) == len(got) and all(w in (1, g) for g, w in zip(got, padded)):
        return
    raise RuntimeError(
        f"Function {node.name()} returned an invalid gradient at index {index} - got "
        f"{list(got)} but expected shape compatible with {list(want)}"
    )
