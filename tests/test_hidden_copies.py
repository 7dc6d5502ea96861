"""Operations allocate their results, gradients and what they keep, and no hidden copies.

What NumPy allocates is counted by tracemalloc, in units of one array of `SIZE` by `SIZE` floats.
"""

import gc
import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest

import clew
from clew.kernels.compiled import twins
from clew.nn import functional as F

SIZE = 512
UNIT = SIZE * SIZE * 4
SLACK = 0.15
"""Python's own objects, sums of rows, blocks that stay in the cache."""

STEPS = 0 if twins("softmax", np.dtype(np.float32)) else 1
"""Without compiled kernels, some formulas go over whole arrays in steps."""


def matrix():
    return clew.randn(SIZE, SIZE, requires_grad=True)


def vector():
    return clew.randn(SIZE, requires_grad=True)


@dataclass
class Case:
    """A call; the units that it leaves (results and what is kept), and in passing on top of that:
    in forward, in backward, and in a backward that adds to gradients that are there.

    A backward leaves the gradients of its inputs.  Where it adds to them, what arrives is in
    passing: nothing where a gradient is the incoming one itself.
    """

    call: object
    inputs: tuple
    leaves: float
    forward: float = 0
    backward: float = 0
    again: float = 0


M, V = matrix, vector
IMAGES = lambda: clew.randn(4, 16, 64, 64, requires_grad=True)  # noqa: E731
BITS, BOOLS = 1 / 32, 1 / 4

CASES = {
    "relu": Case(
        lambda x: x.relu(), (M,), 1 + BITS, forward=BOOLS, backward=BOOLS, again=1 + BOOLS
    ),
    "add": Case(lambda a, b: a + b, (M, M), 1, again=0),
    "add a number": Case(lambda a: a + 1, (M,), 1, again=0),
    "add a row": Case(lambda a, b: a + b, (M, V), 1, again=0),
    "sub": Case(lambda a, b: a - b, (M, M), 1, again=1),
    "mul": Case(lambda a, b: a * b, (M, M), 1, again=2),
    "mul by a number": Case(lambda a: a * 2, (M,), 1, again=1),
    "div": Case(lambda a, b: a / b, (M, M), 1, again=2),
    "pow": Case(lambda a: a**2, (M,), 1, again=1),
    "exp": Case(lambda a: a.exp(), (M,), 1, again=1),
    "tanh": Case(lambda a: a.tanh(), (M,), 1, again=1),
    "sigmoid": Case(lambda a: a.sigmoid(), (M,), 1, again=1),
    "clamp": Case(lambda a: a.clamp(-1, 1), (M,), 1, backward=BOOLS, again=1 + BOOLS),
    "dropout": Case(
        lambda a: F.dropout(a, 0.1), (M,), 1 + BITS, forward=BOOLS, backward=BOOLS, again=1 + BOOLS
    ),
    "matmul": Case(lambda a, b: a @ b, (M, M), 1, again=2),
    "linear": Case(F.linear, (M, M, V), 1, again=2),
    "linear in three dimensions": Case(
        lambda x, w, b: F.linear(x.view(4, -1, SIZE), w, b), (M, M, V), 1, again=2
    ),
    "softmax": Case(
        lambda a: a.softmax(1), (M,), 1, forward=STEPS, backward=STEPS, again=1 + STEPS
    ),
    "log_softmax": Case(
        lambda a: a.log_softmax(1), (M,), 1, forward=STEPS, backward=STEPS, again=1 + STEPS
    ),
    "layer_norm": Case(
        lambda x, w, b: F.layer_norm(x, (SIZE,), w, b),
        (M, V, V),
        1,
        forward=STEPS,
        backward=STEPS,
        again=1 + STEPS,
    ),
    "batch_norm": Case(
        lambda x, w, b: F.batch_norm(x, None, None, w[:16], b[:16], True),
        (IMAGES, V, V),
        1,
        again=1,
    ),
    "sum": Case(lambda a: a.sum(), (M,), 0, again=0),
    "mean": Case(lambda a: a.mean(), (M,), 0, again=0),
    "view": Case(lambda a: a.view(-1), (M,), 0, again=0),
    "transpose": Case(lambda a: a.t(), (M,), 0, again=0),
    "cat": Case(lambda a, b: clew.cat([a, b]), (M, M), 2, again=0),
}


def growth(action):
    """What the action gives, and the units that it leaves and takes at most."""
    gc.collect()
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    result = action()
    left, peak = tracemalloc.get_traced_memory()
    return result, (left - before) / UNIT, (peak - before) / UNIT


@pytest.fixture
def tracing():
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.parametrize("name", CASES)
def test_allocations(name, tracing):
    case = CASES[name]
    inputs = [make() for make in case.inputs]
    call = case.call
    call(*inputs).sum().backward()  # what is loaded and cached by the first call
    for x in inputs:
        x.grad = None

    out, left, peak = growth(lambda: call(*inputs))
    assert left == pytest.approx(case.leaves, abs=SLACK)
    assert peak <= case.leaves + case.forward + SLACK

    ones = clew.ones(*out.shape)
    gradients = sum(x.nbytes for x in inputs) / UNIT
    _, left, peak = growth(lambda: out.backward(ones, retain_graph=True))
    assert left == pytest.approx(gradients, abs=SLACK)
    assert peak <= gradients + case.backward + SLACK

    _, left, peak = growth(lambda: out.backward(ones, retain_graph=True))
    assert left == pytest.approx(0, abs=SLACK)
    assert peak <= case.again + SLACK


def test_gradients_of_many_uses_are_added_in_place(tracing):
    x = matrix()

    def loss():
        return clew.stack([(x * i).sum() for i in range(8)]).sum()

    loss().backward()
    x.grad = None
    out = loss()
    _, left, peak = growth(out.backward)
    assert left == pytest.approx(1, abs=SLACK)
    # The sum so far, and what is added to it.
    assert peak <= 2 + SLACK


def test_a_chain_needs_one_gradient_at_a_time(tracing):
    x = matrix()

    def loss():
        h = x
        for _ in range(8):
            h = h * 1.5 + 1
        return h.sum()

    loss().backward()
    x.grad = None
    out = loss()
    _, left, peak = growth(out.backward)
    assert left == pytest.approx(1, abs=SLACK)
    assert peak <= 2 + SLACK
