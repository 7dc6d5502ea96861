"""Functions of tensors.  Layer 4."""

from __future__ import annotations

import math
from typing import Any

from clew.autograd.function import Function


class Resize(Function):
    """``Resize.apply(x, sizes)``: the elements of `x` in another shape, a view where that can be.

    Raises:
        RuntimeError: the shape has another number of elements.
    """

    @staticmethod
    def forward(ctx: Any, tensor: Any, sizes: tuple[int, ...]) -> Any:
        """The view, or a view of a copy."""
        numel = math.prod(sizes)
        if tensor.numel() != numel:
            raise RuntimeError(
                f"requested resize to {_by(sizes)} ({numel} elements in total), but the given "
                f"tensor has a size of {_by(tensor.shape)} ({tensor.numel()} elements). autograd's "
                "resize can only change the shape of a given tensor, while preserving the number "
                "of elements. "
            )
        ctx.input_sizes = tensor.shape
        return tensor.contiguous().view(*sizes)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """The gradient in the shape of the input."""
        return grads[0].contiguous().view(ctx.input_sizes), None


def _by(sizes: tuple[int, ...]) -> str:
    return "x".join(map(str, sizes))
