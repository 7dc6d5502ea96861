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


FIELDS = {
    "X": {"name", "cat", "ph", "ts", "dur", "pid", "tid", "args"},
    "s": {"name", "cat", "ph", "ts", "pid", "tid", "id"},
    "f": {"name", "cat", "ph", "ts", "pid", "tid", "id", "bp"},
    "C": {"name", "ph", "ts", "pid", "args"},
    "M": {"name", "ph", "pid", "tid", "args"},
}
"""The fields of each sort of event, by the Trace Event Format (Google's document of that name)."""


def deep_steps(engine):
    """Nested modules, a checkpoint that runs forward within backward, a graph used twice."""
    nn = engine.nn
    model = nn.Sequential(nn.Linear(4, 8), nn.Sequential(nn.ReLU(), nn.Linear(8, 1)))
    optimizer = engine.optim.Adam(model.parameters())
    with clew.inspect.trace() as trace:
        for _ in range(2):
            h = engine.utils.checkpoint.checkpoint(model[0], engine.ones(2, 4), use_reentrant=False)
            optimizer.zero_grad()
            loss = model[1](h).sum()
            loss.backward(retain_graph=True)
            loss.backward()
            optimizer.step()
    return trace


@engines
def test_the_file_follows_the_trace_event_format(engine, tmp_path):
    deep_steps(engine).save(tmp_path / "steps.json")
    document = json.loads((tmp_path / "steps.json").read_text())
    assert document["displayTimeUnit"] in ("ms", "ns")
    events = document["traceEvents"]
    for event in events:
        assert set(event) == FIELDS[event["ph"]], event
        assert isinstance(event["pid"], int), event
        assert event.get("tid", 0) in range(4), event
        assert event["ph"] == "M" or event["ts"] >= 0, event
    for counter in (e for e in events if e["ph"] == "C"):
        assert all(isinstance(value, (int, float)) for value in counter["args"].values())
    times = [e["ts"] for e in events if e["ph"] == "C"]
    assert times == sorted(times)


@engines
def test_complete_events_of_a_row_nest(engine):
    events = [e for e in deep_steps(engine).events if e["ph"] == "X"]
    for row in {e["tid"] for e in events}:
        open_until: list[float] = []
        of_row = [(e["ts"], -e["dur"], e["name"]) for e in events if e["tid"] == row]
        for start, length, name in sorted(of_row):
            while open_until and open_until[-1] <= start:
                open_until.pop()
            assert not open_until or start - length <= open_until[-1], (row, name)
            open_until.append(start - length)


@engines
def test_each_arrow_begins_and_ends_in_a_slice(engine):
    events = deep_steps(engine).events
    slices = [e for e in events if e["ph"] == "X"]
    arrows = {ph: {e["id"]: e for e in events if e["ph"] == ph} for ph in "sf"}
    assert len(arrows["f"]) == sum(e["ph"] == "f" for e in events)
    assert set(arrows["f"]) <= set(arrows["s"])
    assert arrows["f"]
    for ends in arrows.values():
        for arrow in ends.values():
            assert any(
                e["tid"] == arrow["tid"] and e["ts"] <= arrow["ts"] <= e["ts"] + e["dur"]
                for e in slices
            ), arrow
    for number, end in arrows["f"].items():
        start = arrows["s"][number]
        assert (start["name"], start["cat"]) == (end["name"], end["cat"])
        assert start["ts"] <= end["ts"]
        assert end["bp"] == "e"  # to the slice around it, not to the next one
