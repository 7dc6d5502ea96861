"""Values of `nn.functional` where the samples of PyTorch do not look: edges, halves, in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clew
from twins import assert_same, outcome

F = clew.nn.functional

ACTIVATIONS = [
    "sigmoid", "relu", "leaky_relu", "elu", "selu", "celu", "gelu", "silu", "mish", "softplus",
    "softsign", "logsigmoid", "hardtanh", "relu6", "hardsigmoid", "hardswish", "hardshrink",
    "softshrink",
]  # fmt: skip

EDGES = [0.0, 1e-8, -1e-8, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0, 6.0, 20.0, 21.0, -30.0, 100.0, -100.0]


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_activations_at_their_edges(name: str, dtype: str) -> None:
    """Values and gradients at kinks, at 0 and far out, within rounding of the type."""
    eps = {"float64": 2**-52, "float32": 2**-23, "float16": 2**-10, "bfloat16": 2**-7}[dtype]

    def run(engine: Any) -> Any:
        x = engine.tensor(EDGES, dtype=getattr(engine, dtype), requires_grad=True)
        y = getattr(engine.nn.functional, name)(x)
        return y, engine.autograd.grad(y.sum(), x)[0]

    # 2e-7 is the float32 constant that PyTorch divides by in some double kernels.
    assert_same(run, rtol=max(4 * eps, 2e-7), atol=8 * eps)


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "hardtanh", "relu6", "hardshrink"])
def test_dropped_gradients_are_zero_even_of_infinities(name: str) -> None:
    outside = {"hardshrink": [0.1, 0.0], "hardtanh": [-7.0, 1.0]}.get(name, [-7.0, 0.0])
    x = clew.tensor(outside, requires_grad=True)
    y = getattr(F, name)(x)
    slope = 0.01 if name == "leaky_relu" else 0.0
    for bad in (float("inf"), float("nan")):
        (grad,) = clew.autograd.grad(y, x, clew.full((2,), bad), retain_graph=True)
        if slope:
            assert not np.isfinite(grad.numpy()).any()
        else:
            assert grad.tolist() == [0.0, 0.0]


def test_relu_keeps_nan() -> None:
    assert np.isnan(F.relu(clew.tensor(float("nan"))).item())
    assert np.isnan(F.relu6(clew.tensor([float("nan")])).numpy()).all()


@pytest.mark.parametrize(
    "call",
    [
        "F.relu(y, inplace=True)", "F.relu_(y)", "F.leaky_relu(y, 0.1, inplace=True)",
        "F.leaky_relu_(y)", "F.elu(y, 0.5, inplace=True)", "F.selu(y, inplace=True)",
        "F.celu_(y, 0.5)", "F.silu(y, inplace=True)", "F.mish(y, inplace=True)",
        "F.hardtanh_(y, -0.5, 0.5)", "F.relu6(y, inplace=True)", "F.hardsigmoid(y, inplace=True)",
        "F.hardswish(y, inplace=True)", "F.threshold_(y, 0.1, 7.0)",
        "F.rrelu(y, training=True, inplace=True)", "F.rrelu_(y)", "y.sigmoid_()",
        "F.dropout(y, 0.4, inplace=True)", "F.alpha_dropout(y, 0.4, True, inplace=True)",
        "F.dropout1d(y, 0.4, inplace=True)",
    ],
)  # fmt: skip
def test_in_place_writes_and_records(call: str) -> None:
    def run(engine: Any) -> Any:
        engine.manual_seed(0)
        x = engine.linspace(-2, 2, 24).reshape(4, 6).requires_grad_()
        y = x * 1.5
        result = eval(call, {"F": engine.nn.functional, "y": y})
        assert result is y
        return y, y._version, engine.autograd.grad((y * y).sum(), x)[0]

    assert_same(run)


@pytest.mark.parametrize("function", ["leaky_relu", "elu"])
def test_negative_slope_in_place_is_refused_in_backward(function: str) -> None:
    def run(engine: Any) -> Any:
        x = engine.ones(2, requires_grad=True)
        getattr(engine.nn.functional, function)(x * 1, -1.0, inplace=True).sum().backward()

    torch = pytest.importorskip("torch")
    ours, theirs = outcome(run, clew), outcome(run, torch)
    assert ours[0] == theirs[0] == "RuntimeError"
    assert theirs[1].startswith(ours[1]) and "negative slope" in ours[1]


# -- normalisation


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_batch_norm_moves_its_statistics(training: bool, affine: bool, dtype: str) -> None:
    """Running statistics move in place and, as in PyTorch, keep their version."""

    def run(engine: Any) -> Any:
        x = engine.linspace(-2, 3, 36).reshape(3, 4, 3).to(getattr(engine, dtype))
        mean, var = engine.zeros(4), engine.ones(4)
        if dtype == "float64":
            mean, var = mean.double(), var.double()
        weight = engine.linspace(1, 2, 4).to(mean.dtype) if affine else None
        y = engine.nn.functional.batch_norm(x, mean, var, weight, None, training, 0.3)
        return y, mean, var, mean._version, var._version

    assert_same(run, rtol=2e-3 if dtype == "float16" else 1e-5)


def test_instance_norm_moves_its_statistics() -> None:
    def run(engine: Any) -> Any:
        x = engine.linspace(-2, 3, 24).reshape(2, 3, 4)
        mean, var = engine.zeros(3), engine.ones(3)
        y = engine.nn.functional.instance_norm(x, mean, var)
        return y, mean, var

    assert_same(run)


def test_batch_norm_refuses_statistics_changed_before_backward() -> None:
    def run(engine: Any) -> Any:
        x, mean, var = engine.ones(3, 2, requires_grad=True), engine.zeros(2), engine.ones(2)
        y = engine.nn.functional.batch_norm(x, mean, var)
        mean.add_(1)
        y.sum().backward()

    torch = pytest.importorskip("torch")
    for engine in (clew, torch):
        kind, message = outcome(run, engine)
        assert kind == "RuntimeError" and "modified by an inplace operation" in message


# -- losses


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(5,), (3, 5), (2, 5, 3), (2, 5, 2, 2)])
def test_cross_entropy(reduction: str, smoothing: float, weighted: bool, shape: Any) -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=shape)
    places = shape[:1] * (len(shape) > 1) + shape[2:]
    target = rng.integers(0, 5, places)
    if target.size > 1:
        target.flat[0] = 2  # ignored
    weight = rng.uniform(0.5, 2, 5) if weighted else None

    def run(engine: Any) -> Any:
        x = engine.from_numpy(logits.copy()).requires_grad_()
        y = engine.nn.functional.cross_entropy(
            x, engine.from_numpy(np.array(target)),
            weight=None if weight is None else engine.from_numpy(weight.copy()),
            reduction=reduction, label_smoothing=smoothing, ignore_index=2,
        )  # fmt: skip
        return y, engine.autograd.grad(y.sum(), x)[0]

    assert_same(run, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("target", [[1, -100], [-100, -100], []])
def test_cross_entropy_of_ignored_targets(target: list[int]) -> None:
    def run(engine: Any) -> Any:
        x = engine.arange(4.0 * len(target)).reshape(len(target), 4)
        y = engine.tensor(target, dtype=engine.int64)
        return [engine.nn.functional.cross_entropy(x, y, reduction=r) for r in ("none", "sum")]

    assert_same(run)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_losses_take_targets_of_other_types(reduction: str) -> None:
    def run(engine: Any) -> Any:
        x = engine.linspace(-2, 2, 6).reshape(2, 3).requires_grad_()
        doubles, integers = x.detach().double() + 0.3, engine.ones(2, 3, dtype=engine.int64)
        functional = engine.nn.functional
        found = []
        for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "soft_margin_loss"):
            for target in (doubles, integers):
                y = getattr(functional, name)(x, target, reduction=reduction)
                found += [y, engine.autograd.grad(y.sum(), x)[0]]
        return found

    assert_same(run)


def test_large_logits_do_not_overflow() -> None:
    def run(engine: Any) -> Any:
        x = engine.tensor([-1e4, 1e4, 0.0], requires_grad=True)
        functional, t = engine.nn.functional, engine.tensor([1.0, 0.0, 1.0])
        losses = [
            functional.binary_cross_entropy_with_logits(x, t, reduction="none"),
            functional.cross_entropy(x, engine.tensor(0)),
            functional.softplus(x), functional.logsigmoid(x), functional.log_softmax(x, 0),
        ]  # fmt: skip
        return losses, [engine.autograd.grad(y.sum(), x)[0] for y in losses]

    assert_same(run)


# -- images and tables


@pytest.mark.parametrize("n", [1, 2, 3])
def test_unpooling_undoes_pooling(n: int) -> None:
    def run(engine: Any) -> Any:
        size = (1, 2, *(6, 4, 4)[:n])
        x = engine.arange(float(np.prod(size))).reshape(size)
        functional = engine.nn.functional
        y, indices = getattr(functional, f"max_pool{n}d")(x, 2, return_indices=True)
        return y, indices, getattr(functional, f"max_unpool{n}d")(y, indices, 2)

    assert_same(run)


def test_results_never_share_memory_with_inputs() -> None:
    x = clew.rand(1, 4, 4, 4)
    same = [
        F.pixel_shuffle(x, 1), F.pixel_unshuffle(x, 1), F.channel_shuffle(x, 1), F.unfold(x, 1),
        F.pad(x, (0, 0)), F.interpolate(x, 4), F.adaptive_avg_pool2d(x, 4), F.max_pool2d(x, 1),
    ]  # fmt: skip
    before = [y.clone() for y in same]
    x.add_(1)
    for y, old in zip(same, before):
        assert (y == old).all()


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_renormalises_in_place(mode: str) -> None:
    def run(engine: Any) -> Any:
        table = engine.arange(15.0).reshape(5, 3).requires_grad_()
        index = engine.tensor([1, 3, 3])
        y = engine.nn.functional.embedding(index, table, max_norm=2.0, norm_type=1.0)
        bag = engine.nn.functional.embedding_bag(
            index, table, engine.tensor([0, 1]), max_norm=1.5, mode=mode
        )
        return y, bag, table, table._version

    assert_same(run)
