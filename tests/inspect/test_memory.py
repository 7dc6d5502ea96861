"""The memory ledger on clew's tensors, byte by byte against what NumPy allocated."""

import gc
import tracemalloc
import weakref

import numpy as np
import pytest

import clew
from clew import nn
from clew.inspect.memory import ledger as ledger_module
from clew.inspect.memory.ledger import ends_of_steps
from clew.inspect.memory.text import grows
from clew.memory import KINDS, allocated, holding, track
from clew.observers import observers
from leftovers import without_leftovers  # noqa: F401  # for all tests of this module

F = nn.functional


def numpy_bytes():
    """What NumPy has allocated for arrays since tracemalloc began; the ledger's own left out."""
    gc.collect()
    here = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
    own = tracemalloc.Filter(False, "*/inspect/memory/*", all_frames=True)
    traces = tracemalloc.take_snapshot().filter_traces([here, own]).traces
    return sum(trace.size for trace in traces)


@pytest.fixture
def numpy_allocations():
    """Begins to watch NumPy when called; kernels should have made their tables by then."""

    def begin():
        gc.collect()
        tracemalloc.start(12)

    yield begin
    tracemalloc.stop()


# -- exact to the byte


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.out = nn.Linear(4 * 16, 3)

    def forward(self, x):
        h = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        return self.out(F.dropout(h.flatten(1), 0.25))


def recurrent():
    cell = nn.GRU(5, 7, batch_first=True)
    x = clew.zeros(3, 4, 5) + 0.5
    return cell, lambda: cell(x)[0].pow(2).mean()


def convolutional():
    model, x, y = Net(), clew.zeros(2, 1, 8, 8) + 0.5, clew.tensor([0, 2])
    return model, lambda: F.cross_entropy(model(x), y)


def attention():
    model = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    x = clew.zeros(2, 3, 8) + 0.5
    return model, lambda: model(x).abs().sum()


@pytest.mark.parametrize("make", [recurrent, convolutional, attention])
@pytest.mark.parametrize("optimizer", [clew.optim.Adam, clew.optim.SGD])
def test_bytes_are_those_that_numpy_allocated(numpy_allocations, make, optimizer):
    make()[1]().backward()
    numpy_allocations()
    with track("clew") as m:
        start = m.now.bytes
        model, loss_of = make()
        options = {"momentum": 0.9} if optimizer is clew.optim.SGD else {}
        stepper = optimizer(model.parameters(), lr=0.01, **options)
        seen = []

        def check(when):
            seen.append(when)
            gc.collect()
            assert m.now.bytes - start == numpy_bytes(), when

        check("made")
        for _ in range(2):
            loss = loss_of()
            check("forward")
            stepper.zero_grad()
            loss.backward()
            check("backward")
            del loss
            stepper.step()
            check("step")
    assert len(seen) == 7


def test_bytes_during_a_backward_are_exact_too(numpy_allocations):
    _ = clew.zeros(1) * 3  # numbers that were operands are kept as arrays
    numpy_allocations()
    with track("clew") as m:
        start = m.now.bytes
        x = clew.zeros(20, 30, requires_grad=True)
        h = x.exp()
        found = []
        h.register_hook(lambda grad: found.append((m.now.bytes - start, numpy_bytes())))
        (h * 3).sum().backward()
    ((ours, numpys),) = found
    assert ours == numpys


def test_views_and_detached_tensors_are_no_memory():
    with track("clew") as m:
        x = clew.ones(100)
        before = m.now.bytes
        keep = [x[10:], x.view(10, 10).T, x.detach(), x.data, x.unbind()]
        assert m.now.bytes == before
        del x
        assert m.now.bytes == before  # one view keeps all of it
        del keep
        assert m.now.bytes == before - 400


def test_numpys_own_arrays_are_inputs_as_long_as_they_live():
    array = np.zeros(1000, np.float32)
    with track("clew") as m:
        x = clew.from_numpy(array[:10])
        assert m.now.kinds["input"] >= 4000
        start = m.now.kinds["input"]
        del x
        assert m.now.kinds["input"] == start  # the array is still there
        del array
        assert m.now.kinds["input"] == start - 4000


def test_a_tensor_that_gets_other_memory():
    with track("clew") as m:
        x = clew.zeros(10)
        start = m.now.bytes
        x.resize_(1000)
        assert m.now.bytes == start + 4000 - 40
        x.set_()
        assert m.now.bytes == start - 40
        w = clew.zeros(10, requires_grad=True)
        w.data = clew.zeros(10, dtype=clew.float64)
        assert m.now.kinds["parameter"] == 80


# -- kinds


def test_the_life_of_each_kind():
    with track("clew") as m:
        start = m.now.kinds

        def now(kind):
            return m.now.kinds[kind] - start[kind]

        x = clew.zeros(10, 20)
        assert now("input") == 800
        w = clew.zeros(20, 5, requires_grad=True)
        assert now("parameter") == 400
        h = x @ w
        assert now("temporary") == 200
        y = h.exp()  # keeps its result
        loss = (y * 2).sum()
        assert now("saved for backward") == 200
        assert now("temporary") == 200 + 4
        loss.backward()
        assert now("gradient") == 400
        assert now("saved for backward") == 0
        assert now("temporary") == 200 + 200 + 4  # h, y, loss: variables hold them
        optimizer = clew.optim.Adam([w])
        optimizer.step()
        assert now("optimizer state") == 400 + 400 + 4
        w.grad = None
        assert now("gradient") == 0
        del h, y, loss, x
        assert now("temporary") == now("input") == 0


def test_an_input_that_a_graph_keeps_stays_input_and_names_the_node():
    with track("clew") as m:
        w = clew.ones(3, requires_grad=True)
        x = clew.ones(3)
        y = w * x
        assert m.now.kinds["saved for backward"] == 0
        (entry,) = m.now.saved()
        assert (entry.kind, entry.node, entry.keeps, entry.bytes) == (
            "input", "MulBackward0", "other", 12,
        )  # fmt: skip
        assert entry.kept_by.text == "y = w * x"
        assert entry.reason == "the gradient of self is computed from it"
        assert m.now.saved_bytes == clew.graph(y).saved_bytes == 12


def test_what_a_module_makes_from_nothing_is_no_input():
    class Noisy(nn.Module):
        def forward(self, x):
            return x * clew.ones(4)

    with track("clew") as m:
        w = clew.ones(4, requires_grad=True)
        start = m.now.kinds["input"]
        y = Noisy()(w)
        assert m.now.kinds["input"] == start
        assert m.now.kinds["saved for backward"] == 16
        del y


def test_buffers_frozen_parameters_and_assigned_gradients():
    with track("clew") as m:
        norm = nn.BatchNorm1d(4)
        frozen = nn.Parameter(clew.zeros(5), requires_grad=False)
        norm(clew.zeros(2, 4) + clew.ones(4))
        assert m.now.kinds["buffer"] == 16 + 16 + 8
        assert m.now.kinds["parameter"] >= 16 + 16 + 20
        w = clew.zeros(6, requires_grad=True)
        w.grad = clew.zeros(6)
        assert m.now.kinds["gradient"] == 24
        h = w * 2
        h.retain_grad()
        h.sum().backward()
        assert m.now.kinds["gradient"] == 48
        del frozen


def test_a_graph_that_nobody_backwards_is_let_go_with_its_root():
    with track("clew") as m:
        x = clew.ones(100, requires_grad=True)
        y = x.exp().sin().sum()
        assert m.now.kinds["saved for backward"] == 400
        del y
        assert m.now.kinds["saved for backward"] == m.now.kinds["temporary"] == 0


def test_saved_tensor_hooks_and_create_graph():
    with track("clew") as m:
        x = clew.ones(10, requires_grad=True)
        pack = lambda t: (t.detach().clone(), "note")  # noqa: E731
        with clew.autograd.graph.saved_tensors_hooks(pack, lambda p: p[0]):
            y = x.exp()
        assert m.now.kinds["saved for backward"] == 40  # the clone
        del y
        (g,) = clew.autograd.grad(((x * 2) ** 3).sum(), x, create_graph=True)
        assert m.now.kinds["saved for backward"] > 0
        del g
        assert m.now.kinds["saved for backward"] == 0


def saved_here(ledger):
    """What graphs of this file keep: other tests may have left graphs alive."""
    return [e for e in ledger.now.saved() if e.kept_by and e.kept_by.file == __file__]


def test_custom_functions():
    class Square(clew.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return grad * 2 * ctx.saved_tensors[0]

    with track("clew") as m:
        x = clew.ones(10, requires_grad=True)
        h = x + 1
        y = Square.apply(h)
        (entry,) = saved_here(m)
        assert (entry.node, entry.keeps) == ("SquareBackward", "saved_tensors")
        others = m.now.kinds["gradient"]
        y.sum().backward()
        assert m.now.kinds["gradient"] - others == 40
        assert not saved_here(m)


def test_what_is_there_on_entry_is_found():
    model = nn.Linear(4, 3)
    optimizer = clew.optim.Adam(model.parameters())
    model(clew.ones(2, 4)).sum().backward()
    optimizer.step()
    y = model(clew.ones(2, 4) + 0).exp()
    with track("clew") as m:
        pass
    kinds = m.now.kinds
    assert kinds["parameter"] >= 15 * 4
    assert kinds["gradient"] >= 15 * 4
    assert kinds["optimizer state"] >= 2 * 15 * 4 + 8
    assert {e.node for e in m.now.saved()} >= {"ExpBackward0", "AddmmBackward0"}
    assert allocated() == holding().bytes >= m.now.bytes - 100
    del y


def test_nothing_is_kept_alive_and_nobody_listens_afterwards():
    with track("clew") as m:
        model = nn.Linear(2, 2)
        y = model(clew.ones(1, 2))
        watched = [weakref.ref(t) for t in (model, model.weight, y, y.grad_fn)]
        del model, y
        assert [ref() for ref in watched] == [None] * 4
    assert observers == []
    before = m.now.bytes
    more = clew.ones(1000)
    assert m.now.bytes == before
    del more


def test_an_error_inside_ends_tracking():
    with pytest.raises(ZeroDivisionError), track("clew"):
        nn.Sequential(nn.Identity(), _Raises())(1)
    assert observers == []


class _Raises(nn.Module):
    def forward(self, x):
        return x / 0


def test_a_module_that_raises_is_left():
    with track("clew") as m:
        with pytest.raises(ZeroDivisionError):
            _Raises()(1)
        kept = clew.ones(3) * 2
    assert m.now.entries()[0].module == "" or kept is not None
    assert {e.module for e in m.now.entries() if e.what == "mul"} == {""}


# -- lines and modules


def test_the_peak_by_line_kind_and_module():
    with track("clew") as m:
        model = nn.Sequential(nn.Linear(10, 50), nn.ReLU(), nn.Linear(50, 1))
        x = clew.ones(100, 10)
        loss = model(x).sum()
        loss.backward()
    peak = m.peak
    assert peak.bytes == sum(peak.kinds.values()) == peak.by_line().bytes == peak.by_module().bytes
    assert peak.line.text == "loss.backward()"
    lines = {e.line.text: e for e in m.by_line() if e.line is not None}
    assert lines["loss = model(x).sum()"].kinds["saved for backward"] == 100 * 50 * 4
    assert lines["x = clew.ones(100, 10)"].kinds == {"input": 4000}
    modules = {e.module: e for e in m.by_module()}
    assert modules["model.0"].kinds["parameter"] == (10 * 50 + 50) * 4
    assert modules["model.1"].kinds["saved for backward"] == 100 * 50 * 4
    assert {"model.1", "model.2"} <= set(modules)
    (relu,) = [e for e in m.saved() if e.node == "ReluBackward0"]
    assert (relu.bytes, relu.keeps, relu.kept_by.text) == (20000, "result", "loss = model(x).sum()")


def test_gradients_and_state_belong_to_the_parameters_module():
    with track("clew") as m:
        net = nn.ModuleDict({"a": nn.Linear(2, 3)})
        optimizer = clew.optim.Adam(net.parameters())
        net["a"](clew.ones(1, 2)).sum().backward()
        optimizer.step()
    found = {(e.module, e.what): e.bytes for e in m.now.entries() if e.module}
    assert found["net.a", "gradient of weight"] == 24
    assert found["net.a", "Adam.step"] == 2 * (24 + 12) + 8
    assert found["net.a", "weight"] == 24


def test_module_paths_start_at_variables():
    class Trainer:
        def __init__(self):
            self.critic = nn.Sequential(nn.Linear(2, 2))

        def run(self):
            return self.critic(clew.ones(1, 2))

    with track("clew") as m:
        kept = [Trainer().run(), nn.Sequential(nn.Linear(2, 2))(clew.ones(1, 2))]
        actor = nn.Linear(2, 2)
        kept.append(actor(kept[0]))
    modules = {e.module for e in m.now.entries() if e.what in ("addmm", "linear")}
    assert modules == {"critic.0", "Sequential.0", "actor"}


def test_a_module_is_named_after_the_variable_of_who_calls_the_outermost():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(2, 2)

        def forward(self, x):
            inner = self.body  # not what it is called outside
            return inner(x)

    with track("clew") as m:
        block = Block()
        kept = block(clew.ones(1, 2))
    modules = {e.module for e in m.now.entries() if e.what in ("addmm", "linear")}
    assert modules == {"block.body"}
    del kept


def test_nodes_of_a_module_share_no_metadata_that_can_be_written_to():
    with track("clew"):
        layer = nn.Linear(2, 2)
        first, second = (layer(clew.ones(1, 2)).grad_fn for _ in range(2))
        first.metadata["mine"] = 1
    assert first.metadata == {"clew.module": "layer", "mine": 1}
    assert second.metadata == {"clew.module": "layer"}


def test_a_gradient_that_is_passed_on_is_counted_once():
    a = clew.ones(10, requires_grad=True)
    b = clew.ones(10, requires_grad=True)
    with track("clew") as m:
        start, seen = m.now.bytes, []
        h = (a + b) + (a.exp() + b.view(2, 5).view(10))
        h.register_hook(lambda grad: seen.append(m.now.bytes - start))
        before = m.now.bytes - start
        h.backward(clew.ones(10))
        assert seen == [before + 40]  # the first gradient
        del h
        assert m.now.bytes - start == 80 == m.now.kinds["gradient"]


def test_a_gradient_that_is_copied_for_its_leaf_is_counted_too():
    w = clew.ones(10, requires_grad=True)
    kept = []
    w.register_hook(kept.append)
    with track("clew") as m:
        start, gradients = m.now.bytes, m.now.kinds["gradient"]
        w.exp().sum().backward()
        assert m.now.kinds["gradient"] - gradients == 40
        assert m.now.bytes - start == 80
        kept.clear()
        assert m.now.bytes - start == 40


# -- iterations


def grow(steps):
    w = clew.ones(10, requires_grad=True)
    optimizer = clew.optim.SGD([w], lr=0.1)
    history = []
    for _ in range(steps):
        loss = (w.exp() * 2).sum()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        history.append(loss)
    return history


def test_diff_names_what_grew():
    with track("clew") as m:
        kept = grow(8)
    assert len(m.iterations) == 8
    assert [one.grew for one in m.iterations[1:]] == [44] * 7
    d = m.diff(1, -1)
    assert (d.first, d.second, d.bytes) == (1, 7, 6 * 44)
    assert d.kinds["saved for backward"] == 6 * 40
    first, second = d.grew
    assert (first.bytes, first.storages, first.kind) == (240, 6, "saved for backward")
    assert first.line.text == "loss = (w.exp() * 2).sum()"
    assert (first.node, second.kind) == ("ExpBackward0", "temporary")
    assert {line.text for line in d.steady} == {"loss = (w.exp() * 2).sum()"}
    assert m.diff(-1, 1).bytes == -6 * 44
    assert not m.diff(3, 3).entries
    assert "see diff(1, 7)" in m.report()
    del kept


def test_there_is_no_such_iteration():
    with track("clew") as m, pytest.raises(IndexError, match=r"no iteration 0: 0 have ended"):
        m.diff(0, 1)


def test_marks_take_the_place_of_steps_and_backward_that_of_both():
    w = clew.ones(3, requires_grad=True)
    with track("clew") as passes:
        for _ in range(3):
            (w * 2).sum().backward()
    assert len(passes.iterations) == 3
    with track("clew") as steps:
        held = grow(4)
    assert len(steps.iterations) == 4
    with track("clew") as marks:
        held += grow(4)
        marks.mark()
        held += grow(1)
        marks.mark()
    assert len(marks.iterations) == 2
    assert marks.iterations[1].grew == 40 + 40 + 40 + 4  # w, its gradient, exp's result, loss


@pytest.mark.parametrize(
    ("steps", "ends"),
    [
        ([], []),
        ([(5, "g")], [5]),
        ([(5, "g"), (9, "g")], [5, 9]),
        ([(5, "d"), (7, "g"), (11, "d"), (13, "g")], [7, 13]),
        ([(1, "d"), (2, "d"), (3, "d"), (4, "g"), (5, "d")], [1, 2, 4, 5]),
    ],
)
def test_several_optimizers_make_one_iteration(steps, ends):
    assert ends_of_steps(steps) == ends


@pytest.mark.parametrize(
    ("ends", "answer"),
    [
        ([5, 5, 5, 5], False),
        ([1, 2, 3, 4], True),
        ([1, 1, 2, 2, 3, 3, 4, 4], True),
        ([1, 2, 3, 1, 2, 3, 1, 2, 3], False),  # truncated backpropagation through time
        ([1, 2], False),
    ],
)
def test_growth_is_no_saw_tooth(ends, answer):
    assert grows(ends) is answer


@pytest.mark.parametrize("limit", [300, 60, 3])
def test_a_long_log_is_settled_without_a_change_of_the_figures(limit, monkeypatch):
    monkeypatch.setattr("clew.inspect.memory.clew_engine.OFTEN", 40)
    figures = []
    for size in (ledger_module.LIMIT, limit):
        with track("clew", limit=size) as m:
            held = grow(30)
        rounds = [(one.peak, one.kinds, one.peak_kinds, one.grew) for one in m.iterations]
        figures.append((rounds, m.peak.kinds, m.peak.iteration, str(m.diff(2, -1)), m.now.kinds))
        del held
    assert figures[0] == figures[1]
    assert m.timeline.first > 0
    with pytest.raises(IndexError, match="are kept"):
        m.at(0)


def test_timeline_and_any_moment():
    with track("clew") as m:
        x = clew.ones(10, requires_grad=True)
        y = x.exp()
        del y
    line = m.timeline
    assert line.total[-1] == m.now.bytes
    assert line.total.max() == m.peak.bytes
    assert (line.of("saved for backward") == 40).any()
    assert (np.diff(line.seconds) >= 0).all()
    top = m.at(line.first + int(line.total.argmax()) + 1)
    assert top.kinds == m.peak.kinds
    with pytest.raises(IndexError):
        m.at(10**9)
    with pytest.raises(ValueError, match="not in"):
        line.of("nothing")


# -- showing


def test_report_and_reprs():
    with track("clew") as m:
        model = nn.Linear(3, 2)
        model(clew.ones(2, 3)).exp().sum().backward()
    text = str(m)
    assert text == m.report()
    for part in ("peak", "bytes held", "the peak by line", "the peak by module", "model"):
        assert part in text
    assert all(kind in text for kind in KINDS if kind != "buffer")
    assert repr(m.by_line()).startswith("<Table 'by line'")
    assert str(m.peak.by_kind()).count("\n") > 3
    assert "holds" in str(m.now)
    assert "more" in m.report(lines=1)


def test_a_ledger_without_anything():
    with track("clew") as m:
        pass
    m._log.close()
    assert "0 iterations" in str(m)
    assert m.peak.bytes >= 0


def test_unknown_engines_and_endings_are_refused(tmp_path):
    with pytest.raises(ValueError, match="no engine 'jax'"):
        track("jax")
    with track("clew") as m:
        pass
    with pytest.raises(ValueError, match=r"use \.html or \.json"):
        m.save(tmp_path / "m.txt")
