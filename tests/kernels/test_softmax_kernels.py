"""Softmax, log-softmax and log-sum-exp against PyTorch."""

import ml_dtypes
import numpy as np
import pytest

from clew.kernels.softmax import (
    log_softmax,
    log_softmax_backward,
    logsumexp,
    softmax,
    softmax_backward,
)

torch = pytest.importorskip("torch")

PAIRS = {
    "softmax": (softmax, softmax_backward, torch.softmax),
    "log_softmax": (log_softmax, log_softmax_backward, torch.log_softmax),
}
SHAPES = [((4, 5), 1), ((4, 5), 0), ((3, 4, 5), -2), ((7,), 0), ((), 0), ((3, 0), 1), ((0, 3), 1)]
INF, NAN = np.inf, np.nan
SPECIAL = [
    [-INF, -INF],
    [INF, 1.0],
    [INF, -INF],
    [-INF, 1.0],
    [NAN, 1.0],
    [1e38, 1e38],
    [-1e38, 1e38],
    [1000.0, -1000.0],
]


def randn(shape, seed=1, dtype=np.float64):
    return np.asarray(np.random.default_rng(seed).standard_normal(shape) * 3).astype(dtype)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("shape, dim", SHAPES)
def test_forward_and_backward(name, shape, dim):
    forward, backward, reference = PAIRS[name]
    x, grad = randn(shape), randn(shape, seed=2)
    x_t = torch.tensor(x, requires_grad=True)
    expected = reference(x_t, dim)
    expected.backward(torch.tensor(grad))
    out = forward(x, dim)
    assert out.shape == shape
    np.testing.assert_allclose(out, expected.detach().numpy(), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(backward(grad, out, dim), x_t.grad.numpy(), rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("row", SPECIAL, ids=str)
def test_infinities_and_nan(name, row):
    forward, _, reference = PAIRS[name]
    x = np.array(row, np.float32)
    with np.errstate(all="ignore"):
        out = forward(x, 0)
    np.testing.assert_allclose(out, reference(torch.tensor(x), 0).numpy(), rtol=1e-6)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_is_computed_in_float32(name, dtype):
    forward, backward, _ = PAIRS[name]
    x, grad = randn((4, 5), dtype=dtype), randn((4, 5), seed=2, dtype=dtype)
    out = forward(x, 1)
    assert out.dtype == dtype
    np.testing.assert_array_equal(out, forward(x.astype(np.float32), 1).astype(dtype))
    wide = backward(grad.astype(np.float32), out.astype(np.float32), 1)
    np.testing.assert_array_equal(backward(grad, out, 1), wide.astype(dtype))


@pytest.mark.parametrize("name", PAIRS)
def test_results_are_contiguous(name):
    forward, backward, _ = PAIRS[name]
    x = randn((4, 5)).T
    out = forward(x, 1)
    assert out.flags.c_contiguous
    np.testing.assert_array_equal(out, forward(x.copy(), 1))
    assert backward(x, out, 1).flags.c_contiguous


@pytest.mark.parametrize("keepdim", [True, False])
@pytest.mark.parametrize(
    "shape, dims",
    [((4, 5), (1,)), ((3, 4, 5), (0, -1)), ((), (0,)), ((0, 3), (0,)), ((3, 0), (1,))],
)
def test_logsumexp(shape, dims, keepdim):
    x = randn(shape)
    with np.errstate(divide="ignore"):
        out = logsumexp(x, dims, keepdim)
    expected = torch.logsumexp(torch.tensor(x), dims, keepdim).numpy()
    assert out.shape == expected.shape
    np.testing.assert_allclose(out, expected, rtol=1e-13)


@pytest.mark.parametrize("row", SPECIAL, ids=str)
def test_logsumexp_of_infinities_and_nan(row):
    x = np.array(row, np.float32)
    with np.errstate(all="ignore"):
        out = logsumexp(x, (0,), False)
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, torch.logsumexp(torch.tensor(x), 0).numpy(), rtol=1e-6)
