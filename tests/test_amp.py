"""Mixed precision: the scaler is torch's; autocast turns itself off or is refused."""

import warnings

import pytest

import clew
from engines import same
from twins import assert_same


def run_scaler(e, grads, **options):
    """Parameters and scales of a run whose gradients may overflow."""
    scaler = e.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2, **options)
    w = e.ones(2, requires_grad=True)
    optimizer = e.optim.SGD([w], lr=0.5)
    seen = []
    for g in grads:
        optimizer.zero_grad()
        scaled = scaler.scale((w * g).sum())
        scaled.backward()
        scaler.unscale_(optimizer)
        seen.append(w.grad.tolist())
        scaler.step(optimizer)
        scaler.update()
        seen.append((w.tolist(), scaler.get_scale()))
    return seen, scaler.state_dict()


GRADS = [1.0, 0.5, float("inf"), 1.0, 2.0, 0.25, float("nan"), 1.0]


@pytest.mark.parametrize("options", [{}, {"growth_factor": 3.0, "backoff_factor": 0.25}])
def test_scaler(options):
    assert_same(lambda e: run_scaler(e, GRADS, **options))


@pytest.mark.parametrize("enabled", [True, False])
def test_state_and_settings(enabled):
    def run(e):
        scaler = e.amp.GradScaler("cpu", enabled=enabled)
        state = scaler.state_dict()
        other = e.amp.GradScaler("cpu", 4.0, enabled=enabled)
        other.load_state_dict(state)
        outputs = scaler.scale([e.ones(1), (e.ones(2),)])
        return outputs, other.get_scale(), other.is_enabled(), state

    assert_same(run)


BAD = {
    "growth": lambda a, e: a.GradScaler("cpu", growth_factor=1.0),
    "backoff": lambda a, e: a.GradScaler("cpu", backoff_factor=1.0),
    "twice": lambda a, e: [a.GradScaler("cpu").scale(3)],
    "state": lambda a, e: a.GradScaler("cpu").load_state_dict({}),
    "autocast type": lambda a, e: a.autocast(3),
    "autocast device": lambda a, e: a.autocast("xyz"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments_raise_as_torch(name):
    same(lambda e: BAD[name](e.amp, e))


ORDER = {
    "unscale twice": lambda s, o: (s.unscale_(o), s.unscale_(o)),
    "step twice": lambda s, o: (s.step(o), s.step(o)),
    "unscale late": lambda s, o: (s.step(o), s.unscale_(o)),
    "update early": lambda s, o: s.update(),
    "no gradients": lambda s, o: (o.zero_grad(), s.step(o)),
    "no gradients, update": lambda s, o: (o.zero_grad(), s.unscale_(o), s.update()),
    "closure": lambda s, o: s.step(o, closure=len),
    "new scale": lambda s, o: (s.scale(o.param_groups[0]["params"][0]), s.update(3.0)),
}


@pytest.mark.parametrize("name", ORDER)
def test_order_of_calls(name):
    def run(e):
        w = e.ones(2, requires_grad=True)
        optimizer = e.optim.SGD([w], lr=0.5)
        scaler = e.amp.GradScaler("cpu")
        scaler.scale(w.sum()).backward()
        ORDER[name](scaler, optimizer)
        return scaler.get_scale()

    same(run)


SCOPES = {
    "autocast": lambda e: e.autocast("cuda"),
    "amp.autocast": lambda e: e.amp.autocast("cuda", dtype=e.float16),
    "cuda.amp.autocast": lambda e: e.cuda.amp.autocast(),
    "disabled": lambda e: e.autocast("cuda", enabled=False),
    "disabled cpu": lambda e: e.autocast("cpu", enabled=False),
}


@pytest.mark.parametrize("name", SCOPES)
def test_scopes_without_cuda(name):
    def run(e):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            scope = SCOPES[name](e)
            with scope:
                inside = (e.ones(2, 2) @ e.ones(2, 2)).dtype
            decorated = scope(lambda x: x + 1)(e.ones(1))
        messages = [(w.category.__name__, str(w.message)) for w in caught]
        return str(inside), decorated, messages

    same(run)


@pytest.mark.parametrize("old", [True, False])
def test_scaler_without_cuda_turns_itself_off(old):
    def run(e):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            scaler = e.cuda.amp.GradScaler() if old else e.amp.GradScaler()
        w = e.ones(1, requires_grad=True)
        optimizer = e.optim.SGD([w], lr=0.5)
        scaler.scale(w.sum()).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        messages = [(x.category.__name__, str(x.message)) for x in caught]
        return w.tolist(), scaler.get_scale(), scaler.state_dict(), messages

    same(run)


def test_autocast_on_the_cpu_says_that_it_is_not_there():
    with pytest.raises(NotImplementedError, match="no autocast on the CPU"):
        clew.autocast("cpu")


def test_marks_of_functions_change_nothing():
    amp = clew.amp
    assert amp.custom_fwd(len, device_type="cuda") is len
    assert amp.custom_bwd(device_type="cuda")(len) is len
    assert clew.cuda.amp.custom_fwd(len) is len and clew.cuda.amp.custom_bwd(len) is len
