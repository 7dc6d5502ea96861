"""The compiled twins of optimizers' updates do to memory what NumPy does."""

import numpy as np
import pytest

from clew.kernels import optim
from clew.kernels.compiled import twins

SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, -1e-45, 1e-310, 3e38, -1e20]
ADAM = {"step": 3.0, "lr": 0.01, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8}
UPDATES = {
    "sgd": (optim.sgd, 0, {"velocity": None, "lr": 0.1, "momentum": 0, "dampening": 0}),
    "sgd momentum": (optim.sgd, 1, {"lr": 0.1, "momentum": 0.9, "dampening": 0.25}),
    "sgd nesterov": (optim.sgd, 1, {"lr": 0.1, "momentum": 0.9, "dampening": 0, "nesterov": True}),
    "adam": (optim.adam, 2, {"largest": None, **ADAM}),
    "adamw": (optim.adam, 2, {"largest": None, **ADAM, "shrink": 0.9}),
    "adam by the far end": (optim.adam, 2, {"largest": None, **ADAM, "beta1": 0.2}),
    "amsgrad": (optim.adam, 3, ADAM),
    "rmsprop": (
        optim.rmsprop, 1,
        {"mean": None, "velocity": None, "lr": 0.1, "alpha": 0.9, "eps": 1e-8, "momentum": 0},
    ),
    "adagrad": (optim.adagrad, 1, {"step": 3.0, "lr": 0.1, "lr_decay": 0.1, "eps": 1e-10}),
}  # fmt: skip


def update(name, arrays, decay, fast):
    """The arrays after one update of copies of them."""
    function, states, options = UPDATES[name]
    param, grad, *rest = (a.copy(order="K") for a in arrays[: 2 + states])
    if function is optim.sgd:
        options = {"first": False, "nesterov": False, **options}
    with np.errstate(all="ignore"):
        function(param, grad, *rest, **options, decay=decay, fast=fast)
    return [param, grad, *rest]


def assert_equal_updates(name, arrays, decay=0.0, size=1.0):
    """Equal but for last digits, and those of what cancels among numbers of the given size."""
    dtype = arrays[0].dtype
    ours = update(name, arrays, decay, twins("optim", dtype))
    theirs = update(name, arrays, decay, None)
    for a, b in zip(ours, theirs):
        eps = 8 * np.finfo(dtype).eps
        np.testing.assert_allclose(a, b, rtol=eps, atol=eps * size)


def random_arrays(shape, dtype):
    """A parameter, a gradient, and states that are not negative."""
    rng = np.random.default_rng(0)
    signed = [rng.normal(size=shape).astype(dtype) for _ in range(2)]
    return signed + [rng.random(shape).astype(dtype) for _ in range(3)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", UPDATES)
@pytest.mark.parametrize("decay", [0.0, 0.1])
class TestEveryUpdate:
    @pytest.mark.parametrize("shape", [(1,), (0,), (3, 5), (333,)])
    def test_of_random_numbers(self, name, dtype, decay, shape):
        assert_equal_updates(name, random_arrays(shape, dtype), decay)

    def test_of_special_numbers(self, name, dtype, decay):
        with np.errstate(over="ignore"):
            values = np.array(SPECIAL).astype(dtype)
        grids = np.meshgrid(values, values, indexing="ij")
        state = np.resize(np.abs(np.nan_to_num(values, posinf=1)), grids[0].shape)
        for param, grad in (grids, grids[::-1]):
            # Denormal numbers have few digits, and are divided by `eps`.
            size = 1e8 * np.finfo(dtype).smallest_normal
            assert_equal_updates(name, [param, grad, state, state, state], decay, size)

    def test_of_a_gradient_with_gaps(self, name, dtype, decay):
        param, grad, *states = random_arrays((6, 4), dtype)
        wide = np.repeat(grad, 2, axis=1)[:, ::2]
        assert_equal_updates(name, [param, wide, *states], decay)


def test_arrays_with_gaps_are_left_to_numpy():
    arrays = [a.T for a in random_arrays((3, 5), "float32")]
    assert_equal_updates("adam", arrays)


def test_small_groups_need_no_twins():
    assert optim.compiled([np.zeros(8, np.float32), np.zeros((4, 4), np.float32)]) is None
    assert optim.compiled([np.zeros(8, np.float32), np.zeros(2000, np.float32)]) is not None
