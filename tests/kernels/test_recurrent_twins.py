"""The compiled twins of recurrent layers agree with NumPy."""

import numpy as np
import pytest

from clew.kernels import gru, recurrent
from clew.kernels.compiled import switch

DTYPES = ("float32", "float64")


def both(monkeypatch, function, *arguments):
    """The results with twins, whatever the size, and without."""
    for module in (gru, recurrent):
        monkeypatch.setattr(module, "SMALL", -1)
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
        np.testing.assert_allclose(x, y, rtol=20 * eps, atol=16 * eps)


@pytest.fixture
def values(dtype):
    """Makes arrays of random numbers."""
    rng = np.random.default_rng(0)
    return lambda *shape: rng.normal(size=shape).astype(dtype)


layers = pytest.mark.parametrize(
    "steps, batch, size, bias, reverse",
    [
        (1, 1, 1, True, False),
        (4, 3, 5, False, True),
        (3, 2, 70, True, False),
        (2, 0, 3, True, True),
    ],
)


@pytest.mark.parametrize("dtype", DTYPES)
@layers
def test_an_lstm(monkeypatch, dtype, values, steps, batch, size, bias, reverse):
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
@layers
def test_a_gru(monkeypatch, dtype, values, steps, batch, size, bias, reverse):
    inputs, weight = values(batch, steps, 3 * size).swapaxes(0, 1), values(3 * size, size) / size
    biases = values(3 * size) if bias else None
    hidden = values(size, batch).T
    fast, plain = both(monkeypatch, gru.gru, inputs, weight, biases, hidden, reverse)
    close(fast, plain, dtype)
    given = values(size, batch, steps).T, None, weight, hidden, *plain, reverse
    close(*both(monkeypatch, gru.gru_backward, *given), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@layers
def test_plain_units(monkeypatch, dtype, values, steps, batch, size, bias, reverse):
    inputs, weight = values(batch, steps, size).swapaxes(0, 1), values(size, size) / size
    biases = values(size) if bias else None
    given = inputs, weight, biases, values(size, batch).T, False, reverse
    fast, plain = both(monkeypatch, gru.rnn, *given)
    close([fast], [plain], dtype)


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
