"""The compiled twins of recurrent layers agree with NumPy."""

import numpy as np
import pytest

from clew.kernels import recurrent
from clew.kernels.compiled import switch

DTYPES = ("float32", "float64")


def both(monkeypatch, function, *arguments):
    """The results with twins, whatever the size, and without."""
    monkeypatch.setattr(recurrent, "_SMALL", -1)
    fast = function(*arguments)
    switch(False)
    try:
        return fast, function(*arguments)
    finally:
        switch(True)


def close(fast, plain, dtype):
    eps = np.finfo(dtype).eps
    for x, y in zip(fast, plain):
        assert x.dtype == dtype
        np.testing.assert_allclose(x, y, rtol=20 * eps, atol=8 * eps)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "steps, batch, size, bias, reverse",
    [
        (1, 1, 1, True, False),
        (4, 3, 5, False, True),
        (3, 2, 70, True, False),
        (2, 0, 3, True, True),
    ],
)
def test_a_layer(monkeypatch, dtype, steps, batch, size, bias, reverse):
    rng = np.random.default_rng(0)

    def values(*shape):
        return rng.normal(size=shape).astype(dtype)

    inputs, weight = values(batch, steps, 4 * size).swapaxes(0, 1), values(4 * size, size) / size
    biases = values(4 * size) if bias else None
    hidden, cell = values(batch, size), values(size, batch).T
    given = inputs, weight, biases, hidden, cell, reverse
    fast, plain = both(monkeypatch, recurrent.lstm, *given)
    close(fast, plain, dtype)
    cells, gates = plain[1:]
    given = values(size, batch, steps).T, weight, cell, cells, gates
    for rest in ((None, None), (values(*cells.shape), values(*gates.shape))):
        close(*both(monkeypatch, recurrent.lstm_backward, *given, *rest, reverse), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_extreme_values(monkeypatch, dtype):
    info = np.finfo(dtype)
    extreme = [0, -0.0, 1e-6, info.tiny / 8, 0.6, 0.7, -9, 20, 88, -89, -105, 800, -800, info.max]
    values = np.array([*extreme, np.inf, -np.inf, np.nan], dtype)
    inputs = np.stack(np.meshgrid(values, values), 2).reshape(1, -1, 2)
    inputs = np.concatenate([inputs, inputs[..., ::-1]], 2)
    weight, state = np.zeros((4, 1), dtype), np.ones((inputs.shape[1], 1), dtype)
    with np.errstate(all="ignore"):
        fast, plain = both(monkeypatch, recurrent.lstm, inputs, weight, None, state, state, False)
        close(fast, plain, dtype)
        given = plain[0], weight, state, plain[1], plain[2], None, None, False
        close(*both(monkeypatch, recurrent.lstm_backward, *given), dtype)
