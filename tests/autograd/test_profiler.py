"""The profiler: which events there are, in which order, inside which, and what is added up."""

import json
import threading

import pytest

import clew
from clew.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg
from twins import assert_same

# What torch's ops call inside themselves, and its rules, has no counterpart.
INNER = [
    "fill_",
    "as_strided",
    "to",
    "_to_copy",
    "copy_",
    "empty_strided",
    "expand",
    "detach",
    "empty",
    "result_type",
    "ones",
    "mul",
]
NAMED = ("outer", "inner")


def profile(e):
    return e.autograd.profiler.profile


def names(events):
    """The names of ops, nodes and ranges, without what only torch's kernels do."""
    return [
        event.name for event in events
        if event.name in NAMED or "Backward" in event.name or "Accumulate" in event.name
        or (event.name.startswith("aten::") and event.name.removeprefix("aten::") not in INNER)
    ]  # fmt: skip


def training(e, **options):
    x = e.ones(2, 3, requires_grad=True)
    with profile(e)(**options) as prof:
        with e.autograd.profiler.record_function("outer"):
            y = x + 4
            with e.autograd.profiler.record_function("inner"):
                y = y.exp()
        z = y.sum()
        z.backward(e.ones(()))
    return prof


def test_events_in_order():
    assert_same(lambda e: names(training(e).function_events))


def test_events_inside_events():
    def run(e):
        events = training(e).function_events
        inside = {}
        for event in events:
            parent = event.cpu_parent
            inside[event.name] = None if parent is None else parent.name
        seen = names(events)
        return {n: inside[n] for n in seen if "::engine" in n or n.startswith("aten") or n in NAMED}

    assert_same(run)


def test_sequence_numbers_join_forward_and_backward():
    events = training(clew).function_events
    by_name = {event.name: event for event in events}
    for op, node in (("aten::add", "AddBackward0"), ("aten::exp", "ExpBackward0")):
        forward, backward = by_name[op], by_name[node]
        assert forward.sequence_nr == backward.sequence_nr >= 0
        assert forward.fwd_thread == 0 and backward.fwd_thread == forward.thread
        outer = by_name[f"autograd::engine::evaluate_function: {node}"]
        assert outer.sequence_nr == forward.sequence_nr
        assert backward in outer.cpu_children
    assert by_name["torch::autograd::AccumulateGrad"].sequence_nr == -1


def test_shapes():
    def run(e):
        events = training(e, record_shapes=True).function_events
        return [e.input_shapes[:1] for e in events if e.name in ("aten::add", "aten::exp")]

    assert_same(run)


def test_writes_and_functions_have_events():
    class Twice(clew.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = clew.ones(2, requires_grad=True)
    with clew.autograd.profiler.profile() as prof:
        y = Twice.apply(x)
        y.detach().mul_(3)
        y.sum().backward()
    events = {event.name: event for event in prof.function_events}
    assert [child.name for child in events["Twice"].cpu_children][-1] == "aten::mul"
    assert "aten::mul_" in events
    assert [child.name for child in events["TwiceBackward"].cpu_children][-1] == "aten::mul"


def test_lines_and_memory():
    profiler = clew.autograd.profiler
    with (
        profiler.profile(with_stack=True, profile_memory=True) as prof,
        profiler.record_function("outer"),
    ):
        x = clew.zeros(10)
        x.view(2, 5)
        x + 1
    events = {event.name: event for event in prof.function_events}
    assert "test_profiler.py" in events["aten::add"].stack[0]
    assert events["aten::add"].cpu_memory_usage == 40
    assert events["aten::view"].cpu_memory_usage == 0
    assert events["outer"].cpu_memory_usage == 80
    assert events["outer"].self_cpu_memory_usage == 0
    assert "Self CPU Mem" in prof.table() and "Source Location" in prof.table()


def test_an_op_that_raises_leaves_no_event():
    with clew.autograd.profiler.profile() as prof:
        with clew.autograd.profiler.record_function("outer"), pytest.raises(RuntimeError):
            clew.ones(2) + clew.ones(3)
        clew.ones(2) * 2
    events = {event.name: event for event in prof.function_events}
    assert "aten::add" not in events
    assert events["aten::mul"].cpu_parent is None


def test_threads_are_numbered():
    def work():
        clew.zeros(2).exp()

    with clew.autograd.profiler.profile() as prof:
        clew.zeros(2).exp()
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    found = [event.thread for event in prof.function_events if event.name == "aten::exp"]
    assert found == [1, 2]


def test_nothing_is_watched_afterwards():
    before = list(clew.observers.observers)
    training(clew)
    assert clew.observers.observers == before
    assert not clew.autograd._profiler_enabled()


def test_one_cannot_be_entered_twice():
    def run(e):
        p = profile(e)()
        with p:
            p.__enter__()

    assert assert_same(run)[0] == "RuntimeError"


def test_one_inside_another():
    with clew.autograd.profiler.profile() as outer:
        x = clew.ones(2)
        with clew.autograd.profiler.profile() as inner:
            x.exp()
        x.sin()
    assert [e.name for e in inner.function_events] == ["aten::exp"]
    assert [e.name for e in outer.function_events] == ["aten::empty", "aten::exp", "aten::sin"]


def test_before_and_without_recording():
    def run(e):
        p = profile(e)()
        before = [str(p), len(p.function_events)]
        with profile(e)(enabled=False) as off:
            return [*before, off]

    assert_same(run)


def test_ranges_out_of_order():
    def run(e):
        record = e.autograd.profiler.record_function
        outer = record("outer")
        outer.__enter__()
        with record("inner"):
            outer.__exit__(None, None, None)
        outer.__exit__(None, None, None)

    assert_same(run)
    with clew.autograd.profiler.profile():
        run(clew)


def test_a_decorated_function():
    @clew.autograd.profiler.record_function("mine")
    def f(x):
        """Add one."""
        return x + 1

    with clew.autograd.profiler.profile() as prof:
        assert f(1) == 2
    assert f.__doc__ == "Add one."
    assert [event.name for event in prof.function_events] == ["mine"]
    assert "mine" in str(prof) and str(prof) == prof.table()


def util(e):
    if e is clew:
        return clew.autograd.profiler_util
    from torch.autograd import profiler_util

    return profiler_util


def test_children_are_found_by_time():
    def run(e):
        u = util(e)
        events = u.EventList()
        spans = [(0, 0, 10), (0, 1, 4), (0, 2, 3), (0, 4, 10), (1, 0, 10), (0, 9, 12), (1, 2, 2)]
        for i, (thread, start, end) in enumerate(spans):
            events.append(
                u.FunctionEvent(
                    id=i, node_id=0, name=str(i), thread=thread, start_us=start, end_us=end
                )
            )
        events._populate_cpu_children()
        return [[c.id for c in event.cpu_children] for event in events]

    assert_same(run)


def test_averages():
    def run(e):
        u = util(e)
        events = u.EventList()
        for i, (name, shapes, end) in enumerate(
            [("a", [[2]], 5), ("a", [[3]], 9), ("b", [[2]], 1), ("a", [[2]], 7)]
        ):
            events.append(
                u.FunctionEvent(
                    id=i,
                    node_id=0,
                    name=name,
                    thread=i,
                    start_us=0,
                    end_us=end,
                    input_shapes=shapes,
                    stack=[],
                )
            )
        if e is not clew:
            events._build_tree()
        found = [
            [
                [a.key, a.count, a.cpu_time_total, a.cpu_time, a.self_cpu_time_total]
                for a in averages
            ]
            for averages in (events.key_averages(), events.key_averages(True))
        ]
        total = events.total_average()
        return [*found, total.key, total.count, total.cpu_time_total, events.self_cpu_time_total]

    assert_same(run)


@pytest.mark.parametrize("us", [0.5, 999.9, 1500, 2_500_000])
def test_times_as_text(us):
    assert_same(lambda e: [util(e)._format_time(us), util(e)._format_time_share(us, 5e6)])


def test_the_table_is_sorted_and_cut():
    events = EventList(
        FunctionEvent(id=i, name=f"op{i}", thread=i, start_us=0, end_us=end)
        for i, end in enumerate([5, 50, 20])
    )
    lines = events.table(sort_by="cpu_time_total", row_limit=2, header="mine").splitlines()
    assert lines[1] == "mine"
    assert [line.split()[0] for line in lines if line.strip().startswith("op")] == ["op1", "op2"]
    assert lines[-1] == "Self CPU time total: 75.000us"
    assert EventList().table() == ""


def test_averages_of_other_keys_are_not_added():
    average = FunctionEventAvg()
    average.add(FunctionEvent(id=0, name="a", thread=0, start_us=0, end_us=1))
    with pytest.raises(AssertionError, match="cannot add 'b'"):
        average.add(FunctionEvent(id=0, name="b", thread=0, start_us=0, end_us=1))


def test_chrome_trace(tmp_path):
    prof = training(clew, record_shapes=True)
    prof.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {"aten::add", "outer", "ExpBackward0"} <= {event["name"] for event in events}
    assert all(event["ph"] == "X" and event["dur"] >= 0 for event in events)


def test_what_watches_other_devices_is_refused():
    assert_same(lambda e: e.autograd.profiler.emit_nvtx().__enter__())
    with pytest.raises(NotImplementedError, match="ITT"), clew.autograd.profiler.emit_itt():
        pass
    with pytest.raises(NotImplementedError, match="with_flops"):
        clew.autograd.profiler.profile(with_flops=True)
    with pytest.warns(UserWarning, match="CUDA is not available, disabling CUDA profiling"):
        clew.autograd.profiler.profile(use_device="cuda")
