"""Products of tensors of any dimension, composed of products of vectors and matrices.

Which op is chosen, and what is folded, expanded or copied around it, is as in PyTorch: the graph
shows the same nodes.
"""

from __future__ import annotations

from math import prod
from typing import Any

from clew.dispatch import apply, apply_inplace
from clew.op import REGISTRY
from clew.ops.rules import broadcast_shape
from clew.publish import composite
from clew.tensor import Tensor

_MM, _MV, _DOT, _BMM = (REGISTRY[name] for name in ("mm", "mv", "dot", "bmm"))
_ADD, _ADDMM, _T = REGISTRY["add"], REGISTRY["addmm"], REGISTRY["t"]
_TRANSPOSE, _EXPAND = REGISTRY["transpose"], REGISTRY["expand"]
_UNSAFE_VIEW, _VIEW, _UNSQUEEZE = (REGISTRY[n] for n in ("unsafe_view", "view", "unsqueeze"))


def refuse_non_tensors(function: str, **arguments: Any) -> None:
    """Refuse arguments that are no tensors, by name.

    Raises:
        TypeError: naming the first that is none.
    """
    for position, (name, value) in enumerate(arguments.items(), 1):
        if not isinstance(value, Tensor):
            raise TypeError(
                f"{function}(): argument '{name}' (position {position}) must be Tensor, not "
                f"{type(value).__name__}"
            )


def refuse_numbers(function: str, first: Any, second: Any) -> None:
    """Refuse two operands neither of which is a tensor.

    Raises:
        TypeError: naming their types.
    """
    if not (isinstance(first, Tensor) or isinstance(second, Tensor)):
        raise TypeError(
            f"{function}() received an invalid combination of arguments - got "
            f"({type(first).__name__}, {type(second).__name__}), but expected one of:\n"
            " * (Tensor input, Tensor other)\n * (Number self, Tensor other)\n"
            " * (Tensor input, Number other)"
        )


# -- matmul


@composite(out=True)
def matmul(self: Tensor, other: Tensor) -> Any:
    """The matrix product; the last two dimensions are matrices, those before are broadcast.

    A vector on the left is a row, one on the right a column, and the result lacks its dimension.

    Raises:
        RuntimeError: an operand has no dimension, or sizes or types do not agree.
    """
    if not (isinstance(self, Tensor) and isinstance(other, Tensor)):
        refuse_non_tensors("matmul", input=self, other=other)
    dims = (self._array.ndim, other._array.ndim)
    if dims == (2, 2):
        return apply(_MM, (self, other))
    if 0 in dims:
        raise RuntimeError(
            "both arguments to matmul need to be at least 1D, but they are "
            f"{dims[0]}D and {dims[1]}D"
        )
    if dims == (1, 1):
        return apply(_DOT, (self, other))
    if dims == (2, 1):
        return apply(_MV, (self, other))
    if dims == (1, 2):
        row = apply(_UNSQUEEZE, (self,), {"dim": 0})
        return apply(_MM, (row, other)).squeeze_(0)
    return _folded(self, other) if _should_fold(self, other) else _batched(self, other)


def _should_fold(self: Tensor, other: Tensor) -> bool:
    """Whether the batch of one operand can be seen as more rows for a matrix or vector."""
    first, second = self._array, other._array
    if min(first.ndim, second.ndim) > 2:
        return False
    flipped = first.ndim < second.ndim
    smaller = self if flipped else other
    if smaller.requires_grad:
        return True
    if first.ndim == 2:
        return False
    larger = second.swapaxes(-1, -2) if flipped else first
    if larger.size == 0:
        return True
    strides = larger.strides
    return all(
        strides[i] == strides[i + 1] * larger.shape[i + 1] for i in range(larger.ndim - 2)
    )  # fmt: skip


def _folded(self: Tensor, other: Tensor) -> Any:
    """One product of matrices (or a matrix and a vector), the batch folded into the rows."""
    flipped = self._array.ndim < other._array.ndim
    large, small = self, other
    if flipped:
        large = _swapped(other)
        small = apply(_T, (self,)) if self._array.ndim == 2 else self
    *batch, inner = large._array.shape
    rows = large.reshape(prod(batch), inner)
    if small._array.ndim == 1:
        return apply(_UNSAFE_VIEW, (apply(_MV, (rows, small)),), {"size": tuple(batch)})
    size = (*batch, small._array.shape[1])
    result = apply(_UNSAFE_VIEW, (apply(_MM, (rows, small)),), {"size": size})
    return _swapped(result).contiguous() if flipped else result


def _swapped(x: Tensor) -> Tensor:
    return apply(_TRANSPOSE, (x,), {"dim0": -1, "dim1": -2})


def _batched(self: Tensor, other: Tensor) -> Any:
    """Many products of matrices, the batches expanded to one."""
    first, second = self._array.shape, other._array.shape
    if len(first) == len(second) == 3 and first[0] != second[0]:
        # Expanding an operand that requires grad would cost a large gradient.
        if first[0] == 1 and self.requires_grad:
            return matmul(self.squeeze(0), other)
        if second[0] == 1 and other.requires_grad:
            return matmul(self, other.squeeze(0))
    batch = broadcast_shape(first[:-2], second[:-2])
    count = prod(batch)
    n = first[-2] if len(first) > 1 else 1
    left = _expanded(self, (*batch, n, first[-1])).reshape(count, n, first[-1])
    if len(second) == 1:
        column = _expanded(other, (*batch, second[0])).reshape(count, second[0]).unsqueeze(2)
        result = apply(_BMM, (left, column)).squeeze(-1)
        return apply(_UNSAFE_VIEW, (result,), {"size": (*batch, n)})
    right = _expanded(other, (*batch, *second[-2:])).reshape(count, *second[-2:])
    size = (*batch, *first[-2:-1], second[-1])
    return apply(_UNSAFE_VIEW, (apply(_BMM, (left, right)),), {"size": size})


def _expanded(x: Tensor, size: tuple[int, ...]) -> Tensor:
    return apply(_EXPAND, (x,), {"size": size})


@composite(function=False)
def __matmul__(self: Tensor, other: Any) -> Any:
    return matmul(self, other) if isinstance(other, Tensor) else NotImplemented


@composite(function=False)
def __rmatmul__(self: Tensor, other: Any) -> Any:
    return matmul(other, self) if isinstance(other, Tensor) else NotImplemented


# -- linear


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    """``input @ weight.T + bias``, for ``nn.functional``.

    Args:
        input: ``(*, in_features)``.
        weight: ``(out_features, in_features)`` or ``(in_features,)``.
        bias: ``(out_features,)``, broadcast to the result.

    Raises:
        RuntimeError: sizes or types do not agree.
    """
    if not (isinstance(input, Tensor) and isinstance(weight, Tensor)):
        refuse_non_tensors("linear", input=input, weight=weight)
    if not (input._array.ndim and weight._array.ndim):
        raise RuntimeError(
            "both arguments to linear need to be at least 1D, but they are "
            f"{input._array.ndim}D and {weight._array.ndim}D"
        )
    turned = apply(_T, (weight,))
    if bias is None:
        return matmul(input, turned)
    array = input._array
    if array.ndim == 2:
        return apply(_ADDMM, (bias, input, turned), _ADDMM.default_attrs)
    if bias._array.ndim == 1 and array.ndim and array.flags.c_contiguous:
        rows = apply(_VIEW, (input,), {"size": (prod(array.shape[:-1]), array.shape[-1])})
        result = apply(_ADDMM, (bias, rows, turned), _ADDMM.default_attrs)
        size = (*array.shape[:-1], result._array.shape[1])
        return apply(_VIEW, (result,), {"size": size})
    return apply_inplace(_ADD, matmul(input, turned), (bias,), _ADD.default_attrs)


# -- products of vectors


@composite(aliases=("ger",), out=True)
def outer(self: Tensor, vec2: Tensor) -> Any:
    """The matrix of the products of each two elements of two vectors.

    Raises:
        RuntimeError: an operand is no vector.
    """
    refuse_non_tensors("outer", input=self, vec2=vec2)
    for vector, name in ((self, "self"), (vec2, "vec2")):
        if vector._array.ndim != 1:
            raise RuntimeError(
                f"outer: Expected 1-D argument {name}, but got {vector._array.ndim}-D"
            )
    return self.reshape(self._array.shape[0], 1) * vec2
