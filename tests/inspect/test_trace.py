"""Traces for Perfetto and timed backwards, on both engines."""

import json

import pytest

import clew
import clew.inspect

torch = pytest.importorskip("torch")

engines = pytest.mark.parametrize("engine", [clew, torch], ids=["clew", "torch"])


def step(engine):
    model = engine.nn.Linear(4, 3)
    optimizer = engine.optim.SGD(model.parameters(), lr=0.1)
    with clew.inspect.trace() as trace:
        loss = model(engine.ones(2, 4)).exp().sum()
        loss.backward()
        optimizer.step()
    return trace


def names(trace, row):
    return [e["name"] for e in trace.events if e.get("cat") == row]


@engines
def test_a_step_has_forward_backward_modules_and_optimizer(engine):
    trace = step(engine)
    assert {"exp", "sum"} <= set(names(trace, "forward"))
    assert names(trace, "backward")[:3] == ["backward", "SumBackward0", "ExpBackward0"]
    assert names(trace, "backward").count("AccumulateGrad") == 2
    assert names(trace, "modules") == ["Linear"]
    assert names(trace, "optimizer") == ["SGD.step"]


@engines
def test_events_nest_and_know_their_lines(engine):
    events = [e for e in step(engine).events if e["ph"] == "X"]
    whole = next(e for e in events if e["name"] == "backward")
    nodes = [e for e in events if e["cat"] == "backward" and e is not whole]
    assert all(
        whole["ts"] <= e["ts"] and e["ts"] + e["dur"] <= whole["ts"] + whole["dur"] for e in nodes
    )
    assert "loss.backward()" in whole["args"]["line"]
    exp = next(e for e in events if e["name"] == "exp")
    assert "loss = model(engine.ones(2, 4)).exp().sum()" in exp["args"]["line"]
    assert exp["args"]["outputs"] == "2×3"


@engines
def test_arrows_lead_from_operations_to_their_backward(engine):
    events = step(engine).events
    starts = {e["id"]: e["ts"] for e in events if e["ph"] == "s"}
    ends = {e["id"]: e["ts"] for e in events if e["ph"] == "f"}
    joined = {
        (forward["name"], backward["name"])
        for number in starts.keys() & ends.keys()
        for forward in events
        for backward in events
        if forward.get("cat") == "forward" and forward["ts"] == starts[number]
        if backward.get("cat") == "backward" and backward["ts"] == ends[number]
    }
    assert {("exp", "ExpBackward0"), ("sum", "SumBackward0")} <= joined


@engines
def test_memory_is_counted_by_kind_and_falls_when_tensors_go(engine):
    with clew.inspect.trace() as trace:
        x = engine.ones(1000, requires_grad=True)
        y = (x * 2).exp()
        del y
    counted = [e["args"] for e in trace.events if e["ph"] == "C"]
    assert max(c["parameter"] for c in counted) >= 4000
    assert max(c["saved for backward"] for c in counted) == 4000
    assert counted[-1]["saved for backward"] == 0
    assert all(e["ts"] >= 0 for e in trace.events)


@engines
def test_the_file_is_a_trace(engine, tmp_path):
    step(engine).save(tmp_path / "step.json")
    events = json.loads((tmp_path / "step.json").read_text())["traceEvents"]
    assert {e["ph"] for e in events} == {"M", "X", "C", "s", "f"}
    assert all(e["dur"] >= 0 and e["ts"] >= 0 for e in events if e["ph"] == "X")
    rows = [e["args"]["name"] for e in events if e["name"] == "thread_name"]
    assert rows == ["modules", "forward", "backward", "optimizer"]


@engines
def test_a_custom_function_and_an_error_leave_the_trace_whole(engine):
    class Double(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    with clew.inspect.trace() as trace:
        with pytest.raises(RuntimeError):
            engine.ones(2) @ engine.ones(3)
        Double.apply(engine.ones(2, requires_grad=True)).sum().backward()
    assert "DoubleBackward" in names(trace, "backward")
    assert all(e["dur"] < 1e7 for e in trace.events if e["ph"] == "X")


@engines
def test_timed_backward(engine):
    x = engine.ones(100, requires_grad=True)
    w = engine.ones(100, requires_grad=True)
    graph = clew.inspect.timed_backward((x * w).exp().sum(), params={"x": x})
    assert all(n.seconds > 0 for n in graph)
    assert graph.saved_bytes == 400  # as it was before the backward
    assert engine.allclose(x.grad, (x * w).exp().detach())
    assert clew.graph(x * 2).nodes[0].seconds is None


@engines
def test_timing_takes_its_hooks_off(engine):
    x = engine.ones(3, requires_grad=True)
    y = x.exp().sum()
    graph = clew.inspect.timed_backward(y, retain_graph=True)
    seconds = [n.seconds for n in graph]
    y.backward()
    assert [n.seconds for n in graph] == seconds
    assert all(not n.hooks for n in clew.graph(y))
