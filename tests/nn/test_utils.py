"""Clipping of gradients, parameters as a vector, lazy layers.  Oracle: PyTorch."""

import copy

import numpy as np
import pytest

import clew
from clew import nn as clew_nn
from clew.observers import Observer, observers
from twins import assert_same


def net(m):
    m.manual_seed(0)
    made = m.nn.Sequential(m.nn.Linear(3, 4), m.nn.Linear(4, 2), m.nn.ReLU())
    made[0](m.randn(5, 3)).pow(2).sum().backward()
    return made


@pytest.mark.parametrize("norm_type", [2, 2.0, 1, 0.5, float("inf")])
@pytest.mark.parametrize("max_norm", [0.1, 1e6])
def test_clip_grad_norm(norm_type, max_norm):
    def run(m):
        made = net(m)
        total = m.nn.utils.clip_grad_norm_(made.parameters(), max_norm, norm_type)
        return total, [p.grad for p in made.parameters()]

    assert_same(run)


def with_gradients(m, kind):
    """Parameters whose gradients are of one of several kinds."""
    shapes = [(40, 50), (3,), (), (0,)]
    made = [m.zeros(shape, requires_grad=True) for shape in shapes]
    for i, (p, shape) in enumerate(zip(made, shapes)):
        p.grad = m.arange(float(max(1, p.numel())))[: p.numel()].reshape(shape).clone() - i
    if kind in ("nan", "inf"):
        made[1].grad[1] = float(kind)
    elif kind == "huge":
        made[1].grad[1] = 1e30
    elif kind == "wide":
        made = [p.double().detach().requires_grad_() for p in made]
        for p in made:
            p.grad = p.detach() + 2
    elif kind == "mixed":
        other = m.zeros(3, dtype=m.float64, requires_grad=True)
        other.grad = m.ones(3, dtype=m.float64)
        made.append(other)
    elif kind == "turned":
        made[0].grad = m.arange(2000.0).reshape(50, 40).t()
    elif kind == "recorded":
        (made[1] ** 3 / 3).sum().backward(m.tensor(2.0), create_graph=True)
    elif kind == "one":
        made = made[2:3]
    return made


@pytest.mark.parametrize(
    "kind", ["plain", "nan", "inf", "huge", "wide", "mixed", "turned", "recorded", "one"]
)
@pytest.mark.parametrize("max_norm", [1.0, 1e6])
def test_clip_grad_norm_of_every_kind(kind, max_norm):
    def run(m):
        made = with_gradients(m, kind)
        before = [p.grad._version for p in made]
        total = m.nn.utils.clip_grad_norm_(made, max_norm)
        writes = [p.grad._version - v for p, v in zip(made, before)]
        return total, [p.grad for p in made], writes

    assert_same(run)


def test_clipping_at_once_is_clipping_by_ops():
    def clipped():
        made = with_gradients(clew, "plain")
        total = clew_nn.utils.clip_grad_norm_(made, 1.0)
        return [total, *(p.grad for p in made)]

    class Counter(Observer):
        ops = 0

        def on_op(self, *args):
            self.ops += 1

    plain, counter = clipped(), Counter()
    observers.append(counter)
    try:
        by_ops = clipped()
    finally:
        observers.remove(counter)
    assert counter.ops > 4
    for a, b in zip(plain, by_ops):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)


@pytest.mark.parametrize(
    "expression",
    [
        "u.clip_grad_norm_(n[0].weight, 1.0), n[0].weight.grad",
        "u.clip_grad_norm_([], 1.0)",
        "n[0].weight.grad.fill_(float('nan')), u.clip_grad_norm_(n[0].weight, 1.0, 2, True)",
        "u.clip_grad_norm_(n[1].parameters(), 1.0)",
        "u.clip_grad_value_(n.parameters(), 0.5), n[0].weight.grad",
        "u.clip_grad_value_(n[0].weight, 0.5), n[0].weight.grad",
        "u.get_total_norm([m.ones(3), m.ones(4)], 3)",
        "u.get_total_norm(m.ones(3))",
        "u.get_total_norm([m.tensor(float('nan'))], error_if_nonfinite=True)",
        "u.get_total_norm([m.tensor(float('inf'))], error_if_nonfinite=True)",
        "u.get_total_norm([m.tensor(float('inf'))])",
        "u.clip_grads_with_norm_(n.parameters(), 1.0, m.tensor(9.0)), n[0].weight.grad",
        "u.parameters_to_vector(n.parameters())",
        "u.parameters_to_vector(n.parameters()).requires_grad",
        "u.vector_to_parameters(m.arange(26.0), n.parameters()), n[1].bias, n[0].weight",
        "u.vector_to_parameters(3, n.parameters())",
    ],
)
def test_values_and_errors(expression):
    def run(m):
        value = eval(expression, {"m": m, "u": m.nn.utils, "n": net(m)})
        return list(value) if isinstance(value, tuple) else value

    assert_same(run)


def test_an_empty_generator_warns():
    with pytest.warns(UserWarning, match="empty generator"):
        clew_nn.utils.clip_grad_norm_((p for p in ()), 1.0)
    with pytest.warns(FutureWarning, match="deprecated in favor"):
        clew_nn.utils.clip_grad_norm([], 1.0)


LAZY = [
    ("LazyLinear(4)", (2, 3)),
    ("LazyLinear(4, bias=False)", (2, 3)),
    ("LazyConv1d(4, 2)", (2, 3, 5)),
    ("LazyConv2d(4, 2, groups=2)", (2, 4, 5, 5)),
    ("LazyConv3d(4, 2)", (3, 5, 5, 5)),
    ("LazyConvTranspose2d(4, 2, bias=False)", (2, 3, 5, 5)),
    ("LazyBatchNorm1d()", (4, 3)),
    ("LazyBatchNorm2d(affine=False)", (4, 3, 2, 2)),
    ("LazyInstanceNorm1d()", (2, 3, 5)),
]


@pytest.mark.parametrize("constructor, shape", LAZY)
def test_lazy_layers(constructor, shape):
    def run(m):
        m.manual_seed(0)
        layer = eval("m.nn." + constructor, {"m": m})
        before = repr(layer), [repr(p) for p in layer.parameters()], list(layer.state_dict())
        layer.to(m.float64)
        copied = eval("m.nn." + constructor, {"m": m}).to(m.float64)
        copied.load_state_dict(layer.state_dict())
        y = layer(m.randn(shape, dtype=m.float64))
        copied.load_state_dict(layer.state_dict())
        same = copied(m.ones(shape, dtype=m.float64))
        return before, repr(layer), type(layer).__name__, y, same, dict(layer.state_dict())

    assert_same(run)


@pytest.mark.parametrize(
    "expression",
    [
        "m.nn.LazyLinear(3).weight.shape",
        "m.nn.LazyLinear(3).weight.is_floating_point()",
        "m.nn.LazyLinear(3).half().weight.dtype is m.float16",
        "m.nn.LazyConv2d(3, 2, groups=2)(m.ones(1, 3, 4, 4))",
        "m.nn.LazyConv2d(3, 2)(m.ones(4, 4))",
        "m.nn.Linear(2, 3).load_state_dict(m.nn.LazyLinear(3).state_dict())",
        "m.nn.parameter.is_lazy(m.nn.LazyLinear(3).weight), m.nn.parameter.is_lazy(3)",
    ],
)
def test_lazy_values_and_errors(expression):
    assert_same(lambda m: eval(expression, {"m": m}))


def test_lazy_layers_can_be_copied():
    made = copy.deepcopy(clew_nn.LazyBatchNorm1d().double())
    assert repr(made.running_mean) == "<UninitializedBuffer>"
    assert made.running_mean.dtype is made.weight.dtype is clew.float64
    assert made(clew.ones(2, 3, dtype=clew.float64)).shape == (2, 3)


def test_a_parameter_without_shape_cannot_be_computed_with():
    weight = clew_nn.LazyLinear(3).weight
    for use in (lambda: weight + 1, lambda: weight.sum(), lambda: clew.zeros(1) * weight):
        with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter in"):
            use()


def test_a_lazy_module_that_leaves_something_out():
    class Lazy(clew_nn.modules.lazy.LazyModuleMixin):
        def __init__(self):
            super().__init__()
            self.p = clew_nn.UninitializedParameter()

    with pytest.raises(NotImplementedError, match="initialize_parameters is not implemented"):
        Lazy()(1)
    Lazy.initialize_parameters = lambda self, x: None
    with pytest.raises(RuntimeError, match="module Lazy has not been fully initialized"):
        Lazy()(1)
