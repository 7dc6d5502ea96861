"""Every op has a batching rule, or stands here; and rules agree with a loop."""

import numpy as np
import pytest

import clew
from clew.func.batching import kinds, rules
from clew.op import REGISTRY

ONE_BY_ONE = {
    "bincount", "frexp", "gru_layer", "histc", "histogram_counts", "lstm_layer",
    "masked_scatter", "masked_scatter_backward", "replaced_memory", "reread",
    "rnn_layer", "sparse_product",
}  # fmt: skip
"""Ops that run once for each example, with PyTorch's warning; PyTorch does so for most of them."""


def test_every_op_has_a_rule():
    found = {op.name for op in REGISTRY.values() if kinds.rule_for(op) is rules.one_by_one}
    assert found == ONE_BY_ONE, f"write a batching rule, or say why not: {found ^ ONE_BY_ONE}"


def x(*shape):
    return clew.arange(float(np.prod(shape)), dtype=clew.float64).reshape(*shape).sin()


INDEX = clew.tensor([[0, 2], [1, 1], [2, 0]])
CALLS = {
    "mm left": (lambda a, b: a @ b, (x(3, 2, 4), x(4, 5)), (0, None)),
    "mm right": (lambda a, b: a @ b, (x(2, 4), x(3, 4, 5)), (None, 0)),
    "bmm shared": (clew.bmm, (x(3, 2, 4, 5), x(2, 5, 2)), (0, None)),
    "addmm": (clew.addmm, (x(5), x(3, 2, 4), x(4, 5)), (None, 0, None)),
    "addmm self": (clew.addmm, (x(3, 2, 5), x(2, 4), x(4, 5)), (0, None, None)),
    "index middle": (lambda a, i: a[:, i], (x(3, 4, 3, 2), INDEX), (0, 0)),
    "index apart": (lambda a, i: a[i, :, i], (x(3, 3, 4, 3), INDEX), (0, 0)),
    "index shared": (lambda a, i: a[:, i], (x(4, 3), INDEX), (None, 0)),
    "index all": (lambda a: a[:, [0, 1], :, [1, 0]], (x(3, 2, 3, 2, 2),), (0,)),
    "index_add": (lambda a, i, s: a.index_add(0, i, s), (x(3, 3, 2), INDEX, x(3, 2, 2)), (0, 0, 0)),
    "index_select": (lambda a, i: a.index_select(1, i), (x(3, 4, 3), INDEX), (0, 0)),
    "gather": (lambda a, i: a.gather(0, i), (x(3, 3), INDEX), (0, 0)),
    "embedding": (clew.nn.functional.embedding, (INDEX, x(3, 5, 2)), (0, 0)),
    "conv": (clew.nn.functional.conv2d, (x(3, 2, 2, 5, 5), x(4, 2, 3, 3)), (0, None)),
    "conv weights": (clew.nn.functional.conv2d, (x(2, 2, 5, 5), x(3, 4, 2, 3, 3)), (None, 0)),
    "conv both": (clew.nn.functional.conv1d, (x(3, 2, 2, 5), x(3, 4, 2, 3)), (0, 0)),
    "conv transposed": (
        clew.nn.functional.conv_transpose1d, (x(2, 2, 5), x(3, 2, 3, 3)), (None, 0),
    ),
    "layer norm": (
        lambda a, w: clew.nn.functional.layer_norm(a, (4,), w), (x(2, 4), x(3, 4)), (None, 0),
    ),
    "pool": (lambda a: clew.nn.functional.max_pool2d(a, 2), (x(3, 2, 4, 4),), (0,)),
    "cross entropy": (clew.nn.functional.cross_entropy, (x(3, 2, 4), INDEX), (0, 0)),
    "cat": (lambda a, b: clew.cat([a, b], 1), (x(3, 2, 2), x(2, 4)), (0, None)),
    "softmax": (lambda a: a.softmax(-1), (x(3, 2, 4),), (1,)),
    "cumsum of numbers": (lambda a: a.cumsum(0), (x(3),), (0,)),
    "var": (lambda a: a.var(), (x(3, 4),), (0,)),
    "inverse": (lambda a: clew.linalg.inv(a + 3 * clew.eye(3)), (x(2, 3, 3),), (0,)),
    "attention": (
        clew.nn.functional.scaled_dot_product_attention,
        (x(3, 2, 2, 4, 4), x(2, 2, 5, 4), x(3, 2, 2, 5, 4)), (0, None, 0),
    ),
}  # fmt: skip


def weighted(out):
    return (out * clew.arange(float(out.numel()), dtype=out.dtype).reshape(out.shape).cos()).sum()


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("error")
def test_values_and_gradients_are_those_of_a_loop(name):
    function, inputs, dims = CALLS[name]
    leaves = [a.detach().requires_grad_() if a.is_floating_point() else a for a in inputs]
    wanted = [a for a in leaves if a.requires_grad]
    size = next(a.shape[d] for a, d in zip(inputs, dims) if d is not None)
    out = clew.vmap(function, dims)(*leaves)
    rows = [
        function(*(a if d is None else a.select(d, n) for a, d in zip(leaves, dims)))
        for n in range(size)
    ]
    expected = clew.stack(rows)
    np.testing.assert_allclose(out.detach().numpy(), expected.detach().numpy(), 1e-9, 1e-12)
    of_batch = clew.autograd.grad(weighted(out), wanted)
    of_loop = clew.autograd.grad(weighted(expected), wanted)
    for got, want in zip(of_batch, of_loop):
        np.testing.assert_allclose(got.numpy(), want.numpy(), 1e-9, 1e-12)


@pytest.mark.parametrize("name", CALLS)
def test_rows_of_a_jacobian_at_once(name):
    function, inputs, dims = CALLS[name]
    leaves = [
        (a if d is None else a.select(d, 0)).detach() for a, d in zip(inputs, dims)
    ]  # fmt: skip
    wanted = [a.requires_grad_() for a in leaves if a.is_floating_point()]
    out = function(*leaves)
    weights = clew.arange(2.0 * out.numel(), dtype=out.dtype).reshape(2, *out.shape).cos()
    at_once = clew.autograd.grad(out, wanted, weights, True, is_grads_batched=True)
    rows = [clew.autograd.grad(out, wanted, w, True) for w in weights]
    for got, want in zip(at_once, zip(*rows)):
        np.testing.assert_allclose(got.numpy(), clew.stack(list(want)).numpy(), 1e-9, 1e-12)
