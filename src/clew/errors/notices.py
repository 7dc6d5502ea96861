"""Texts of the warnings that concern one tensor.  Layer 0."""

from __future__ import annotations

from typing import Any

from clew.errors import at, describe, teach
from clew.site import here


def non_leaf_grad_text(tensor: Any) -> str:
    """The warning for reading ``.grad`` of a tensor that does not keep it."""
    return teach(
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
        "attribute won't be populated during autograd.backward(). If you indeed want the .grad "
        "field to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. "
        "If you access the non-leaf Tensor by mistake, make sure you access the leaf Tensor "
        "instead. See github.com/pytorch/pytorch/pull/30531 for more information.",
        (
            ("tensor", describe(tensor)),
            ("read", at(here())),
            ("cure", "call y.retain_grad() before backward, or read .grad of the leaf; a parameter "
                     "that was replaced (p = p - lr * p.grad) is no leaf any more"),
        ),
        "non-leaf-grad",
    )  # fmt: skip


def scalar_of_graph_text(tensor: Any) -> str:
    """The warning for turning a tensor that requires grad into a Python number."""
    return teach(
        "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
        "Consider using tensor.detach() first.",
        (
            ("tensor", describe(tensor)),
            ("read", at(here())),
            ("cure", "say that you want the number only: y.item(), or y.detach()"),
        ),
        "scalar-of-a-graph",
    )
