"""The ledger on real PyTorch: kinds and bytes as on clew, and programs that run as before."""

import gc

import pytest

import clew
from clew.memory import track
from leftovers import without_leftovers  # noqa: F401  # for all tests of this module

torch = pytest.importorskip("torch")
ENGINES = [clew, torch]


def mlp(t):
    model = t.nn.Sequential(t.nn.Linear(8, 16), t.nn.ReLU(), t.nn.Linear(16, 3))
    x, y = t.zeros(4, 8) + 0.5, t.tensor([0, 1, 2, 1])
    return model, lambda: t.nn.functional.cross_entropy(model(x), y)


def cnn(t):
    nn = t.nn
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(),
        nn.Linear(4 * 16, 3), nn.Tanh(),
    )  # fmt: skip
    x = t.zeros(2, 1, 8, 8) + 0.5
    return model, lambda: model(x).pow(2).mean()


def residual(t):
    class Block(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = t.nn.LayerNorm(6)
            self.up, self.down = t.nn.Linear(6, 12), t.nn.Linear(12, 6)

        def forward(self, x):
            return x + self.down(t.sigmoid(self.up(self.norm(x)))).exp()

    model = t.nn.Sequential(Block(), Block())
    x = t.zeros(5, 6) + 0.5
    return model, lambda: (model(x) * 3).abs().sum()


def gan(t):
    nn = t.nn
    g, d = nn.Linear(3, 8), nn.Sequential(nn.Linear(8, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
    noise, real = t.zeros(4, 3) + 0.5, t.zeros(4, 8)
    return nn.ModuleList([g, d]), lambda: (d(real) - d(g(noise).tanh())).pow(2).mean()


def recurrent(t):
    cell = t.nn.RNNCell(4, 6)
    x, h = t.zeros(5, 3, 4) + 0.5, t.zeros(3, 6)

    def loss():
        state = h
        for step in x:
            state = cell(step, state)
        return state.pow(2).sum()

    return cell, loss


SAME = ("parameter", "buffer", "gradient", "optimizer state", "input", "saved for backward")


def states(t, make, optimizer):
    """Bytes by kind after each phase of three steps, of what was made meanwhile."""
    gc.collect()
    found = []
    with track(t.__name__) as m:
        start, kept = m.now.kinds, m.now.saved_bytes

        def note():
            found.append({kind: m.now.kinds[kind] - start[kind] for kind in SAME})
            found[-1]["kept"] = m.now.saved_bytes - kept

        model, loss_of = make(t)
        stepper = optimizer(t, model.parameters())
        note()
        for _ in range(3):
            loss = loss_of()
            note()
            stepper.zero_grad()
            loss.backward()
            note()
            del loss
            stepper.step()
            note()
        found.append(m.peak.bytes - sum(start.values()))
    return found


@pytest.mark.parametrize("make", [mlp, cnn, residual, gan, recurrent])
@pytest.mark.parametrize(
    "optimizer",
    [
        lambda t, p: t.optim.Adam(p),
        lambda t, p: t.optim.SGD(p, lr=0.1, momentum=0.9),
        lambda t, p: t.optim.Adagrad(p),
    ],
    ids=["Adam", "SGD", "Adagrad"],
)
def test_kinds_and_bytes_are_those_of_clew(make, optimizer):
    *ours, our_peak = states(clew, make, optimizer)
    *theirs, their_peak = states(torch, make, optimizer)
    assert ours == theirs
    # What lives only for an operation may differ: PyTorch's kernels work in place where clew's
    # make a new array, and the other way round.
    assert abs(our_peak - their_peak) <= 0.25 * their_peak


@pytest.mark.parametrize("t", ENGINES)
def test_lines_modules_and_nodes(t):
    with track(t.__name__) as m:
        model = t.nn.Sequential(t.nn.Linear(10, 50), t.nn.ReLU(), t.nn.Linear(50, 1))
        x = t.ones(100, 10)
        loss = model(x).sum()
        loss.backward()
    lines = {e.line.text: e for e in m.by_line() if e.line is not None}
    assert lines["loss = model(x).sum()"].kinds["saved for backward"] == 100 * 50 * 4
    assert lines["x = t.ones(100, 10)"].kinds == {"input": 4000}
    assert lines["loss.backward()"].bytes > 0
    modules = {e.module: e for e in m.by_module()}
    assert modules["model.0"].kinds["parameter"] == (10 * 50 + 50) * 4
    assert modules["model.1"].kinds["saved for backward"] == 100 * 50 * 4
    assert modules["model.1"].kinds["temporary"] == 100 * 50 * 4  # its gradient
    nodes = {(e.node, e.bytes, e.kept_by.text) for e in m.saved()}
    assert ("ReluBackward0", 20000, "loss = model(x).sum()") in nodes
    assert ("AddmmBackward0", 4000, "loss = model(x).sum()") in nodes
    assert m.peak.line.text == "loss.backward()"


@pytest.mark.parametrize("t", ENGINES)
def test_growth_and_iterations(t):
    with track(t.__name__) as m:
        w = t.ones(10, requires_grad=True)
        optimizer = t.optim.SGD([w], lr=0.1)
        history = []
        for _ in range(6):
            loss = (w.exp() * 2).sum()
            optimizer.zero_grad()
            loss.backward(retain_graph=True)
            optimizer.step()
            history.append(loss)
    assert len(m.iterations) == 6
    d = m.diff(1, -1)
    assert (d.bytes, d.kinds["saved for backward"]) == (4 * 44, 4 * 40)
    assert d.grew[0].line.text == "loss = (w.exp() * 2).sum()"
    assert d.grew[0].node == "ExpBackward0"
    del history


@pytest.mark.parametrize("t", ENGINES)
def test_storages_are_counted_once_and_views_pin_them(t):
    gc.collect()
    with track(t.__name__) as m:
        start = m.now.bytes
        big = t.zeros(1000)
        part = big[:1]
        assert m.now.bytes - start == 4000
        w = t.ones(1, requires_grad=True)
        y = w * part
        del big, part
        gc.collect()
        assert m.now.saved().bytes >= 4000  # 4 bytes are kept, and pin all
        y.sum().backward()
        del y
        gc.collect()
        assert m.now.bytes - start == 8


# -- PyTorch goes on as before


def test_a_write_to_a_saved_tensor_is_refused_as_without_hooks():
    def program():
        w = torch.ones(3, requires_grad=True)
        h = w * 2
        y = h**2
        h.add_(1)
        y.sum().backward()

    with pytest.raises(RuntimeError) as plain:
        program()
    with track("torch"), pytest.raises(RuntimeError) as tracked:
        program()
    cut = "is at version 1; expected version 0 instead. Hint: enable anomaly detection"
    for error in (plain, tracked):
        assert cut in str(error.value)
        assert "[torch.FloatTensor [3]]" in str(error.value)


def test_results_hooks_and_double_backward_are_the_same():
    def program():
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1))
        seen = []
        model[0].weight.register_hook(lambda g: seen.append(g.sum().item()))
        x = torch.randn(3, 4, requires_grad=True)
        (g,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        g.pow(2).sum().backward()
        return [p.grad.tolist() if p.grad is not None else None for p in model.parameters()], seen

    plain = program()
    with track("torch"):
        assert program() == plain
    assert program() == plain


def test_nothing_is_left_behind():
    from torch.nn.modules import module as modules
    from torch.optim import optimizer as optimizers

    tables = (
        modules._global_forward_hooks, modules._global_forward_pre_hooks,
        optimizers._global_optimizer_pre_hooks, optimizers._global_optimizer_post_hooks,
    )  # fmt: skip
    engine = torch.autograd.variable.Variable._execution_engine
    before = [len(table) for table in tables]
    w = torch.ones(2, requires_grad=True)
    with track("torch") as m:
        (w * 2).sum().backward()
        assert [len(table) for table in tables] != before
    assert [len(table) for table in tables] == before
    assert torch.autograd.variable.Variable._execution_engine is engine
    assert not w._post_accumulate_grad_hooks
    total = m.now.bytes
    (w * 2).sum().backward()
    assert m.now.bytes == total


def test_both_engines_are_tracked_where_torch_is_loaded():
    with track() as m:
        a, b = clew.zeros(250), torch.zeros(500)
        made = [
            e for e in m.now.entries() if e.line is not None and "clew.zeros(250)" in e.line.text
        ]
        assert sum(e.bytes for e in made) == 1000 + 2000
    assert m.engines == ["clew", "torch"]
    del a, b


def test_other_layouts_and_devices_are_left_alone():
    with track("torch") as m:
        start = m.now.bytes
        kept = [torch.eye(3).to_sparse(), torch.zeros(100, device="meta")]
        gc.collect()
        assert m.now.bytes - start < 400
        grown = torch.zeros(10)
        before = m.now.bytes
        grown.resize_(100)
        assert m.now.bytes == before + 360
        del kept


@pytest.mark.parametrize("t", ENGINES)
def test_lazy_modules_and_parameters_that_get_other_memory(t):
    lazy = t.nn.LazyLinear(3)
    gc.collect()
    with track(t.__name__) as m:
        start = m.now.kinds["parameter"]
        lazy(t.ones(2, 5)).sum().backward()
        assert m.now.kinds["parameter"] - start == (5 * 3 + 3) * 4
        lazy.double()
        lazy(t.ones(2, 5, dtype=t.float64)).sum()
        gc.collect()
        assert m.now.kinds["parameter"] - start == (5 * 3 + 3) * 8


@pytest.mark.parametrize("t", ENGINES)
def test_checkpoints_complex_numbers_and_modes_without_a_graph(t):
    checkpoint = pytest.importorskip(f"{t.__name__}.utils.checkpoint").checkpoint
    gc.collect()
    with track(t.__name__) as m:
        start = m.now.kinds
        w = t.ones(10, dtype=t.complex64, requires_grad=True)
        y = checkpoint(lambda x: (x.exp() * 2).abs(), w, use_reentrant=False).sum()
        y.backward()
        with t.no_grad():
            kept = w * 2
        with t.inference_mode():
            more = w * 2
        del y
        gc.collect()
        grew = {kind: nbytes - start[kind] for kind, nbytes in m.now.kinds.items()}
    assert grew["gradient"] == grew["parameter"] == 80
    assert grew["temporary"] == 160
    assert grew["saved for backward"] == 0
    del kept, more
