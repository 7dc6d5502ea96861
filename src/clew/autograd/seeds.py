"""What a backward pass starts with: the gradients of its roots, given or implied.  Layer 4."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from clew.autograd.node import GradientEdge
from clew.dtypes import of_numpy
from clew.errors import (
    GradientMismatchError,
    GradientTypeError,
    NonScalarBackwardError,
    describe,
    describe_end,
)
from clew.tensor import Size, Tensor


def is_single(value: Any) -> bool:
    """Whether this is one tensor or edge, and no sequence of them."""
    return isinstance(value, (Tensor, GradientEdge))


def as_tuple(value: Any) -> tuple[Any, ...]:
    """One or several tensors as a tuple."""
    return (value,) if value is None or is_single(value) else tuple(value)


def gradients_of(roots: tuple[Any, ...], given: Any) -> list[Any]:
    """The gradient of each root: as given, or an array of one for a root of one real number.

    Raises:
        RuntimeError: one is missing, or has another shape or (real for complex) type.
        TypeError: one is no tensor.
    """
    if given is None:
        return [_implied(root) for root in roots]
    values = as_tuple(given)
    if len(values) < len(roots):
        raise GradientMismatchError(
            f"got {len(roots)} tensors and {len(values)} gradients",
            *(("output", describe_end(root)) for root in roots),
            cure="give one gradient for each output, in their order; None means one for a scalar",
        )
    return [_gradient_of(root, value, i) for i, (root, value) in enumerate(zip(roots, values))]


def batches_of(roots: tuple[Any, ...], given: Any) -> list[Tensor]:
    """As `gradients_of`, each with a leading dimension that all agree in.

    Raises:
        RuntimeError: a shape after the leading dimension is not that of the root.
        ValueError: the leading dimensions differ, or there is none.
    """
    values = as_tuple(given) if given is not None else (None,) * len(roots)
    batches = []
    for i, (root, value) in enumerate(zip(roots, values)):
        shape = _meta_of(root)[0]
        if isinstance(value, Tensor) and value._array[0].shape != shape:
            raise GradientMismatchError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output "
                "as the batch dimension. The sizes of the remaining dimensions are expected to "
                "match the shape of corresponding output, but a mismatch was detected: "
                f"grad_output[{i}] has a shape of {Size(value._array.shape[1:])} and output[{i}] "
                f"has a shape of {Size(shape)}. If you only want some tensors in `grad_output` to "
                "be considered batched, consider using vmap.",
                *_both(root, value),
                cure="give each gradient a leading dimension, the same for all",
            )
        if not isinstance(value, Tensor):
            value = _gradient_of(root, value, i)
        batches.append(value if isinstance(value, Tensor) else Tensor._from_array(value))
    sizes = [batch._array.shape[0] if batch._array.ndim else None for batch in batches]
    if None in sizes:
        raise ValueError(
            "vmap(vjp, in_dims=0, ...)(<inputs>): Got in_dim=0 for some input, but that input is a "
            "Tensor of dimensionality 0 so expected in_dim to satisfy 0 <= in_dim < 0."
        )
    if len(set(sizes)) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return batches


def _implied(root: Any) -> np.ndarray:
    shape, dtype = _meta_of(root)
    is_real_number = dtype.kind in "fV" and (shape == () or all(n == 1 for n in shape))
    # For a root that requires no grad the reason is named later.
    if not is_real_number and (not isinstance(root, Tensor) or root.requires_grad):
        raise NonScalarBackwardError(root, shape, dtype)
    array = np.empty(shape, dtype)  # without the checks of `np.ones`
    array.fill(1)
    return array


def _gradient_of(root: Any, value: Any, position: int) -> Any:
    shape, dtype = _meta_of(root)
    if value is None:
        return _implied(root)
    if not isinstance(value, Tensor):
        raise GradientTypeError(
            f"gradients can be either Tensors or None, but got {type(value).__name__}",
            ("output", describe_end(root)),
            cure="pass a tensor of the output's shape, or None for a scalar",
        )
    if value._array.shape != shape:
        raise GradientMismatchError(
            f"Mismatch in shape: grad_output[{position}] has a shape of {value.shape} and "
            f"output[{position}] has a shape of {Size(shape)}.",
            *_both(root, value),
            cure="pass a gradient of the output's shape: torch.ones_like(y) for the plain sum",
        )
    if (value._array.dtype.kind == "c") != (dtype.kind == "c"):
        raise GradientMismatchError(
            "For complex Tensors, both grad_output and output are required to have the same "
            f"dtype. Mismatch in dtype: grad_output[{position}] has a dtype of {value.dtype} and "
            f"output[{position}] has a dtype of {of_numpy(dtype)!r}.",
            *_both(root, value),
            cure="pass a gradient of the output's dtype",
        )
    return value


def _both(root: Any, gradient: Tensor) -> Sequence[tuple[str, str]]:
    return ("output", describe_end(root)), ("gradient", describe(gradient))


def _meta_of(root: Any) -> Any:
    if isinstance(root, Tensor):
        return root._array.shape, root._array.dtype
    return root.node.metas[root.output_nr]
