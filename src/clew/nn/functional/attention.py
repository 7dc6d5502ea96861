"""Attention."""

from __future__ import annotations

import math
from typing import Any

from clew import dtypes
from clew.functions.calls import Tensor, call, require_tensors
from clew.functions.create import ones, zeros
from clew.nn.functional.again import computed_again
from clew.nn.functional.dropout import dropout
from clew.ops.linalg import cpp_name


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """``softmax(query @ key.T * scale + mask) @ value``.

    Args:
        query: ``(*, L, E)``.
        key, value: ``(*, S, E)`` and ``(*, S, V)``.
        attn_mask: ``(*, L, S)``, broadcast; bools (true: attend) or numbers added to the logits.
        dropout_p: the probability with which a weight is dropped; whoever calls says whether it
            is training.
        is_causal: each row attends to the columns up to its own number.
        scale: by default ``1 / sqrt(E)``.
        enable_gqa: several heads of `query` may share one of `key` and `value`.

    Without dropout, and for batches of heads of one size, no matrix of weights is kept.

    Raises:
        RuntimeError: shapes, types or arguments do not go together.
    """
    require_tensors("scaled_dot_product_attention", query=query, key=key, value=value)
    _check(query, key, value, attn_mask, is_causal, enable_gqa)
    if scale is None:
        scale = 1 / math.sqrt(query.size(-1)) if query.size(-1) else math.nan
    if attn_mask is not None and attn_mask.dtype is dtypes.bool_:
        attn_mask = _added(attn_mask, query)
    if not dropout_p and _keeps_no_weights(query, key, value, attn_mask, enable_gqa):
        attrs = {"is_causal": is_causal, "scale": float(scale)}
        name = "scaled_dot_product_flash_attention_for_cpu"
        return call(name, query, key, value, attn_mask, **attrs)[0]
    if enable_gqa:
        key, value = (x.repeat_interleave(query.size(-3) // x.size(-3), -3) for x in (key, value))
    if is_causal:
        attn_mask = _added(ones(query.size(-2), key.size(-2), dtype=dtypes.bool_).tril(), query)
    # Both factors are scaled, as in PyTorch, so that halves do not overflow.
    root = math.sqrt(scale) if scale >= 0 else math.nan
    logits = (query * root) @ (key.transpose(-2, -1) * root)
    if attn_mask is not None:
        logits = logits + attn_mask
    weights = call("safe_softmax", logits, dim=-1)
    if dropout_p:
        weights = computed_again(dropout(weights, dropout_p), weights)
    return weights @ value


def _added(mask: Tensor, query: Tensor) -> Tensor:
    """A mask of bools as what is added to the logits."""
    return zeros(mask.shape, dtype=query.dtype).masked_fill(~mask, -math.inf)


def _keeps_no_weights(
    query: Tensor, key: Tensor, value: Tensor, mask: Any, enable_gqa: bool
) -> bool:
    """Whether the fused op takes these."""
    if not query.ndim == key.ndim == value.ndim == 4 or not query.is_floating_point():
        return False
    batch, heads, _, size = query.shape
    same = key.shape == value.shape and key.size(0) == batch and key.size(3) == size
    if not same or not (key.size(1) == heads or enable_gqa):
        return False
    return mask is None or (not mask.requires_grad and mask.ndim in (2, 4))


def _check(
    query: Tensor, key: Tensor, value: Tensor, mask: Any, is_causal: bool, enable_gqa: bool
) -> None:
    if query.ndim < 2 or key.ndim < 2 or value.ndim < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got "
            f"query.dim: {query.ndim} key.dim: {key.ndim} and value.dim: {value.ndim} instead."
        )
    if not query.dtype is key.dtype is value.dtype:
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{_word(query)} key.dtype: {_word(key)} and value.dtype: {_word(value)} instead."
        )
    if mask is not None:
        if mask.dtype not in (dtypes.bool_, dtypes.float32, query.dtype):
            raise RuntimeError(
                "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
                f"attn_mask.dtype: {_word(mask)} and  query.dtype: {_word(query)} instead."
            )
        if is_causal:
            raise RuntimeError(
                "_scaled_dot_product_attention: Explicit attn_mask should not be set when "
                "is_causal=True"
            )
    if enable_gqa and any(query.size(-3) % x.size(-3) for x in (key, value)):
        raise RuntimeError(
            "Number of heads in key and value must divide the number of heads in query"
        )


def _word(tensor: Tensor) -> str:
    return cpp_name(tensor._array.dtype)
