"""Errors and warnings of `nn.functional` are PyTorch's: their types and their words."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import clew
from twins import assert_same

# Expressions in which r(...) are zeros of a shape, n(...) are zeros of int64.
REFUSED = [
    # activations
    "F.relu(3)",
    "F.relu(r(2).bool())",
    "F.leaky_relu(n(2))",
    "F.gelu(r(2), approximate='x')",
    "F.silu(n(2))",
    "F.celu(r(2), alpha=0)",
    "F.hardtanh(r(2), 2, 1)",
    "F.hardtanh(n(2).to(torch.uint8), -1, 1)",
    "F.softshrink(r(2), -1)",
    "F.softshrink(r(2).double(), -1)",
    "F.glu(r(3))",
    "F.glu(torch.tensor(1.0))",
    "F.prelu(r(2, 4), r(3))",
    "F.prelu(r(2, 4), r(4, 1))",
    "F.prelu(r(2, 4), r(4).double())",
    "F.prelu(r(2), 1.0)",
    "F.rrelu(r(2), 1.0, 0.5)",
    "F.softmax(r(2, 3), 2)",
    "F.softmax(n(2, 3), 1)",
    "F.log_softmax(n(2, 3), 0)",
    # losses
    "F.mse_loss(r(2), r(2), reduction='x')",
    "F.mse_loss(n(2), n(2))",
    "F.mse_loss(r(2, 4), r(3, 4))",
    "F.mse_loss(r(2, 4), r(2, 4), weight=r(4))",
    "F.smooth_l1_loss(r(2), r(2), beta=-1)",
    "F.huber_loss(r(2), r(2), delta=0)",
    "F.binary_cross_entropy(r(2, 4), r(4))",
    "F.binary_cross_entropy(r(2) + 2, r(2))",
    "F.binary_cross_entropy(r(2), r(2).double())",
    "F.binary_cross_entropy_with_logits(r(2, 4), r(4))",
    "F.binary_cross_entropy_with_logits(r(2), n(2))",
    "F.cross_entropy(r(2, 4), n(2).int())",
    "F.cross_entropy(r(2, 4), n(2) + 7)",
    "F.cross_entropy(r(2, 4), n(2) - 1)",
    "F.cross_entropy(r(2, 4), n(1))",
    "F.cross_entropy(r(4), n(2))",
    "F.cross_entropy(r(2, 4), n(2, 4))",
    "F.cross_entropy(r(2, 4), r(2, 4), ignore_index=1)",
    "F.cross_entropy(r(2, 4), n(2), weight=r(3))",
    "F.cross_entropy(r(2, 4), r(2, 4), weight=r(3))",
    "F.cross_entropy(r(2, 4), n(2), weight=r(4).double())",
    "F.cross_entropy(r(2, 4), n(2), label_smoothing=2)",
    "F.cross_entropy(r(2, 3, 4), n(2, 5))",
    "F.cross_entropy(r(2, 3, 4, 5), n(2, 4))",
    "F.nll_loss(r(2, 4), n(3))",
    "F.kl_div(r(2), n(2))",
    "F.gaussian_nll_loss(r(2, 4), r(2, 4), r(3))",
    "F.gaussian_nll_loss(r(2), r(2), -1.0)",
    "F.multi_margin_loss(r(2, 4), n(2), p=3)",
    "F.multi_margin_loss(r(2, 4), n(1))",
    "F.multilabel_margin_loss(r(2, 4), n(1, 4))",
    "F.margin_ranking_loss(r(2, 4), r(2, 4), r(2))",
    "F.cosine_embedding_loss(r(2, 4), r(2, 4), r(2, 4))",
    "F.cosine_embedding_loss(r(2, 4), r(4), r(2))",
    "F.triplet_margin_loss(r(2, 4), r(2, 4), r(4))",
    "F.triplet_margin_loss(r(2, 4), r(2, 4), r(2, 4), margin=0)",
    "F.ctc_loss(r(4, 2, 3), n(2, 2), (4, 4), (2, 3))",
    "F.ctc_loss(r(4, 2, 3), n(2, 2), (5, 4), (2, 2))",
    "F.ctc_loss(r(4, 2, 3), n(2, 2), (4, 4), (2, 2), blank=5)",
    "F.nll_loss(r(2, 4), n(2), r(4).requires_grad_())",
    "F.cross_entropy(r(2, 4, 3), n(2, 3), r(4).requires_grad_())",
    "F.binary_cross_entropy(r(2), r(2), r(2).requires_grad_())",
    "F.binary_cross_entropy_with_logits(r(2), r(2), pos_weight=r(2).requires_grad_())",
    "F.multi_margin_loss(r(2, 4), n(2), weight=r(4).requires_grad_())",
    "F.soft_margin_loss(r(2), r(2).requires_grad_())",
    "F.batch_norm(r(2, 4), r(4).requires_grad_(), r(4))",
    # images
    "F.conv2d(r(4), r(6, 4, 3, 3))",
    "F.conv2d(r(2, 3, 7, 8), r(6, 4, 3, 3))",
    "F.conv2d(r(2, 4, 7, 8), r(6, 4, 3, 3), r(5))",
    "F.conv2d(r(2, 4, 7, 8), r(6, 4, 9, 9))",
    "F.conv2d(r(2, 4, 7, 8), r(6, 4, 3, 3), stride=(1, 2, 3))",
    "F.conv2d(r(2, 4, 7, 8), r(6, 4, 3, 3), stride=0)",
    "F.conv2d(r(2, 4, 7, 8), r(6, 4, 3, 3), groups=3)",
    "F.conv2d(r(2, 4, 7, 8), r(6, 4, 3, 3), padding='same', stride=2)",
    "F.conv2d(r(2, 4, 7, 8), r(6, 4, 3, 3), padding='other')",
    "F.conv2d(r(2, 4, 7, 8), r(6, 4, 3, 3), r(6).double())",
    "F.conv_transpose2d(r(2, 4, 7, 8), r(6, 4, 3, 3))",
    "F.max_pool2d(r(1, 2, 6, 6), (2, 2, 2))",
    "F.max_pool2d(r(1, 2, 6, 6), 7)",
    "F.max_pool2d(r(1, 2, 6, 6), 2, 2, 2)",
    "F.max_pool1d(r(1, 2, 6), 9)",
    "F.max_pool1d(r(6), 2)",
    "F.avg_pool1d(r(1, 2, 6), (2, 2))",
    "F.avg_pool2d(r(1, 2, 6, 6), 2, divisor_override=0)",
    "F.adaptive_avg_pool2d(r(1, 2, 6, 6), (2,))",
    "F.adaptive_avg_pool1d(r(1, 2, 6), (2, 2))",
    "F.max_unpool2d(r(1, 2, 3, 3), n(1, 2, 3, 3) + 99, 2)",
    "F.max_unpool2d(r(1, 2, 3, 3), n(1, 2, 3, 3), 2, output_size=(9, 9))",
    "F.pad(r(2, 4), (1,))",
    "F.pad(r(2, 4), (1, 1, 1, 1, 1, 1))",
    "F.pad(r(1, 2, 6), (6, 1), 'reflect')",
    "F.pad(r(1, 2, 6), (1, 1), 'reflect', 1)",
    "F.pad(r(1, 2, 6), (1, 1), 'other')",
    "F.pad(r(1, 2, 6, 6), (7, 1, 1, 1), 'circular')",
    "F.unfold(r(1, 2, 6, 6), 9)",
    "F.unfold(r(1, 2, 6, 6), (2,))",
    "F.fold(r(1, 8, 24), 6, 2)",
    "F.fold(r(1, 7, 25), 6, 2)",
    "F.pixel_shuffle(r(1, 3, 2, 2), 2)",
    "F.pixel_unshuffle(r(1, 1, 5, 4), 2)",
    "F.channel_shuffle(r(1, 4, 2, 2), 3)",
    "F.interpolate(r(1, 2, 6, 6))",
    "F.interpolate(r(1, 2, 6, 6), 3, 2)",
    "F.interpolate(r(1, 2, 6, 6), (3,))",
    "F.interpolate(r(1, 2, 6, 6), 3, mode='linear')",
    "F.interpolate(r(1, 2, 6, 6), 3, mode='nearest', align_corners=True)",
    "F.grid_sample(r(1, 2, 6, 6), r(1, 3, 3, 3), align_corners=True)",
    "F.grid_sample(r(1, 2, 6, 6), r(2, 3, 3, 2), align_corners=True)",
    "F.affine_grid(r(1, 2, 2), (1, 1, 3, 3), align_corners=True)",
    # normalisation
    "F.batch_norm(r(1, 4), None, None, training=True)",
    "F.batch_norm(r(2, 4), None, None)",
    "F.batch_norm(r(2, 4), r(3), r(4))",
    "F.batch_norm(r(2, 4), None, r(4), training=True)",
    "F.batch_norm(r(2, 4), r(4), r(4), r(4).double())",
    "F.layer_norm(r(2, 5), (4,))",
    "F.layer_norm(r(2, 5), 5)",
    "F.layer_norm(r(2, 5), (5,), r(4))",
    "F.group_norm(r(2, 4, 5), 3)",
    "F.group_norm(r(1, 4), 4)",
    "F.instance_norm(r(2, 4, 1))",
    "F.rms_norm(r(2, 5), (4,), r(5))",
    "F.local_response_norm(r(4, 5), 2)",
    # tables and attention
    "F.embedding(r(2), r(5, 3))",
    "F.embedding(n(2) + 7, r(5, 3))",
    "F.embedding(n(2), r(5))",
    "F.embedding(n(2), r(5, 3), padding_idx=7)",
    "F.embedding_bag(n(2), r(5, 3))",
    "F.embedding_bag(n(2), r(5, 3), n(1) + 1)",
    "F.embedding_bag(n(2, 2), r(5, 3), mode='x')",
    "F.one_hot(n(2) + 3, 2)",
    "F.one_hot(n(2) - 1)",
    "F.one_hot(r(2))",
    "F.bilinear(r(2, 3), r(2, 4), r(5, 2, 4))",
    "F.scaled_dot_product_attention(r(4), r(5, 4), r(5, 4))",
    "F.scaled_dot_product_attention(r(3, 4), r(5, 4), r(5, 4), r(3, 5), is_causal=True)",
    "F.scaled_dot_product_attention(r(3, 4), r(5, 4).double(), r(5, 4))",
    "F.scaled_dot_product_attention(r(3, 4), r(5, 4), r(5, 4), n(3, 5))",
    "F.dropout(r(2), 2)",
    "F.dropout1d(r(2))",
    "F.pdist(r(4))",
]


def evaluate(expression: str, engine: Any) -> Any:
    names = {
        "torch": engine,
        "F": engine.nn.functional,
        "r": engine.zeros,
        "n": lambda *shape: engine.zeros(*shape, dtype=engine.int64),
    }
    return eval(expression, names)


@pytest.mark.parametrize("expression", REFUSED)
def test_refused_in_the_same_words(expression: str) -> None:
    kind, message = assert_same(lambda engine: evaluate(expression, engine))
    assert kind.endswith("Error") and message


WARNED = [
    "F.mse_loss(r(2, 4), r(1, 4))",
    "F.l1_loss(r(2, 4), r(4))",
    "F.huber_loss(r(2, 4), r(4))",
    "F.mse_loss(r(2), r(2), size_average=False)",
    "F.mse_loss(r(2), r(2), reduce=False)",
    "F.kl_div(r(2), r(2))",
    "F.softmax(r(2, 3))",
    "F.log_softmax(r(2, 3, 4))",
    "F.gumbel_softmax(r(2, 3), eps=0.1)",
    "F.dropout2d(r(2, 3, 4))",
    "F.dropout3d(r(2, 3, 4))",
    "F.upsample(r(1, 2, 6, 6), 3)",
    "F.grid_sample(r(1, 2, 6, 6), r(1, 3, 3, 2))",
    "F.affine_grid(r(1, 2, 3), (1, 2, 3, 3))",
    "F.embedding_bag(r(5, 3), n(2, 2))",
]


@pytest.mark.parametrize("expression", WARNED)
def test_warned_in_the_same_words(expression: str) -> None:
    torch = pytest.importorskip("torch")
    said = []
    for engine in (clew, torch):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            evaluate(expression, engine)
        said.append([(w.category, str(w.message)) for w in caught])
        assert said[-1], "no warning"
    assert said[0] == said[1]


def test_warnings_name_the_line_that_called() -> None:
    with pytest.warns(UserWarning, match="different to the input size") as caught:
        clew.nn.functional.mse_loss(clew.zeros(2, 4), clew.zeros(4))
    assert caught[0].filename == __file__


def test_sparse_gradients_are_refused() -> None:
    table = clew.zeros(5, 3, requires_grad=True)
    index = clew.zeros(2, dtype=clew.int64)
    with pytest.raises(NotImplementedError, match="no sparse tensors"):
        clew.nn.functional.embedding(index, table, sparse=True)
    with clew.no_grad():
        assert clew.nn.functional.embedding(index, table, sparse=True).shape == (2, 3)
