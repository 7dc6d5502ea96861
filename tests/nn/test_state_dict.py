"""state_dict and load_state_dict.  Oracle: PyTorch, also through its files."""

from collections import OrderedDict

import pytest

import clew
from clew import nn as clew_nn
from twins import assert_same


def net(m, seed=0):
    nn = m.nn
    m.manual_seed(seed)
    made = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.ModuleDict({"h": nn.Linear(3, 1)}))
    made.register_buffer("scratch", m.ones(1), persistent=False)
    made.register_buffer("kept", m.ones(()))
    return made


@pytest.mark.parametrize(
    "options", [{}, {"prefix": "a."}, {"keep_vars": True}, {"destination": OrderedDict()}]
)
def test_state_dict(options):
    def run(m):
        given = {k: type(v)(v) if k == "destination" else v for k, v in options.items()}
        state = net(m).state_dict(**given)
        return dict(state), getattr(state, "_metadata", None) and dict(state._metadata)

    assert_same(run)


def test_positional_arguments_warn():
    with pytest.warns(FutureWarning, match="Positional args are being deprecated"):
        state = net(clew).state_dict(OrderedDict(), "x.")
    assert next(iter(state)) == "x.kept"


def test_the_state_shares_memory():
    n = net(clew)
    n.state_dict()["0.weight"].fill_(7)
    assert n[0].weight.tolist() == [[7, 7]] * 3
    assert n.state_dict(keep_vars=True)["0.weight"] is n[0].weight


CHANGES = [
    "pass",
    "del s['0.weight']",
    "s['more'] = m.ones(1)",
    "s['0.more'] = m.ones(1)",
    "s['9.more'] = m.ones(1)",
    "s['2.h.a.b'] = m.ones(1)",
    "s['0.weight'] = m.ones(7)",
    "s['0.weight'] = m.ones(3, 2, dtype=m.float64)",
    "s['0.weight'] = 'text'",
    "s['kept'] = m.ones(1) * 3",
    "s['kept'] = m.ones(2)",
    "s.clear()",
    "s['0.weight'] = m.ones(7); del s['kept']; s['zz'] = m.ones(1)",
    "s['1.running_mean'] = m.ones(9); s['0.bias'] = m.ones(9)",
]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("options", [{}, {"strict": False}, {"assign": True}])
def test_load(change, options):
    def run(m):
        state = net(m, 1).state_dict()
        exec(change, {"s": state, "m": m})
        n = net(m)
        try:
            keys = n.load_state_dict(state, **options)
        except RuntimeError as error:
            return str(error)
        return repr(keys), keys.missing_keys, keys.unexpected_keys, dict(n.state_dict())

    assert_same(run)


def test_assign_takes_the_tensors_themselves():
    n, state = net(clew), net(clew, 1).double().state_dict()
    n[0].weight.requires_grad_(False)
    n.load_state_dict(state, assign=True)
    assert n[0].weight.dtype == clew.float64 and not n[0].weight.requires_grad
    assert isinstance(n[0].weight, clew_nn.Parameter)
    assert n[1].running_mean is state["1.running_mean"]
    state["0.weight"].fill_(3)
    assert n[0].weight.tolist() == [[3, 3]] * 3


def test_copying_keeps_parameters_and_their_types():
    n = net(clew)
    weight = n[0].weight
    n.load_state_dict(net(clew, 1).double().state_dict())
    assert n[0].weight is weight and weight.dtype == clew.float32
    assert weight.is_leaf and weight.requires_grad


def test_extra_state():
    def run(m):
        class Counter(m.nn.Module):
            def __init__(self):
                super().__init__()
                self.count = 3

            def get_extra_state(self):
                return {"count": self.count}

            def set_extra_state(self, state):
                self.count = state["count"]

        a, b = m.nn.Sequential(Counter()), m.nn.Sequential(Counter())
        a[0].count = 9
        b.load_state_dict(a.state_dict())
        out = [dict(a.state_dict()), b[0].count]
        for target, state in (
            (b, {}),
            (m.nn.Sequential(m.nn.ReLU()), a.state_dict()),
        ):
            try:
                target.load_state_dict(state)
            except RuntimeError as error:
                out.append(str(error))
        return out

    assert_same(run)


def test_hooks():
    def run(m):
        n, calls = net(m), []
        n.register_state_dict_pre_hook(lambda mod, prefix, keep: calls.append(["pre", prefix]))
        n.register_state_dict_post_hook(
            lambda mod, state, prefix, meta: state.update({"added": meta["version"]})
        )
        n.register_load_state_dict_pre_hook(
            lambda mod, state, prefix, *rest: calls.append(["load", mod is n, state.pop("added")])
        )
        n.register_load_state_dict_post_hook(
            lambda mod, keys: calls.append(["loaded", list(keys.missing_keys)])
        )
        n[0].register_load_state_dict_post_hook(lambda mod, keys: keys.missing_keys.clear())
        state = n.state_dict()
        del state["0.bias"]
        result = n.load_state_dict(state)
        return calls, result.missing_keys, "added" in state

    assert_same(run)


def test_a_hook_may_replace_the_dictionary_only_in_private():
    n = net(clew)
    n._register_state_dict_hook(lambda mod, state, prefix, meta: {"all": 1})
    assert n.state_dict() == {"all": 1}

    def hook(mod, state, prefix, meta):
        return 1

    n.register_state_dict_post_hook(hook)
    with pytest.raises(RuntimeError, match="state_dict post-hook must return None"):
        n.state_dict()
    with pytest.raises(RuntimeError, match="Cannot register the same function"):
        n._register_state_dict_hook(hook)


def test_a_load_hook_that_returns_something_is_refused():
    n = net(clew)
    n.register_load_state_dict_post_hook(lambda mod, keys: 3)
    with pytest.raises(AssertionError, match="not expected to return new values"):
        n.load_state_dict(n.state_dict())


def test_hooks_of_a_dead_module():
    n = net(clew)
    other = clew_nn.ReLU()
    wrapped = clew_nn.base.state._WrappedHook(lambda module: None, other)
    assert wrapped() is None
    del other
    with pytest.raises(RuntimeError, match="dead Module"):
        wrapped()
    assert n is not None


def test_batch_norm_from_before_it_counted():
    def run(m):
        n = m.nn.BatchNorm1d(2)
        state = OrderedDict((k, v + 1) for k, v in n.state_dict().items() if "num" not in k)
        n.load_state_dict(state)
        return dict(n.state_dict())

    assert_same(run)


def test_instance_norm_from_before_it_stopped_tracking():
    def run(m):
        n = m.nn.InstanceNorm1d(2)
        n.load_state_dict({"running_mean": m.zeros(2), "running_var": m.ones(2)})

    assert_same(run)


def test_files_go_between_the_engines(tmp_path):
    torch = pytest.importorskip("torch")
    ours, theirs = net(clew, 3), net(torch, 4)
    torch.save(theirs.state_dict(), tmp_path / "a.pt")
    state = clew.load(tmp_path / "a.pt")
    assert state._metadata == theirs.state_dict()._metadata
    ours.load_state_dict(state)
    for ours_tensor, theirs_tensor in zip(ours.state_dict().values(), theirs.state_dict().values()):
        assert ours_tensor.tolist() == theirs_tensor.tolist()
    ours = net(clew, 5)
    clew.save(ours.state_dict(), tmp_path / "b.pt")
    theirs.load_state_dict(torch.load(tmp_path / "b.pt"))
    for ours_tensor, theirs_tensor in zip(ours.state_dict().values(), theirs.state_dict().values()):
        assert ours_tensor.tolist() == theirs_tensor.tolist()
