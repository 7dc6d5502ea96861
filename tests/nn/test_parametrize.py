"""Parametrizations, weight norm, spectral norm, fusion, stateless calls.  Oracle: PyTorch."""

import copy
import pickle
import warnings

import pytest

import clew
from clew import nn as clew_nn
from twins import assert_same


def train(m, net, shape=(4, 3)):
    """What a layer computes, its gradients and state, in two modes."""
    x = m.randn(shape)
    outputs = []
    for _ in range(2):
        y = net(x)
        y.pow(2).sum().backward()
        outputs.append(y)
    net.eval()
    return (
        outputs, net(x), repr(net), {k: p.grad for k, p in net.named_parameters()},
        dict(net.state_dict()),
    )  # fmt: skip


@pytest.mark.parametrize("dim", [0, 1, None, -1])
def test_weight_norm_by_parametrization(dim):
    def run(m):
        m.manual_seed(0)
        net = m.nn.utils.parametrizations.weight_norm(m.nn.Linear(3, 4), dim=dim)
        return train(m, net)

    assert_same(run)


@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm_by_hook(dim):
    def run(m):
        m.manual_seed(0)
        net = m.nn.utils.weight_norm(m.nn.Linear(3, 4), dim=dim)
        before = train(m, net)
        m.nn.utils.remove_weight_norm(net)
        return before, repr(net), dict(net.state_dict()), len(net._forward_pre_hooks)

    assert_same(run)


def test_weight_norms_state_is_taken_from_the_hook():
    def run(m):
        m.manual_seed(0)
        old = m.nn.utils.weight_norm(m.nn.Linear(3, 4))
        new = m.nn.utils.parametrizations.weight_norm(m.nn.Linear(3, 4))
        new.load_state_dict(old.state_dict())
        return new.weight, list(new.state_dict())

    assert_same(run)


@pytest.mark.parametrize(
    "layer, shape",
    [
        ("Linear(3, 4)", (4, 3)),
        ("Conv1d(3, 4, 2)", (2, 3, 5)),
        ("ConvTranspose1d(3, 4, 2)", (2, 3, 5)),
    ],
)
@pytest.mark.parametrize("kind", ["parametrizations.spectral_norm", "spectral_norm"])
@pytest.mark.parametrize("steps", [1, 3])
def test_spectral_norm(layer, shape, kind, steps):
    def run(m):
        m.manual_seed(0)
        inner = eval("m.nn." + layer, {"m": m})
        net = eval("u." + kind, {"u": m.nn.utils})(inner, n_power_iterations=steps)
        return train(m, net, shape), dict(net.state_dict()._metadata)

    assert_same(run, rtol=1e-4)


def test_spectral_norm_of_a_vector():
    def run(m):
        m.manual_seed(0)
        net = m.nn.utils.parametrizations.spectral_norm(m.nn.Linear(3, 4), name="bias")
        return net.bias

    assert_same(run)


def test_removing_spectral_norm():
    def run(m):
        m.manual_seed(0)
        net = m.nn.utils.spectral_norm(m.nn.Linear(3, 4))
        net(m.ones(1, 3))
        m.nn.utils.remove_spectral_norm(net)
        hooks = (net._state_dict_hooks, net._forward_pre_hooks)
        return repr(net), dict(net.state_dict()), [len(h) for h in hooks]

    assert_same(run)


def test_a_state_is_loaded_after_spectral_norm_was_removed():
    """PyTorch leaves a hook behind here, which then misses the keys that are gone."""
    net = clew_nn.utils.remove_spectral_norm(clew_nn.utils.spectral_norm(clew_nn.Linear(3, 4)))
    assert not net._load_state_dict_pre_hooks
    net.load_state_dict(clew_nn.Linear(3, 4).state_dict())


def test_an_old_state_of_spectral_norm():
    def run(m):
        m.manual_seed(0)
        net = m.nn.utils.spectral_norm(m.nn.Linear(3, 4))
        net(m.ones(1, 3))
        state = dict(net.state_dict())
        state["weight"] = net.weight.detach()
        del state["weight_v"]
        net.load_state_dict(state)
        out = [dict(net.state_dict())]
        try:
            net.load_state_dict({"bias": state["bias"]})
        except RuntimeError as error:
            out.append(str(error))
        return out

    assert_same(run, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("shape", ["4, 4", "3, 5", "5, 3"])
@pytest.mark.parametrize("kind", ["matrix_exp", "cayley"])
@pytest.mark.parametrize(
    "trivial",
    [
        pytest.param(
            True,
            marks=pytest.mark.xfail(
                not hasattr(clew, "geqrf"), reason="clew has no geqrf", strict=True
            ),
        ),
        False,
    ],
)
def test_orthogonal(shape, kind, trivial):
    def run(m):
        m.manual_seed(0)
        net = m.nn.utils.parametrizations.orthogonal(
            eval(f"m.nn.Linear({shape})", {"m": m}).double(), "weight", kind,
            use_trivialization=trivial,
        )  # fmt: skip
        w = net.weight
        (w * m.arange(float(w.numel())).view(w.shape)).sum().backward()
        product = w @ w.mT if w.shape[0] < w.shape[1] else w.mT @ w
        identity = m.eye(len(product), dtype=m.float64)
        grads = [p.grad for p in net.parameters() if p.grad is not None]
        return m.allclose(product, identity), [] if trivial else [w, grads]

    assert_same(run)


class Symmetric:
    """Makes the class of a parametrization for an engine."""

    def __new__(cls, m, inverse=True):
        class Made(m.nn.Module):
            def forward(self, x):
                return x.triu() + x.triu(1).transpose(-1, -2)

            if inverse:

                def right_inverse(self, x):
                    return x.triu()

        return Made()


def test_registering_using_and_removing():
    def run(m):
        p = m.nn.utils.parametrize
        m.manual_seed(0)
        net = m.nn.Linear(3, 3)
        weight = net.weight
        out = [p.is_parametrized(net)]
        p.register_parametrization(net, "weight", Symmetric(m))
        out += [repr(net), net.weight, p.is_parametrized(net), p.is_parametrized(net, "bias")]
        out += [net.parametrizations.weight.original is weight, list(net.state_dict())]
        net.weight = m.arange(9.0).view(3, 3)
        out += [net.weight, net.parametrizations.weight.original]
        p.register_parametrization(net, "weight", m.nn.Softplus(), unsafe=True)
        out += [net.weight, type(net).__name__, p.type_before_parametrizations(net).__name__]
        with p.cached():
            out += [net.weight is net.weight]
        out += [net.weight is net.weight]
        made = copy.deepcopy(net)
        out += [made.weight, made.parametrizations.weight.original is weight]
        net(m.ones(1, 3)).sum().backward()
        out += [weight.grad]
        p.remove_parametrizations(net, "weight")
        out += [repr(net), net.weight, net.weight is weight]
        p.remove_parametrizations(made, "weight", leave_parametrized=False)
        return [*out, repr(made), made.weight]

    assert_same(run)


@pytest.mark.parametrize(
    "expression",
    [
        "p.register_parametrization(n, 'nothing', s)",
        "p.register_parametrization(n, 'weight', m.nn.Linear(2, 2))",
        "p.register_parametrization(n, 'weight', m.nn.Flatten(0))",
        "p.register_parametrization(n, 'weight', m.nn.Flatten(0), unsafe=True).weight.shape",
        "p.register_parametrization(r, 'weight', m.nn.Flatten(0))",
        "p.remove_parametrizations(n, 'weight')",
        "p.ParametrizationList([], n.weight)",
        "p.remove_parametrizations(q.weight_norm(n), 'weight', leave_parametrized=False)",
        "setattr(p.register_parametrization(n, 'weight', s2), 'weight', m.ones(3, 3))",
        "p.register_parametrization(m.nn.BatchNorm1d(3), 'running_mean', m.nn.ReLU())",
        "q.spectral_norm(n, dim=3)",
        "q.spectral_norm(n, n_power_iterations=0)",
        "q.spectral_norm(n, 'nothing')",
        "q.orthogonal(n, 'bias')",
        "q.orthogonal(n, orthogonal_map='odd')",
        "u.weight_norm(u.weight_norm(n))",
        "u.remove_weight_norm(n)",
        "u.spectral_norm(u.spectral_norm(n))",
        "u.remove_spectral_norm(n)",
        "u.spectral_norm(n, n_power_iterations=0)",
        "u.spectral_norm(m.nn.Linear(2, 2, bias=False), 'bias')",
        "u.weight_norm(m.nn.LazyLinear(2))",
        "u.skip_init(m.nn.ReLU)",
        "u.skip_init(m.nn.Linear, 2, 3).weight.shape, m.rand(1)",
    ],
)
def test_values_and_errors(expression):
    def run(m):
        m.manual_seed(0)
        u, n = m.nn.utils, m.nn.Linear(3, 3)
        names = {"m": m, "u": u, "n": n, "p": u.parametrize, "q": u.parametrizations}
        names |= {"s": Symmetric(m), "s2": Symmetric(m, inverse=False)}
        r = u.parametrize.register_parametrization(m.nn.Linear(2, 2), "weight", Symmetric(m))
        value = eval(expression, names | {"r": r})
        return repr(value) if isinstance(value, m.nn.Module) else value

    assert_same(run)


def test_a_parametrized_module_is_not_pickled():
    net = clew_nn.utils.parametrizations.weight_norm(clew_nn.Linear(2, 2))
    with pytest.raises(RuntimeError, match="only supported through state_dict"):
        pickle.dumps(net)


def test_transferring_parametrizations():
    def run(m):
        p = m.nn.utils.parametrize
        m.manual_seed(0)
        source, target = m.nn.Linear(3, 3), m.nn.Linear(3, 3)
        p.register_parametrization(source, "weight", Symmetric(m))
        p.transfer_parametrizations_and_params(source, target)
        shared = target.parametrizations.weight.original is source.parametrizations.weight.original
        return target.weight, shared

    assert_same(run)


def test_fusion():
    def run(m):
        m.manual_seed(0)
        u = m.nn.utils
        out = []
        conv, linear, turned = (
            m.nn.Conv1d(2, 3, 2),
            m.nn.Linear(2, 3),
            m.nn.ConvTranspose1d(2, 3, 2),
        )
        norm = m.nn.BatchNorm1d(3)
        norm(m.randn(5, 3))
        for layer, fuse, x in (
            (conv, u.fuse_conv_bn_eval, m.randn(1, 2, 4)),
            (linear, u.fuse_linear_bn_eval, m.randn(4, 2)),
            (turned, lambda c, b: u.fuse_conv_bn_eval(c, b, transpose=True), m.randn(1, 2, 4)),
        ):
            fused = fuse(layer.eval(), norm.eval())
            out += [fused(x), m.allclose(fused(x), norm(layer(x)), atol=1e-6), fused.weight]
        return out

    assert_same(run)
    with pytest.raises(AssertionError, match="Fusion only for eval!"):
        clew_nn.utils.fuse_linear_bn_eval(clew_nn.Linear(2, 3), clew_nn.BatchNorm1d(3))


@pytest.mark.parametrize(
    "tensors, options",
    [
        ("{'0.weight': m.ones(3, 3)}", {}),
        ("{'0.weight': m.ones(3, 3), '2.weight': m.zeros(3, 3)}", {}),
        ("{'0.weight': m.ones(3, 3), '2.weight': m.zeros(3, 3)}", {"tie_weights": False}),
        ("{'0.weight': m.ones(3, 3), 'odd': m.zeros(3, 3)}", {"strict": True}),
    ],
)
def test_functional_call(tensors, options):
    def run(m):
        m.manual_seed(0)
        net = m.nn.Sequential(m.nn.Linear(3, 3), m.nn.Tanh(), m.nn.Linear(3, 3))
        net[2].weight = net[0].weight
        x, own = m.randn(2, 3), net[0].weight
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y = m.nn.utils.stateless.functional_call(net, eval(tensors, {"m": m}), x, **options)
        return y, net[0].weight is own, net[2].weight is own

    assert_same(run)


def test_a_functional_call_leaves_the_modules_buffers():
    def run(m):
        net = m.nn.BatchNorm1d(2)
        given = {"running_mean": m.ones(2), "num_batches_tracked": m.tensor(5)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            m.nn.utils.stateless.functional_call(net, given, (m.arange(4.0).view(2, 2),))
        return given, dict(net.state_dict())

    assert_same(run)


@pytest.mark.parametrize(
    "call", ["net(x, t)", "net.log_prob(x)", "net.predict(x)", "net(x[0], t[0])"]
)
def test_adaptive_softmax(call):
    def run(m):
        m.manual_seed(0)
        net = m.nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2, 5], 2.0, head_bias=True)
        x, t = m.randn(6, 8), m.tensor([0, 1, 3, 9, 5, 4])
        value = eval(call, {"net": net, "x": x, "t": t})
        total = value.loss if isinstance(value, tuple) else value
        if total.requires_grad:
            total.sum().backward()
        return repr(net), value, [p.grad for p in net.parameters()]

    assert_same(run)


@pytest.mark.parametrize(
    "expression",
    [
        "c(8, 10, [])",
        "c(8, 10, [5, 2])",
        "c(8, 10, [0, 2])",
        "c(8, 10, [2, 10])",
        "c(8, 10, [2])(x, m.zeros(5, dtype=m.int64))",
        "c(8, 10, [2])(x, m.tensor([0, 1, 10, 2, 2, 2]))",
        "c(8, 10, [2])(x[0], m.zeros(8, dtype=m.int64))",
        "c(8, 10, [2])(x, m.tensor(0))",
        "c(8, 10, [2])(x, m.zeros(6, 1, dtype=m.int64))",
    ],
)
def test_errors_of_adaptive_softmax(expression):
    assert_same(
        lambda m: eval(
            expression, {"c": m.nn.AdaptiveLogSoftmaxWithLoss, "m": m, "x": m.ones(6, 8)}
        )
    )
