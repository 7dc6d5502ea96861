"""`MultiheadAttention`.

May import the core of clew, `clew.nn.functional`, `clew.nn.init`, `clew.nn.parameter`, `module` and
`linear`.
"""

from __future__ import annotations

from typing import Any

import clew
from clew.nn import init
from clew.nn.functional.multihead import multi_head_attention_forward
from clew.nn.modules.linear import NonDynamicallyQuantizableLinear
from clew.nn.modules.module import Module
from clew.nn.parameter import Parameter

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Attention of several heads, each over its share of the features.

    Args:
        embed_dim: E, features of query and result.
        num_heads: how many heads; divides `embed_dim`.
        dropout: the probability of a zero among the weights, while training.
        bias: whether the projections have biases.
        add_bias_kv: add a learned element to key and value.
        add_zero_attn: add an element of zeros to them.
        kdim: features of the key, by default E.
        vdim: features of the value, by default E.
        batch_first: sequences are (B, T, E) and not (T, B, E).
        device: the CPU.
        dtype: of the parameters.

    Raises:
        ValueError, AssertionError: the sizes are not possible.

    Source: Vaswani et al. 2017.
    """

    __constants__ = ("batch_first",)

    in_proj_weight: Any
    in_proj_bias: Any
    q_proj_weight: Any
    k_proj_weight: Any
    v_proj_weight: Any
    bias_k: Any
    bias_v: Any

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True,
        add_bias_kv: bool = False, add_zero_attn: bool = False, kdim: int | None = None,
        vdim: int | None = None, batch_first: bool = False, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0, got "
                f"embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self.add_zero_attn = add_zero_attn
        options = {"device": device, "dtype": dtype}
        self._make_parameters(bias, add_bias_kv, options)
        self._reset_parameters()

    def _make_parameters(self, bias: bool, add_bias_kv: bool, options: dict[str, Any]) -> None:
        size, same = self.embed_dim, self._qkv_same_embed_dim
        shapes = {
            "q_proj_weight": None if same else (size, size),
            "k_proj_weight": None if same else (size, self.kdim),
            "v_proj_weight": None if same else (size, self.vdim),
            "in_proj_weight": (3 * size, size) if same else None,
            "in_proj_bias": (3 * size,) if bias else None,
        }
        for name, shape in shapes.items():
            made = None if shape is None else Parameter(clew.empty(shape, **options))
            self.register_parameter(name, made)
        self.out_proj = NonDynamicallyQuantizableLinear(size, size, bias=bias, **options)
        for name in ("bias_k", "bias_v"):
            if add_bias_kv:
                setattr(self, name, Parameter(clew.empty((1, 1, size), **options)))
            else:
                setattr(self, name, None)

    def _reset_parameters(self) -> None:
        if self._qkv_same_embed_dim:
            init.xavier_uniform_(self.in_proj_weight)
        else:
            init.xavier_uniform_(self.q_proj_weight)
            init.xavier_uniform_(self.k_proj_weight)
            init.xavier_uniform_(self.v_proj_weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(
        self, query: Any, key: Any, value: Any, key_padding_mask: Any = None,
        need_weights: bool = True, attn_mask: Any = None, average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Any, Any]:  # fmt: skip
        """The result, and the weights if they are needed.

        The arguments are those of `clew.nn.functional.multi_head_attention_forward`.
        """
        swap = self.batch_first and query.dim() == 3
        if swap:
            query, key, value = _swapped(query, key, value)
        result, weights = multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight,
            self.in_proj_bias, self.bias_k, self.bias_v, self.add_zero_attn, self.dropout,
            self.out_proj.weight, self.out_proj.bias, training=self.training,
            key_padding_mask=key_padding_mask, need_weights=need_weights, attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight, k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight, average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )  # fmt: skip
        return (result.transpose(1, 0) if swap else result), weights


def _swapped(query: Any, key: Any, value: Any) -> tuple[Any, Any, Any]:
    """The first two dimensions swapped; what was one tensor stays one."""
    swapped = query.transpose(1, 0)
    swapped_key = swapped if key is query else key.transpose(1, 0)
    if value is key:
        return swapped, swapped_key, swapped_key
    return swapped, swapped_key, value.transpose(1, 0)
