"""Module: attributes, registration, traversal, casts, text.  Oracle: PyTorch."""

import copy
import pickle

import pytest

import clew
from clew import nn as clew_nn
from twins import assert_same


def net(m):
    """A module with parameters, buffers of both kinds, shared and absent members."""
    nn = m.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(3, 4)
            self.rest = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2, bias=False))
            self.again = self.first
            self.scale = nn.Parameter(m.ones(2))
            self.register_buffer("mean", m.zeros(3))
            self.register_buffer("scratch", m.ones(2), persistent=False)
            self.register_buffer("absent", None)
            self.register_parameter("none", None)
            self.add_module("empty", None)
            self.plain = 3

        def forward(self, x):
            return self.rest(self.first(x - self.mean)) * self.scale

    m.manual_seed(0)
    return Net()


def test_the_tree():
    def walk(m):
        n = net(m)
        return [
            [k for k, _ in n.named_parameters()],
            [k for k, _ in n.named_parameters(prefix="p", recurse=False)],
            [k for k, _ in n.named_parameters(remove_duplicate=False)],
            [k for k, _ in n.named_buffers()],
            [k for k, _ in n.named_modules()],
            [k for k, _ in n.named_modules(prefix="x", remove_duplicate=False)],
            [k for k, _ in n.named_children()],
            [type(c).__name__ for c in n.children()],
            [type(c).__name__ for c in n.modules()],
            len(list(n.parameters())),
            len(list(n.buffers(recurse=False))),
        ]

    assert_same(walk)


def test_the_text():
    assert_same(lambda m: repr(net(m)))


def test_text_of_lines_and_children():
    def text(m):
        class Odd(m.nn.Module):
            def extra_repr(self):
                return "one\ntwo"

        odd = Odd()
        alone = repr(odd)
        odd.child = m.nn.Sequential(m.nn.Linear(1, 2))
        return alone, repr(odd)

    assert_same(text)


def test_dir_lists_members_but_no_numbers():
    n = net(clew)
    assert {"first", "scale", "mean", "forward", "plain"} <= set(dir(n))
    assert "0" not in dir(n.rest)


@pytest.mark.parametrize(
    "change",
    [
        "n.scale = 3",
        "n.scale = m.ones(2)",
        "n.scale = None",
        "n.first = 3",
        "n.first = None",
        "n.mean = 'text'",
        "n.mean = None",
        "n.mean = m.ones(7)",
        "n.plain = m.nn.Parameter(m.ones(3))",
        "n.mean = m.nn.Parameter(m.ones(3))",
        "n.first = m.nn.Parameter(m.ones(3))",
        "n.mean = m.nn.Linear(2, 2)",
        "n.scratch = m.nn.Linear(2, 2)",
        "n.new = m.nn.Buffer(m.ones(2))",
        "n.new = m.nn.Buffer(m.ones(2), persistent=False)",
        "n.scratch = m.nn.Buffer(m.ones(2))",
        "del n.scale",
        "del n.mean",
        "del n.first",
        "del n.plain",
        "del n.unknown",
        "n.unknown",
        "n.register_buffer('a.b', None)",
        "n.register_buffer('', None)",
        "n.register_buffer(3, None)",
        "n.register_buffer('plain', None)",
        "n.register_buffer('forward', None)",
        "n.register_buffer('mean', m.ones(4))",
        "n.register_buffer('b', 3)",
        "n.register_buffer('b', [1])",
        "n.register_parameter('a.b', None)",
        "n.register_parameter('', None)",
        "n.register_parameter(3, None)",
        "n.register_parameter('plain', None)",
        "n.register_parameter('p', m.ones(2))",
        "n.register_parameter('p', m.nn.Parameter(m.ones(2)))",
        "n.add_module('a.b', None)",
        "n.add_module('', None)",
        "n.add_module(3, None)",
        "n.add_module('plain', m.nn.ReLU())",
        "n.add_module('f', 3)",
        "n.register_module('f', m.nn.ReLU())",
        "n.get_submodule('rest.0')",
        "n.get_submodule('rest.7')",
        "n.get_submodule('scale')",
        "n.get_parameter('rest.0.weight')",
        "n.get_parameter('mean')",
        "n.get_parameter('rest.0.nothing')",
        "n.get_buffer('mean')",
        "n.get_buffer('scale')",
        "n.get_buffer('nothing')",
        "n.set_submodule('rest.1', m.nn.Tanh())",
        "n.set_submodule('rest.new', m.nn.Tanh())",
        "n.set_submodule('rest.new', m.nn.Tanh(), strict=True)",
        "n.set_submodule('scale', m.nn.Tanh())",
        "n.set_submodule('', m.nn.Tanh())",
        "n.set_submodule('rest.1', 3)",
        "n.train('yes')",
        "n.to(m.int64)",
        "n.load_state_dict([1])",
        "m.nn.Module(3)",
        "m.nn.Module(a=3)",
        "m.nn.Module()(1)",
        "m.nn.Parameter(m.ones(2, dtype=m.int64))",
        "m.nn.Parameter(m.ones(2, dtype=m.int64), False)",
        "m.nn.Parameter()",
    ],
)
def test_changes_and_their_errors(change):
    def run(m):
        n = net(m)
        exec(change, {"n": n, "m": m})
        return repr(n), list(n.state_dict()), [k for k, _ in n.named_buffers()], sorted(vars(n))

    assert_same(run)


def test_assigning_before_init():
    for kind in ("nn.Parameter(m.ones(2))", "nn.Linear(2, 2)"):

        def run(m, kind=kind):
            class Early(m.nn.Module):
                def __init__(self):
                    self.x = eval(kind, {"nn": m.nn, "m": m})

            return Early()

        assert_same(run)


def test_arguments_go_on_where_asked_for():
    class Base:
        def __init__(self, value):
            self.value = value

    class Both(clew_nn.Module, Base):
        call_super_init = True

        def __init__(self, value):
            super().__init__(value)

    assert Both(5).value == 5


def test_a_parameter_is_a_leaf_on_the_same_memory():
    data = clew.zeros(3)
    parameter = clew_nn.Parameter(data)
    data.add_(1)
    assert parameter.tolist() == [1, 1, 1]
    assert parameter._version == data._version
    assert parameter.is_leaf and parameter.requires_grad
    assert type(parameter.detach()) is clew.Tensor
    assert_same(lambda m: repr(m.nn.Parameter(m.arange(3.0))))


def test_a_non_leaf_is_no_parameter():
    class Model(clew_nn.Module):
        pass

    model = Model()
    parameter = clew_nn.Parameter(clew.ones(2)).mul(2)
    parameter.__class__ = clew_nn.Parameter
    with pytest.raises(ValueError, match="Cannot assign non-leaf Tensor to parameter 'p'"):
        model.p = parameter


def test_modes():
    def run(m):
        n = net(m)
        n.eval()
        evaluated = [c.training for c in n.modules()]
        n.train()
        n.requires_grad_(False)
        frozen = [p.requires_grad for p in n.parameters()]
        order = []
        n.requires_grad_().apply(lambda c: order.append(type(c).__name__))
        return evaluated, frozen, order, n.training

    assert_same(run)


def test_casts_change_parameters_gradients_and_buffers_in_place():
    def run(m):
        n = net(m)
        n(m.ones(2, 3)).sum().backward()
        parameter, gradient = n.scale, n.scale.grad
        n.register_buffer("count", m.zeros(1, dtype=m.int64))
        out = []
        for cast in ("double", "half", "float", "bfloat16", "cpu"):
            getattr(n, cast)()
            out.append([str(t.dtype) for t in (n.scale, n.scale.grad, n.mean, n.count)])
        n.to(m.float64)
        n.to("cpu", m.float32)
        n.to(m.zeros(1, dtype=m.float64))
        n.to(dtype=m.float64, device=m.device("cpu"))
        out.append([n.scale is parameter, n.scale.grad is gradient, str(n.mean.dtype)])
        n(m.ones(2, 3, dtype=m.float64)).sum().backward()
        out.append(n.scale.grad)
        return out

    assert_same(run)


def test_other_devices_are_refused():
    n = net(clew)
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        n.cuda()
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        n.to("cuda")
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        n.to([1])
    with pytest.raises(NotImplementedError, match="cannot compile"):
        n.compile()


@pytest.mark.parametrize("set_to_none", [True, False])
def test_zero_grad(set_to_none):
    def run(m):
        n = net(m)
        n(m.ones(2, 3)).sum().backward()
        n.zero_grad(set_to_none)
        return [p.grad for p in n.parameters()]

    assert_same(run)


def test_a_replica_has_no_parameters_of_its_own():
    n = net(clew)
    replica = n._replicate_for_data_parallel()
    assert not replica._parameters and replica._modules == n._modules
    assert n.scale.requires_grad
    with pytest.warns(UserWarning, match="has no effect"):
        replica.zero_grad()


def test_copies_are_deep_and_equal():
    n = net(clew)
    n(clew.ones(2, 3)).sum().backward()
    for made in (copy.deepcopy(n.rest), pickle.loads(pickle.dumps(n.rest))):
        assert repr(made) == repr(n.rest)
        for p, q in zip(made.parameters(), n.rest.parameters()):
            assert type(p) is clew_nn.Parameter
            assert p.tolist() == q.tolist()
            assert p._array is not q._array
    shared = copy.deepcopy(n)
    assert shared.again is shared.first
    assert shared.scale.grad is None


def test_shared_parameters_stay_shared_in_a_copy():
    tied = clew_nn.Sequential(clew_nn.Linear(2, 2), clew_nn.Linear(2, 2))
    tied[1].weight = tied[0].weight
    made = copy.deepcopy(tied)
    assert made[1].weight is made[0].weight
    assert len(list(made.parameters())) == 3


def test_what_is_missing_says_so():
    with pytest.raises(AttributeError, match=r"'clew\.nn' has no attribute 'Nothing'"):
        clew_nn.Nothing  # noqa: B018
    with pytest.raises(ImportError, match="Nothing"):
        from clew.nn import Nothing  # noqa: F401


def test_importing_clew_leaves_nn_out():
    import subprocess
    import sys

    code = "import clew, sys; assert 'clew.nn' not in sys.modules; clew.nn.Linear"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_buffers():
    buffer = clew_nn.Buffer(clew.ones(2), persistent=False)
    assert isinstance(buffer, clew_nn.Buffer)
    assert type(buffer) is clew.Tensor
    assert not isinstance(clew.ones(2), clew_nn.Buffer)
    assert not buffer.persistent
    assert clew_nn.Buffer().shape == (0,)
