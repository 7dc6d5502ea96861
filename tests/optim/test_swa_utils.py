"""Averaged models and their schedule: torch's numbers."""

import pytest

from engines import same
from twins import assert_same

FUNCTIONS = {
    "default": lambda u: {},
    "ema": lambda u: {"avg_fn": u.get_ema_avg_fn(0.9)},
    "ema multi": lambda u: {"multi_avg_fn": u.get_ema_multi_avg_fn(0.9)},
    "swa": lambda u: {"avg_fn": u.get_swa_avg_fn()},
    "swa multi": lambda u: {"multi_avg_fn": u.get_swa_multi_avg_fn()},
    "own": lambda u: {"avg_fn": lambda averaged, current, count: (averaged + current) / 2},
    "buffers": lambda u: {"use_buffers": True},
}


def network(e):
    e.manual_seed(0)
    return e.nn.Sequential(e.nn.Linear(3, 4), e.nn.BatchNorm1d(4))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_averages(name):
    def run(e):
        model = network(e)
        averaged = e.optim.swa_utils.AveragedModel(model, **FUNCTIONS[name](e.optim.swa_utils))
        for i in range(4):
            with e.no_grad():
                for p in model.parameters():
                    p.add_(0.1 * (i + 1))
            model(e.arange(6.0).reshape(2, 3) * i)
            averaged.update_parameters(model)
        state = averaged.state_dict()
        return list(state), list(state.values()), averaged.eval()(e.ones(2, 3))

    assert_same(run)


@pytest.mark.parametrize("pairs", [False, True])
def test_update_bn(pairs):
    def run(e):
        model = network(e).eval()
        batches = [e.arange(12.0).reshape(4, 3) + i for i in range(3)]
        e.optim.swa_utils.update_bn([(b, 0) for b in batches] if pairs else batches, model)
        return list(model.buffers()), model.training, model[1].momentum

    assert_same(run)


def test_update_bn_without_any_does_nothing():
    assert_same(lambda e: e.optim.swa_utils.update_bn([3], e.nn.Linear(1, 1)))


@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize("epochs", [0, 1, 4])
def test_schedule(strategy, epochs):
    def run(e):
        groups = [{"params": [e.nn.Parameter(e.zeros(1))]} for _ in range(2)]
        optimizer = e.optim.SGD(groups, lr=0.1)
        scheduler = e.optim.swa_utils.SWALR(optimizer, [0.5, 0.02], epochs, strategy)
        seen = []
        for _ in range(6):
            optimizer.step()
            scheduler.step()
            seen.append(scheduler.get_last_lr())
        return seen, sorted(scheduler.state_dict())

    same(run)


BAD = {
    "decay": lambda u, o: u.get_ema_avg_fn(1.5),
    "multi decay": lambda u, o: u.get_ema_multi_avg_fn(-1),
    "both": lambda u, o: u.AveragedModel(None, avg_fn=max, multi_avg_fn=max),
    "strategy": lambda u, o: u.SWALR(o, 0.1, anneal_strategy="x"),
    "epochs": lambda u, o: u.SWALR(o, 0.1, anneal_epochs=-1),
    "rates": lambda u, o: u.SWALR(o, [0.1, 0.2]),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments_raise_as_torch(name):
    def run(e):
        optimizer = e.optim.SGD([e.nn.Parameter(e.zeros(1))])
        return BAD[name](e.optim.swa_utils, optimizer)

    same(run)
