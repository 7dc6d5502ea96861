"""The compiled twins of attention agree with NumPy."""

import numpy as np
import pytest

from both_ways import both, close
from clew.kernels import attention
from clew.kernels.compiled import twins
from clew.threads import one_blas_thread

DTYPES = ("float32", "float64")


@pytest.fixture(autouse=True)
def twins_for_all_sizes(monkeypatch):
    monkeypatch.setattr(attention, "_SMALL", 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("tile_rows", [128, 3])
@pytest.mark.parametrize("scale", [0.4, -0.4, 0])
@pytest.mark.parametrize("keys, kind", [(9, "causal"), (20, "causal"), (13, "mask"), (17, "")])
def test_tiles(monkeypatch, dtype, tile_rows, scale, keys, kind):
    monkeypatch.setattr(attention, "_ROWS", tile_rows)
    if tile_rows < 128:
        monkeypatch.setattr(attention, "TILE_BYTES", 1)
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(2, 3, n, 5)).astype(dtype) for n in (13, keys, keys))
    grad = rng.normal(size=q.shape).astype(dtype)
    mask = np.where(rng.random((2, 1, 13, keys)) < 0.5, -np.inf, 0) if kind == "mask" else None
    if mask is not None:
        mask[:, :, 4] = -np.inf
    rest = kind == "causal", scale
    fast, plain = both(attention.attention, q, k, v, mask, *rest)
    close(fast, plain, dtype, 40, 40)
    given = grad, q, k, v, mask, *plain, *rest
    close(*both(attention.attention_backward, *given), dtype, 40, 40)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shared", [4, 2])
@pytest.mark.parametrize("need", [(True, True, True), (True, False, False), (False, True, True)])
def test_heads_that_lie_side_by_side(dtype, shared, need):
    """As parts of one projection, which a transformer makes, with gradients in other orders."""
    rng = np.random.default_rng(0)
    whole = rng.normal(size=(2, 6, 4 * 5 * 3)).astype(dtype)
    q, k, v = (x.reshape(2, 6, 4, 5).swapaxes(1, 2) for x in np.split(whole, 3, axis=2))
    k, v = k[:, :shared], v[:, :shared]
    fast, plain = both(attention.attention, q, k, v, None, True, 0.4)
    close(fast, plain, dtype, 40, 40)
    assert fast[0].strides == plain[0].strides
    for grad in (np.asfortranarray(plain[0]), np.broadcast_to(plain[0][:, :, :1], q.shape)):
        given = grad, q, k, v, None, *plain, True, 0.4, need
        fast_grads, grads = both(attention.attention_backward, *given)
        assert [x is not None for x in fast_grads] == list(need)
        there = [(a, b) for a, b in zip(fast_grads, grads) if a is not None]
        close(*zip(*there), dtype, 40, 40)


@pytest.mark.parametrize("lie", ["few columns", "no OpenBLAS"])
def test_without_products_in_twins(monkeypatch, lie):
    """A twin does all only where it can multiply; the results are the same."""
    x = np.random.default_rng(0).normal(size=(1, 2, 9, 1 if lie == "few columns" else 4))
    if lie == "no OpenBLAS":
        monkeypatch.setitem(one_blas_thread._gemms, x.dtype, 0)
    fast, plain = both(attention.attention, x, x, x, None, True, 0.4)
    close(fast, plain, x.dtype, 40, 40)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e-40, 3e38])
def test_extreme_values(dtype, value):
    x = np.random.default_rng(0).normal(size=(1, 1, 4, 11)).astype(dtype)
    x[0, 0, 2, 9] = value
    with np.errstate(all="ignore"):
        fast, plain = both(attention.attention, x, x, x, None, False, 0.5)
        close(fast, plain, dtype, 40, 40)
        given = x, x, x, x, None, *plain, False, 0.5
        close(*both(attention.attention_backward, *given), dtype, 40, 40)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("keys", [1, 7, 8, 9, 23])
def test_the_largest_number_is_found_wherever_it_stands(dtype, keys):
    """The logarithm of the sum of exponentials is the one number that is far above the others."""
    tile = np.zeros((1, keys, keys), dtype)
    tile[0, range(keys), range(keys)] = 1000
    logs = np.empty((1, keys), dtype)
    twins("attention", tile.dtype).softmax_tile(tile, logs, 1.0, 0, False)
    np.testing.assert_array_equal(logs, 1000)
    np.testing.assert_array_equal(tile[0], np.eye(keys))
