"""Views in place: `t_`, `unsqueeze_` and their like make a tensor look at its memory differently.

No element is written, so the base of a view and other views keep their histories; but the tensor
is another one afterwards, which counts as a write.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from clew.autograd.modes import state
from clew.autograd.node import OpNode
from clew.autograd.transforms import running
from clew.autograd.views import check_inplace, refuse_inference
from clew.dispatch import apply
from clew.observers import observers
from clew.op import REGISTRY, Op
from clew.plan import plan_for
from clew.publish import composite
from clew.site import here
from clew.storage import geometry
from clew.tensor import Tensor


def _node(op_name: str, number: int) -> type[OpNode]:
    """The class of nodes of an op in place, which PyTorch numbers separately."""
    op = REGISTRY[op_name]
    name = op.node_name.rstrip("0123456789") + str(number)
    return type(name, (OpNode,), {"__slots__": (), "op": op, "name": lambda self: name})


_NODES = {
    "as_strided": _node("as_strided", 1),
    "squeeze_all": _node("squeeze_all", 3),
    "squeeze_dim": _node("squeeze_dim", 4),
    "squeeze_dims": _node("squeeze_dims", 5),
    "t": _node("t", 1),
    "transpose": _node("transpose", 1),
    "unsqueeze": _node("unsqueeze", 1),
}


def _look_anew(target: Tensor, op: Op, attrs: dict[str, Any], name: str) -> Tensor:
    """Make `target` what the view op makes of it.

    Raises:
        RuntimeError: autograd cannot follow that: a leaf that requires grad, or a view that takes
            no write.
    """
    records = target.requires_grad and state.now.grad_enabled
    check_inplace(target, name, records)
    tangents = _tangents(target)
    for before_inplace in observers.before_inplace:
        before_inplace(op, target, (), attrs)
    if isinstance(target._array, np.ndarray):
        array = op.forward(target._array, **attrs)
    else:  # an example of `vmap`: the same view of all examples
        array = apply(op, (target,), attrs)._array
    refuse_inference(target)
    node = None
    if records:
        plan = plan_for(op, 1, 1)
        saved = (target._array.shape,) * len(plan.saves)  # a view's rule needs no more
        metas = ((array.shape, array.dtype),)
        following, nr = target._gradient_edge()
        node = _NODES[op.name](plan, (following,), (nr,), saved, attrs, metas, here())
        target._edge = (node, 0)
    is_leaf = node is None and target._requires_grad
    if op.name == "as_strided" or (is_leaf and array.shape != target._array.shape):
        target._ensure_meta().reshaped = True
    target._array = array
    target._counter.bump(name)
    if node is not None and target._meta is not None:
        target._meta.view_version = target._counter.value
    for on_inplace in observers.on_inplace:
        on_inplace(op, target, node)
    for tangent in tangents:
        _look_anew(tangent, op, attrs, name)
    return target


def _tangents(target: Tensor) -> list[Tensor]:
    """The tangents of a tensor (forward mode), which lie in memory as it does."""
    if not running:
        return []
    from clew.autograd.dual import levels, tangent_of

    found = (tangent_of(target, level) for level in levels())
    return [tangent for tangent in found if tangent is not None]


@composite(function=False)
def t_(self: Tensor) -> Tensor:
    """`t`, in place."""
    check_inplace(self, "t_", self.requires_grad and state.now.grad_enabled)
    if self._array.ndim > 2:
        raise RuntimeError(
            f"t_() expects a tensor with <= 2 dimensions, but self is {self._array.ndim}D"
        )
    return _look_anew(self, REGISTRY["t"], {}, "t_")


@composite(function=False, aliases=("swapaxes_", "swapdims_"))
def transpose_(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """`transpose`, in place."""
    attrs = {"dim0": dim0, "dim1": dim1}
    return _look_anew(self, REGISTRY["transpose"], attrs, "transpose_")


@composite(function=False)
def unsqueeze_(self: Tensor, dim: int) -> Tensor:
    """`unsqueeze`, in place."""
    return _look_anew(self, REGISTRY["unsqueeze"], {"dim": dim}, "unsqueeze_")


@composite(function=False)
def squeeze_(self: Tensor, dim: Any = None) -> Tensor:
    """`squeeze`, in place."""
    if dim is None:
        return _look_anew(self, REGISTRY["squeeze_all"], {}, "squeeze_")
    name = "squeeze_dims" if isinstance(dim, Sequence) else "squeeze_dim"
    return _look_anew(self, REGISTRY[name], {"dim": dim}, "squeeze_")


@composite()
def as_strided_(self: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """`as_strided`, in place."""
    base = geometry(self._array)
    attrs = {
        "size": tuple(size), "stride": tuple(stride),
        "storage_offset": base.offset if storage_offset is None else storage_offset, "base": base,
    }  # fmt: skip
    return _look_anew(self, REGISTRY["as_strided"], attrs, "as_strided_")
