"""Transformers: encoder, decoder and their layers.

May import the core of clew, `clew.nn.functional`, `clew.nn.init` and other modules.

Sequences are (T, B, E), or (B, T, E) with `batch_first`.  The masks are those of
`MultiheadAttention`.

Source: Vaswani et al. 2017; with `norm_first` as Xiong et al. 2020.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from typing import Any

import clew
from clew.autograd.modes import is_grad_enabled
from clew.nn import functional as F
from clew.nn import init
from clew.nn.functional.again import computed_again
from clew.nn.functional.multihead import canonical_mask
from clew.nn.modules.activation import GELU, ReLU
from clew.nn.modules.attention import MultiheadAttention
from clew.nn.modules.container import ModuleList
from clew.nn.modules.dropout import Dropout
from clew.nn.modules.linear import Linear
from clew.nn.modules.module import Module
from clew.nn.modules.normalization import LayerNorm

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]


_OPTIONS = """
    Args:
        d_model: E, the features.
        nhead: heads of the attention.
        dim_feedforward: features inside the feed-forward part.
        dropout: the probability of a zero, while training.
        activation: of the feed-forward part: "relu", "gelu" or a function.
        layer_norm_eps: added to variances.
        batch_first: sequences are (B, T, E).
        norm_first: normalise before each part and not after it.
        bias: whether linear maps and norms have biases.
        device: the CPU.
        dtype: of the parameters.
"""


class _Layer(Module):
    """What layers of encoder and decoder share."""

    __constants__ = ("norm_first",)
    _attentions: tuple[str, ...]

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: str | Callable[[Any], Any] = F.relu, layer_norm_eps: float = 1e-5,
        batch_first: bool = False, norm_first: bool = False, bias: bool = True,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        options: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        for name in self._attentions:
            made = MultiheadAttention(
                d_model, nhead, dropout=dropout, batch_first=batch_first, **options
            )
            self.add_module(name, made)
        self.linear1 = Linear(d_model, dim_feedforward, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **options)
        self.norm_first = norm_first
        parts = range(1, len(self._attentions) + 2)
        for i in parts:
            self.add_module(f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, **options))
        for i in parts:
            self.add_module(f"dropout{i}", Dropout(dropout))
        self.activation = _activation(activation) if isinstance(activation, str) else activation

    def _feed_forward(self, x: Any) -> Any:
        hidden = self.activation(self.linear1(x))
        dropped = self.dropout(hidden)
        between = (self.linear1, self.activation, self.dropout)
        # Hooks might keep what is between, and write to it.
        if not any(isinstance(part, Module) and part._is_hooked() for part in between):
            dropped = computed_again(dropped, hidden)
        return self.linear2(dropped)

    def _add(self, number: int, x: Any, part: Callable[[Any], Any]) -> Any:
        """The residual connection around a part, with its norm and dropout."""
        norm, dropout = getattr(self, f"norm{number}"), getattr(self, f"dropout{number}")
        if self.norm_first:
            return x + dropout(part(norm(x)))
        return norm(x + dropout(part(x)))


def _activation(name: str) -> Callable[[Any], Any]:
    if name == "relu":
        return F.relu
    if name == "gelu":
        return F.gelu
    raise RuntimeError(f"activation should be relu/gelu, not {name}")


class TransformerEncoderLayer(_Layer):
    __doc__ = f"""Attention of a sequence to itself, then a feed-forward part.
{_OPTIONS}"""
    _attentions = ("self_attn",)

    def forward(
        self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None,
        is_causal: bool = False,
    ) -> Any:  # fmt: skip
        """The layer's output, of the shape of `src`."""
        padding = canonical_mask(
            src_key_padding_mask, "src_key_padding_mask", src.dtype, src_mask, "src_mask"
        )
        mask = canonical_mask(src_mask, "src_mask", src.dtype)

        def attend(x: Any) -> Any:
            return self.self_attn(
                x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False,
                is_causal=is_causal,
            )[0]  # fmt: skip

        return self._add(2, self._add(1, src, attend), self._feed_forward)


class TransformerDecoderLayer(_Layer):
    __doc__ = f"""Attention to itself, then to the encoder's output, then a feed-forward part.
{_OPTIONS}"""
    _attentions = ("self_attn", "multihead_attn")

    def forward(
        self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None,
        tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False, memory_is_causal: bool = False,
    ) -> Any:  # fmt: skip
        """The layer's output, of the shape of `tgt`."""

        def attend_self(x: Any) -> Any:
            return self.self_attn(
                x, x, x, attn_mask=tgt_mask, key_padding_mask=tgt_key_padding_mask,
                is_causal=tgt_is_causal, need_weights=False,
            )[0]  # fmt: skip

        def attend_memory(x: Any) -> Any:
            return self.multihead_attn(
                x, memory, memory, attn_mask=memory_mask,
                key_padding_mask=memory_key_padding_mask, is_causal=memory_is_causal,
                need_weights=False,
            )[0]  # fmt: skip

        x = self._add(2, self._add(1, tgt, attend_self), attend_memory)
        return self._add(3, x, self._feed_forward)


def _get_clones(module: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


class TransformerEncoder(Module):
    """Copies of a layer, one after the other.

    Args:
        encoder_layer: the layer; its parameters are copied, not drawn anew.
        num_layers: how many copies.
        norm: what comes last, or None.
        enable_nested_tensor: in evaluation without gradients, set what is padding to zero, as
            PyTorch's nested tensors do (where their conditions hold).
        mask_check: do so only if the padding stands at the end of the sequences.
    """

    __constants__ = ("norm",)

    def __init__(
        self, encoder_layer: Any, num_layers: int, norm: Module | None = None,
        enable_nested_tensor: bool = True, mask_check: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check
        reason = _why_not_nested(encoder_layer)
        if enable_nested_tensor and reason:
            warnings.warn(
                "enable_nested_tensor is True, but self.use_nested_tensor is False because "
                f"encoder_layer{reason}",
                stacklevel=2,
            )
            self.use_nested_tensor = False

    def forward(
        self, src: Any, mask: Any = None, src_key_padding_mask: Any = None,
        is_causal: bool | None = None,
    ) -> Any:  # fmt: skip
        """The last layer's output, of the shape of `src`.

        Args:
            src: the sequences.
            mask: where attention is not allowed, (T, T).
            src_key_padding_mask: which elements do not count, (B, T).
            is_causal: a hint that `mask` is the causal mask; None finds out.
        """
        padding = canonical_mask(
            src_key_padding_mask, "src_key_padding_mask", src.dtype, mask, "mask"
        )
        mask = canonical_mask(mask, "mask", src.dtype)
        causal = _is_causal(mask, is_causal, _length(src, self.layers[0].self_attn.batch_first))
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        if padding is not None and self._zeroes_padding(src, mask, padding):
            output = output.masked_fill(padding.ne(0).unsqueeze(-1), 0.0)
        return output if self.norm is None else self.norm(output)

    def _zeroes_padding(self, src: Any, mask: Any, padding: Any) -> bool:
        """Whether PyTorch would compute with nested tensors here, which leave zeros as padding."""
        if not self.use_nested_tensor or self.layers[0].training or src.dim() != 3:
            return False
        if mask is not None:
            return False
        if is_grad_enabled() and (
            src.requires_grad or any(p.requires_grad for p in self.layers[0].parameters())
        ):
            return False
        padded = padding.ne(0)
        at_the_end = not bool((padded[:, :-1] & ~padded[:, 1:]).any())
        return at_the_end or not self.mask_check


def _why_not_nested(layer: Any) -> str:
    """Why PyTorch does not use nested tensors for such a layer; empty if it does."""
    if not isinstance(layer, TransformerEncoderLayer):
        return " was not TransformerEncoderLayer"
    if layer.norm_first:
        return ".norm_first was True"
    attention = layer.self_attn
    if not attention.batch_first:
        return (
            ".self_attn.batch_first was not True(use batch_first for better inference performance)"
        )
    if not attention._qkv_same_embed_dim:
        return ".self_attn._qkv_same_embed_dim was not True"
    if attention.in_proj_bias is None:
        return ".self_attn was passed bias=False"
    usual = layer.activation in (F.relu, F.gelu) or isinstance(layer.activation, (ReLU, GELU))
    if not usual:
        return ".activation_relu_or_gelu was not True"
    if layer.norm1.eps != layer.norm2.eps:
        return ".norm1.eps was not equal to encoder_layer.norm2.eps"
    if attention.num_heads % 2 == 1:
        return ".self_attn.num_heads is odd"
    return ""


class TransformerDecoder(Module):
    """Copies of a layer, one after the other.

    Args:
        decoder_layer: the layer; its parameters are copied, not drawn anew.
        num_layers: how many copies.
        norm: what comes last, or None.
    """

    __constants__ = ("norm",)

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None,
        tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None,
        tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Any:  # fmt: skip
        """The last layer's output, of the shape of `tgt`."""
        length = _length(tgt, self.layers[0].self_attn.batch_first)
        causal = _is_causal(tgt_mask, tgt_is_causal, length)
        output = tgt
        for layer in self.layers:
            output = layer(
                output, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return output if self.norm is None else self.norm(output)


class Transformer(Module):
    """An encoder of one sequence, and a decoder of another that attends to it.

    Args:
        d_model: E, the features.
        nhead: heads of the attention.
        num_encoder_layers: layers of the encoder.
        num_decoder_layers: layers of the decoder.
        dim_feedforward: features inside the feed-forward parts.
        dropout: the probability of a zero, while training.
        activation: of the feed-forward parts: "relu", "gelu" or a function.
        custom_encoder: an encoder to use instead.
        custom_decoder: a decoder to use instead.
        layer_norm_eps: added to variances.
        batch_first: sequences are (B, T, E).
        norm_first: normalise before each part and not after it.
        bias: whether linear maps and norms have biases.
        device: the CPU.
        dtype: of the parameters.
    """

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6,
        num_decoder_layers: int = 6, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: str | Callable[[Any], Any] = F.relu, custom_encoder: Any = None,
        custom_decoder: Any = None, layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        layer = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
            norm_first, bias, device, dtype,
        )  # fmt: skip
        norm: dict[str, Any] = {
            "eps": layer_norm_eps, "bias": bias, "device": device, "dtype": dtype
        }  # fmt: skip
        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            self.encoder = TransformerEncoder(
                TransformerEncoderLayer(*layer), num_encoder_layers, LayerNorm(d_model, **norm)
            )
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            self.decoder = TransformerDecoder(
                TransformerDecoderLayer(*layer), num_decoder_layers, LayerNorm(d_model, **norm)
            )
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self, src: Any, tgt: Any, src_mask: Any = None, tgt_mask: Any = None,
        memory_mask: Any = None, src_key_padding_mask: Any = None,
        tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None,
        src_is_causal: bool | None = None, tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:  # fmt: skip
        """The decoder's output, of the shape of `tgt`.

        Raises:
            RuntimeError: the batches differ in size, or the features are not E.
        """
        batch = 0 if self.batch_first else 1
        if src.dim() == 3 and src.shape[batch] != tgt.shape[batch]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask,
            is_causal=src_is_causal,
        )  # fmt: skip
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Any:
        """The causal mask (sz, sz): minus infinity above the diagonal, else zero."""
        return clew.full((sz, sz), -math.inf, dtype=dtype, device=device).triu(1)


def _length(sequences: Any, batch_first: bool) -> int:
    """T."""
    return int(sequences.shape[1 if batch_first and sequences.dim() == 3 else 0])


def _is_causal(mask: Any, hint: bool | None, length: int) -> bool:
    """Whether the mask is the causal one: what the hint says, or without a hint what it holds."""
    if hint is not None or mask is None:
        return hint is True
    causal = Transformer.generate_square_subsequent_mask(length, dtype=mask.dtype)
    return mask.shape == causal.shape and bool((mask == causal).all())
