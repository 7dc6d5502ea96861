"""Checkpoints as training programs use them, carried from one engine to the other."""

import io
import pickle

import numpy as np
import pytest

import clew
from clew.serialization import safetensors

torch = pytest.importorskip("torch")


def carried(obj, source, target, **options):
    stream = io.BytesIO()
    source.save(obj, stream)
    stream.seek(0)
    return target.load(stream, **options)


def model_of(engine):
    nn = engine.nn
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))


def train(engine, model, optimizer, steps):
    """Losses of some steps on data that depends on the step only."""
    losses = []
    for step in range(steps.start, steps.stop):
        generator = np.random.default_rng(step)
        x = engine.from_numpy(generator.standard_normal((16, 4)).astype(np.float32))
        optimizer.zero_grad()
        loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def build(engine, state=None):
    model = model_of(engine)
    optimizer = engine.optim.Adam(model.parameters(), lr=0.01)
    if state is not None:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    return model, optimizer


def state_of(model, optimizer):
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}


@pytest.mark.parametrize("first", ["torch", "clew"])
def test_training_continues_in_the_other_engine(first):
    one, other = (torch, clew) if first == "torch" else (clew, torch)
    model, optimizer = build(one)
    train(one, model, optimizer, range(5))
    state = carried(state_of(model, optimizer), one, other)
    assert state["epoch"] == 3
    expected = train(one, model, optimizer, range(5, 10))
    assert train(other, *build(other, state), range(5, 10)) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("first", ["torch", "clew"])
def test_whole_module_in_the_other_engine(first):
    one, other = (torch, clew) if first == "torch" else (clew, torch)
    model, optimizer = build(one)
    train(one, model, optimizer, range(2))
    model.eval()
    copy = carried(model, one, other, weights_only=False)
    assert type(copy) is other.nn.Sequential
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    expected = model(one.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(copy(other.from_numpy(x)).detach().numpy(), expected, rtol=1e-5)


def test_class_of_clew_allows_the_class_of_torch():
    theirs = torch.nn.Linear(4, 2)
    with pytest.raises(pickle.UnpicklingError, match=r"GLOBAL torch\.nn\.modules\.linear\.Linear"):
        carried(theirs, torch, clew)
    with clew.serialization.safe_globals([clew.nn.Linear]):
        ours = carried(theirs, torch, clew)
    assert type(ours) is clew.nn.Linear
    np.testing.assert_array_equal(ours.weight.detach().numpy(), theirs.weight.detach().numpy())


def test_safetensors_of_a_model(tmp_path):
    from safetensors.torch import load_model, save_model

    theirs, ours = model_of(torch), model_of(clew)
    theirs.add_module("tied", theirs[0])
    ours.add_module("tied", ours[0])
    save_model(theirs, tmp_path / "theirs")
    safetensors.load_model(ours, tmp_path / "theirs")
    safetensors.save_model(ours, tmp_path / "ours")
    copy = model_of(torch)
    copy.add_module("tied", copy[0])
    load_model(copy, tmp_path / "ours")
    for name, value in theirs.state_dict().items():
        torch.testing.assert_close(copy.state_dict()[name], value, rtol=0, atol=0)
        np.testing.assert_array_equal(ours.state_dict()[name].numpy(), value.numpy())
