"""Batch, layer, group and RMS norm against PyTorch."""

import ml_dtypes
import numpy as np
import pytest

from clew.kernels.batch_norm import batch_norm, batch_norm_backward
from clew.kernels.norm import (
    group_norm,
    group_norm_backward,
    layer_norm,
    layer_norm_backward,
    rms_norm,
    rms_norm_backward,
)

torch = pytest.importorskip("torch")

EPS = 1e-5


def randn(*shape, seed=1, dtype=np.float64):
    return (np.random.default_rng(seed).standard_normal(shape) * 2 + 3).astype(dtype)


def tensor(a):
    return None if a is None else torch.tensor(a)


def assert_close(ours, theirs, rtol=1e-9, atol=1e-11):
    for our, their in zip(ours, theirs, strict=True):
        assert our.dtype == their.numpy().dtype
        np.testing.assert_allclose(our, their.numpy(), rtol=rtol, atol=atol)


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", [(6, 4), (6, 4, 5), (3, 4, 5, 2), (2, 4, 2, 3, 2), (1, 4, 7)])
def test_batch_norm(shape, training, affine):
    mask = [True, affine, affine]
    x, grad = randn(*shape), randn(*shape, seed=2)
    weight, bias = (randn(4, seed=3), randn(4, seed=4)) if affine else (None, None)
    mean, var = randn(4, seed=5), randn(4, seed=6) ** 2
    running = [mean.copy(), var.copy()]
    theirs = [tensor(mean), tensor(var)]
    expected = torch.native_batch_norm(
        tensor(x), tensor(weight), tensor(bias), *theirs, training, 0.3, EPS
    )
    out, save_mean, invstd = batch_norm(x, weight, bias, *running, training, 0.3, EPS)
    assert_close((out, save_mean, invstd), expected)
    assert_close(running, theirs)

    expected = torch.ops.aten.native_batch_norm_backward(
        tensor(grad), tensor(x), tensor(weight), *theirs, *expected[1:], training, EPS, mask
    )
    ours = batch_norm_backward(
        grad, x, weight, *running, save_mean, invstd, training, EPS, (True, True, True)
    )
    if affine:
        assert_close(ours, expected)
    else:
        assert_close(ours[:1], expected[:1])


def test_batch_norm_without_running_statistics():
    x = randn(5, 4, 3)
    expected = torch.native_batch_norm(tensor(x), None, None, None, None, True, 0.1, EPS)
    assert_close(batch_norm(x, None, None, None, None, True, 0.1, EPS), expected)


def test_batch_norm_of_float32_far_from_zero():
    """The mean is taken in double, as a mean of 1000 must not cost three digits."""
    x = randn(64, 4, 100, dtype=np.float32) + np.float32(1000)
    expected = batch_norm(x.astype(np.float64), None, None, None, None, True, 0.1, EPS)[0]
    ours = batch_norm(x, None, None, None, None, True, 0.1, EPS)[0]
    assert ours.dtype == np.float32
    np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-4)


def test_batch_norm_of_one_value_gives_a_running_variance_of_nan():
    running_mean, running_var = np.zeros(2), np.ones(2)
    with np.errstate(all="ignore"):
        batch_norm(randn(1, 2), None, None, running_mean, running_var, True, 0.1, EPS)
    assert np.isnan(running_var).all()
    assert np.isfinite(running_mean).all()


def test_batch_norm_of_an_empty_batch_leaves_the_running_statistics():
    running_mean, running_var = np.zeros(4), np.ones(4)
    x = np.zeros((0, 4, 5))
    out, mean, invstd = batch_norm(x, None, None, running_mean, running_var, True, 0.1, EPS)
    assert out.shape == x.shape
    np.testing.assert_array_equal(running_mean, 0)
    np.testing.assert_array_equal(running_var, 1)
    grads = batch_norm_backward(x, x, None, None, None, mean, invstd, True, EPS)
    assert grads[0].shape == x.shape
    np.testing.assert_array_equal(grads[1], 0)


@pytest.mark.parametrize("normalized", [(5,), (3, 5), (4, 3, 5)])
@pytest.mark.parametrize("affine", [True, False])
def test_layer_norm(normalized, affine):
    mask = [True, affine, affine]
    x, grad = randn(4, 3, 5), randn(4, 3, 5, seed=2)
    weight, bias = (randn(*normalized, seed=s) if affine else None for s in (3, 4))
    expected = torch.native_layer_norm(tensor(x), normalized, tensor(weight), tensor(bias), EPS)
    ours = layer_norm(x, normalized, weight, bias, EPS)
    assert_close(ours, expected)

    theirs = torch.ops.aten.native_layer_norm_backward(
        tensor(grad), tensor(x), normalized, *expected[1:], tensor(weight), tensor(bias), mask
    )
    grads = layer_norm_backward(grad, x, normalized, *ours[1:], weight)
    assert_close(grads[: 3 if affine else 1], theirs[: 3 if affine else 1])


@pytest.mark.parametrize("shape", [(3, 6), (3, 6, 5), (2, 6, 4, 3)])
@pytest.mark.parametrize("groups", [1, 2, 6])
@pytest.mark.parametrize("affine", [True, False])
def test_group_norm(shape, groups, affine):
    mask = [True, affine, affine]
    x, grad = randn(*shape), randn(*shape, seed=2)
    weight, bias = (randn(6, seed=s) if affine else None for s in (3, 4))
    sizes = (shape[0], 6, int(np.prod(shape[2:])), groups)
    expected = torch.native_group_norm(tensor(x), tensor(weight), tensor(bias), *sizes, EPS)
    ours = group_norm(x, groups, weight, bias, EPS)
    assert_close(ours, expected)

    theirs = torch.ops.aten.native_group_norm_backward(
        tensor(grad), tensor(x), *expected[1:], tensor(weight), *sizes, mask
    )
    grads = group_norm_backward(grad, x, groups, *ours[1:], weight)
    assert_close(grads[: 3 if affine else 1], theirs[: 3 if affine else 1], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("eps", [None, 1e-3])
@pytest.mark.parametrize("affine", [True, False])
def test_rms_norm(eps, affine):
    x, grad = randn(4, 3, 5), randn(4, 3, 5, seed=2)
    weight = randn(3, 5, seed=3) if affine else None
    x_t = torch.tensor(x, requires_grad=True)
    w_t = torch.tensor(weight, requires_grad=True) if affine else None
    expected = torch.rms_norm(x_t, (3, 5), w_t, eps)
    expected.backward(tensor(grad))
    out, rstd = rms_norm(x, (3, 5), weight, eps)
    assert_close([out], [expected.detach()])
    assert rstd.shape == (4, 1, 1)
    grad_x, grad_weight = rms_norm_backward(grad, x, (3, 5), rstd, weight)
    assert_close([grad_x], [x_t.grad])
    if affine:
        assert_close([grad_weight], [w_t.grad])
    else:
        assert grad_weight is None


def test_rms_norm_of_half_takes_the_epsilon_of_float32():
    x = np.full((1, 3), 1e-3, np.float16)
    out, _ = rms_norm(x, (3,), None, None)
    np.testing.assert_array_equal(out, torch.rms_norm(torch.from_numpy(x), (3,)).numpy())


@pytest.mark.parametrize("half", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("weight_dtype", ["same", np.float32])
def test_half_input_with_half_or_float_weights(half, weight_dtype):
    """The output has the dtype of the input, the statistics that of the weight."""
    dtype = half if weight_dtype == "same" else weight_dtype
    x, grad = randn(4, 6, 5, dtype=half), randn(4, 6, 5, seed=2, dtype=half)
    per_channel = randn(6, seed=3, dtype=dtype), randn(6, seed=4, dtype=dtype)
    trailing = randn(5, seed=3, dtype=dtype), randn(5, seed=4, dtype=dtype)
    wide = x.astype(np.float32)

    def widened(arrays):
        return [a.astype(np.float32) for a in arrays]

    cases = [
        (
            batch_norm(x, *per_channel, None, None, True, 0.1, EPS),
            batch_norm(wide, *widened(per_channel), None, None, True, 0.1, EPS),
        ),
        (layer_norm(x, (5,), *trailing, EPS), layer_norm(wide, (5,), *widened(trailing), EPS)),
        (group_norm(x, 2, *per_channel, EPS), group_norm(wide, 2, *widened(per_channel), EPS)),
    ]
    for ours, expected in cases:
        assert [a.dtype for a in ours] == [half, dtype, dtype]
        for our, exact, as_dtype in zip(ours, expected, (half, dtype, dtype)):
            np.testing.assert_array_equal(our, exact.astype(as_dtype))
    batch, layer, group = (case[0][1:] for case in cases)
    for grads in (
        batch_norm_backward(grad, x, per_channel[0], None, None, *batch, True, EPS),
        layer_norm_backward(grad, x, (5,), *layer, trailing[0]),
        group_norm_backward(grad, x, 2, *group, per_channel[0]),
    ):
        assert [g.dtype for g in grads] == [half, dtype, dtype]


def test_only_what_is_needed_comes_back():
    x, grad, weight = randn(4, 6, 5), randn(4, 6, 5, seed=2), randn(6, seed=3)
    _, mean, invstd = batch_norm(x, weight, None, None, None, True, 0.1, EPS)
    for need in ((True, False, False), (False, True, False), (False, False, True)):
        grads = batch_norm_backward(grad, x, weight, None, None, mean, invstd, True, EPS, need)
        assert tuple(g is not None for g in grads) == need
        grads = group_norm_backward(
            grad, x, 6, *group_norm(x, 6, weight, None, EPS)[1:], weight, need
        )
        assert tuple(g is not None for g in grads) == need
        stats = layer_norm(x, (5,), None, None, EPS)[1:]
        grads = layer_norm_backward(grad, x, (5,), *stats, None, need)
        assert tuple(g is not None for g in grads) == need


@pytest.mark.parametrize("shape", [(0, 6, 5), (2, 6, 0)])
def test_empty(shape):
    x = np.zeros(shape)
    with np.errstate(all="ignore"):
        expected = torch.native_layer_norm(tensor(x), shape[2:], None, None, EPS)
        assert_close(layer_norm(x, shape[2:], None, None, EPS), expected)
        assert group_norm(x, 2, None, None, EPS)[0].shape == shape


def test_non_contiguous_input():
    x, grad = randn(4, 6, 5), randn(4, 6, 5, seed=2)
    x_f, grad_f = np.asfortranarray(x), np.asfortranarray(grad)
    stats = batch_norm(x, None, None, None, None, True, 0.1, EPS)
    for our, expected in zip(batch_norm(x_f, None, None, None, None, True, 0.1, EPS), stats):
        np.testing.assert_allclose(our, expected, rtol=1e-12)
    ours = batch_norm_backward(grad_f, x_f, None, None, None, *stats[1:], True, EPS)
    expected = batch_norm_backward(grad, x, None, None, None, *stats[1:], True, EPS)
    np.testing.assert_allclose(ours[0], expected[0], rtol=1e-10, atol=1e-12)


def message(function, *args):
    with pytest.raises(RuntimeError) as caught:
        function(*args)
    return str(caught.value)


def test_errors_are_pytorchs():
    x, four, three = np.zeros((4, 3, 5)), np.ones(4), np.ones(3)
    functional = torch.nn.functional
    x_t, four_t, three_t = map(tensor, (x, four, three))
    assert message(batch_norm, x, four, None, None, None, True, 0.1, EPS) == message(
        functional.batch_norm, x_t, None, None, four_t, None, True
    )
    assert message(batch_norm, x, None, None, four, three, False, 0.1, EPS) == message(
        functional.batch_norm, x_t, four_t, three_t
    )
    assert message(batch_norm, x, None, None, None, None, False, 0.1, EPS) == message(
        functional.batch_norm, x_t, None, None
    )
    for shape in ((4,), (4, 5), ()):
        assert message(layer_norm, x, shape, None, None, EPS) == message(
            functional.layer_norm, x_t, shape
        )
    assert message(layer_norm, x, (5,), four, None, EPS) == message(
        functional.layer_norm, x_t, (5,), four_t
    )
    assert message(rms_norm, x, (4, 5), None, None) == message(torch.rms_norm, x_t, (4, 5))
    assert message(group_norm, x, 2, None, None, EPS) == message(functional.group_norm, x_t, 2)
    assert message(group_norm, x, 3, four, None, EPS) == message(
        functional.group_norm, x_t, 3, four_t
    )
