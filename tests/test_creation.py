"""Tensors from sizes and numbers: as torch's, `out=` and unknown arguments included."""

import numpy as np
import pytest

import clew
from engines import ENGINES, outcome

CALLS = [
    "t.arange(5)",
    "t.arange(1, 2, 0.25)",
    "t.arange(5, 1, -2)",
    "t.arange(0)",
    "t.arange(2.5)",
    "t.arange(end=3)",
    "t.arange(1, end=3, step=1)",
    "t.arange(t.tensor(3))",
    "t.arange(3, dtype=t.float16)",
    "t.arange(3, out=t.zeros(3))",
    "t.arange(3, out=t.zeros(3, dtype=t.int32))",
    "t.arange(3, 1)",
    "t.arange(1, 3, 0)",
    "t.full((2,), 3)",
    "t.full((1,), True)",
    "t.full((2,), 3, out=t.zeros(2))",
    "t.linspace(0, 1, 3, out=t.zeros(3, dtype=t.float64))",
    "t.logspace(0, 2, 3)",
    "t.logspace(0, 2, 3, base=2, dtype=t.float64)",
    "t.eye(2, out=t.zeros(2, 2))",
    "t.zeros(2, 3, out=t.ones(2, 3))",
    "t.zeros(2, out=t.ones(2, dtype=t.int64))",
    "t.zeros((2,), dtype=t.int32)",
    "t.ones(size=(2,))",
    "t.zeros(2, nonsense=1)",
    "t.ones(2, names=('a',))",
]


@pytest.mark.parametrize("call", CALLS)
def test_as_torch(call):
    ours, theirs = (outcome(lambda t: eval(call, {"t": t}), e) for e in ENGINES.values())
    assert ours == theirs


@pytest.mark.parametrize("call", ["t.arange(3, nonsense=1)", "t.logspace(0, 1, 2, nonsense=1)"])
def test_unknown_arguments_are_refused(call):
    ours, theirs = (outcome(lambda t: eval(call, {"t": t}), e) for e in ENGINES.values())
    assert ours[0] == theirs[0] == "TypeError"
    assert "nonsense" in ours[1]


def test_arrays_of_other_classes_are_plain_memory(tmp_path):
    path = tmp_path / "numbers.bin"
    np.arange(6, dtype=np.int64).tofile(path)
    mapped = np.memmap(path, dtype=np.int64, mode="r+")
    tensor = clew.from_numpy(mapped)
    assert type(tensor.numpy()) is np.ndarray
    assert clew.stack([tensor, clew.from_numpy(mapped[:6] * 1)]).tolist() == [list(range(6))] * 2
    tensor += 1
    assert mapped[0] == 1  # shared
    assert clew.as_tensor(mapped)[1].item() == clew.tensor(mapped)[1].item() == 2
