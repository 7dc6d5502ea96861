"""What a gradient is during a backward pass: a raw array, or a Tensor that is itself recorded.

Layer 4.  The engine is given one of the algebras here and never asks which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from sys import getrefcount
from typing import Any, NoReturn

import numpy as np
from numpy import ndarray

from clew.autograd.modes import no_grad
from clew.autograd.node import Algebra
from clew.autograd.saved import PackedTensor, SavedTensor, SavedTuple
from clew.autograd.views import refuse_inference
from clew.config import warn_once
from clew.dispatch import ARRAYS, TENSORS, apply_inplace, as_torch_says, check_fit
from clew.errors import (
    EXPANDED,
    GradientMismatchError,
    NanGradientError,
    UnpackedError,
    recorded,
    typed,
)
from clew.kernels.reduce import sums
from clew.kernels.shared import Shared
from clew.op import REGISTRY
from clew.ops.layout import empty_alike, in_order_of_operands
from clew.quiet import without_warnings
from clew.storage import element_strides, has_no_gaps, overlaps_itself, root
from clew.tensor import Tensor

_add = Shared(np.add)


class ArrayAlgebra(Algebra):
    """First order: gradients are NumPy arrays, rules run on them directly.

    Attributes:
        given: the gradients that the user has given: what shares their memory has their version.
    """

    namespace = ARRAYS
    run = staticmethod(without_warnings)
    """Runs a whole pass."""

    def __init__(self, given: Sequence[Tensor] = ()) -> None:
        self.given = given

    def values(self, saved: Sequence[Any], node: Any) -> list[Any]:
        """What a node has saved, tensors as their arrays."""
        values: list[Any] = []
        for value in saved:
            if type(value) is SavedTensor:
                saved_one = value
                if saved_one.packed is not None:
                    values.append(value.array(node))
                    continue
                tensor = saved_one.tensor
                counter = tensor._counter
                if counter.value != saved_one.version or (
                    tensor._node is None and tensor._cut is not None
                ):
                    value.check(node)
                values.append(tensor._array)
            elif isinstance(value, (SavedTensor, PackedTensor, SavedTuple)):
                values.append(value.array(node))
            else:
                values.append(value)
        return values

    def run_checked(self, node: Any, grads: list[Any], need: Any, error: Exception) -> list[Any]:
        """Run a node again that failed, on Tensors, if an unpack hook gave it something else.

        Rules on arrays rely on what forward has checked.  What a hook returns nobody has checked,
        and operations on Tensors do it: they fail as PyTorch's, or promote as PyTorch's.
        """
        if _unpacked_otherwise(node) is None:
            raise as_torch_says(error) if isinstance(error, ValueError) else error
        wrapped = [self.wrap(grad) for grad in grads]
        try:
            with no_grad():
                results = node.run(wrapped, TENSOR, need)
        except Exception as refused:
            TENSOR.run_checked(node, wrapped, need, refused)
        return [self.unwrap(result) for result in results]

    def in_order(self, node: Any, grad: np.ndarray) -> InOrder | None:
        """What runs a node whose gradient and what it has saved lie in memory in different orders;
        None if they do not."""
        kept = [x for x in node.saved if isinstance(x, SavedTensor)]
        if any(x.packed is not None for x in kept):
            return IN_ORDER
        arrays = [x.tensor._array for x in kept]
        if any(stride and n > 1 for stride, n in zip(grad.strides, grad.shape)):
            arrays.append(grad)  # an expanded number has no order
        if all(x.strides == arrays[0].strides or x.ndim == 0 for x in arrays):
            return None
        return None if all(x.flags.c_contiguous for x in arrays) else IN_ORDER

    def add_into(self, buffer: list[Any], index: int, grad: Any) -> None:
        """Add to the gradient in a buffer, in place if the buffer alone holds it."""
        if _is_sole(buffer, index, whole=True) and buffer[index].dtype == grad.dtype:
            _add(buffer[index], grad, out=buffer[index])
        else:
            buffer[index] = _sum(buffer[index], grad)

    def fit(self, grad: Any, meta: Any, node: Any, index: int) -> Any:
        """The gradient in the shape and dtype of what it is the gradient of."""
        shape, dtype = meta
        if type(grad) is not ndarray:
            grad = np.asarray(grad)
        elif grad.dtype is dtype and grad.shape == shape:
            return grad
        if grad.dtype != dtype and grad.dtype.kind == "c" and dtype.kind != "c":
            grad = grad.real
        if grad.shape != shape:
            _check_shape(grad.shape, shape, node, index)
            grad = sum_to(grad, shape)
        if grad.dtype is not dtype and grad.dtype != dtype:
            grad = grad.astype(dtype)
        return grad

    def accumulate(self, leaf: Tensor, grads: list[Any], site: Any) -> None:
        """Add into ``leaf.grad``, in place if there is one; `site` is the line of the backward."""
        known = leaf._grad
        if known is not None:
            if known._meta is not None:
                refuse_inference(known)
            unlike = known._array.strides != leaf._array.strides
            if unlike and overlaps_itself(known._array):
                raise RuntimeError(EXPANDED)
            _add_checked(known._array, grads[0])
            known._counter.bump("gradient accumulation in backward", site)
            if unlike:
                _check_layout(known._array, leaf._array)
            return
        meta: Any = leaf._meta
        lies_like = _obeys_layout if meta.reshaped else _lies_like
        if _is_sole(grads, 0) and lies_like(grads[0], leaf._array):
            leaf._grad = Tensor._from_array(grads[0], tell=False)
            return
        leaf._grad = Tensor._from_array(_copied(grads[0], leaf._array))
        if has_no_gaps(leaf._array):  # PyTorch writes into new memory laid out as the leaf's
            leaf._grad._counter.bump("gradient accumulation in backward", site)

    def check_nan(self, node: Any, results: Sequence[Any]) -> None:
        """Raise if a result holds NaN (anomaly mode)."""
        for i, result in enumerate(results):
            if result is not None and np.isnan(result).any():
                raise NanGradientError(
                    f"Function '{node.name()}' returned nan values in its {i}th output.", node
                )

    def wrap(self, grad: Any) -> Any:
        """The gradient as hooks and users see it."""
        if grad is None:
            return None
        wrapped = Tensor._from_array(np.asarray(grad))
        if self.given:
            memory = root(wrapped._array)
            for tensor in self.given:
                if root(tensor._array) is memory:
                    wrapped._counter = tensor._counter
                    if tensor.is_inference():
                        wrapped._ensure_meta().inference = True
        return wrapped

    def wrap_all(self, grads: Sequence[Any]) -> list[Any]:
        """The gradients that a pass returns: one given twice is one tensor, and those that share
        memory share a version."""
        if len(grads) < 2:
            return [self.wrap(grad) for grad in grads]
        wrapped: dict[int, Any] = {}
        counters: dict[int, Any] = {}
        for grad in grads:
            if id(grad) not in wrapped:
                wrapped[id(grad)] = tensor = self.wrap(grad)
                if tensor is not None:
                    memory = id(root(tensor._array))
                    tensor._counter = counters.setdefault(memory, tensor._counter)
        return [wrapped[id(grad)] for grad in grads]

    def unwrap(self, grad: Any) -> Any:
        """The gradient that a hook or a user's backward gave."""
        return None if grad is None else grad._array

    def is_tensor(self, value: Any) -> bool:
        """Whether a hook's result can be a gradient."""
        return isinstance(value, Tensor)


class _Float(float):
    """A number that a user's program has combined with a tensor; see `OF_USER`."""


class _Int(int):
    """See `_Float`."""


class _Complex(complex):
    """See `_Float`."""


OF_USER = {float: _Float, int: _Int, complex: _Complex}
"""What stands in a rule for a number that was the operand of a recorded call: for PyTorch that is a
tensor, as against the numbers of the rule itself (Note [Numbers in rules] in ``recording.py``)."""


class TensorAlgebra(Algebra):
    """Under ``create_graph``: gradients are Tensors, and computing them is recorded."""

    namespace = TENSORS

    @staticmethod
    def run(function: Callable[..., None], *args: Any) -> None:
        """Run a whole pass; every op is quiet by itself."""
        function(*args)

    def values(self, saved: Sequence[Any], node: Any) -> list[Any]:
        """What a node has saved, tensors connected to the graph."""
        values = []
        for value in saved:
            if isinstance(value, (SavedTensor, PackedTensor, SavedTuple)):
                values.append(value.unpack(node))
            elif value.__class__ in OF_USER and not node.op.without:
                values.append(OF_USER[value.__class__](value))
            else:
                values.append(value)
        return values

    def run_checked(self, node: Any, grads: list[Any], need: Any, error: Exception) -> NoReturn:
        """Raise the error of a node; if an unpack hook gave it something else, say so."""
        found = _unpacked_otherwise(node)
        if found is None:
            raise error
        shape, dtype = found.meta
        raise UnpackedError(
            str(error), found.hooks[1], node, typed(shape, dtype), found.returned
        ) from None

    def add_into(self, buffer: list[Any], index: int, grad: Any) -> None:
        """Add to the gradient in a buffer."""
        buffer[index] = TENSORS.add(buffer[index], grad)

    def fit(self, grad: Any, meta: Any, node: Any, index: int) -> Any:
        """The gradient in the shape and dtype of what it is the gradient of."""
        shape, dtype = meta
        array = grad._array
        if array.dtype is dtype and array.shape == shape:
            return grad
        if array.dtype != dtype and array.dtype.kind == "c" and dtype.kind != "c":
            grad = TENSORS.real(grad)
        if array.shape != shape:
            _check_shape(array.shape, shape, node, index)
            grad = TENSORS.sum_to_size(grad, size=shape)
        if grad._array.dtype != dtype:
            grad = TENSORS.to_dtype(grad, dtype=dtype)
        return grad

    def accumulate(self, leaf: Tensor, grads: list[Any], site: Any) -> None:
        """Add into ``leaf.grad``, out of place, so that the sum is recorded too."""
        known, grad = leaf._grad, grads[0]
        if known is not None:
            leaf._grad = TENSORS.add(known, grad)
            if leaf._grad._array.strides != leaf._array.strides:
                _check_layout(leaf._grad._array, leaf._array)
        elif has_no_gaps(leaf._array):
            target = Tensor._from_array(np.empty_like(leaf._array, grad._array.dtype))
            leaf._grad = TENSORS.copy(target, grad)
        else:
            leaf._grad = TENSORS.clone(grad, memory_format="contiguous")

    def check_nan(self, node: Any, results: Sequence[Any]) -> None:
        """Raise if a result holds NaN (anomaly mode)."""
        arrays = [None if result is None else result._array for result in results]
        ARRAY.check_nan(node, arrays)

    def wrap(self, grad: Any) -> Any:
        """The gradient as hooks and users see it."""
        return grad

    def wrap_all(self, grads: Sequence[Any]) -> list[Any]:
        """The gradients that a pass returns."""
        return list(grads)

    def unwrap(self, grad: Any) -> Any:
        """The gradient that a hook or a user's backward gave."""
        return grad

    def is_tensor(self, value: Any) -> bool:
        """Whether a hook's result can be a gradient."""
        return isinstance(value, Tensor)


class UnrecordedAlgebra(TensorAlgebra):
    """First order while forward mode is on: gradients are Tensors, for they have tangents."""

    def accumulate(self, leaf: Tensor, grads: list[Any], site: Any) -> None:
        """Add into ``leaf.grad``, in place if there is one."""
        known = leaf._grad
        if known is None:
            super().accumulate(leaf, grads, site)
        else:
            apply_inplace(REGISTRY["add"], known, (grads[0],))


class InOrder(TensorAlgebra):
    """First order where operands lie in memory in different orders: rules run on Tensors, whose
    operations choose the order of their result as PyTorch's do.  NumPy's operators do not."""

    def values(self, saved: Sequence[Any], node: Any) -> list[Any]:
        """What a node has saved, tensors without a graph."""
        values = ARRAY.values(saved, node)
        return [Tensor._from_array(x) if x.__class__ is np.ndarray else x for x in values]

    def run_node(self, node: Any, grads: list[Any], need: Any) -> list[Any]:
        """The results of a node, arrays of arrays."""
        wrapped = [None if grad is None else Tensor._from_array(grad) for grad in grads]
        with no_grad():
            results = node.run(wrapped, self, need)
        return [None if result is None else result._array for result in results]


def _unpacked_otherwise(node: Any) -> Any:
    """The first of a node's saved tensors whose unpack hook returned another shape or dtype."""
    for _, kept in node.kept():
        if isinstance(kept, PackedTensor) and kept.returned is not None:
            return kept
    return None


ARRAY = ArrayAlgebra()
TENSOR = TensorAlgebra()
UNRECORDED = UnrecordedAlgebra()
IN_ORDER = InOrder()


def _sum(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The sum, laid out as the first where the two differ, as PyTorch does it."""
    if first.strides == second.strides or first.shape != second.shape:
        return np.asarray(np.add(first, second))
    if first.flags.c_contiguous:
        return np.asarray(np.add(first, second, order="C"))
    if 0 in first.strides:  # an expanded one leaves the order to the other
        return in_order_of_operands(np.add(first, second), (first, second))
    alike = first.dtype is second.dtype
    out = empty_alike(first, first.dtype if alike else np.result_type(first, second))
    return np.add(first, second, out=out)


_ONE_HOLDER = 2
"""What `sys.getrefcount` says of an object held once, for it holds its argument itself."""


def _is_sole(holder: list[Any], index: int, *, whole: bool = False) -> bool:
    """Whether ``holder[index]`` is the only reference to that array and its memory.

    A view counts only if it is contiguous: an expanded one has one number in many places; and, if
    it is to be the `whole`, only a view of all.
    """
    if getrefcount(holder[index]) != _ONE_HOLDER:
        return False
    base = holder[index].base
    if base is None:
        return True
    if whole and getattr(base, "nbytes", -1) != holder[index].nbytes:
        return False
    del base
    is_view = holder[index].base.__class__ is np.ndarray and holder[index].flags.forc
    return is_view and getrefcount(holder[index].base) == _ONE_HOLDER


def _lies_like(grad: np.ndarray, leaf: np.ndarray) -> bool:
    """Whether `grad` can be the gradient of `leaf` as it is: writeable, and laid out as
    `_copied` would."""
    if leaf.flags.c_contiguous or not has_no_gaps(leaf):
        return grad.flags.c_contiguous and grad.flags.writeable
    return grad.strides == leaf.strides and grad.flags.writeable


def _obeys_layout(grad: np.ndarray, leaf: np.ndarray) -> bool:
    """Whether PyTorch takes `grad` for laid out as `leaf`, whose data may be of another shape by
    now.  It compares strides only, and where the leaf has fewer dimensions finds 1 for that of a
    number, and 0 beyond."""
    if not has_no_gaps(leaf):
        return grad.flags.c_contiguous
    wanted = element_strides(leaf) or (1,)
    strides = zip_longest(element_strides(grad), wanted[: grad.ndim], fillvalue=0)
    return all(s == t or n == 1 for n, (s, t) in zip(grad.shape, strides))


def _check_layout(grad: np.ndarray, leaf: np.ndarray) -> None:
    """Warn, as PyTorch does, where a gradient does not lie in memory as its leaf."""
    if leaf.size and not _obeys_layout(grad, leaf):
        warn_once(
            "layout",
            "grad and param do not obey the gradient layout contract. This is not an error, but "
            "may impair performance.",
            stacklevel=8,
        )


def _add_checked(known: np.ndarray, grad: np.ndarray) -> None:
    """Add in place, or raise PyTorch's error where the two do not fit (data may be replaced)."""
    try:
        _add(known, grad, out=known)
    except (ValueError, TypeError) as error:
        if isinstance(error, ValueError):
            refused = as_torch_says(error, (known, grad))
            if isinstance(refused, RuntimeError):
                raise refused from None
        check_fit(np.add(known, grad), known)
        raise


def _copied(grad: np.ndarray, like: np.ndarray) -> np.ndarray:
    """A copy laid out as `like` where that is dense, else contiguous."""
    dense = has_no_gaps(like)
    copy = np.empty_like(like, grad.dtype) if dense else np.empty(grad.shape, grad.dtype)
    write = REGISTRY["copy"].write
    assert write is not None
    write(copy, grad)
    return copy


def sum_to(grad: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Undo broadcasting: sum over the dimensions that `shape` lacks or has of size one."""
    extra = grad.ndim - len(shape)
    axes = tuple(range(extra))
    if grad.shape[extra:] != shape:
        axes += tuple([extra + i for i, n in enumerate(shape) if n != grad.shape[extra + i]])
    if not axes:
        return grad
    total = sums(grad, axes) if grad.itemsize > 2 else None
    if total is None:
        total = np.asarray(np.add.reduce(grad, axis=axes, dtype=grad.dtype))
    return np.asarray(total.reshape(shape), order="C")


def is_broadcast_of(wide: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether a tensor of `shape` can be expanded to `wide`."""
    padded = (1,) * (len(wide) - len(shape)) + shape
    return len(padded) == len(wide) and all(n in (1, w) for w, n in zip(wide, padded))


def _check_shape(got: tuple[int, ...], want: tuple[int, ...], node: Any, index: int) -> None:
    if is_broadcast_of(got, want):
        return
    raise GradientMismatchError(
        f"Function {node.name()} returned an invalid gradient at index {index} - got "
        f"{list(got)} but expected shape compatible with {list(want)}",
        ("call", recorded(node)),
        cure=f"return a gradient of shape {list(want)}, that of the input it belongs to",
    )
