"""Samples of elementwise ops that need attributes, or operands of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import clew
from ops.samples import Sample, Values, call, samples, variants

Samples = Iterator[Sample]

# -- arithmetic

variants("add_scaled", {"alpha": 2.0}, {"alpha": -0.5})
variants("sub_scaled", {"alpha": 2.0}, {"alpha": -0.5})
variants("div_rounded", {"rounding_mode": "floor"}, {"rounding_mode": "trunc"})
variants("addcmul", {}, {"value": 0.5})
variants("addcdiv", {}, {"value": 0.5})
variants("pow_scalar", *({"exponent": e} for e in (2.5, 3, 2, 1, 0, 0.5, -1)))
variants("round", {}, {"decimals": 1})


@samples("rpow")
def rpow(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), 1.5)
    yield call("0-d", v.real(), 0.5)
    yield call("empty", v.real(0, 3), 1.5)
    yield call("base zero", v.positive(2, 3), 0, once="log(0) makes it nan, as in PyTorch")


@samples("copysign_number")
def copysign_number(v: Values) -> Samples:
    yield call("usual", v.nonzero(2, 3), -1.5)
    yield call("0-d", v.nonzero(), 0.5)
    yield call("empty", v.nonzero(0, 3), 1.5)


@samples("xlogy_of_number")
def xlogy_of_number(v: Values) -> Samples:
    yield call("usual", 1.5, v.positive(2, 3))
    yield call("0-d", 1.5, v.positive())
    yield call("empty", 1.5, v.positive(0, 3))


@samples("xlogy_with_number")
def xlogy_with_number(v: Values) -> Samples:
    yield call("usual", v.nonzero(2, 3), 1.5)
    yield call("0-d", v.nonzero(), 1.5)
    yield call("empty", v.nonzero(0, 3), 1.5)


@samples("replaced_memory")
def replaced_memory(v: Values) -> Samples:
    says = "derivative for set_ is not implemented"
    yield call("usual", v.real(2, 3), v.real(2, 3), refuses=says)


@samples("heaviside")
def heaviside(v: Values) -> Samples:
    says = "derivative for aten::heaviside is not implemented"
    yield call("usual", v.nonzero(2, 3), v.real(3), refuses=says)
    yield call("0-d", v.nonzero(), v.real(), refuses=says)


@samples("floor_divide")
def floor_divide(v: Values) -> Samples:
    says = "derivative for aten::floor_divide is not implemented"
    yield call("usual", v.real(2, 3), v.nonzero(3), refuses=says)
    yield call("0-d", v.real(), v.nonzero(), refuses=says)
    yield call("empty", v.real(0, 3), v.nonzero(3), refuses=says)


@samples("gcd", "lcm")
def of_integers(v: Values) -> Samples:
    yield call("usual", v.integers(20, 2, 3), v.integers(20, 2, 3))
    yield call("broadcast", v.integers(20, 2, 3), v.integers(20, 3))
    yield call("0-d", v.integers(20), v.integers(20))
    yield call("empty", v.integers(20, 0), v.integers(20, 0))


# -- choice

variants("clamp", {"min": -0.5, "max": 1.0}, {"min": 0.0}, {"max": 0.5})
variants("lerp_number", {"weight": 0.3}, {"weight": 0.8})
variants("clamp_min", {"min": -0.5}, {"min": 0})
variants("clamp_max", {"max": 0.5}, {"max": 0})


@samples("clamp_tensors")
def clamp_tensors(v: Values) -> Samples:
    low, high = -1 + 0.1 * v.unit(2, 3), 1 + 0.1 * v.unit(2, 3)
    yield call("usual", v.off_kinks(2, 3), low, high)
    yield call("low", v.off_kinks(2, 3), low, None)
    yield call("high", v.off_kinks(2, 3), None, high)
    yield call("crossed", v.off_kinks(2, 3), high, low)
    yield call("broadcast", v.off_kinks(2, 3), low[0], high[:, :1])
    yield call("0-d", v.off_kinks(), np.asarray(low[0, 0]), np.asarray(high[0, 0]))
    yield call("empty", v.off_kinks(0, 3), low[:0], high[:0])


@samples("where")
def where(v: Values) -> Samples:
    yield call("usual", v.mask(2, 3), v.real(2, 3), v.real(2, 3))
    yield call("broadcast", v.mask(3), v.real(2, 1), v.real(2, 3))
    yield call("numbers", v.mask(2, 3), v.real(2, 3), 0)
    yield call("0-d", v.mask(), v.real(), v.real())
    yield call("empty", v.mask(0, 3), v.real(0, 3), v.real(3))


@samples("masked_fill_tensor")
def masked_fill_tensor(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), v.mask(2, 3), v.real())
    yield call("broadcast", v.real(3), v.mask(2, 1), v.real())
    yield call("0-d", v.real(), v.mask(), v.real())
    yield call("empty", v.real(0, 3), v.mask(0, 3), v.real())


@samples("masked_out")
def masked_out(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), v.mask(2, 3))
    yield call("0-d", v.real(), v.mask())
    yield call("empty", v.real(0, 3), v.mask(0, 3))


@samples("masked_fill")
def masked_fill(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), v.mask(2, 3), value=1.5)
    yield call("broadcast", v.real(3), v.mask(2, 1), value=0)
    yield call("0-d", v.real(), v.mask(), value=1.5)
    yield call("empty", v.real(0, 3), v.mask(0, 3), value=1.5)


@samples("asinh_inplace", "acosh_inplace", "atanh_inplace")
def without_a_derivative_in_place(v: Values) -> Samples:
    says = "is not implemented."
    yield call("usual", v.unit(2, 3), refuses=says)
    yield call("0-d", v.unit(), refuses=says)


# -- activations

variants("threshold", {"threshold": 0.5, "value": -1.0})
variants("threshold_inplace", {"threshold": 0.5, "value": -1.0})
variants("threshold_backward", {"threshold": 0.5})
variants("leaky_relu", {}, *({"negative_slope": s} for s in (0.2, -0.5, 1.5)))
variants("leaky_relu_inplace", {}, {"negative_slope": 0.2})
variants("leaky_relu_backward", *({"negative_slope": s} for s in (0.2, -0.5, 1.5)))
variants("hardtanh", {}, {"min_val": -0.5, "max_val": 2.0})
variants("hardtanh_backward", {"min_val": -0.5, "max_val": 2.0})
variants("hardshrink", {}, {"lambd": 1.0})
variants("softshrink", {}, {"lambd": 1.0})
variants("shrink_backward", {"lambd": 1.0})
variants("softplus", {}, {"beta": 2.0, "threshold": 1.0})
variants("softplus_backward", {"beta": 1.0, "threshold": 20.0}, {"beta": 2.0, "threshold": 1.0})
variants("gelu", {}, {"approximate": "tanh"})
variants("gelu_backward", {"approximate": "none"}, {"approximate": "tanh"})

_ELU = {"alpha": 1.5, "scale": 1.1, "input_scale": 0.7}
variants("elu", {}, _ELU)
variants("elu_inplace", {}, _ELU)
variants("celu", {}, {"alpha": 0.7})
variants("celu_inplace", {}, {"alpha": 0.7})
variants("elu_backward", {**_ELU, "is_result": False}, {**_ELU, "is_result": True})


@samples("rrelu_with_noise", "rrelu_with_noise_inplace")
def rrelu_with_noise(v: Values) -> Samples:
    slopes = {"lower": 0.1, "upper": 0.3}

    def noise(x: np.ndarray) -> np.ndarray:
        return np.where(x > 0, 1.0, 0.1 + 0.2 * v.probabilities(*x.shape))

    for name, shape in (("usual", (2, 3)), ("0-d", ()), ("empty", (0, 3))):
        x = v.off_kinks(*shape)
        yield call(name, x, noise(x), training=True, **slopes)
    yield call("evaluation", v.off_kinks(2, 3), None, training=False, **slopes)


# -- losses

_REDUCTIONS = ("none", "mean", "sum")
_OPTIONS: dict[str, dict[str, Any]] = {
    "mse_loss": {},
    "smooth_l1_loss": {"beta": 1.0},
    "huber_loss": {"delta": 0.5},
    "soft_margin_loss": {},
}


def _regression(loss: str, attrs: dict[str, Any]) -> None:
    """A loss of the difference of its inputs, which is kept away from multiples of 1/2."""

    def pair(v: Values, *shape: int) -> tuple[np.ndarray, np.ndarray]:
        return v.off_kinks(*shape), v.off_kinks(*shape, start=0)

    @samples(loss)
    def of_loss(v: Values) -> Samples:
        for reduction in _REDUCTIONS:
            yield call(reduction, *pair(v, 2, 3), reduction=reduction, **attrs)
        yield call("0-d", *pair(v), reduction="none", **attrs)
        yield call("empty", *pair(v, 0, 3), reduction="sum", **attrs)

    if loss == "soft_margin_loss":
        return

    @samples(f"{loss}_backward")
    def of_backward(v: Values) -> Samples:
        for reduction in _REDUCTIONS:
            grad = v.real(2, 3) if reduction == "none" else v.real()
            yield call(reduction, grad, *pair(v, 2, 3), reduction=reduction, **attrs)
        yield call("0-d", v.real(), *pair(v), reduction="none", **attrs)
        yield call("empty", v.real(0, 3), *pair(v, 0, 3), reduction="none", **attrs)


for _name, _attrs in _OPTIONS.items():
    _regression(_name, _attrs)


@samples("binary_cross_entropy")
def binary_cross_entropy(v: Values) -> Samples:
    def pair(*shape: int) -> tuple[np.ndarray, np.ndarray]:
        return v.probabilities(*shape), v.probabilities(*shape)

    for reduction in _REDUCTIONS:
        yield call(reduction, *pair(2, 3), None, reduction=reduction)
    yield call("weighted", *pair(2, 3), v.positive(3), reduction="mean")
    yield call("0-d", *pair(), None, reduction="none")
    yield call("empty", *pair(0, 3), None, reduction="sum")


@samples("binary_cross_entropy_backward")
def binary_cross_entropy_backward(v: Values) -> Samples:
    x, target = v.probabilities(2, 3), v.probabilities(2, 3)
    yield call("none", v.real(2, 3), x, target, None, reduction="none")
    yield call("mean", v.real(), x, target, None, reduction="mean")
    yield call("weighted", v.real(), x, target, v.positive(3), reduction="sum")
    yield call("0-d", v.real(), v.probabilities(), v.probabilities(), None, reduction="none")
    yield call("empty", v.real(0, 3), x[:0], target[:0], None, reduction="none")


@samples("binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(v: Values) -> Samples:
    for reduction in _REDUCTIONS:
        yield call(reduction, v.real(2, 3), v.probabilities(2, 3), None, None, reduction=reduction)
    x, target = v.real(2, 3), v.probabilities(2, 3)
    yield call("weighted", x, target, v.positive(3), None, reduction="mean")
    yield call("positive", x, target, None, v.positive(3), reduction="mean")
    yield call("both", x, target, v.positive(2, 3), v.positive(3), reduction="none")
    yield call("0-d", v.real(), v.probabilities(), None, None, reduction="none")
    yield call("empty", v.real(0, 3), v.probabilities(0, 3), None, None, reduction="sum")


@samples("binary_cross_entropy_with_logits_backward")
def binary_cross_entropy_with_logits_backward(v: Values) -> Samples:
    x, target = v.real(2, 3), v.probabilities(2, 3)
    yield call("none", v.real(2, 3), x, target, None, None, reduction="none")
    yield call("mean", v.real(), x, target, None, None, reduction="mean")
    yield call("both", v.real(), x, target, v.positive(3), v.positive(3), reduction="sum")
    yield call("0-d", v.real(), v.probabilities(), v.probabilities(), None, None, reduction="none")
    yield call("empty", v.real(0, 3), x[:0], target[:0], None, None, reduction="none")


# -- types and constants


@samples("to_dtype")
def to_dtype(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), dtype=clew.float64)
    yield call("0-d", v.real(), dtype=clew.float64)
    yield call("empty", v.real(0, 3), dtype=clew.float64)
    yield call("narrower", v.real(2, 3), dtype=clew.float32, convention="rounds to float32")


@samples("cast_like")
def cast_like(v: Values) -> Samples:
    yield call("usual", v.mask(2, 3), v.real(3))
    yield call("0-d", v.mask(), v.real(3))
    yield call("empty", v.mask(0, 3), v.real(3))


@samples("full")
def full(v: Values) -> Samples:
    yield call("usual", v.real(3), size=(2, 3), value=1.5)
    yield call("0-d", v.real(3), size=(), value=1.5)
    yield call("empty", v.real(3), size=(0, 3), value=1.5)


# -- what is overwritten


@samples("copy")
def copy(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), v.real(2, 3))
    yield call("broadcast", v.real(2, 3), v.real(3))
    yield call("0-d", v.real(), v.real())
    yield call("empty", v.real(0, 3), v.real(0, 3))


@samples("fill")
def fill(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), value=1.5)
    yield call("0-d", v.real(), value=1.5)
    yield call("empty", v.real(0, 3), value=1.5)


@samples("fill_tensor")
def fill_tensor(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), v.real())
    yield call("0-d", v.real(), v.real())
    yield call("empty", v.real(0, 3), v.real())


@samples("zero")
def zero(v: Values) -> Samples:
    yield call("usual", v.real(2, 3))
    yield call("0-d", v.real())
    yield call("empty", v.real(0, 3))


# -- random numbers

# In which order the elements are drawn depends on how they lie in memory.
_GENERATOR = {"generator": clew.Generator(), "laid_out": True}
_FILLS: dict[str, dict[str, Any]] = {
    "normal": {},
    "log_normal": {},
    "exponential": {},
    "cauchy": {},
    "geometric": {"p": 0.3},
    "uniform": {"low": 0.0, "high": 1.0},
    "random": {"low": 0, "high": 5},
    "bernoulli_fill": {"p": 0.3},
}
for _name, _attrs in _FILLS.items():

    @samples(_name)
    def fill_randomly(v: Values, attrs: dict[str, Any] = _attrs) -> Samples:
        yield call("usual", v.real(2, 3), **attrs, **_GENERATOR)
        yield call("0-d", v.real(), **attrs, **_GENERATOR)
        yield call("empty", v.real(0, 3), **attrs, **_GENERATOR)


@samples("bernoulli_each")
def bernoulli_each(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), v.probabilities(2, 3), **_GENERATOR)
    yield call("broadcast", v.real(2, 3), v.probabilities(3), **_GENERATOR)
    yield call("0-d", v.real(), v.probabilities(), **_GENERATOR)
    yield call("empty", v.real(0, 3), v.probabilities(0, 3), **_GENERATOR)


@samples("bernoulli", "poisson")
def of_each(v: Values) -> Samples:
    yield call("usual", v.probabilities(2, 3), **_GENERATOR)
    yield call("0-d", v.probabilities(), **_GENERATOR)
    yield call("empty", v.probabilities(0, 3), **_GENERATOR)


@samples("bernoulli_number")
def bernoulli_number(v: Values) -> Samples:
    says = "derivative for aten::bernoulli is not implemented"
    yield call("usual", v.real(2, 3), p=0.3, refuses=says, **_GENERATOR)
    yield call("empty", v.real(0, 3), p=0.3, refuses=says, **_GENERATOR)


@samples("normal_each")
def normal_each(v: Values) -> Samples:
    why = "PyTorch gives a distribution's parameters no gradient"
    yield call("usual", v.real(2, 3), v.positive(2, 3), convention=why, **_GENERATOR)
    yield call("number", 1.5, v.positive(2, 3), convention=why, **_GENERATOR)
    yield call("broadcast", v.real(2, 1), v.positive(3), convention=why, **_GENERATOR)
    yield call("empty", v.real(0, 3), v.positive(0, 3), convention=why, **_GENERATOR)


@samples("dropout_by_mask")
def dropout_by_mask(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), v.mask(2, 3), scale=2.0)
    yield call("broadcast", v.real(2, 3), v.mask(2, 1), scale=2.0)
    yield call("0-d", v.real(), v.mask(), scale=2.0)
    yield call("empty", v.real(0, 3), v.mask(0, 3), scale=2.0)


@samples("frexp")
def frexp(v: Values) -> Samples:
    yield call("usual", v.nonzero(2, 3) * 10)
    yield call("0-d", v.nonzero())
    yield call("empty", v.real(0, 3))
