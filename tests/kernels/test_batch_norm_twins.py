"""The compiled twins of batch norm agree with NumPy."""

import numpy as np
import pytest

from clew.kernels import batch_norm as kernels

SHAPES = [
    (4, 3, 5),
    (64, 20),
    (2, 3, 4, 4),
    (3, 1, 70, 70),
    (1, 7, 100),
    (5, 40, 1),
    (2, 1),
    (9, 3, 16),
]
SPECIAL = [np.inf, -np.inf, np.nan, 1e-40, -1e-45, 1e30, 0.0]


def arrays(shape, dtype, scale=1.0):
    rng = np.random.default_rng(0)
    x, grad = (rng.normal(size=shape, scale=scale).astype(dtype) for _ in range(2))
    weight, bias, mean = (rng.normal(size=shape[1]).astype(dtype) for _ in range(3))
    return x + weight.reshape(-1, *[1] * (len(shape) - 2)), grad, weight, bias, mean, np.abs(bias)


def run(shape_or_arrays, dtype, training, affine=True, tracked=True, need=(True, True, True)):
    """Outputs, running statistics and gradients."""
    given = shape_or_arrays
    x, grad, weight, bias, mean, var = arrays(given, dtype) if isinstance(given[0], int) else given
    weight, bias = (weight, bias) if affine else (None, None)
    mean, var = (mean.copy(), var.copy()) if tracked else (None, None)
    with np.errstate(all="ignore"):
        out, batch_mean, invstd = kernels.batch_norm(
            x, weight, bias, mean, var, training, 0.1, 1e-5
        )
        grads = kernels.batch_norm_backward(
            grad, x, weight, mean, var, batch_mean, invstd, training, 1e-5, need
        )
    return [out, batch_mean, invstd, mean, var, *grads]


def assert_twins_agree(monkeypatch, *args, **kwargs):
    results = []
    for small in (0, 1 << 60):
        monkeypatch.setattr(kernels, "SMALL", small)
        results.append(run(*args, **kwargs))
    for ours, theirs in zip(*results):
        if theirs is None:
            assert ours is None
            continue
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        finite = theirs[np.isfinite(theirs)]
        eps = 100 * float(np.finfo(theirs.dtype).eps)
        size = float(np.abs(finite).max(initial=1))
        np.testing.assert_allclose(ours, theirs, rtol=eps, atol=eps * size)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("training", [True, False])
class TestTwins:
    @pytest.mark.parametrize("shape", SHAPES)
    def test_of_every_shape(self, shape, training, dtype, monkeypatch):
        assert_twins_agree(monkeypatch, shape, dtype, training)

    @pytest.mark.parametrize("need", [(True, False, False), (False, True, True), (False,) * 3])
    def test_what_is_needed(self, need, training, dtype, monkeypatch):
        assert_twins_agree(monkeypatch, (4, 3, 5), dtype, training, need=need)

    def test_without_weights(self, training, dtype, monkeypatch):
        for shape in [(4, 3, 5), (6, 3)]:
            assert_twins_agree(monkeypatch, shape, dtype, training, affine=False)

    def test_in_pieces(self, training, dtype, monkeypatch):
        monkeypatch.setattr(kernels, "GRAIN", 50)
        for shape in [(9, 3, 50), (30, 40)]:
            assert_twins_agree(monkeypatch, shape, dtype, training)

    @pytest.mark.parametrize("number", SPECIAL)
    def test_special_numbers(self, number, training, dtype, monkeypatch):
        for shape in [(4, 3, 20), (40, 3)]:
            given = arrays(shape, dtype)
            given[0][1, 2], given[1][2, 1] = number, number
            assert_twins_agree(monkeypatch, given, dtype, training)

    def test_gaps_and_read_only(self, training, dtype, monkeypatch):
        x, grad, *vectors = arrays((6, 4, 10), dtype)
        weight = np.repeat(vectors[0], 2)[::2]
        for array in (x, grad, weight):
            array.flags.writeable = False
        given = [x[::2].swapaxes(0, 2), grad[::2].swapaxes(0, 2), weight, *vectors[1:]]
        assert_twins_agree(monkeypatch, given, dtype, training)

    def test_running_statistics_of_another_type_or_with_gaps(self, training, dtype, monkeypatch):
        other = np.float64 if dtype == "float32" else np.float32
        x, grad, weight, bias, mean, var = arrays((6, 4, 10), dtype)
        assert_twins_agree(
            monkeypatch, [x, grad, weight, bias, mean.astype(other), np.repeat(var, 2)[::2]],
            dtype, training,
        )  # fmt: skip


@pytest.mark.parametrize("shape", [(64, 3, 1000), (5000, 4)])
def test_statistics_keep_their_digits(shape, monkeypatch):
    monkeypatch.setattr(kernels, "SMALL", 0)
    x = np.random.default_rng(0).normal(loc=1000, size=shape).astype(np.float32)
    _, mean, invstd = kernels.batch_norm(x, None, None, None, None, True, 0.1, 0.0)
    axes = (0, 2)[: len(shape) - 1]
    wide = x.astype(np.float64)
    np.testing.assert_allclose(mean, wide.mean(axes), rtol=2e-7)
    np.testing.assert_allclose(invstd, 1 / wide.std(axes), rtol=2e-6)


def test_running_statistics_without_a_batch(monkeypatch):
    assert_twins_agree(monkeypatch, (4, 3, 5), "float32", True, tracked=False)
