"""What distributions share: broadcasting, probabilities and logits, lazy attributes."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

import clew
from clew.autograd.modes import enable_grad
from clew.dispatch import apply
from clew.functions.create import tensor
from clew.op import REGISTRY
from clew.tensor import Size, Tensor

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

NUMBER = (bool, int, float)
"""What counts as a number among parameters."""

euler_constant = 0.57721566490153286060  # of Euler and Mascheroni


def broadcast_all(*values: Any) -> list[Any]:
    """Tensors of one shape; numbers become tensors of the first tensor's type.

    Raises:
        ValueError: a value is neither a tensor nor a number.
    """
    if not all(isinstance(v, (Tensor, *NUMBER)) for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing "
            "__torch_function__."
        )
    tensors = [v for v in values if isinstance(v, Tensor)]
    dtype = tensors[0].dtype if tensors else clew.get_default_dtype()
    return list(
        clew.broadcast_tensors(
            *(v if isinstance(v, Tensor) else tensor(v, dtype=dtype) for v in values)
        )
    )


def sum_rightmost(value: Any, dim: int) -> Any:
    """The sum over the last `dim` dimensions."""
    if dim == 0:
        return value
    return value.reshape((*value.shape[:-dim], -1)).sum(-1)


def as_size(shape: Any) -> Size:
    """A shape as a Size."""
    return shape if isinstance(shape, Size) else Size(shape)


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """Probabilities: of log odds if binary, else of log weights along the last dimension."""
    return clew.sigmoid(logits) if is_binary else clew.softmax(logits, -1)


def clamp_probs(probs: Any) -> Any:
    """Probabilities moved into the open interval (0, 1), by the machine epsilon."""
    eps = clew.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Any, is_binary: bool = False) -> Any:
    """The reverse of `logits_to_probs`, finite for probabilities of 0 and 1 too."""
    clamped = clamp_probs(probs)
    if is_binary:
        return clew.log(clamped) - clew.log1p(-clamped)
    return clew.log(clamped)


def cross_entropy_of_logits(logits: Any, probs: Any) -> Any:
    """Binary cross entropy of each element."""
    op = REGISTRY["binary_cross_entropy_with_logits"]
    inputs: tuple[Any, ...] = (logits, probs, *(None for _ in op.inputs[2:]))
    return apply(op, inputs, {**op.default_attrs, "reduction": "none"})


def softplus(x: Any) -> Any:
    """``log(1 + exp(x))``."""
    op = REGISTRY["softplus"]
    return apply(op, (x,), op.default_attrs)


class lazy_property:
    """A method that runs when it is first read as an attribute, which then has its value."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def tril_matrix_to_vec(mat: Any, diag: int = 0) -> Any:
    """The elements on and below a diagonal of square matrices, row by row, as vectors.

    Raises:
        ValueError: there is no such diagonal.
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    return mat[..., _lower_mask(n, diag)]


def vec_to_tril_matrix(vec: Any, diag: int = 0) -> Any:
    """Square matrices with the elements of vectors on and below a diagonal; zeros above.

    Raises:
        ValueError: no square matrix has that many elements there.
    """
    # The number of elements, as a function of n, solved for n.
    inside = (1 + 2 * diag) ** 2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)
    n = (-(1 + 2 * diag) + inside**0.5) / 2
    if round(n) - n > clew.finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as "
            "the lower triangular part of a square D x D matrix."
        )
    n = round(n)
    mat = clew.zeros((*vec.shape[:-1], n, n), dtype=vec.dtype)
    mat[..., _lower_mask(n, diag)] = vec
    return mat


def _lower_mask(n: int, diag: int) -> Any:
    positions = clew.arange(n)
    return positions < positions.view(-1, 1) + (diag + 1)
