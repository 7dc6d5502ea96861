"""The compiled twins of recurrent layers agree with NumPy."""

import numpy as np
import pytest

from both_ways import both, close
from clew.kernels import gru, recurrent

DTYPES = ("float32", "float64")


@pytest.fixture(autouse=True)
def twins_for_all_sizes(monkeypatch):
    for module in (gru, recurrent):
        monkeypatch.setattr(module, "SMALL", -1)


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
def test_an_lstm(dtype, values, steps, batch, size, bias, reverse):
    inputs, weight = values(batch, steps, 4 * size).swapaxes(0, 1), values(4 * size, size) / size
    biases = values(4 * size) if bias else None
    hidden, cell = values(batch, size), values(size, batch).T
    given = inputs, weight, biases, hidden, cell, reverse
    fast, plain = both(recurrent.lstm, *given)
    close(fast, plain, dtype, 20, 16)
    cells, gates = plain[1:]
    given = values(size, batch, steps).T, weight, cell, cells, gates
    for rest in ((None, None), (values(*cells.shape), values(*gates.shape))):
        close(*both(recurrent.lstm_backward, *given, *rest, reverse), dtype, 20, 16)


@pytest.mark.parametrize("dtype", DTYPES)
@layers
def test_a_gru(dtype, values, steps, batch, size, bias, reverse):
    inputs, weight = values(batch, steps, 3 * size).swapaxes(0, 1), values(3 * size, size) / size
    biases = values(3 * size) if bias else None
    hidden = values(size, batch).T
    fast, plain = both(gru.gru, inputs, weight, biases, hidden, reverse)
    close(fast, plain, dtype, 20, 16)
    given = values(size, batch, steps).T, None, weight, hidden, *plain, reverse
    close(*both(gru.gru_backward, *given), dtype, 20, 16)


@pytest.mark.parametrize("dtype", DTYPES)
@layers
def test_plain_units(dtype, values, steps, batch, size, bias, reverse):
    inputs, weight = values(batch, steps, size).swapaxes(0, 1), values(size, size) / size
    biases = values(size) if bias else None
    given = inputs, weight, biases, values(size, batch).T, False, reverse
    fast, plain = both(gru.rnn, *given)
    close([fast], [plain], dtype, 20, 16)


@pytest.mark.parametrize("dtype", DTYPES)
def test_extreme_values(dtype):
    info = np.finfo(dtype)
    extreme = [0, -0.0, 1e-6, info.tiny / 8, 0.6, 0.7, -9, 20, 88, -89, -105, 800, -800, info.max]
    values = np.array([*extreme, np.inf, -np.inf, np.nan], dtype)
    inputs = np.stack(np.meshgrid(values, values), 2).reshape(1, -1, 2)
    inputs = np.concatenate([inputs, inputs[..., ::-1]], 2)
    weight, state = np.zeros((4, 1), dtype), np.ones((inputs.shape[1], 1), dtype)
    with np.errstate(all="ignore"):
        fast, plain = both(recurrent.lstm, inputs, weight, None, state, state, False)
        close(fast, plain, dtype, 20, 16)
        given = plain[0], weight, state, plain[1], plain[2], None, None, False
        close(*both(recurrent.lstm_backward, *given), dtype, 20, 16)
