"""Gradients of each example and ensembles of models: against a loop, and against torch."""

import numpy as np
import pytest

import clew
import clew.nn
from clew.func import functional_call, stack_module_state
from twins import assert_same


def mlp(t):
    nn = t.nn
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 3))


def cnn(t):
    nn = t.nn
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.GELU(), nn.MaxPool2d(2), nn.GroupNorm(2, 4),
        nn.Conv2d(4, 4, 3, groups=2), nn.Flatten(), nn.Linear(4, 3),
    )  # fmt: skip


def transformer(t):
    return t.nn.Sequential(
        t.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), t.nn.Linear(8, 3)
    )


def embedded(t):
    return t.nn.Sequential(t.nn.Embedding(7, 4), t.nn.Flatten(), t.nn.Linear(12, 3))


MODELS = {
    mlp: (5, 4), cnn: (3, 2, 6, 6), transformer: (3, 5, 8), embedded: (4, 3),
}  # fmt: skip


def inputs(t, make):
    rng = np.random.default_rng(0)
    shape = MODELS[make]
    if make is embedded:
        return t.tensor(rng.integers(0, 7, shape))
    return t.tensor(rng.standard_normal(shape).astype(np.float32))


def model_and_parameters(t, make):
    """The model, with the same numbers on both engines."""
    model = make(t)
    rng = np.random.default_rng(1)
    parameters = {
        name: t.tensor(0.3 * rng.standard_normal(tuple(p.shape)).astype(np.float32))
        for name, p in model.named_parameters()
    }
    return model, parameters


def loss_of(t, model, make):
    def loss(parameters, x, y):
        out = t.func.functional_call(model, parameters, (x[None],))
        out = out.mean(1) if make is transformer else out
        return t.nn.functional.cross_entropy(out, y[None])

    return loss


@pytest.mark.parametrize("make", MODELS, ids=lambda f: f.__name__)
def test_gradients_of_each_example(make):
    def run(t):
        model, parameters = model_and_parameters(t, make)
        x = inputs(t, make)
        y = t.arange(len(x)) % 3
        loss = loss_of(t, model, make)
        found = t.func.vmap(t.func.grad(loss), (None, 0, 0))(parameters, x, y)
        if t is clew:
            for n in range(len(x)):
                one = t.func.grad(loss)(parameters, x[n], y[n])
                for name in one:
                    np.testing.assert_allclose(
                        found[name][n].numpy(), one[name].numpy(), 2e-4, 2e-5
                    )
        return found

    assert_same(run, 2e-3, 2e-4)


@pytest.mark.parametrize("make", [mlp, cnn, embedded], ids=lambda f: f.__name__)
def test_ensemble(make):
    clew.manual_seed(0)
    models = [make(clew) for _ in range(3)]
    parameters, buffers = stack_module_state(models)
    x = inputs(clew, make)

    def call(parameters, buffers, x):
        return functional_call(models[0], (parameters, buffers), (x,))

    out = clew.vmap(call, (0, 0, None))(parameters, buffers, x)
    out.pow(2).sum().backward()
    for n, model in enumerate(models):
        expected = model(x)
        np.testing.assert_allclose(out[n].detach().numpy(), expected.detach().numpy(), 1e-4, 1e-5)
        expected.pow(2).sum().backward()
        for name, p in model.named_parameters():
            got = parameters[name].grad[n].numpy()
            np.testing.assert_allclose(got, p.grad.numpy(), 1e-3, 1e-4, err_msg=name)


def test_batch_norm_of_each_example():
    def run(t):
        model = t.nn.BatchNorm1d(3)
        if t is clew:
            made = clew.func.replace_all_batch_norm_modules_(model)
        else:
            made = t.func.replace_all_batch_norm_modules_(model)
        x = t.arange(24.0).view(2, 4, 3).sin()
        return t.vmap(made)(x), [made.running_mean, made.track_running_stats]

    assert_same(run)


def test_running_statistics_of_an_ensemble():
    mean, var = clew.zeros(2, 3), clew.ones(2, 3)
    x = clew.arange(24.0).view(2, 4, 3)
    clew.vmap(lambda x, m, v: clew.nn.functional.batch_norm(x, m, v, training=True))(x, mean, var)
    np.testing.assert_allclose(mean.numpy(), 0.1 * x.mean(1).numpy(), 1e-6)


ERRORS = {
    "none": lambda t: t.func.stack_module_state([]),
    "classes": lambda t: t.func.stack_module_state([t.nn.Linear(1, 1), t.nn.ReLU()]),
    "modes": lambda t: t.func.stack_module_state([t.nn.Linear(1, 1), t.nn.Linear(1, 1).eval()]),
    "frozen": lambda t: t.func.stack_module_state(
        [t.nn.Linear(1, 1), t.nn.Linear(1, 1).requires_grad_(False)]
    ),
    "no dict": lambda t: t.func.functional_call(t.nn.Linear(1, 1), 3, t.ones(1)),
    "no dicts": lambda t: t.func.functional_call(t.nn.Linear(1, 1), [3], t.ones(1)),
    "twice": lambda t: t.func.functional_call(
        t.nn.Linear(1, 1), [{"bias": t.ones(1)}, {"bias": t.ones(1)}], t.ones(1)
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_like_torch(name):
    assert isinstance(assert_same(ERRORS[name]), tuple)
