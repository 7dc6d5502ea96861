"""The compiled twins of softmax agree with NumPy."""

import numpy as np
import pytest

from clew.kernels.compiled import twins


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 10), (64, 333)])
def test_softmax(shape, dtype):
    x = np.random.default_rng(0).normal(size=shape, scale=30).astype(dtype)
    out = np.empty_like(x)
    twins("softmax", x.dtype).softmax(out, x)
    wide = np.exp((x - x.max(1, keepdims=True)).astype("longdouble"))
    wide /= wide.sum(1, keepdims=True)
    np.testing.assert_allclose(out, wide.astype(dtype), rtol=20 * np.finfo(dtype).eps, atol=1e-44)
