"""Attention of several heads: projections, masks, heads and back.  Layer 5.

Shapes here: T and S elements of the target and the source sequence, B sequences in the batch, E
features, H heads of D = E / H features each.

Source: Vaswani et al. 2017.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import clew
from clew.functions.calls import Tensor
from clew.nn import functional as F


def canonical_mask(
    mask: Tensor | None, mask_name: str, target_type: Any, other: Tensor | None = None,
    other_name: str = "",
) -> Tensor | None:  # fmt: skip
    """A mask as numbers to add: a bool mask becomes minus infinity where it is true.

    Args:
        mask: bool or floating.
        mask_name: for messages.
        target_type: the dtype of the result for a bool mask.
        other: another mask, which should be of the same type.
        other_name: for messages.

    Raises:
        AssertionError: the mask is neither bool nor floating.
    """
    if mask is None:
        return None
    floating = mask.is_floating_point()
    if mask.dtype is not clew.bool and not floating:
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if other is not None and mask.dtype is not other.dtype:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for "
            "both instead.",
            stacklevel=3,
        )
    if floating:
        return mask
    return clew.zeros_like(mask, dtype=target_type).masked_fill_(mask, -math.inf)


def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int,
    in_proj_weight: Tensor | None, in_proj_bias: Tensor | None, bias_k: Tensor | None,
    bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float, out_proj_weight: Tensor,
    out_proj_bias: Tensor | None, training: bool = True, key_padding_mask: Tensor | None = None,
    need_weights: bool = True, attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None, v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None, static_v: Tensor | None = None,
    average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Attention of `query` (T, B, E) over `key` and `value` (S, B, E), or all without B.

    Args:
        query, key, value: the sequences.
        embed_dim_to_check, num_heads: E and H.
        in_proj_weight, in_proj_bias: (3 E, E) and (3 E,), the three projections in one.
        bias_k, bias_v: (1, 1, E), an element added to key and value.
        add_zero_attn: add an element of zeros to them.
        dropout_p, training: the probability of a zero among the weights, in training.
        out_proj_weight, out_proj_bias: the last projection.
        key_padding_mask: (B, S), which elements of the source do not count.
        need_weights, average_attn_weights: give the weights, give their mean over the heads.
        attn_mask: (T, S) or (B * H, T, S), where attention is not allowed.
        use_separate_proj_weight: project by the next three, (E, features of query, key, value).
        q_proj_weight, k_proj_weight, v_proj_weight: see there.
        static_k, static_v: (B * H, S, D), to use instead of key and value.
        is_causal: a hint that `attn_mask` is the causal mask.

    Returns:
        The result (T, B, E), and the weights (B, T, S), or (B, H, T, S), or None.

    Raises:
        AssertionError, RuntimeError: shapes or masks do not fit.
    """
    batched = _check_dims(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    _check_features(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    masks = _masks(query, key, attn_mask, key_padding_mask, num_heads, is_causal, need_weights)
    if use_separate_proj_weight:
        apart = (q_proj_weight, k_proj_weight, v_proj_weight)
        q, k, v = _project_apart(query, key, value, apart, in_proj_bias)
    else:
        q, k, v = _project_packed(query, key, value, in_proj_weight, in_proj_bias)
    if bias_k is not None and bias_v is not None:
        k, v, masks = _with_learned(k, v, bias_k, bias_v, masks)
    heads = query.shape[1] * num_heads
    q = _in_heads(q, heads)
    k = _in_heads(k, heads) if static_k is None else static_k
    v = _in_heads(v, heads) if static_v is None else static_v
    if add_zero_attn:
        k, v, masks = _with_zeros(k, v, masks)
    attend = _attend if need_weights else _attend_unseen
    result, weights = attend(q, k, v, masks, dropout_p if training else 0.0, num_heads)
    result = F.linear(result, out_proj_weight, out_proj_bias).view(*query.shape[:2], -1)
    if weights is not None and average_attn_weights:
        weights = weights.mean(dim=1)
    return (result, weights) if batched else (result.squeeze(1), _squeezed(weights))


class _Masks(NamedTuple):
    """What may not be attended to, as numbers to add.

    Attributes:
        attention: (1 or B * H, T, S), or None.
        padding: (B, S), or None.
        causal: the attention mask was the causal one, and is left to the kernel.
    """

    attention: Tensor | None
    padding: Tensor | None
    causal: bool

    def longer(self) -> _Masks:
        """The masks when the source has one more element, which is allowed."""
        attention, padding = (None if m is None else F.pad(m, (0, 1)) for m in self[:2])
        return _Masks(attention, padding, self.causal)

    def joined(self, batch: int, num_heads: int, source: int) -> Tensor | None:
        """Both masks in one, (1 or B * H, T or 1, S).

        Raises:
            AssertionError: the padding mask has another shape than (B, S).
        """
        padding = self.padding
        if padding is None:
            return self.attention
        for dim, expected in enumerate((batch, source)):
            if padding.shape[dim] != expected:
                raise AssertionError(
                    f"Expected key_padded_mask.shape[{dim}] to be {expected}, but got "
                    f"{padding.shape[dim]}"
                )
        padding = padding.view(batch, 1, 1, source).expand(-1, num_heads, -1, -1)
        padding = padding.reshape(batch * num_heads, 1, source)
        return padding if self.attention is None else self.attention + padding


def _masks(
    query: Tensor, key: Tensor, attention: Tensor | None, padding: Tensor | None, num_heads: int,
    is_causal: bool, need_weights: bool,
) -> _Masks:  # fmt: skip
    """The masks as numbers, checked.

    Raises:
        RuntimeError: the attention mask is missing where it must be given, or has another shape.
    """
    padding = canonical_mask(padding, "key_padding_mask", query.dtype, attention, "attn_mask")
    if is_causal and attention is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
            "method `generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and padding is None and not need_weights:
        return _Masks(None, None, True)
    attention = canonical_mask(attention, "attn_mask", query.dtype)
    length, batch, _ = query.shape
    attention = _checked_mask(attention, length, key.shape[0], batch * num_heads)
    return _Masks(attention, padding, False)


# -- checks


def _check_dims(
    query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None,
    attn_mask: Tensor | None, num_heads: int,
) -> bool:  # fmt: skip
    """Whether the sequences come in a batch.

    Raises:
        AssertionError: dimensions do not agree.
    """
    ndim = query.dim()
    if ndim not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {ndim}-D query tensor"
        )
    lead = f"For {'batched (3-D)' if ndim == 3 else 'unbatched (2-D)'} `query`, expected"
    if key.dim() != ndim or value.dim() != ndim:
        raise AssertionError(
            f"{lead} `key` and `value` to be {ndim}-D but found {key.dim()}-D and {value.dim()}-D "
            "tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != ndim - 1:
        raise AssertionError(
            f"{lead} `key_padding_mask` to be `None` or {ndim - 1}-D but found "
            f"{key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(
                f"{lead} `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D "
                "tensor instead"
            )
        expected = (num_heads, query.shape[0], key.shape[0])
        if ndim == 2 and attn_mask.dim() == 3 and attn_mask.shape != expected:
            raise AssertionError(
                f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}"
            )
    return ndim == 3


def _check_features(
    query: Tensor, key: Tensor, value: Tensor, expected: int, num_heads: int, apart: bool
) -> None:
    features = query.shape[2]
    if features != expected:
        raise AssertionError(f"was expecting embedding dimension of {expected}, but got {features}")
    if features % num_heads != 0:
        raise AssertionError(f"embed_dim {features} not divisible by num_heads {num_heads}")
    if apart and key.shape[:2] != value.shape[:2]:
        raise AssertionError(
            f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
        )
    if not apart and key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")


def _checked_mask(mask: Tensor | None, length: int, source: int, heads: int) -> Tensor | None:
    """The attention mask in three dimensions.

    Raises:
        RuntimeError: its shape does not fit.
    """
    if mask is None:
        return None
    if mask.dim() not in (2, 3):
        raise RuntimeError(f"attn_mask's dimension {mask.dim()} is not supported")
    expected = (length, source) if mask.dim() == 2 else (heads, length, source)
    if mask.shape != expected:
        raise RuntimeError(
            f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should be {expected}."
        )
    return mask.unsqueeze(0) if mask.dim() == 2 else mask


# -- steps


def _project_packed(
    query: Tensor, key: Tensor, value: Tensor, weight: Tensor | None, bias: Tensor | None
) -> tuple[Tensor, ...]:
    """The three projections by one weight; inputs that are the same tensor go through together."""
    if weight is None:
        raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
    features = query.shape[-1]
    if key is not value:
        weights = weight.chunk(3)
        biases = (None, None, None) if bias is None else bias.chunk(3)
        return tuple(F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases))
    if query is key:
        return _unpacked(F.linear(query, weight, bias), 3)
    weight_q, weight_kv = weight.split([features, 2 * features])
    bias_q, bias_kv = (None, None) if bias is None else bias.split([features, 2 * features])
    both = F.linear(key, weight_kv, bias_kv)
    return (F.linear(query, weight_q, bias_q), *_unpacked(both, 2))


def _unpacked(joined: Tensor, count: int) -> tuple[Tensor, ...]:
    """(*, count * E) as `count` contiguous tensors (*, E)."""
    apart = joined.unflatten(-1, (count, joined.shape[-1] // count))
    apart = apart.unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
    return tuple(apart[i] for i in range(count))


def _project_apart(
    query: Tensor, key: Tensor, value: Tensor, weights: tuple[Any, ...], bias: Tensor | None
) -> tuple[Tensor, ...]:
    """The three projections, each by its own weight."""
    features = query.shape[-1]
    biases = (None, None, None) if bias is None else bias.chunk(3)
    names = ("query", "key", "value")
    for name, x, weight in zip(names, (query, key, value), weights):
        if weight is None:
            raise AssertionError(
                f"use_separate_proj_weight is True but {name[0]}_proj_weight is None"
            )
        if weight.shape != (features, x.shape[-1]):
            raise AssertionError(
                f"expecting {name} weights shape of {(features, x.shape[-1])}, but got "
                f"{weight.shape}"
            )
    return tuple(F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases))


def _in_heads(x: Tensor, heads: int) -> Tensor:
    """(S, B, E) as (B * H, S, D)."""
    length, batch, features = x.shape
    return x.view(length, heads, batch * features // heads).transpose(0, 1)


def _with_learned(
    k: Tensor, v: Tensor, bias_k: Tensor, bias_v: Tensor, masks: _Masks
) -> tuple[Tensor, Tensor, _Masks]:
    """Key and value (S, B, E) with one more element, the same in the whole batch."""
    batch = k.shape[1]
    k = clew.cat([k, bias_k.repeat(1, batch, 1)])
    v = clew.cat([v, bias_v.repeat(1, batch, 1)])
    return k, v, masks.longer()


def _with_zeros(k: Tensor, v: Tensor, masks: _Masks) -> tuple[Tensor, Tensor, _Masks]:
    """Key and value (B * H, S, D) with one more element of zeros."""
    nothing = k.new_zeros((k.shape[0], 1, k.shape[2]))
    return clew.cat([k, nothing], dim=1), clew.cat([v, nothing], dim=1), masks.longer()


def _attend(
    q: Tensor, k: Tensor, v: Tensor, masks: _Masks, dropout_p: float, num_heads: int
) -> tuple[Tensor, Tensor]:
    """The attended values (T * B, E), and the weights (B, H, T, S)."""
    heads, length, size = q.shape
    batch, source = heads // num_heads, k.shape[1]
    mask = masks.joined(batch, num_heads, source)
    scaled = q * math.sqrt(1.0 / float(size))
    if mask is None:
        weights = clew.bmm(scaled, k.transpose(-2, -1))
    else:
        weights = clew.baddbmm(mask, scaled, k.transpose(-2, -1))
    weights = F.softmax(weights, dim=-1)
    if dropout_p > 0.0:
        weights = F.dropout(weights, p=dropout_p)
    attended = clew.bmm(weights, v).transpose(0, 1).reshape(length * batch, num_heads * size)
    return attended, weights.view(batch, num_heads, length, source)


def _attend_unseen(
    q: Tensor, k: Tensor, v: Tensor, masks: _Masks, dropout_p: float, num_heads: int
) -> tuple[Tensor, None]:
    """The attended values (T * B, E), without the weights."""
    heads, length, size = q.shape
    batch, source = heads // num_heads, k.shape[1]
    mask = masks.joined(batch, num_heads, source)
    if mask is not None:
        shared = mask.shape[0] == 1
        mask = mask.unsqueeze(0) if shared else mask.view(batch, num_heads, -1, source)
    q, k, v = (x.view(batch, num_heads, x.shape[1], size) for x in (q, k, v))
    attended = F.scaled_dot_product_attention(q, k, v, mask, dropout_p, masks.causal)
    return attended.permute(2, 0, 1, 3).reshape(length * batch, num_heads * size), None


def _squeezed(weights: Tensor | None) -> Tensor | None:
    """The weights of the only sequence in a batch."""
    return None if weights is None else weights.squeeze(0)
