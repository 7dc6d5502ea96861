"""The compiled twins of recurrent layers agree with NumPy, with products by oneDNN and without."""

import numpy as np
import pytest

from both_ways import both, close
from clew.kernels import gru, onednn, recurrent, steps
from clew.threads import get_num_threads, set_num_threads

DTYPES = ("float32", "float64")


@pytest.fixture(autouse=True)
def twins_for_all_sizes(monkeypatch):
    monkeypatch.setattr(steps, "SMALL", -1)


@pytest.fixture
def values(dtype):
    """Makes arrays of random numbers."""
    rng = np.random.default_rng(0)
    return lambda *shape: rng.normal(size=shape).astype(dtype)


@pytest.fixture(params=[False, True], autouse=True)
def _products(request):
    before = onednn.is_wanted()
    onednn.switch(request.param)
    yield
    onednn.switch(before)


layers = pytest.mark.parametrize(
    "sizes, size, bias, reverse",
    [
        ((1,), 1, True, False),
        ((3,) * 4, 5, False, True),
        ((2,) * 3, 70, True, False),
        ((0, 0), 3, True, True),
        ((40, 40, 17, 3), 9, True, False),
        ((40, 40, 17, 3), 9, True, True),
    ],
)


def parameters(values, sizes, gates, size, bias):
    """Input, weights and biases; the input is not contiguous."""
    x, weights = values(4, sum(sizes)).T, (values(gates * size, 4), values(gates * size, size))
    biases = (values(gates * size), values(gates * size)) if bias else (None, None)
    return x, (weights[0], weights[1] / size), biases


@pytest.mark.parametrize("dtype", DTYPES)
@layers
def test_an_lstm(dtype, values, sizes, size, bias, reverse):
    how = steps.steps_of(sizes, reverse)
    hidden, cell = values(size, sizes[0]).T, values(size, sizes[0]).T
    given = *parameters(values, sizes, 4, size, bias), hidden, cell, how
    fast, plain = both(recurrent.lstm, *given)
    close(fast, plain, dtype, 40, 32)
    cells, gates = plain[3:]
    for more in (False, True):
        grads = values(size, sum(sizes)).T, values(size, sizes[0]).T, values(*cell.shape)
        grads += (values(*cells.shape), values(*gates.shape)) if more else (None, None)
        given = grads, values(4 * size, size) / size, cell, cells, gates, how
        close(*both(recurrent.lstm_backward, *given), dtype, 80, 64)


@pytest.mark.parametrize("dtype", DTYPES)
@layers
def test_a_gru(dtype, values, sizes, size, bias, reverse):
    how, hidden = steps.steps_of(sizes, reverse), values(size, sizes[0]).T
    given = *parameters(values, sizes, 3, size, bias), hidden, how
    fast, plain = both(gru.gru, *given)
    close(fast, plain, dtype, 40, 32)
    outputs, _, gates = plain
    for more in (None, values(*gates.shape)):
        grads = values(size, sum(sizes)).T, values(size, sizes[0]).T, more
        given = grads, values(3 * size, size) / size, hidden, outputs, gates, how
        close(*both(gru.gru_backward, *given), dtype, 80, 64)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("relu", [False, True])
@layers
def test_plain_units(dtype, values, sizes, size, bias, reverse, relu):
    how, hidden = steps.steps_of(sizes, reverse), values(size, sizes[0]).T
    given = *parameters(values, sizes, 1, size, bias), hidden, relu, how
    fast, plain = both(gru.rnn, *given)
    close(fast, plain, dtype, 40, 32)
    grads = values(size, sum(sizes)).T, values(size, sizes[0]).T
    given = grads, values(size, size) / size, hidden, plain[0], relu, how
    close(*both(gru.rnn_backward, *given), dtype, 80, 64)


@pytest.mark.parametrize("dtype", ["float32"])
def test_results_do_not_depend_on_threads(dtype, values):
    how, hidden, cell = steps.steps_of((70,) * 40, False), values(70, 64), values(70, 64)
    given = *parameters(values, (70,) * 40, 4, 64, True), hidden, cell, how
    before, found = get_num_threads(), []
    try:
        for threads in (1, 3):
            set_num_threads(threads)
            results = recurrent.lstm(*given)
            grads = results[0], *results[1:3], None, None
            more = given[1][1], cell, *results[3:], how
            found.append([*results, *recurrent.lstm_backward(grads, *more)])
    finally:
        set_num_threads(before)
    for one, three in zip(*found):
        np.testing.assert_array_equal(one, three)


@pytest.mark.parametrize("dtype", DTYPES)
def test_extreme_values(dtype):
    info = np.finfo(dtype)
    extreme = [0, -0.0, 1e-6, info.tiny / 8, 0.6, 0.7, -9, 20, 88, -89, -105, 800, -800, info.max]
    values = np.array([*extreme, np.inf, -np.inf, np.nan], dtype)
    x, cell = (a.reshape(-1, 1) for a in np.meshgrid(values, values))
    how, hidden = steps.steps_of((len(x),), False), np.ones((len(x), 1), dtype)
    for signs in ([1, 1, 1, 1], [1, -1, 1, -1], [-1, 1, -1, 1]):
        weights = np.array(signs, dtype).reshape(4, 1), np.zeros((4, 1), dtype)
        with np.errstate(all="ignore"):
            fast, plain = both(recurrent.lstm, x, weights, (None, None), hidden, cell, how)
            close(fast, plain, dtype, 20, 16)
            given = (plain[0], *[None] * 4), weights[1], cell, *plain[3:], how
            close(*both(recurrent.lstm_backward, *given), dtype, 20, 16)
