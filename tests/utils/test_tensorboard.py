"""The writer for TensorBoard: tensors become arrays; without tensorboardX the import says so."""

import importlib
import sys
import types

import pytest

import clew


@pytest.fixture
def written(monkeypatch):
    """What a stand-in for tensorboardX was asked to write."""
    calls = []

    class SummaryWriter:
        def __init__(self, logdir=None):
            self.logdir = logdir

        def add_scalar(self, *args, **kwargs):
            calls.append((args, kwargs))

        add_histogram = add_scalars = add_scalar

        def close(self):
            calls.append("closed")

    stand_in = types.ModuleType("tensorboardX")
    stand_in.SummaryWriter = SummaryWriter
    monkeypatch.setitem(sys.modules, "tensorboardX", stand_in)
    monkeypatch.delitem(sys.modules, "clew.utils.tensorboard", raising=False)
    monkeypatch.delattr(clew.utils, "tensorboard", raising=False)
    yield calls
    sys.modules.pop("clew.utils.tensorboard", None)


def test_tensors_arrive_as_arrays(written):
    writer = clew.utils.tensorboard.SummaryWriter("runs")
    writer.add_scalar("loss", clew.ones((), requires_grad=True), 3)
    writer.add_histogram("w", clew.ones(2), global_step=1)
    writer.add_scalars("both", {"a": clew.zeros(()), "b": 1.0})
    writer.close()
    (_, loss, step), _ = written[0]
    assert type(loss).__module__ == "numpy" and loss == 1.0 and step == 3
    assert written[1][0][1].tolist() == [1.0, 1.0] and written[1][1] == {"global_step": 1}
    assert written[2][0][1]["a"] == 0.0 and type(written[2][0][1]["a"]).__module__ == "numpy"
    assert written[3] == "closed" and writer.logdir == "runs"


def test_graphs_are_refused(written):
    with pytest.raises(NotImplementedError, match="make_dot"):
        clew.utils.tensorboard.SummaryWriter().add_graph(None)


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    monkeypatch.delitem(sys.modules, "clew.utils.tensorboard", raising=False)
    with pytest.raises(ModuleNotFoundError, match="pip install tensorboardX"):
        importlib.import_module("clew.utils.tensorboard")
