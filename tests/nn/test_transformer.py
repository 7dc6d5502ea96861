"""Attention of several heads and transformers.  Oracle: PyTorch."""

import pytest

from clew import nn as clew_nn
from twins import assert_same

ATTENTIONS = [
    "8, 2",
    "8, 4, bias=False, batch_first=True",
    "8, 2, add_bias_kv=True, add_zero_attn=True",
    "8, 2, kdim=6, vdim=5",
]


@pytest.mark.parametrize("options", ATTENTIONS)
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("masks", ["none", "attention", "padding", "both", "floats"])
def test_attention(options, need_weights, masks):
    def run(m):
        m.manual_seed(0)
        net = eval(f"m.nn.MultiheadAttention({options})", {"m": m})
        q = m.randn(3, 3, 8, requires_grad=True)
        k, v = m.randn(3, 3, net.kdim), m.randn(3, 3, net.vdim)
        attention = m.ones(3, 3).triu(1).bool()
        padding = m.tensor([[False, False, True], [False, False, False], [False, True, True]])
        if masks == "floats":
            attention, padding = m.randn(3, 3), m.randn(3, 3)
        given = {}
        if masks in ("attention", "both", "floats"):
            given["attn_mask"] = attention
        if masks in ("padding", "both", "floats"):
            given["key_padding_mask"] = padding
        y, weights = net(q, k, v, need_weights=need_weights, **given)
        y.backward(m.randn(y.shape))
        return repr(net), y, weights, q.grad, [p.grad for p in net.parameters()]

    assert_same(run, rtol=1e-4)


@pytest.mark.parametrize("same", ["net(x, x, x)", "net(x, y, y)", "net(x, y, z)"])
def test_inputs_that_are_one_tensor(same):
    def run(m):
        m.manual_seed(0)
        names = {"net": m.nn.MultiheadAttention(8, 2), "x": m.randn(3, 2, 8)}
        names |= {"y": m.randn(4, 2, 8), "z": m.randn(4, 2, 8)}
        out, weights = eval(same, names)
        apart = names["net"](names["x"], names["y"], names["z"], average_attn_weights=False)[1]
        return out, weights, apart, names["net"](names["x"][:, 0], *[names["x"][:, 0]] * 2)

    assert_same(run)


@pytest.mark.parametrize(
    "expression",
    [
        "nn.MultiheadAttention(8, 3)",
        "nn.MultiheadAttention(0, 3)",
        "a(x, x, x[0])",
        "a(x[0, 0], x, x)",
        "a(x, x, x, attn_mask=m.ones(2, 2))",
        "a(x, x, x, attn_mask=m.ones(2, 3, 3))",
        "a(x, x, x, attn_mask=m.ones(3))",
        "a(x, x, x, attn_mask=m.ones(3, 3, dtype=m.int64))",
        "a(x, x, x, key_padding_mask=m.ones(2, 4).bool())",
        "a(x, x, x, key_padding_mask=m.ones(3, 3).bool())",
        "a(x, x, x, key_padding_mask=m.ones(3).bool())",
        "a(x, x, x, is_causal=True)",
        "a(x, x, x[:2])",
        "a(x[:, :, :4], x, x)",
        "a(x[:, 0], x[:, 0], x[:, 0], attn_mask=m.ones(3, 3, 3))",
        "nn.TransformerEncoderLayer(8, 2, activation='odd')",
        "nn.Transformer(8, 2, 1, 1, 16)(x, x[:, :1])",
        "nn.Transformer(8, 2, 1, 1, 16)(x, x[:, :, :4])",
        "nn.Transformer.generate_square_subsequent_mask(3)",
        "nn.Transformer.generate_square_subsequent_mask(2, dtype=m.float64)",
    ],
)
def test_values_and_errors(expression):
    def run(m):
        m.manual_seed(0)
        names = {"m": m, "nn": m.nn, "a": m.nn.MultiheadAttention(8, 2), "x": m.randn(3, 2, 8)}
        return eval(expression, names)

    assert_same(run)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("training", [True, False])
def test_transformer(norm_first, activation, training):
    def run(m):
        m.manual_seed(0)
        net = m.nn.Transformer(
            8, 2, 2, 1, 16, 0.1, activation, batch_first=True, norm_first=norm_first
        ).train(training)
        src, tgt = m.randn(2, 4, 8, requires_grad=True), m.randn(2, 3, 8)
        mask = net.generate_square_subsequent_mask(3)
        padding = m.tensor([[False, False, False, True], [False] * 4])
        y = net(src, tgt, tgt_mask=mask, src_key_padding_mask=padding)
        y.backward(m.randn(y.shape))
        return repr(net), y, src.grad, [p.grad for p in net.parameters()]

    assert_same(run, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("padding", ["[[0, 0, 1], [0, 0, 0]]", "[[1, 0, 0], [0, 0, 0]]"])
def test_padding_is_zero_after_an_encoder_without_gradients(padding):
    def run(m):
        m.manual_seed(0)
        layer = m.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        encoder = m.nn.TransformerEncoder(layer, 2).eval()
        with m.no_grad():
            return encoder(m.randn(2, 3, 8), src_key_padding_mask=m.tensor(eval(padding)).bool())

    assert_same(run)


def test_an_encoder_warns_of_what_nested_tensors_do_not_do():
    layer = clew_nn.TransformerEncoderLayer(8, 2, 16)
    with pytest.warns(UserWarning, match="batch_first was not True"):
        clew_nn.TransformerEncoder(layer, 1)
    with pytest.warns(UserWarning, match="num_heads is odd"):
        clew_nn.TransformerEncoder(clew_nn.TransformerEncoderLayer(8, 1, 16, batch_first=True), 1)


@pytest.mark.parametrize("bias", [True, False])
def test_encoder_of_several_layers(bias):
    def run(m):
        m.manual_seed(0)
        layer = m.nn.TransformerEncoderLayer(8, 2, 16, 0.0, bias=bias)
        encoder = m.nn.TransformerEncoder(
            layer, 2, m.nn.LayerNorm(8, bias=bias), enable_nested_tensor=False
        )
        x = m.randn(3, 2, 8, requires_grad=True)
        mask = m.nn.Transformer.generate_square_subsequent_mask(3)
        y = encoder(x, mask)
        y.backward(m.randn(y.shape))
        return repr(encoder), y, x.grad, [p.grad for p in encoder.parameters()]

    assert_same(run, rtol=1e-3, atol=1e-5)
