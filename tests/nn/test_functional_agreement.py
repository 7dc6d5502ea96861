"""Every function of `nn.functional` agrees with PyTorch's: results, and gradients of all leaves."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest

import clew
from twins import assert_same

# Expressions in which x(...) is a leaf of normal numbers, p(...) one of probabilities, t(...) a
# constant, s(...) a constant of signs, i(n, ...) integers below n.
CALLS = [
    "F.gelu(x(3, 4), approximate='tanh')", "F.prelu(x(2, 4, 3), x(4))", "F.prelu(x(3), x(1))",
    "F.glu(x(4, 6), 0)", "F.leaky_relu(x(3, 4), 2.0)", "F.leaky_relu(x(3, 4), -0.5)",
    "F.threshold(x(3, 4), 0.3, 7.0)", "F.rrelu(x(3, 4), training=True)", "F.rrelu(x(3, 4))",
    "F.hardshrink(x(3, 4), 0.2)", "F.softshrink(x(3, 4), 0.2)", "F.tanhshrink(x(3, 4))",
    "F.tanh(x(3, 4))", "F.softsign(x(3, 4))",
    "F.softmax(x(2, 3, 4), 1)", "F.softmin(x(3, 4), 0)", "F.log_softmax(x(3, 4), -1)",
    "F.softmax(x(3, 4), 1, dtype=torch.float32)", "F.gumbel_softmax(x(3, 4), 0.7)",
    "F.gumbel_softmax(x(3, 4), hard=True)",
    "F.normalize(x(3, 4))", "F.normalize(x(3, 4), 1, 0)", "F.cosine_similarity(x(3, 4), x(1, 4))",
    "F.pairwise_distance(x(3, 4), x(3, 4), 1.5, keepdim=True)", "F.pdist(x(4, 3))",
    # losses
    "F.mse_loss(x(3, 4), x(3, 4))", "F.mse_loss(x(3, 4), t(3, 4), weight=p(3, 4))",
    "F.l1_loss(x(3, 4), x(3, 4), reduction='sum')", "F.smooth_l1_loss(x(3, 4), x(3, 4), beta=0.5)",
    "F.smooth_l1_loss(x(3, 4), t(3, 4), beta=0)", "F.huber_loss(x(3, 4), x(3, 4), delta=0.4)",
    "F.huber_loss(x(3, 4), t(3, 4), weight=p(3, 4))",
    "F.binary_cross_entropy(p(3, 4), p(3, 4))",
    "F.binary_cross_entropy(p(3, 4), p(3, 4), p(4).detach(), reduction='none')",
    "F.binary_cross_entropy_with_logits(x(3, 4), p(3, 4), p(4).detach(), pos_weight=t(4))",
    "F.cross_entropy(x(3, 4), p(3, 4))",
    "F.cross_entropy(x(3, 4), p(3, 4), t(4), label_smoothing=0.1)",
    "F.nll_loss(x(3, 4, 2), i(4, 3, 2), t(4))", "F.kl_div(x(3, 4), p(3, 4))",
    "F.kl_div(x(3, 4), x(3, 4), reduction='batchmean', log_target=True)",
    "F.gaussian_nll_loss(x(3, 4), x(3, 4), p(3, 1), full=True)",
    "F.gaussian_nll_loss(x(3, 4), x(3, 4), 0.3)",
    "F.poisson_nll_loss(x(3, 4), t(3, 4).abs(), full=True)",
    "F.poisson_nll_loss(p(3, 4), p(3, 4), log_input=False)",
    "F.hinge_embedding_loss(x(3, 4), s(3, 4))", "F.soft_margin_loss(x(3, 4), s(3, 4))",
    "F.margin_ranking_loss(x(3), x(3), s(3), 0.3)",
    "F.cosine_embedding_loss(x(3, 4), x(3, 4), s(3), 0.2)",
    "F.triplet_margin_loss(x(3, 4), x(3, 4), x(3, 4), 2.0, swap=True)",
    "F.triplet_margin_with_distance_loss(x(3, 4), x(3, 4), x(3, 4), reduction='none')",
    "F.multi_margin_loss(x(3, 4), i(4, 3), 2, 0.7, t(4))", "F.multi_margin_loss(x(4), i(4))",
    "F.multilabel_margin_loss(x(3, 4), i(4, 3, 4) - 1)",
    "F.multilabel_soft_margin_loss(x(3, 4), i(2, 3, 4), t(4))",
    "F.ctc_loss(x(6, 2, 5).log_softmax(2), i(4, 2, 3) + 1, (6, 5), (3, 2))",
    "F.ctc_loss(x(6, 2, 5).log_softmax(2), i(4, 4) + 1, torch.tensor([6, 5]), "
    "torch.tensor([3, 1]))",
    "F.linear_cross_entropy(x(3, 4), x(5, 4), i(5, 3), linear_bias=x(5))",
    # images
    "F.linear(x(2, 3, 4), x(5, 4), x(5))", "F.conv1d(x(4, 9), x(6, 2, 3), x(6), 2, 1, 2, 2)",
    "F.conv2d(x(2, 4, 6, 5), x(6, 4, 3, 2), x(6), (1, 2), 'valid')",
    "F.conv3d(x(1, 2, 4, 3, 4), x(3, 2, 2, 2, 2), padding='same')",
    "F.conv_transpose1d(x(2, 4, 5), x(4, 3, 3), x(6), 2, 1, 1, 2)",
    "F.conv_transpose2d(x(4, 3, 5), x(4, 3, 3, 2), None, 2, output_padding=1, dilation=2)",
    "F.conv_transpose3d(x(1, 2, 2, 3, 2), x(2, 3, 2, 2, 2))",
    "F.conv_tbc(x(5, 2, 3), x(3, 3, 4), x(4), 1)",
    "F.unfold(x(2, 3, 5, 6), (2, 3), 2, 1, 2)", "F.fold(x(2, 12, 12), (4, 5), 2)",
    "F.max_pool1d(x(2, 3, 9), 3, 2, 1, 2)", "F.max_pool2d(x(2, 3, 7, 6), (3, 2), ceil_mode=True)",
    "F.max_pool3d(x(2, 4, 5, 4), 2, return_indices=True)[0]",
    "F.avg_pool1d(x(2, 3, 9), 3, 2, 1, count_include_pad=False)",
    "F.avg_pool2d(x(2, 3, 7, 6), 3, 2, 1, True)",
    "F.avg_pool3d(x(2, 4, 5, 4), 2, divisor_override=3)",
    "F.adaptive_avg_pool1d(x(2, 3, 7), 3)", "F.adaptive_avg_pool2d(x(2, 3, 7, 6), (3, None))",
    "F.adaptive_avg_pool3d(x(2, 3, 4, 3, 4), 1)", "F.adaptive_max_pool1d(x(3, 7), 3)",
    "F.adaptive_max_pool2d(x(2, 3, 7, 6), 4)", "F.adaptive_max_pool3d(x(2, 4, 5, 4), (2, 3, 1))",
    "F.lp_pool1d(p(2, 3, 8), 3, 2)", "F.lp_pool2d(x(2, 3, 6, 6), 2, (2, 3), 2)",
    "F.lp_pool3d(x(1, 2, 4, 4, 4), float('inf'), 2)",
    "F.max_unpool1d(x(1, 2, 3), torch.arange(3).expand(1, 2, 3) * 2, 2)",
    "F.max_unpool2d(x(1, 2, 2), torch.tensor([[[0, 5], [8, 15]]]), 2, output_size=(4, 4))",
    "F.max_unpool3d(x(1, 1, 1, 2), torch.tensor([[[[3, 12]]]]), 2)",
    "F.fractional_max_pool2d(x(2, 3, 7, 6), 2, (4, 3))",
    "F.fractional_max_pool3d(x(2, 5, 6, 5), (2, 1, 2), output_ratio=(0.6, 0.5, 0.7))",
    "F.pad(x(2, 3, 4), (1, -1, 2, 0), value=0.7)", "F.pad(x(2, 3, 4), (2, 1), 'reflect')",
    "F.pad(x(1, 2, 3, 4), (2, 1, -1, 3), 'replicate')",
    "F.pad(x(1, 2, 3, 4, 3), (1, 1, 2, 0, 1, 2), 'circular')",
    "F.interpolate(x(1, 2, 5), 7)", "F.interpolate(x(1, 2, 5, 4), scale_factor=1.7)",
    "F.interpolate(x(1, 2, 5, 4), (3, 7), mode='nearest-exact')",
    "F.interpolate(x(1, 2, 5), 7, mode='linear', align_corners=True)",
    "F.interpolate(x(1, 2, 5, 4), scale_factor=(0.6, 2), mode='bilinear')",
    "F.interpolate(x(1, 2, 5, 4), (8, 3), mode='bicubic')",
    "F.interpolate(x(1, 1, 3, 4, 3), 5, mode='trilinear')",
    "F.interpolate(x(1, 2, 6, 7), scale_factor=0.5, mode='area')",
    "F.interpolate(x(1, 2, 7, 6), (3, 9), mode='bilinear', antialias=True)",
    "F.interpolate(x(1, 2, 7, 6), (3, 4), mode='bicubic', antialias=True, align_corners=True)",
    "F.interpolate(x(1, 2, 9, 8), (3, 4), mode='lanczos', antialias=True)",
    "F.upsample(x(1, 2, 5, 4), 7)", "F.upsample_nearest(x(1, 2, 5, 4), 7)",
    "F.upsample_bilinear(x(1, 2, 5, 4), 7)",
    "F.pixel_shuffle(x(2, 8, 2, 3), 2)", "F.pixel_unshuffle(x(2, 4, 6), 2)",
    "F.channel_shuffle(x(2, 6, 2), 3)", "F.native_channel_shuffle(t(2, 6, 2), 2)",
    "F.grid_sample(x(2, 3, 4, 5), x(2, 3, 2, 2), align_corners=False)",
    "F.grid_sample(x(2, 3, 4, 5), x(2, 3, 2, 2), 'nearest', 'border', True)",
    "F.grid_sample(x(2, 3, 4, 5), x(2, 3, 2, 2), 'bicubic', 'reflection', False)",
    "F.grid_sample(x(1, 2, 4, 3, 5), x(1, 2, 2, 2, 3), padding_mode='reflection')",
    "F.affine_grid(x(2, 2, 3), (2, 1, 3, 4), align_corners=True)",
    "F.affine_grid(x(1, 3, 4), (1, 1, 2, 1, 3), align_corners=False)",
    # normalisation
    "F.batch_norm(x(4, 3, 2), t(3), p(3).detach(), x(3), x(3))",
    "F.batch_norm(x(4, 3), None, None, x(3), None, True)",
    "F.instance_norm(x(2, 3, 5), weight=x(3), bias=x(3))", "F.layer_norm(x(2, 3, 4), (3, 4))",
    "F.layer_norm(x(2, 4), (4,), x(4), x(4), 0.1)", "F.rms_norm(x(2, 3, 4), (3, 4), x(3, 4))",
    "F.group_norm(x(2, 6, 3), 3, x(6), x(6))", "F.local_response_norm(x(2, 6, 4), 3, 0.5)",
    "F.local_response_norm(x(2, 6, 3, 2), 2, 0.5, 0.9, 2.0)",
    # tables, random, attention
    "F.embedding(i(5, 2, 3), x(5, 4), 1)", "F.embedding(i(3, 6), x(3, 4), scale_grad_by_freq=True)",
    "F.embedding_bag(i(5, 3, 2), x(5, 4), padding_idx=1)",
    "F.embedding_bag(i(5, 6), x(5, 4), torch.tensor([0, 2, 2]), mode='max')",
    "F.embedding_bag(i(5, 6), x(5, 4), torch.tensor([0, 4, 6]), mode='sum', "
    "per_sample_weights=x(6), include_last_offset=True)",
    "F.one_hot(i(4, 2, 3), 5)", "F.bilinear(x(2, 3, 4), x(2, 3, 5), x(6, 4, 5), x(6))",
    "F.dropout(x(5, 6), 0.3)", "F.dropout1d(x(5, 6), 0.3)", "F.dropout2d(x(2, 5, 3, 2), 0.3)",
    "F.dropout3d(x(5, 3, 2, 2), 0.3)", "F.alpha_dropout(x(5, 6), 0.3, True)",
    "F.feature_alpha_dropout(x(2, 5, 3), 0.3, True)",
    "F.scaled_dot_product_attention(x(1, 2, 3, 4), x(1, 2, 5, 4), x(1, 2, 5, 4), is_causal=True)",
    "F.scaled_dot_product_attention(x(1, 4, 3, 4), x(1, 2, 5, 4), x(1, 2, 5, 4), enable_gqa=True)",
    "F.scaled_dot_product_attention(x(2, 3, 4), x(2, 5, 4), x(2, 5, 6), s(3, 5) > 0, scale=0.3)",
    "F.scaled_dot_product_attention(x(2, 3, 4), x(2, 5, 4), x(2, 5, 6), x(2, 3, 5))",
    "F.scaled_dot_product_attention(x(2, 3, 4), x(2, 3, 4), x(2, 3, 4), is_causal=True)",
    "F.scaled_dot_product_attention(x(1, 2, 3, 4), x(1, 2, 3, 4), x(1, 2, 3, 4), dropout_p=0.4)",
]  # fmt: skip

TESTED_ELSEWHERE = {
    # test_functional_values.py
    "celu", "celu_", "elu", "elu_", "hardsigmoid", "hardswish", "hardtanh", "hardtanh_",
    "leaky_relu_", "logsigmoid", "mish", "relu", "relu6", "relu_", "rrelu_", "selu", "selu_",
    "sigmoid", "silu", "softplus", "threshold_",
    # test_transformer.py
    "multi_head_attention_forward",
}  # fmt: skip


def run(expression: str, engine: Any) -> Any:
    rng = np.random.default_rng(0)
    leaves: list[Any] = []

    def constant(*shape: int) -> Any:
        return engine.from_numpy(np.asarray(rng.normal(size=shape)))

    def leaf(values: Any) -> Any:
        leaves.append(engine.from_numpy(np.asarray(values)).requires_grad_())
        return leaves[-1]

    names = {
        "F": engine.nn.functional, "torch": engine, "t": constant,
        "x": lambda *shape: leaf(rng.normal(size=shape)),
        "p": lambda *shape: leaf(rng.uniform(0.1, 0.9, shape)),
        "s": lambda *shape: engine.from_numpy(rng.choice([-1.0, 1.0], shape)),
        "i": lambda n, *shape: engine.from_numpy(np.asarray(rng.integers(0, n, shape))),
    }  # fmt: skip
    engine.manual_seed(0)
    result = eval(expression, names)
    if not result.requires_grad:
        return result
    weights = engine.from_numpy(np.asarray(rng.normal(size=tuple(result.shape)))).to(result.dtype)
    return result, engine.autograd.grad(result, leaves, weights, allow_unused=True)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", CALLS)
def test_agrees_with_torch(expression: str) -> None:
    tolerance = 1e-4 if "float32" in expression else 1e-8
    ours = assert_same(lambda engine: run(expression, engine), rtol=tolerance, atol=1e-10)
    assert ours[0] not in ("TypeError", "ValueError", "RuntimeError"), ours


def test_every_function_is_tried() -> None:
    offered = {
        name for name, f in vars(clew.nn.functional).items()
        if inspect.isfunction(f) and not name.startswith("_") and "with_indices" not in name
    }  # fmt: skip
    tried = set(re.findall(r"F\.(\w+)\(", " ".join(CALLS))) | TESTED_ELSEWHERE
    assert offered - tried == set()
