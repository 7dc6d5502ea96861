"""Every optimizer with many options: parameters and state equal torch's over several steps."""

import importlib

import numpy as np
import pytest

import clew
from clew.kernels import optim as kernels

torch = pytest.importorskip("torch")

OPTIONS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    ("Adam", {"lr": 0.01}),
    ("Adam", {"lr": 0.01, "amsgrad": True, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.01, "betas": (0.3, 0.5), "maximize": True}),
    ("AdamW", {"lr": 0.01}),
    ("AdamW", {"lr": 0.01, "amsgrad": True, "weight_decay": 0.1}),
    ("RMSprop", {"lr": 0.01}),
    ("RMSprop", {"lr": 0.01, "momentum": 0.9, "centered": True, "weight_decay": 0.01}),
    ("Adagrad", {"lr": 0.1}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.7, "weight_decay": 0.1, "maximize": True}),
    ("Adamax", {}),
    ("Adamax", {"lr": 0.1, "betas": (0.4, 0.9), "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {}),
    ("NAdam", {"lr": 0.1, "momentum_decay": 0.1, "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {}),
    ("RAdam", {"lr": 0.1, "betas": (0.9, 0.7), "weight_decay": 0.1}),
    ("RAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("ASGD", {}),
    ("ASGD", {"lr": 0.1, "lambd": 0.1, "t0": 2, "weight_decay": 0.1}),
    ("Rprop", {}),
    ("Rprop", {"lr": 0.1, "etas": (0.3, 2.0), "step_sizes": (0.05, 0.2), "maximize": True}),
    ("Adafactor", {}),
    ("Adafactor", {"lr": 0.1, "eps": (1e-8, 1e-2), "d": 1.5, "weight_decay": 0.1}),
]


def run(engine, name, options, values, grads):
    params = [engine.tensor(v, requires_grad=True) for v in values]
    optimizer = getattr(engine.optim, name)(params, **options)
    for step in grads:
        for param, grad in zip(params, step):
            param.grad = engine.tensor(grad)
        optimizer.step()
    return params, optimizer


@pytest.mark.parametrize(("name", "options"), OPTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("small", [0, 1000], ids=["twins", "numpy"])
def test_parameters_and_state_equal_torch(name, options, dtype, small, monkeypatch):
    monkeypatch.setattr(kernels, "SMALL", small)
    rng = np.random.default_rng(0)
    shapes = [(3, 4), (5,), ()]
    values = [rng.standard_normal(s).astype(dtype) for s in shapes]
    grads = [[rng.standard_normal(s).astype(dtype) for s in shapes] for _ in range(6)]
    ours, our_optimizer = run(clew, name, options, values, grads)
    theirs, their_optimizer = run(torch, name, options, values, grads)
    tolerance = 2e-6 if dtype is np.float32 else 1e-13
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=tolerance)
    a, b = our_optimizer.state_dict(), their_optimizer.state_dict()
    assert a["param_groups"] == b["param_groups"]
    assert a["state"].keys() == b["state"].keys()
    for key in a["state"]:
        assert a["state"][key].keys() == b["state"][key].keys()
        for field in a["state"][key]:
            x, y = a["state"][key][field], b["state"][key][field]
            assert str(x.dtype) == str(y.dtype)
            np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=10 * tolerance)


def test_state_dict_round_trip_continues_the_run():
    values, grads = [np.ones(3, np.float32)], [[np.full(3, 0.5, np.float32)]] * 3
    params, optimizer = run(clew, "Adam", {"lr": 0.1}, values, grads)
    copied = [clew.tensor(p.detach().numpy(), requires_grad=True) for p in params]
    other = clew.optim.Adam(copied, lr=0.5)
    other.load_state_dict(optimizer.state_dict())
    for p, o in ((params, optimizer), (copied, other)):
        p[0].grad = clew.ones(3)
        o.step()
    np.testing.assert_array_equal(params[0].detach().numpy(), copied[0].detach().numpy())
    assert other.state_dict()["param_groups"][0]["lr"] == 0.1


COMPLEX = ("SGD", "Adam", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD")


@pytest.mark.parametrize("name", [*COMPLEX, "Rprop"])
def test_complex_parameters_are_pairs_of_real_ones(name):
    rng = np.random.default_rng(0)

    def numbers():
        return (rng.standard_normal((3, 2)) + 1j * rng.standard_normal((3, 2))).astype("complex128")

    values, grads = [numbers()], [[numbers()] for _ in range(4)]
    ours, theirs = (run(e, name, {"lr": 0.1}, values, grads)[0][0] for e in (clew, torch))
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-12)


MUON = [{}, {"lr": 0.1, "nesterov": False}, {"adjust_lr_fn": "match_rms_adamw", "ns_steps": 3}]


@pytest.mark.parametrize("options", MUON)
def test_muon_within_bfloat16(options):
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(s).astype("float32") for s in ((3, 4), (5, 2))]
    grads = [[rng.standard_normal(v.shape).astype("float32") for v in values] for _ in range(4)]
    ours, theirs = (run(e, "Muon", options, values, grads)[0] for e in (clew, torch))
    for a, b, start in zip(ours, theirs, values):
        moved = b.detach().numpy() - start
        np.testing.assert_allclose(a.detach().numpy() - start, moved, atol=0.05 * abs(moved).max())


def rosenbrock(engine, options, steps):
    """The path of a minimisation, the losses, and what the optimizer counted."""
    x = engine.tensor([-1.2, 1.0, 0.5], dtype=engine.float64, requires_grad=True)
    optimizer = engine.optim.LBFGS([x], **options)
    calls = []

    def closure():
        optimizer.zero_grad()
        loss = (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
        loss.backward()
        calls.append(loss.item())
        return loss

    path = []
    for _ in range(steps):
        loss = optimizer.step(closure)
        path.append([loss.item(), *x.tolist()])
    state = optimizer.state_dict()["state"][0]
    return path, calls, state["func_evals"], state["n_iter"], sorted(state)


LBFGS = [
    {"lr": 1e-3},
    {"lr": 1e-3, "history_size": 3, "max_iter": 7},
    {"line_search_fn": "strong_wolfe"},
    {"line_search_fn": "strong_wolfe", "max_iter": 4, "history_size": 2, "max_eval": 6},
    {"line_search_fn": "strong_wolfe", "lr": 50.0, "max_iter": 6},
    {"line_search_fn": "strong_wolfe", "tolerance_change": 1e-3},
]


@pytest.mark.parametrize("options", LBFGS)
def test_lbfgs_takes_torchs_path(options):
    ours, theirs = (rosenbrock(e, options, 3) for e in (clew, torch))
    # Rounding grows along the path.
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-5)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-4, atol=1e-7)
    assert ours[2:] == theirs[2:]


def test_lbfgs_goes_on_after_loading():
    def loaded(engine):
        x = engine.tensor([3.0, -2.0], dtype=engine.float64, requires_grad=True)
        path = []
        state = None
        for _ in range(4):
            optimizer = engine.optim.LBFGS([x], max_iter=2, line_search_fn="strong_wolfe")
            if state is not None:
                optimizer.load_state_dict(state)

            def closure(optimizer=optimizer):
                optimizer.zero_grad()
                loss = ((x - engine.tensor([1.0, 2.0])) ** 4).sum()
                loss.backward()
                return loss

            optimizer.step(closure)
            path.append(x.tolist())
            state = optimizer.state_dict()
        return path

    np.testing.assert_allclose(loaded(clew), loaded(torch), rtol=1e-9)


def test_sparse_adam_says_that_there_is_none():
    with pytest.raises(NotImplementedError, match="no sparse tensors"):
        clew.optim.SparseAdam([clew.ones(1, requires_grad=True)])


BAD = [
    (lambda t, p: t.optim.SGD([], lr=0.1), "empty parameter list"),
    (lambda t, p: t.optim.SGD(p, lr=0.1), "iterable of Tensors or dicts"),
    (lambda t, p: t.optim.SGD([p * 2], lr=0.1), "can't optimize a non-leaf Tensor"),
    (lambda t, p: t.optim.SGD([p], lr=-1), "Invalid learning rate: -1"),
    (lambda t, p: t.optim.SGD([1], lr=0.1), "can only optimize Tensors"),
    (lambda t, p: t.optim.Adam([p], betas=(1, 2)), "Invalid beta parameter at index 0: 1"),
    (lambda t, p: t.optim.SGD([{"params": [p]}, {"params": [p]}]), "more than one parameter group"),
    (lambda t, p: t.optim.SGD([p], nesterov=True), "Nesterov momentum requires"),
    (lambda t, p: t.optim.SGD([{"params": {p}}]), "ordered collections"),
]


@pytest.mark.parametrize(("make", "clause"), BAD)
def test_bad_arguments_raise_as_torch(make, clause):
    with pytest.raises((TypeError, ValueError), match=clause) as theirs:
        make(torch, torch.ones(2, requires_grad=True))
    with pytest.raises(type(theirs.value), match=clause):
        make(clew, clew.ones(2, requires_grad=True))


def test_hooks_run_around_the_step_in_torch_order():
    def trace(engine):
        seen = []
        p = engine.ones(2, requires_grad=True)
        optimizer = engine.optim.SGD([p], lr=0.1)
        module = importlib.import_module(f"{engine.__name__}.optim.optimizer")
        handles = [
            module.register_optimizer_step_pre_hook(lambda *a: seen.append("global pre")),
            module.register_optimizer_step_post_hook(lambda *a: seen.append("global post")),
            optimizer.register_step_pre_hook(lambda *a: seen.append("pre")),
            optimizer.register_step_post_hook(lambda *a: seen.append("post")),
        ]
        p.sum().backward()
        optimizer.step()
        for handle in handles:
            handle.remove()
        optimizer.step()
        return seen

    assert trace(clew) == trace(torch)


def test_a_step_counts_as_one_in_place_write():
    p = clew.ones(2, requires_grad=True)
    p.sum().backward()
    clew.optim.SGD([p], lr=0.1).step()
    assert p._version == 1
    p2 = clew.ones(2, requires_grad=True)
    loss = (p2 * p2).sum()
    optimizer = clew.optim.SGD([p2], lr=0.1)
    p2.grad = clew.ones(2)
    optimizer.step()
    with pytest.raises(RuntimeError, match="optimizer step of SGD"):
        loss.backward()
