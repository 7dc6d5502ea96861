"""Schedulers: every number, state, warning and error is torch's."""

import copy
import gc
import math
import pickle
import warnings
import weakref

import pytest

import clew
from engines import ENGINES, same


def optimizer_of(e, kind="SGD", **options):
    a, b = (e.nn.Parameter(e.zeros(2)) for _ in range(2))
    options = {"lr": 0.1, **({"momentum": 0.9} if kind == "SGD" else {}), **options}
    return getattr(e.optim, kind)([{"params": [a]}, {"params": [b], "lr": 0.05}], **options)


class Half:
    """A function that is an object, whose attributes are part of a state."""

    def __init__(self):
        self.calls = 0

    def __call__(self, epoch):
        self.calls += 1
        return 0.5**epoch


SCHEDULERS = {
    "LambdaLR": lambda s, o: s.LambdaLR(o, lambda e: 0.95**e),
    "LambdaLR each": lambda s, o: s.LambdaLR(o, [Half(), lambda e: 1 / (1 + e)]),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda e: 0.9 + 0.001 * e),
    "StepLR": lambda s, o: s.StepLR(o, 3, 0.7),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [5, 2, 5, 9], 0.5),
    "ConstantLR": lambda s, o: s.ConstantLR(o, 0.5, 4),
    "LinearLR": lambda s, o: s.LinearLR(o, 0.1, 0.9, 8),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.93),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, 9, 2.0),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 7, 1e-3),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, 1e-3),
    "CosineAnnealingWarmRestarts 1": lambda s, o: s.CosineAnnealingWarmRestarts(o, 4),
    "CyclicLR": lambda s, o: s.CyclicLR(o, 0.01, [0.1, 0.2], 3),
    "CyclicLR 2": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 3, 5, "triangular2"),
    "CyclicLR exp": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 3, mode="exp_range", gamma=0.9),
    "CyclicLR own": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 3, scale_fn=Half()),
    "CyclicLR iterations": lambda s, o: s.CyclicLR(
        o, 0.01, 0.1, 3, scale_fn=lambda x: 0.9**x, scale_mode="iterations", cycle_momentum=False
    ),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, 0.3, 20),
    "OneCycleLR three": lambda s, o: s.OneCycleLR(
        o, [0.3, 0.4], epochs=4, steps_per_epoch=5, anneal_strategy="linear", three_phase=True
    ),
    "SequentialLR": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, 0.1, 1.0, 4), s.CosineAnnealingLR(o, 9), s.ExponentialLR(o, 0.9)], [4, 9]
    ),
    "SequentialLR nested": lambda s, o: s.SequentialLR(
        o, [s.ChainedScheduler([s.ConstantLR(o, 0.5, 2)]), s.StepLR(o, 2)], [3]
    ),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler(
        [s.ConstantLR(o, 0.1, 4), s.ExponentialLR(o, 0.9)]
    ),
}
each = pytest.mark.parametrize("name", SCHEDULERS)
STEPS = 15


def options_of(optimizer):
    keys = ("lr", "momentum", "betas", "initial_lr", "max_lr", "min_lr")
    return [
        {k: float(g[k]) if hasattr(g[k], "item") else g[k] for k in keys if k in g}
        for g in optimizer.param_groups
    ]


@each
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_every_step(name, kind):
    def run(e):
        optimizer = optimizer_of(e, kind)
        scheduler = SCHEDULERS[name](e.optim.lr_scheduler, optimizer)
        seen = [(options_of(optimizer), scheduler.get_last_lr())]
        for _ in range(STEPS):
            optimizer.step()
            scheduler.step()
            seen.append((options_of(optimizer), scheduler.get_last_lr()))
        return seen, sorted(scheduler.state_dict())

    same(run)


@each
def test_a_loaded_scheduler_goes_on(name):
    def run(e):
        optimizer = optimizer_of(e)
        scheduler = SCHEDULERS[name](e.optim.lr_scheduler, optimizer)
        for _ in range(STEPS // 2):
            optimizer.step()
            scheduler.step()
        states = copy.deepcopy((optimizer.state_dict(), scheduler.state_dict()))
        optimizer = optimizer_of(e)
        scheduler = SCHEDULERS[name](e.optim.lr_scheduler, optimizer)
        optimizer.load_state_dict(states[0])
        scheduler.load_state_dict(states[1])
        seen = []
        for _ in range(STEPS // 2):
            optimizer.step()
            scheduler.step()
            seen.append(options_of(optimizer))
        return seen

    same(run)


@each
def test_learning_rates_that_are_tensors(name):
    if name.startswith(("OneCycle", "Cyclic")):
        kinds = ("Adam",)
    else:
        kinds = ("SGD", "Adam")

    def run(e):
        seen = []
        for kind in kinds:
            optimizer = optimizer_of(e, kind, lr=e.tensor(0.25))
            tensor = optimizer.param_groups[0]["lr"]
            scheduler = SCHEDULERS[name](e.optim.lr_scheduler, optimizer)
            for _ in range(5):
                optimizer.step()
                scheduler.step()
            first = optimizer.param_groups[0]
            seen.append((round(float(first["lr"]), 6), first["lr"] is tensor))
        return seen

    same(run)


CLOSED = [n for n in SCHEDULERS if n.split()[0] not in ("SequentialLR", "ChainedScheduler")]


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize("epoch", [0, 1, 6, 14])
def test_going_to_an_epoch(name, epoch):
    def run(e):
        optimizer = optimizer_of(e)
        scheduler = SCHEDULERS[name](e.optim.lr_scheduler, optimizer)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            scheduler.step(epoch)
        messages = [str(w.message)[:80] for w in caught]
        return options_of(optimizer), messages, scheduler.last_epoch

    same(run)


def test_fractions_of_epochs():
    def run(e):
        optimizer = optimizer_of(e)
        scheduler = e.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 3, 2)
        seen = []
        for epoch in (0.5, 2.75, 3.5, 9.2, 1.0):
            scheduler.step(epoch)
            seen.append((options_of(optimizer), scheduler.T_cur, scheduler.T_i))
        return seen

    same(run)


@pytest.mark.parametrize("name", [n for n in CLOSED if "CosineAnnealingW" not in n])
def test_resuming_with_last_epoch(name):
    def run(e):
        optimizer = optimizer_of(e)
        scheduler = SCHEDULERS[name](e.optim.lr_scheduler, optimizer)
        for _ in range(4):
            optimizer.step()
            scheduler.step()
        kind = type(scheduler).__name__
        extra = {
            "LambdaLR": {"lr_lambda": lambda n: 0.9**n},
            "MultiplicativeLR": {"lr_lambda": lambda n: 0.9},
            "StepLR": {"step_size": 3},
            "MultiStepLR": {"milestones": [5]},
            "ExponentialLR": {"gamma": 0.9},
            "CosineAnnealingLR": {"T_max": 7},
            "CyclicLR": {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 3},
            "OneCycleLR": {"max_lr": 0.3, "total_steps": 20},
        }.get(kind, {})
        again = getattr(e.optim.lr_scheduler, kind)(optimizer, last_epoch=4, **extra)
        seen = [options_of(optimizer)]
        for _ in range(3):
            optimizer.step()
            again.step()
            seen.append(options_of(optimizer))
        return seen

    same(run)


# -- the plateau

METRICS = [5.0, 4.0, 4.1, 4.2, 3.9999, 4.3, 4.4, 4.5, 4.6, 3.0, 3.1, 3.2, 3.3, math.nan, 2.9]


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("threshold_mode", ["rel", "abs"])
@pytest.mark.parametrize("cooldown", [0, 2])
def test_plateau(mode, threshold_mode, cooldown):
    def run(e):
        optimizer = optimizer_of(e)
        scheduler = e.optim.lr_scheduler.ReduceLROnPlateau(
            optimizer, mode, 0.5, 1, 0.01, threshold_mode, cooldown, [1e-3, 2e-2]
        )
        seen = []
        for metric in METRICS:
            optimizer.step()
            scheduler.step(e.tensor(metric))
            state = scheduler.state_dict()
            seen.append((options_of(optimizer), scheduler.in_cooldown, scheduler.get_last_lr()))
        return seen, {k: v for k, v in state.items() if k != "best"}

    same(run)


def test_plateau_state_and_new_groups():
    def run(e):
        optimizer = optimizer_of(e)
        make = e.optim.lr_scheduler.ReduceLROnPlateau
        scheduler = make(optimizer, patience=0)
        scheduler.step(1.0)
        other = make(optimizer, mode="max")
        other.load_state_dict(scheduler.state_dict())
        optimizer.add_param_group({"params": [e.nn.Parameter(e.zeros(1))], "lr": 1.0})
        other.step(2.0, epoch=9)
        return options_of(optimizer), other.last_epoch, other.mode

    with pytest.warns(UserWarning, match="The epoch parameter"):
        same(run)


# -- warnings


def _overridden(optimizer, scheduler):
    optimizer.step = lambda: None
    scheduler.step()


ORDER = {
    "good": lambda o, s: (o.step(), s.step(), s.step()),
    "early": lambda o, s: (s.step(), o.step(), s.step()),
    "overridden": _overridden,
    "get_lr": lambda o, s: s.get_lr(),
}


@pytest.mark.parametrize("name", ORDER)
def test_warnings(name):
    def run(e):
        optimizer = optimizer_of(e)
        scheduler = e.optim.lr_scheduler.StepLR(optimizer, 1)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ORDER[name](optimizer, scheduler)
        return [(w.category.__name__, str(w.message)) for w in caught]

    same(run)


def test_warnings_point_at_the_users_line():
    optimizer = optimizer_of(clew)
    scheduler = clew.optim.lr_scheduler.StepLR(optimizer, 1)
    with pytest.warns(UserWarning) as caught:
        scheduler.step()
        scheduler.get_lr()
    assert {w.filename for w in caught} == {__file__}


# -- errors

BAD = {
    "optimizer": lambda s, o, e: s.StepLR(3, 1),
    "cyclic optimizer": lambda s, o, e: s.CyclicLR(3, 1, 2),
    "one cycle optimizer": lambda s, o, e: s.OneCycleLR(3, 1, 2),
    "plateau optimizer": lambda s, o, e: s.ReduceLROnPlateau(3),
    "base": lambda s, o, e: s.LRScheduler(o),
    "lambdas": lambda s, o, e: s.LambdaLR(o, [lambda n: 1]),
    "multiplicative": lambda s, o, e: s.MultiplicativeLR(o, 3),
    "multiplicative count": lambda s, o, e: s.MultiplicativeLR(o, [3]),
    "constant": lambda s, o, e: s.ConstantLR(o, 1.5),
    "linear start": lambda s, o, e: s.LinearLR(o, 0.0),
    "linear end": lambda s, o, e: s.LinearLR(o, 0.5, 2.0),
    "restarts": lambda s, o, e: s.CosineAnnealingWarmRestarts(o, 0),
    "restarts float": lambda s, o, e: s.CosineAnnealingWarmRestarts(o, 1.5),
    "restarts mult": lambda s, o, e: s.CosineAnnealingWarmRestarts(o, 1, 0),
    "restarts eta": lambda s, o, e: s.CosineAnnealingWarmRestarts(o, 1, 1, "x"),
    "restarts epoch": lambda s, o, e: s.CosineAnnealingWarmRestarts(o, 1).step(-1),
    "cyclic mode": lambda s, o, e: s.CyclicLR(o, 1, 2, mode="x"),
    "cyclic count": lambda s, o, e: s.CyclicLR(o, [1], 2),
    "cyclic momentum": lambda s, o, e: s.CyclicLR(optimizer_of(e, "Adagrad"), 1, 2),
    "one cycle momentum": lambda s, o, e: s.OneCycleLR(optimizer_of(e, "Adagrad"), 1, 2),
    "one cycle steps": lambda s, o, e: s.OneCycleLR(o, 1, 0),
    "one cycle none": lambda s, o, e: s.OneCycleLR(o, 1, epochs=3),
    "one cycle epochs": lambda s, o, e: s.OneCycleLR(o, 1, epochs=0, steps_per_epoch=2),
    "one cycle per epoch": lambda s, o, e: s.OneCycleLR(o, 1, epochs=1, steps_per_epoch=1.5),
    "one cycle pct": lambda s, o, e: s.OneCycleLR(o, 1, 10, pct_start=1.5),
    "one cycle pct int": lambda s, o, e: s.OneCycleLR(o, 1, 10, pct_start=1),
    "one cycle strategy": lambda s, o, e: s.OneCycleLR(o, 1, 10, anneal_strategy="x"),
    "one cycle too far": lambda s, o, e: s.OneCycleLR(o, 1, 10).step(11),
    "sequential none": lambda s, o, e: s.SequentialLR(o, [], []),
    "sequential milestones": lambda s, o, e: s.SequentialLR(o, [s.StepLR(o, 1)], [1]),
    "sequential kind": lambda s, o, e: s.SequentialLR(o, [3], []),
    "sequential plateau": lambda s, o, e: s.SequentialLR(o, [s.ReduceLROnPlateau(o)], []),
    "chained none": lambda s, o, e: s.ChainedScheduler([]),
    "chained plateau": lambda s, o, e: s.ChainedScheduler([s.ReduceLROnPlateau(o)]),
    "plateau factor": lambda s, o, e: s.ReduceLROnPlateau(o, factor=1.0),
    "plateau min_lr": lambda s, o, e: s.ReduceLROnPlateau(o, min_lr=[1]),
    "plateau mode": lambda s, o, e: s.ReduceLROnPlateau(o, "x"),
    "plateau threshold": lambda s, o, e: s.ReduceLROnPlateau(o, threshold_mode="x"),
    "new group": lambda s, o, e: (
        k := s.StepLR(o, 1),
        o.add_param_group({"params": [e.nn.Parameter(e.zeros(1))]}),
        k.step(1),
    ),
}


@pytest.mark.filterwarnings("ignore:The epoch parameter", "ignore:Detected call")
@pytest.mark.parametrize("name", BAD)
def test_bad_arguments_raise_as_torch(name):
    same(lambda e: BAD[name](e.optim.lr_scheduler, optimizer_of(e), e))


def test_resuming_without_a_beginning_is_a_key_error():
    for e in ENGINES.values():
        with pytest.raises(KeyError, match="param 'initial_lr' is not specified in param_groups"):
            e.optim.lr_scheduler.StepLR(optimizer_of(e), 1, last_epoch=3)


def test_schedulers_of_different_optimizers_do_not_mix():
    for e in ENGINES.values():
        s, o = e.optim.lr_scheduler, optimizer_of(e)
        with pytest.raises(ValueError, match="expects all schedulers to belong to the same"):
            s.SequentialLR(o, [s.StepLR(optimizer_of(e), 1)], [])


# -- life


def test_an_own_scheduler():
    def run(e):
        class Halving(e.optim.lr_scheduler._LRScheduler):
            def get_lr(self):
                return [base / 2**self.last_epoch for base in self.base_lrs]

        optimizer = optimizer_of(e)
        scheduler = Halving(optimizer)
        optimizer.step()
        scheduler.step()
        return options_of(optimizer), isinstance(scheduler, e.optim.lr_scheduler.LRScheduler)

    same(run)


def test_an_optimizer_with_a_scheduler_is_freed_copied_and_pickled():
    optimizer = optimizer_of(clew)
    clew.optim.lr_scheduler.StepLR(optimizer, 1)
    copied = copy.deepcopy(optimizer)
    loaded = pickle.loads(pickle.dumps(optimizer))
    assert copied.param_groups[0]["lr"] == loaded.param_groups[0]["lr"] == 0.1
    copied.step()
    loaded.step()
    gc.collect()
    gc.disable()
    try:
        reference = weakref.ref(optimizer)
        del optimizer
        assert reference() is None
    finally:
        gc.enable()
