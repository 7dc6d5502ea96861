"""Nodes of `nn.functional`: their names, edges and what they keep are PyTorch's."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import clew

# Expressions in which x(...) is a leaf, t(...) a constant, i(...) integers below 2.
SAME = [
    "F.relu(x(2, 4))",
    "F.relu(x(2, 4) + 1, inplace=True)",
    "F.leaky_relu(x(2, 4))",
    "F.leaky_relu(x(2, 4) + 1, inplace=True)",
    "F.elu(x(2, 4))",
    "F.elu(x(2, 4) + 1, inplace=True)",
    "F.selu(x(2, 4))",
    "F.celu(x(2, 4), 0.5)",
    "F.celu(x(2, 4) + 1, 0.5, inplace=True)",
    "F.gelu(x(2, 4))",
    "F.silu(x(2, 4))",
    "F.silu(x(2, 4) + 1, inplace=True)",
    "F.mish(x(2, 4))",
    "F.softplus(x(2, 4))",
    "F.softsign(x(2, 4))",
    "F.sigmoid(x(2, 4))",
    "F.hardtanh(x(2, 4))",
    "F.relu6(x(2, 4) + 1, inplace=True)",
    "F.hardsigmoid(x(2, 4))",
    "F.hardswish(x(2, 4))",
    "F.hardshrink(x(2, 4))",
    "F.softshrink(x(2, 4))",
    "F.tanhshrink(x(2, 4))",
    "F.threshold(x(2, 4), 0.1, 20)",
    "F.threshold(x(2, 4) + 1, 0.1, 20, inplace=True)",
    "F.prelu(x(2, 4), x(4))",
    "F.rrelu(x(2, 4), training=True)",
    "F.glu(x(2, 4))",
    "F.softmax(x(2, 4), -1)",
    "F.log_softmax(x(2, 4), -1, dtype=torch.float64)",
    "F.softmin(x(2, 4), -1)",
    "F.cosine_similarity(x(2, 4), x(2, 4))",
    "F.mse_loss(x(2, 4), t(2, 4))",
    "F.mse_loss(x(2, 4), x(2, 4), reduction='none')",
    "F.l1_loss(x(2, 4), t(2, 4))",
    "F.smooth_l1_loss(x(2, 4), t(2, 4))",
    "F.huber_loss(x(2, 4), t(2, 4))",
    "F.cross_entropy(x(2, 4), i(2))",
    "F.cross_entropy(x(2, 4, 3, 2), i(2, 3, 2), weight=t(4))",
    "F.nll_loss(x(2, 4), i(2), reduction='none')",
    "F.binary_cross_entropy(x(2, 4).sigmoid(), t(2, 4))",
    "F.binary_cross_entropy_with_logits(x(2, 4), t(2, 4), t(2, 4), pos_weight=t(4))",
    "F.kl_div(x(2, 4), t(2, 4), reduction='sum')",
    "F.poisson_nll_loss(x(2, 4), t(2, 4))",
    "F.soft_margin_loss(x(2, 4), t(2, 4))",
    "F.multi_margin_loss(x(2, 4), i(2))",
    "F.ctc_loss(x(5, 2, 4).log_softmax(-1), i(2, 2) + 1, (5, 4), (2, 1))",
    "F.conv2d(x(1, 2, 6, 6), x(4, 2, 3, 3), x(4))",
    "F.conv2d(x(1, 2, 6, 6), t(4, 2, 3, 3))",
    "F.conv2d(x(1, 2, 6, 6), x(4, 2, 3, 3), padding='same')",
    "F.conv1d(x(2, 6), x(4, 2, 3), x(4))",
    "F.conv_transpose2d(x(1, 2, 6, 6), x(2, 4, 3, 3), x(4))",
    "F.unfold(x(1, 2, 6, 6), 2)",
    "F.fold(x(1, 8, 25), (6, 6), 2)",
    "F.max_pool1d(x(1, 2, 6), 2)",
    "F.max_pool2d(x(1, 2, 6, 6), 2)",
    "F.max_pool3d(x(1, 2, 4, 4, 4), 2)",
    "F.avg_pool1d(x(1, 2, 6), 2)",
    "F.avg_pool2d(x(1, 2, 6, 6), 2)",
    "F.adaptive_avg_pool2d(x(1, 2, 6, 6), 2)",
    "F.adaptive_avg_pool2d(x(1, 2, 6, 6), 1)",
    "F.adaptive_max_pool1d(x(1, 2, 6), 2)",
    "F.interpolate(x(1, 2, 6, 6), scale_factor=2)",
    "F.interpolate(x(1, 2, 6, 6), scale_factor=2, mode='nearest-exact')",
    "F.interpolate(x(1, 2, 6, 6), scale_factor=2, mode='bilinear')",
    "F.interpolate(x(1, 2, 6, 6), 4, mode='bicubic', antialias=True)",
    "F.interpolate(x(1, 2, 6), 4, mode='linear')",
    "F.pad(x(1, 2, 6, 6), (1, -1))",
    "F.pad(x(1, 2, 6, 6), (1, 1, 1, 1), 'reflect')",
    "F.pad(x(1, 2, 6), (1, 1), 'replicate')",
    "F.pixel_shuffle(x(1, 4, 2, 2), 2)",
    "F.grid_sample(x(1, 2, 4, 4), x(1, 2, 2, 2), align_corners=False)",
    "F.affine_grid(x(1, 2, 3), (1, 2, 3, 3), align_corners=False)",
    "F.batch_norm(x(3, 2, 4), t(2), t(2), x(2), x(2), True)",
    "F.batch_norm(x(3, 2, 4), t(2), t(2), x(2), x(2))",
    "F.layer_norm(x(2, 4), (4,), x(4), x(4))",
    "F.group_norm(x(3, 4, 2), 2, x(4), x(4))",
    "F.instance_norm(x(3, 2, 4), weight=x(2), bias=x(2))",
    "F.embedding(i(3), x(5, 3), padding_idx=0)",
    "F.scaled_dot_product_attention(x(1, 2, 3, 4), x(1, 2, 3, 4), x(1, 2, 3, 4), t(3, 3))",
]

# What clew leaves out: PyTorch keeps these tensors though its gradient can do without.
LEFT_OUT = {
    "F.logsigmoid(x(2, 4))": ("LogSigmoidBackward0", "buffer"),
    "F.rrelu(x(2, 4))": ("RreluWithNoiseBackward0", "noise"),
    "F.multilabel_margin_loss(x(2, 4), i(2, 4))": ("MultilabelMarginLossBackward0", "is_target"),
}


def result(expression: str, engine: Any) -> Any:
    rng = np.random.default_rng(0)

    def real(*shape: int) -> Any:
        return engine.from_numpy(rng.uniform(0.1, 0.9, shape).astype(np.float32))

    def integers(*shape: int) -> Any:
        return engine.from_numpy(rng.integers(0, 2, shape))

    names = {
        "F": engine.nn.functional, "torch": engine, "t": real, "i": integers,
        "x": lambda *shape: real(*shape).requires_grad_(),
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(expression, names)


def tree(node: Any) -> Any:
    """The names of a node and of those behind it."""
    if node is None:
        return None
    if "Accumulate" in node.name():
        return "leaf"
    return node.name(), [tree(n) for n, _ in node.next_functions]


def kept(node: Any) -> dict[str, set[str]]:
    """The names of the tensors that each kind of node keeps."""
    found: dict[str, set[str]] = {}
    while node is not None and "Accumulate" not in node.name():
        for name in dir(node):
            if name.startswith("_saved_") and hasattr(getattr(node, name), "dtype"):
                found.setdefault(node.name(), set()).add(name.removeprefix("_saved_"))
        node = node.next_functions[0][0]
    return found


@pytest.mark.parametrize("expression", SAME)
def test_same_nodes_keep_the_same(expression: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = (result(expression, engine).grad_fn for engine in (clew, torch))
    assert tree(ours) == tree(theirs)
    assert kept(ours) == kept(theirs)


@pytest.mark.parametrize("expression", LEFT_OUT)
def test_what_is_left_out(expression: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = (result(expression, engine).grad_fn for engine in (clew, torch))
    node, tensor = LEFT_OUT[expression]
    assert tree(ours) == tree(theirs)
    expected = kept(theirs)
    expected[node].remove(tensor)
    assert kept(ours) == expected
