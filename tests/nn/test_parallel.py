"""DataParallel without devices, and the accelerator that is not there."""

from __future__ import annotations

import pytest

import clew
from clew import nn
from clew.nn import parallel


def test_data_parallel_calls_its_module() -> None:
    model = nn.Linear(2, 3)
    wrapped = nn.DataParallel(model, device_ids=[0, 1], output_device=1, dim=1)
    x = clew.ones(4, 2)
    assert wrapped.module is model and wrapped.device_ids == []
    assert list(wrapped.state_dict()) == ["module.weight", "module.bias"]
    assert clew.equal(wrapped(x), model(x)) and clew.equal(wrapped(input=x), model(x))
    wrapped(x).sum().backward()
    assert model.weight.grad is not None
    assert parallel.DataParallel is nn.DataParallel


def test_what_needs_a_device_raises_as_in_torch() -> None:
    torch = pytest.importorskip("torch")
    cases = [
        lambda t: t.nn.parallel.data_parallel(t.nn.Linear(1, 1), t.ones(1, 1)),
        lambda t: t.accelerator.current_device_index(),
        lambda t: t.nn.parallel.DistributedDataParallel(t.nn.Linear(1, 1)),
        lambda t: t.accelerator.set_device_index(0),
        lambda t: t.accelerator.synchronize(),
        lambda t: t.accelerator.empty_cache(),
    ]
    for case in cases:
        messages = []
        for engine in (torch, clew):
            with pytest.raises((RuntimeError, ValueError)) as caught:
                case(engine)
            messages.append(str(caught.value))
        assert messages[0] == messages[1]
    for name in ("is_available", "device_count", "current_accelerator"):
        assert getattr(clew.accelerator, name)() == getattr(torch.accelerator, name)()
    public = {
        n
        for n in dir(torch.accelerator)
        if n.startswith(("current_dev", "set_", "memory_", "max_"))
    }
    assert all(hasattr(clew.accelerator, name) for name in public)


def test_there_are_no_process_groups() -> None:
    from clew import distributed

    assert not distributed.is_available() and not distributed.is_initialized()
    with pytest.raises(RuntimeError, match=r"init_process_group: clew has no process groups"):
        distributed.init_process_group("gloo")
