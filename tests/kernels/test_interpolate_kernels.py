"""Resizing against PyTorch."""

import ml_dtypes
import numpy as np
import pytest

from clew.kernels.interpolate import interpolate, interpolate_backward

torch = pytest.importorskip("torch")
functional = torch.nn.functional

# PyTorch's name, ours, align_corners, dimensions
MODES = [
    *(("nearest", "nearest", None, d) for d in (1, 2, 3)),
    *(("nearest-exact", "nearest-exact", None, d) for d in (1, 2, 3)),
    *(
        (name, "linear", align, d)
        for d, name in ((1, "linear"), (2, "bilinear"), (3, "trilinear"))
        for align in (True, False)
    ),
    ("bicubic", "cubic", True, 2),
    ("bicubic", "cubic", False, 2),
]
SIZES = [((5, 4, 6), (10, 7, 3)), ((3, 5, 5), (7, 2, 1)), ((1, 4, 2), (4, 4, 9))]


def randn(shape, seed=1, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def compare(x, size, mode, scale_factor=None):
    """Values and gradients of both; by scale factors, each dimension is scaled by its own."""
    name, ours_name, align, dims = mode
    x_t = torch.tensor(x, requires_grad=True)
    by = {"size": size} if scale_factor is None else {"scale_factor": scale_factor}
    expected = functional.interpolate(x_t, **by, mode=name, align_corners=align)
    scales = scale_factor or (None,) * dims
    out = interpolate(x, tuple(expected.shape[2:]), ours_name, bool(align), scales)
    tolerance = 1e-11 if x.dtype == np.float64 else 1e-5
    assert out.dtype == x.dtype
    np.testing.assert_allclose(out, expected.detach().numpy(), rtol=tolerance, atol=tolerance)
    grad = randn(expected.shape, seed=2, dtype=x.dtype)
    expected.backward(torch.tensor(grad))
    ours = interpolate_backward(grad, x.shape, ours_name, bool(align), scales)
    assert ours.dtype == x.dtype
    np.testing.assert_allclose(ours, x_t.grad.numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size, out", SIZES)
@pytest.mark.parametrize("mode", MODES, ids=str)
def test_to_a_size(mode, size, out, dtype):
    dims = mode[-1]
    compare(randn((2, 3, *size[:dims]), dtype=dtype), out[:dims], mode)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("factors", [(2.0, 1.7, 3.3), (0.6, 1.0, 0.35)])
@pytest.mark.parametrize("mode", MODES, ids=str)
def test_by_a_factor(mode, factors, dtype):
    dims = mode[-1]
    compare(randn((2, 3, *(7, 8, 6)[:dims]), dtype=dtype), None, mode, factors[:dims])


@pytest.mark.parametrize("name", ["nearest", "nearest-exact"])
def test_rounding_of_positions(name):
    """Where a position is almost an integer, float32 decides; every pair of small sizes."""
    for size in range(1, 30):
        x = np.arange(float(size)).reshape(1, 1, 1, size)
        for out in range(1, 60):
            expected = functional.interpolate(torch.tensor(x), size=(1, out), mode=name).numpy()
            ours = interpolate(x, (1, out), name, False, (None, None))
            np.testing.assert_array_equal(ours, expected)


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_nan_stays_where_it_belongs(mode):
    name, ours_name, align, dims = mode
    size, out = (5, 4, 6)[:dims], (3, 8, 7)[:dims]
    x, grad = np.zeros((1, 1, *size)), np.zeros((1, 1, *out))
    x.reshape(-1)[x.size // 2] = grad.reshape(-1)[grad.size // 2] = np.nan
    x_t = torch.tensor(x, requires_grad=True)
    expected = functional.interpolate(x_t, size=out, mode=name, align_corners=align)
    expected.backward(torch.tensor(grad))
    scales = (None,) * dims
    ours = interpolate(x, out, ours_name, bool(align), scales)
    np.testing.assert_array_equal(np.isnan(ours), np.isnan(expected.detach().numpy()))
    ours = interpolate_backward(grad, x.shape, ours_name, bool(align), scales)
    np.testing.assert_array_equal(np.isnan(ours), np.isnan(x_t.grad.numpy()))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_half_is_computed_in_float32(mode, dtype):
    x = randn((2, 3, 4, 5), dtype=dtype)
    arguments = ((7, 3), mode, False, (None, None))
    out = interpolate(x, *arguments)
    np.testing.assert_array_equal(out, interpolate(x.astype(np.float32), *arguments).astype(dtype))
    grad = interpolate_backward(out, x.shape, *arguments[1:])
    assert out.dtype == grad.dtype == dtype


def test_empty_batch_and_strided_input():
    assert interpolate(np.zeros((0, 3, 4)), (8,), "linear", False, (None,)).shape == (0, 3, 8)
    x = randn((2, 3, 4, 5))
    arguments = ((7, 3), "linear", True, (None, None))
    ours = interpolate(np.asfortranarray(x), *arguments)
    np.testing.assert_allclose(ours, interpolate(x, *arguments), rtol=1e-14)


def test_bytes_by_nearest_only():
    x = np.arange(8, dtype=np.uint8).reshape(1, 2, 4)
    out = interpolate(x, (6,), "nearest", False, (None,))
    expected = functional.interpolate(torch.tensor(x), size=6).numpy()
    np.testing.assert_array_equal(out, expected)
    with pytest.raises(NotImplementedError, match="'Byte'"):
        interpolate(x, (6,), "linear", False, (None,))
    with pytest.raises(NotImplementedError, match="'Long'"):
        interpolate(x.astype(np.int64), (6,), "nearest", False, (None,))


@pytest.mark.parametrize(
    "shape, out", [((2, 3, 4), (0,)), ((2, 3, 0, 4), (2, 2)), ((2, 0, 4, 4), (2, 2))]
)
def test_errors_are_pytorchs(shape, out):
    name = {1: "linear", 2: "bilinear"}[len(out)]
    with pytest.raises(RuntimeError) as theirs:
        functional.interpolate(torch.zeros(shape), size=out, mode=name)
    with pytest.raises(RuntimeError) as ours:
        interpolate(np.zeros(shape), out, "linear", False, (None,) * len(out))
    assert str(ours.value) == str(theirs.value)
