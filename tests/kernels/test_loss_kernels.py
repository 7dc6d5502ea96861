"""Negative log-likelihood against PyTorch."""

import ml_dtypes
import numpy as np
import pytest

from clew.kernels.loss import nll_loss, nll_loss_backward

torch = pytest.importorskip("torch")

SHAPES = {
    "batch": ((6, 5), (6,)),
    "one": ((5,), ()),
    "1-d signal": ((3, 5, 4), (3, 4)),
    "image": ((3, 5, 4, 2), (3, 4, 2)),
    "volume": ((2, 5, 2, 3, 2), (2, 2, 3, 2)),
    "empty": ((0, 5), (0,)),
}
REDUCTIONS = ["none", "mean", "sum"]


def randn(shape, seed=1, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def classes(shape, seed=3):
    return np.asarray(np.random.default_rng(seed).integers(0, 5, shape))


def compare(x, target, weight, reduction, ignore_index=-100):
    """Loss and gradient of both; the upstream gradient is random."""
    x_t = torch.tensor(x, requires_grad=True)
    w_t = None if weight is None else torch.tensor(weight)
    expected = torch.nn.functional.nll_loss(
        x_t, torch.tensor(target), w_t, ignore_index=ignore_index, reduction=reduction
    )
    grad = randn(expected.shape, seed=4)
    expected.backward(torch.tensor(grad))
    with np.errstate(all="ignore"):
        out, total = nll_loss(x, target, weight, reduction, ignore_index)
        grad_x = nll_loss_backward(
            np.asarray(grad), x.shape, target, weight, reduction, ignore_index, total
        )
    assert out.shape == tuple(expected.shape)
    np.testing.assert_allclose(out, expected.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(grad_x, x_t.grad.numpy(), rtol=1e-12)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("name", SHAPES)
def test_forward_and_backward(name, weighted, reduction):
    x_shape, target_shape = SHAPES[name]
    weight = np.array([0.5, 2, 0, 1, 3]) if weighted else None
    compare(randn(x_shape), classes(target_shape), weight, reduction)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("ignore_index", [2, -100])
def test_ignored_targets(ignore_index, reduction):
    x = randn((6, 5))
    x[:, 0] = -np.inf  # must not reach the loss through an ignored target
    target = np.array([1, ignore_index, 4, ignore_index, 3, 1])
    compare(x, target, None, reduction, ignore_index)
    compare(x, target, np.array([0.5, 2, 7, 1, 3]), reduction, ignore_index)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_everything_ignored(reduction):
    compare(randn((3, 5)), np.array([1, 1, 1]), None, reduction, ignore_index=1)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", ["batch", "one", "image"])
def test_total_weight(name, reduction):
    x_shape, target_shape = SHAPES[name]
    x, target, weight = randn(x_shape), classes(target_shape), np.array([0.5, 2, 1, 1, 3])
    aten = torch.ops.aten
    forward = aten.nll_loss2d_forward if x.ndim == 4 else aten.nll_loss_forward
    code = REDUCTIONS.index(reduction)
    expected = forward(torch.tensor(x), torch.tensor(target), torch.tensor(weight), code, -100)
    ours = nll_loss(x, target, weight, reduction, -100)
    for our, their in zip(ours, expected):
        np.testing.assert_allclose(our, their.numpy(), rtol=1e-12)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_one_sample_with_a_target_of_one_dimension(reduction):
    x, target = randn(5), np.array([3])
    expected = torch.nn.functional.nll_loss(
        torch.tensor(x), torch.tensor(target), reduction=reduction
    )
    out, _ = nll_loss(x, target, None, reduction, -100)
    assert out.shape == ()
    np.testing.assert_array_equal(out, expected.numpy())


def test_bytes_are_class_indices_too():
    x = randn((6, 5))
    out, _ = nll_loss(x, classes(6).astype(np.uint8), None, "mean", -100)
    np.testing.assert_array_equal(out, nll_loss(x, classes(6), None, "mean", -100)[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_dtype_is_kept(dtype):
    x, target = randn((6, 5), dtype=dtype), classes(6)
    out, total = nll_loss(x, target, None, "mean", -100)
    grad = nll_loss_backward(np.ones((), dtype), x.shape, target, None, "mean", -100, total)
    assert out.dtype == total.dtype == grad.dtype == dtype
    expected = nll_loss(x.astype(np.float32), target, None, "mean", -100)[0]
    np.testing.assert_array_equal(out, expected.astype(dtype))


def test_non_contiguous_input():
    x, target = randn((5, 6)).T, classes(6)
    ours = nll_loss(x, target, None, "none", -100)[0]
    np.testing.assert_array_equal(ours, -x[np.arange(6), target])


BAD = {
    "too large": ((6, 5), np.array([0, 1, 5, 2, 9, 0]), None),
    "negative": ((3, 5), np.array([0, -1, 2]), None),
    "outside, image": ((1, 5, 1, 2), np.array([[[0, 7]]]), None),
    "batch": ((3, 5), np.zeros(2, int), None),
    "0-d target of a batch": ((3, 5), np.zeros((), int), None),
    "2-d target": ((3, 5), np.zeros((3, 5), int), None),
    "1-d": ((5,), np.zeros(3, int), None),
    "0-d": ((), np.zeros((), int), None),
    "signal": ((3, 5, 2), np.zeros((3, 3), int), None),
    "image": ((2, 5, 3, 3), np.zeros((2, 4, 3), int), None),
    "image, flat target": ((2, 5, 3, 3), np.zeros((2, 3), int), None),
    "int32": ((3, 5), np.zeros(3, np.int32), None),
    "float": ((3, 5, 2, 2), np.zeros((3, 2, 2)), None),
    "weight": ((3, 5), np.zeros(3, int), np.ones(4)),
    "weight, 1-d": ((5,), np.zeros((), int), np.ones(4)),
    "weight, image": ((2, 5, 3, 3), np.zeros((2, 3, 3), int), np.ones(4)),
}


@pytest.mark.parametrize("name", BAD)
def test_errors_are_pytorchs(name):
    shape, target, weight = BAD[name]
    x = np.zeros(shape)
    w_t = None if weight is None else torch.tensor(weight)
    with pytest.raises((IndexError, ValueError, RuntimeError)) as theirs:
        torch.nn.functional.nll_loss(torch.tensor(x), torch.tensor(target), w_t)
    with pytest.raises(theirs.type) as ours:
        nll_loss(x, target, weight, "mean", -100)
    assert str(ours.value) == str(theirs.value)
