"""Max, average and adaptive pooling against PyTorch."""

from math import prod

import ml_dtypes
import numpy as np
import pytest

from clew.kernels import pool
from clew.kernels.adaptive_pool import (
    adaptive_avg_pool,
    adaptive_avg_pool_backward,
    adaptive_max_pool,
)
from clew.kernels.avg_pool import avg_pool, avg_pool_backward
from clew.kernels.compiled import is_enabled
from clew.kernels.pool import max_pool_backward, max_pool_places_backward, places_to_indices
from clew.kernels.pool_shapes import pool_windows

torch = pytest.importorskip("torch")
functional = torch.nn.functional

# x, kernel, stride, padding, dilation, ceil_mode
POOLS = {
    "halving": ((2, 3, 6, 8), (2, 2), (2, 2), (0, 0), (1, 1), False),
    "overlapping, padded": ((2, 3, 7, 6), (3, 3), (2, 1), (1, 1), (1, 1), False),
    "gaps": ((2, 3, 7, 8), (2, 1), (3, 2), (0, 0), (1, 1), False),
    "ceil": ((2, 3, 7, 6), (2, 3), (2, 2), (0, 1), (1, 1), True),
    "ceil, last window dropped": ((2, 3, 5, 5), (2, 2), (3, 3), (1, 1), (1, 1), True),
    "unbatched": ((3, 6, 8), (2, 3), (2, 1), (1, 0), (1, 1), False),
    "1d": ((2, 3, 9), (3,), (2,), (1,), (1,), True),
    "3d": ((2, 3, 4, 5, 6), (2, 3, 2), (1, 2, 2), (1, 1, 0), (1, 1, 1), True),
    "empty batch": ((0, 3, 6, 8), (2, 2), (2, 2), (0, 0), (1, 1), False),
}
DILATED = {
    "dilated": ((2, 3, 9, 8), (3, 2), (1, 2), (1, 1), (2, 3), False),
    "dilated, ceil": ((2, 3, 9, 8), (3, 2), (2, 2), (1, 1), (3, 2), True),
    "first position always padding": ((1, 2, 4, 4), (2, 2), (2, 2), (1, 1), (2, 2), False),
}
# x, output size
ADAPTIVE = {
    "to one": ((2, 3, 5, 7), (1, 1)),
    "to one, large": ((2, 3, 15, 17), (1, 1)),
    "whole windows": ((2, 3, 6, 8), (3, 2)),
    "uneven windows": ((2, 3, 7, 10), (3, 4)),
    "larger output": ((2, 3, 4, 5), (6, 9)),
    "same": ((2, 3, 4, 5), (4, 5)),
    "unbatched": ((3, 7, 5), (2, 5)),
    "1d": ((2, 3, 10), (4,)),
    "3d": ((2, 3, 5, 4, 7), (2, 4, 3)),
    "empty batch": ((0, 3, 5, 7), (2, 2)),
    "empty output": ((2, 3, 5, 7), (0, 2)),
}


def randn(shape, seed=1, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def reference(kind, dims):
    return getattr(functional, kind.format(dims))


def torch_max_pool(x, kernel, stride, padding, dilation, ceil_mode):
    pool = reference("max_pool{}d_with_indices", len(kernel))
    return pool(x, kernel, stride, padding, dilation, ceil_mode, True)


def torch_avg_pool(x, kernel, stride, padding, *options):
    """PyTorch's; one dimension goes through two, as avg_pool1d takes no divisor."""
    if len(kernel) > 1:
        return reference("avg_pool{}d", len(kernel))(x, kernel, stride, padding, *options)
    return functional.avg_pool2d(
        x[..., None, :], (1, *kernel), (1, *stride), (0, *padding), *options
    )[..., 0, :]


def max_pool(x, *pooling):
    """Values and indices."""
    windows = pool_windows(x.shape, *pooling)
    values, places = pool.max_pool(x, windows)
    return values, places_to_indices(places, windows)


def assert_same_maximum(x, arguments):
    values, indices = torch_max_pool(torch.tensor(x), *arguments)
    ours = max_pool(x, *arguments)
    np.testing.assert_array_equal(ours[0], values.numpy())
    np.testing.assert_array_equal(ours[1], indices.numpy())
    assert ours[0].dtype == x.dtype
    assert ours[1].dtype == np.int64


@pytest.mark.parametrize("name", [*POOLS, *DILATED])
def test_max_pool(name):
    shape, *arguments = (POOLS | DILATED)[name]
    x = randn(shape)
    assert_same_maximum(x, arguments)
    x_t = torch.tensor(x, requires_grad=True)
    out, _ = torch_max_pool(x_t, *arguments)
    grad = randn(out.shape, seed=2)
    out.backward(torch.tensor(grad))
    windows = pool_windows(shape, *arguments)
    _, places = pool.max_pool(x, windows)
    indices = places_to_indices(places, windows)
    ours = max_pool_backward(grad, indices, shape, len(arguments[0]))
    np.testing.assert_allclose(ours, x_t.grad.numpy(), rtol=1e-12)
    np.testing.assert_array_equal(max_pool_places_backward(grad, places, shape, windows), ours)


@pytest.mark.skipif(not is_enabled(), reason="numba is not there, or switched off")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [*POOLS, *DILATED])
def test_twin_of_the_gradient(name, dtype, monkeypatch):
    shape, *arguments = (POOLS | DILATED)[name]
    windows = pool_windows(shape, *arguments)
    values, places = pool.max_pool(randn(shape, dtype=dtype), windows)
    grad = randn(values.shape, 2, dtype)
    grad.reshape(-1)[:3] = [np.nan, np.inf, -0.0][: grad.size]
    expected = max_pool_places_backward(grad, places, shape, windows)
    monkeypatch.setattr(pool, "SMALL", -1)
    monkeypatch.setattr(pool, "GRAIN", 1)
    ours = max_pool_places_backward(grad, places, shape, windows)
    np.testing.assert_array_equal(ours, expected)
    assert ours.dtype == dtype


@pytest.mark.parametrize("name", [*POOLS, *DILATED])
def test_blocks_and_pieces_of_planes(name, monkeypatch):
    shape, *arguments = (POOLS | DILATED)[name]
    x = randn(shape)
    expected = max_pool(x, *arguments)
    monkeypatch.setattr(pool, "BLOCK", 1)
    monkeypatch.setattr(pool, "GRAIN", 2 * prod(shape[-len(arguments[0]) :]))
    for ours, theirs in zip(max_pool(x, *arguments), expected):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(("kernel", "dtype"), [(16, np.uint8), (17, np.uint16)])
def test_places_have_the_smallest_type(kernel, dtype):
    pooling = ((kernel, 16), (1, 1), (0, 0), (1, 1), False)
    _, places = pool.max_pool(randn((1, 20, 20)), pool_windows((1, 20, 20), *pooling))
    assert places.dtype == dtype


@pytest.mark.parametrize("name", [*POOLS, *DILATED])
@pytest.mark.parametrize("many", [1, pool.MANY_POSITIONS])
@pytest.mark.parametrize("values", [[0.0, 1.0], [0.0, 1.0, np.nan], [-np.inf, np.nan], [-np.inf]])
def test_max_pool_of_ties_nan_and_infinities(name, values, many, monkeypatch):
    monkeypatch.setattr(pool, "MANY_POSITIONS", many)
    shape, *arguments = (POOLS | DILATED)[name]
    assert_same_maximum(np.random.default_rng(1).choice(values, shape), arguments)


def test_max_pool_of_integers():
    x = np.random.default_rng(1).integers(-5, 5, (2, 3, 7, 6))
    assert_same_maximum(x, [(3, 3), (2, 1), (1, 1), (1, 1), False])
    lowest = np.full((1, 1, 4, 4), np.iinfo(np.int64).min)
    assert_same_maximum(lowest, [(6, 6), (6, 6), (3, 3), (1, 1), False])
    assert_same_maximum(lowest, [(3, 3), (2, 2), (1, 1), (1, 1), False])


def test_max_pool_with_more_positions_than_a_byte_counts():
    assert_same_maximum(randn((1, 2, 20, 20)), [(17, 18), (1, 1), (2, 3), (1, 1), False])


def test_max_pool_of_the_whole_plane():
    x = randn((2, 3, 40, 30))
    x[0, 0, 7, [3, 9]] = np.nan
    assert_same_maximum(x, [(40, 30), (40, 30), (0, 0), (1, 1), False])


def test_max_pool_of_bool_is_refused():
    with pytest.raises(NotImplementedError, match="'Bool'"):
        max_pool(np.zeros((1, 2, 2), bool), (2, 2), (2, 2), (0, 0), (1, 1), False)


@pytest.mark.parametrize("divisor", [None, 3, -2])
@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("name", POOLS)
def test_avg_pool(name, include, divisor):
    shape, kernel, stride, padding, _, ceil_mode = POOLS[name]
    x = randn(shape)
    x_t = torch.tensor(x, requires_grad=True)
    out = torch_avg_pool(x_t, kernel, stride, padding, ceil_mode, include, divisor)
    grad = randn(out.shape, seed=2)
    out.backward(torch.tensor(grad))
    options = (kernel, stride, padding, ceil_mode, include, divisor)
    ours = avg_pool(x, *options)
    np.testing.assert_allclose(ours, out.detach().numpy(), rtol=1e-12, atol=1e-14)
    ours = avg_pool_backward(grad, shape, *options)
    np.testing.assert_allclose(ours, x_t.grad.numpy(), rtol=1e-12, atol=1e-14)


def test_avg_pool_keeps_nan_in_its_window():
    x = np.zeros((1, 1, 4, 4))
    x[0, 0, 0, 0] = np.nan
    out = avg_pool(x, (2, 2), (2, 2), (0, 0), False, True, None)
    np.testing.assert_array_equal(np.isnan(out[0, 0]), [[True, False], [False, False]])
    out = adaptive_avg_pool(x, (3, 3))
    assert np.isnan(out).sum() == 1


def test_avg_pool_of_integers_rounds_towards_zero():
    x = np.random.default_rng(1).integers(-9, 9, (2, 3, 6, 6))
    expected = functional.avg_pool2d(torch.tensor(x), 2).numpy()
    ours = avg_pool(x, (2, 2), (2, 2), (0, 0), False, True, None)
    np.testing.assert_array_equal(ours, expected)
    assert ours.dtype == np.int64


@pytest.mark.parametrize("name", ADAPTIVE)
def test_adaptive_avg_pool(name):
    shape, out = ADAPTIVE[name]
    x = randn(shape)
    x_t = torch.tensor(x, requires_grad=True)
    expected = reference("adaptive_avg_pool{}d", len(out))(x_t, out)
    ours = adaptive_avg_pool(x, out)
    np.testing.assert_allclose(ours, expected.detach().numpy(), rtol=1e-12, atol=1e-14)
    if expected.numel():
        grad = randn(expected.shape, seed=2)
        expected.backward(torch.tensor(grad))
        ours = adaptive_avg_pool_backward(grad, shape, len(out))
        np.testing.assert_allclose(ours, x_t.grad.numpy(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ADAPTIVE)
@pytest.mark.parametrize("special", [False, True])
def test_adaptive_max_pool(name, special):
    shape, out = ADAPTIVE[name]
    values = [0.0, 1.0, np.nan, -np.inf] if special else np.arange(10000.0)
    x = np.random.default_rng(1).choice(values, shape)
    x_t = torch.tensor(x, requires_grad=True)
    pool = reference("adaptive_max_pool{}d_with_indices", len(out))
    expected, expected_indices = pool(x_t, out)
    ours, indices = adaptive_max_pool(x, out)
    np.testing.assert_array_equal(ours, expected.detach().numpy())
    np.testing.assert_array_equal(indices, expected_indices.numpy())
    if expected.numel():
        grad = randn(expected.shape, seed=2)
        expected.backward(torch.tensor(grad))
        ours = max_pool_backward(grad, indices, shape, len(out))
        np.testing.assert_allclose(ours, x_t.grad.numpy(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_dtype_is_kept_and_half_is_computed_in_float32(dtype):
    x = randn((2, 3, 7, 7), dtype=dtype)
    wide = x.astype(np.float32)
    options = ((3, 3), (2, 2), (1, 1), False, True, None)
    results = [
        (avg_pool(x, *options), avg_pool(wide, *options)),
        (avg_pool_backward(x, (2, 3, 14, 14), *options), None),
        (adaptive_avg_pool(x, (3, 3)), adaptive_avg_pool(wide, (3, 3))),
        (adaptive_avg_pool_backward(x, (2, 3, 9, 9), 2), None),
        (adaptive_max_pool(x, (3, 3))[0], adaptive_max_pool(wide, (3, 3))[0]),
        (max_pool_backward(x, np.zeros(x.shape, np.int64), (2, 3, 9, 9), 2), None),
    ]
    for ours, expected in results:
        assert ours.dtype == dtype
        if expected is not None:
            np.testing.assert_array_equal(ours, expected.astype(dtype))


def test_non_contiguous_input():
    x = randn((2, 3, 6, 8))
    x_f = np.asfortranarray(x)
    arguments = ((3, 3), (2, 1), (1, 1), (1, 1), False)
    for ours, expected in zip(max_pool(x_f, *arguments), max_pool(x, *arguments)):
        np.testing.assert_array_equal(ours, expected)
    options = ((2, 2), (2, 2), (0, 0), False, True, None)
    np.testing.assert_array_equal(avg_pool(x_f, *options), avg_pool(x, *options))
    np.testing.assert_array_equal(
        adaptive_max_pool(x_f, (4, 3))[1], adaptive_max_pool(x, (4, 3))[1]
    )


# x, kernel, stride, padding, dilation
BAD_POOLS = {
    "kernel": ((2, 3, 4, 4), (0, 2), (1, 1), (0, 0), (1, 1)),
    "no stride": ((2, 3, 4, 4), (2, 2), (0, 1), (0, 0), (1, 1)),
    "stride": ((2, 3, 4, 4), (2, 2), (1, -1), (0, 0), (1, 1)),
    "dilation": ((2, 3, 4, 4), (2, 2), (1, 1), (0, 0), (1, 0)),
    "padding": ((2, 3, 4, 4), (2, 2), (1, 1), (-1, 0), (1, 1)),
    "too much padding": ((2, 3, 4, 4), (2, 3), (1, 1), (1, 2), (1, 1)),
    "too much padding, dilated": ((2, 3, 4, 4), (2, 3), (1, 1), (2, 1), (2, 1)),
    "padding, dilated": ((2, 3, 9, 9), (3, 2), (1, 1), (2, 1), (2, 1)),
    "padding, dilated, 1d": ((2, 3, 9), (3,), (1,), (2,), (2,)),
    "padding, dilated, 3d": ((3, 9, 9, 9), (3, 3, 2), (1, 1, 1), (2, 1, 0), (2, 1, 1)),
    "input too small": ((2, 3, 4, 4), (6, 2), (1, 1), (0, 0), (1, 1)),
    "empty channels": ((2, 0, 4, 4), (2, 2), (2, 2), (0, 0), (1, 1)),
    "empty plane": ((2, 3, 0, 4), (2, 2), (2, 2), (0, 0), (1, 1)),
    "dimensions": ((4, 4), (2, 2), (2, 2), (0, 0), (1, 1)),
    "kernel, 1d": ((2, 3, 4), (0,), (1,), (0,), (1,)),
    "stride, 1d": ((2, 3, 4), (2,), (-1,), (0,), (1,)),
    "dilation, 1d": ((2, 3, 4), (2,), (1,), (0,), (0,)),
    "input too small, 1d": ((2, 3, 4), (6,), (1,), (0,), (1,)),
    "empty channels, 1d": ((2, 0, 4), (2,), (1,), (0,), (1,)),
    "kernel, 3d": ((2, 3, 4, 4, 4), (0, 1, 2), (1, 1, 1), (0, 0, 0), (1, 1, 1)),
    "input too small, 3d": ((2, 3, 4, 4, 4), (1, 6, 1), (1, 1, 1), (0, 0, 0), (1, 1, 1)),
}


def message(function, *arguments):
    with pytest.raises(RuntimeError) as caught:
        function(*arguments)
    return str(caught.value)


@pytest.mark.parametrize("name", BAD_POOLS)
def test_errors_of_pooling_are_pytorchs(name):
    shape, *arguments = BAD_POOLS[name]
    theirs = message(torch_max_pool, torch.zeros(shape), *arguments, False)
    assert message(max_pool, np.zeros(shape), *arguments, False) == theirs


def test_a_divisor_of_zero_is_refused():
    options = ((2, 2), (2, 2), (0, 0), False, True, 0)
    theirs = message(functional.avg_pool2d, torch.zeros(1, 4, 4), *options)
    assert message(avg_pool, np.zeros((1, 4, 4)), *options) == theirs


@pytest.mark.parametrize(
    "kind, shape, out",
    [
        ("avg", (2, 3, 4, 4), (-1, 2)),
        ("avg", (2, 3, 0, 4), (1, 2)),
        ("avg", (4, 4), (1, 2)),
        ("avg", (2, 3, 0), (2,)),
        ("max", (2, 3, 4, 4), (-1, 2)),
        ("max", (2, 3, 0, 4), (1, 2)),
        ("max", (2, 0, 4, 4), (1, 2)),
        ("max", (4, 4), (1, 2)),
    ],
)
def test_errors_of_adaptive_pooling_are_pytorchs(kind, shape, out):
    aten = getattr(torch.ops.aten, f"adaptive_{kind}_pool{len(out)}d")
    theirs = message(aten, torch.zeros(shape), out)
    ours = adaptive_avg_pool if kind == "avg" else adaptive_max_pool
    assert message(ours, np.zeros(shape), out) == theirs
