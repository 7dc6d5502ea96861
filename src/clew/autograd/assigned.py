"""What may be assigned to ``x.grad``.  Layer 3: knows tensors only by their attributes."""

from __future__ import annotations

from typing import Any

from clew import dtypes
from clew.errors import GradientMismatchError, GradientTypeError, describe
from clew.rng.target import range_of


def check_assigned(tensor: Any, grad: Any) -> None:
    """Refuse a gradient that `tensor` cannot have.

    Raises:
        TypeError: it is no tensor.
        RuntimeError: it is the tensor itself, or of another shape or type.
    """
    if not hasattr(grad, "_gradient_edge"):
        raise GradientTypeError(
            "assigned grad expected to be a Tensor or None but got grad of type "
            f"{type(grad).__name__}",
            ("tensor", describe(tensor)),
            cure="assign a tensor of the same shape and dtype, or None",
        )
    if grad is tensor:
        raise GradientMismatchError(
            "can't assign Variable as its own grad",
            ("tensor", describe(tensor)),
            cure="assign a tensor of its own: x.grad = x.detach().clone()",
        )
    if grad._array.dtype != tensor._array.dtype:
        got = range_of(grad._array.dtype).c_name
        wanted = dtypes.scalar_name(tensor._array.dtype)
        raise GradientMismatchError(
            f"attempting to assign a gradient with dtype '{got}' to a tensor "
            f"with grad_dtype '{wanted}'. The gradient must match the tensor's "
            "grad_dtype (defaults to the tensor's dtype). You can set the tensor's grad_dtype "
            "attribute with a specific dtype, or None to allow any dtype. Set grad_dtype with "
            "caution. Diverging the dtypes of a tensor and its gradient may break downstream "
            "systems that assume they match.",
            *_both(tensor, grad),
            cure="convert it: x.grad = grad.to(x.dtype)",
        )
    if grad._array.shape != tensor._array.shape:
        raise GradientMismatchError(
            f"attempting to assign a gradient of size '{list(grad._array.shape)}' to a tensor of "
            f"size '{list(tensor._array.shape)}'. Please ensure that the gradient and the tensor "
            "are the same size",
            *_both(tensor, grad),
            cure="assign a gradient of the tensor's shape, or None",
        )


def _both(tensor: Any, grad: Any) -> tuple[tuple[str, str], tuple[str, str]]:
    return ("tensor", describe(tensor)), ("gradient", describe(grad))
