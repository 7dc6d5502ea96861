"""Tensors between processes, and functions run in several."""

from __future__ import annotations

import gc
import os
import pickle
from typing import Any

import processes
import pytest

import clew
from clew import multiprocessing as mp
from clew import nn
from clew.errors import NonLeafCopyError


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_tensors_are_sent_by_shared_memory(method: str) -> None:
    context: Any = mp.get_context(method)
    questions, answers = context.Queue(), context.Queue()
    process = context.Process(target=processes.answer, args=(questions, answers))
    process.start()
    sent = [
        clew.arange(6.0).reshape(2, 3).t()[1:],
        nn.Parameter(clew.ones(2, dtype=clew.float64)),
        clew.ones(0),
        clew.tensor(3, dtype=clew.bfloat16),
    ]
    before = [tensor.detach().clone() for tensor in sent]
    for tensor, old in zip(sent, before):
        questions.put(tensor)
        got = answers.get(timeout=60)
        assert tensor.is_shared() and got.is_shared()
        assert (got.shape, got.dtype) == (tensor.shape, tensor.dtype)
        assert tensor.stride() == old.stride() or tensor.numel() == 0 or not old.is_contiguous()
        clew.testing.assert_close(tensor.detach(), old * 2)
        clew.testing.assert_close(got, old * 2 + 1)
    questions.put(None)
    questions.put(None)
    process.join(60)
    assert process.exitcode == 0


def test_a_module_is_trained_by_a_child() -> None:
    model = nn.Linear(2, 2)
    view = model.weight.data
    model.share_memory()
    assert model.weight.is_shared() and model.bias.is_shared() and not view.is_shared()
    assert isinstance(model.weight, nn.Parameter) and model.weight.requires_grad
    old = model.weight.detach().clone()
    mp.spawn(processes.add_to, (model.weight.data,), nprocs=2)
    clew.testing.assert_close(model.weight.detach(), old + clew.tensor([[5.0], [6.0]]))


def test_sharing_keeps_elements_and_place() -> None:
    base = clew.arange(10)
    part = base[2:8:3]
    assert part.share_memory_() is part
    assert part.tolist() == [2, 5] and part.stride() == (3,) and part.storage_offset() == 2
    assert part.untyped_storage().is_shared() and not base.is_shared()
    array = part._array
    assert part.share_memory_()._array is array


def test_descriptors_are_closed() -> None:
    def opened() -> int:
        return len(os.listdir("/proc/self/fd"))

    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("no /proc here")
    gc.collect()
    before = opened()
    for _ in range(5):
        clew.ones(3).share_memory_()
    assert opened() == before


def test_graphs_stay_in_their_process() -> None:
    result = clew.ones(2, requires_grad=True) * 2
    pickler = mp.reductions.reduction.ForkingPickler
    with pytest.raises(NonLeafCopyError, match="Cowardly refusing to serialize non-leaf tensor"):
        pickler.dumps(result)
    assert not result.is_shared()
    copied = pickle.loads(pickle.dumps(result.detach()))  # other picklers copy
    assert not copied.is_shared()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of fork where there are threads
def test_a_failing_process_is_reported() -> None:
    with pytest.raises(mp.ProcessRaisedException, match=r"Process \d terminated[\s\S]*bad \d"):
        mp.start_processes(processes.fail, nprocs=2, start_method="fork")
    with pytest.raises(mp.ProcessExitedException) as caught:
        mp.start_processes(processes.leave, nprocs=1, start_method="fork")
    assert str(caught.value) == "process 0 terminated with exit code 3"
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.exit_code, again.error_index, str(again)) == (3, 0, str(caught.value))
    running: Any = mp.start_processes(
        processes.add_to, (clew.zeros(2),), 1, False, start_method="fork"
    )
    assert len(running.pids()) == 1
    while not running.join(0.1):
        pass
    with pytest.warns(FutureWarning, match="only supports start_method=spawn"):
        mp.spawn(processes.add_to, (clew.zeros(2),), start_method="fork")


def test_names() -> None:
    assert mp.get_all_sharing_strategies() == {mp.get_sharing_strategy()}
    with pytest.raises(AssertionError, match="file_system"):
        mp.set_sharing_strategy("file_system")
    assert mp.cpu_count() == os.cpu_count()
