"""Ops whose result has another shape for each example, which no batch can hold."""

from __future__ import annotations

from typing import Any, NoReturn

from clew.func.batching.rules import Call, rule
from clew.op import Op

_NAMES = {"unique2": "_unique2"}


@rule("unique2", "unique_dim", "unique_consecutive")
def of_unknown_shape(op: Op, call: Call, attrs: dict[str, Any]) -> NoReturn:
    """Refused.

    Raises:
        RuntimeError: always.
    """
    raise RuntimeError(dynamic_text(_NAMES.get(op.name, op.name)))


def dynamic_text(name: str) -> str:
    """PyTorch's text for an op whose result's shape depends on values."""
    return (
        "vmap: We do not support batching operators that can output dynamic shape. Attempted to "
        f"vmap over aten::{name}. Please file an issue at "
        "https://github.com/pytorch/pytorch/issues if you need this feature."
    )


@rule("masked_select", "masked_select_backward")
def masked_select(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Refused for masks of each example's own; with a shared mask all find the same places."""
    if call.is_batched(1):
        raise RuntimeError(
            "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot "
            "support this because for each batch this would return a differently shaped Tensor. "
            "Please file an issue at https://github.com/pytorch/pytorch/issues if you need this "
            "feature."
        )
    from clew.func.batching.rules import looped

    return looped(op, call, attrs)
