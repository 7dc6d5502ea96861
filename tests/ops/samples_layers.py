"""Samples of what neural networks are made of: convolution, norms, softmax, attention."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from clew.op import REGISTRY
from clew.ops.conv import Geometry
from ops.samples import Sample, Values, call, samples

Samples = Iterator[Sample]

# -- softmax and gates


@samples("softmax", "log_softmax")
def softmax(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), dim=1)
    yield call("first", v.real(2, 3), dim=0)
    yield call("0-d", v.real(), dim=0)
    yield call("empty", v.real(0, 3), dim=1)


@samples("softmax_backward", "log_softmax_backward")
def softmax_backward(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), v.probabilities(2, 3), dim=1)
    yield call("first", v.real(2, 3), v.probabilities(2, 3), dim=0)
    yield call("empty", v.real(0, 3), v.probabilities(0, 3), dim=1)


@samples("glu")
def glu(v: Values) -> Samples:
    yield call("usual", v.real(2, 4))
    yield call("first", v.real(4, 3), dim=0)
    yield call("empty", v.real(0, 4))


@samples("glu_backward")
def glu_backward(v: Values) -> Samples:
    yield call("usual", v.real(2, 2), v.real(2, 4), dim=-1)
    yield call("first", v.real(2, 3), v.real(4, 3), dim=0)
    yield call("empty", v.real(0, 2), v.real(0, 4), dim=-1)


# -- likelihood of classes

_MEAN = {"reduction": "mean", "ignore_index": -100}


@samples("nll_loss")
def nll_loss(v: Values) -> Samples:
    for reduction in ("none", "mean", "sum"):
        attrs = {"reduction": reduction, "ignore_index": 2}
        yield call(reduction, v.real(4, 3), np.array([0, 2, 1, 0]), v.positive(3), **attrs)
    yield call("unweighted", v.real(4, 3), np.array([0, 2, 1, 0]), None, **_MEAN)
    yield call("one", v.real(3), np.array(1), None, **_MEAN)
    yield call("empty", v.real(0, 3), v.integers(3, 0), None, reduction="sum", ignore_index=-100)


@samples("nll_loss_2d")
def nll_loss_2d(v: Values) -> Samples:
    yield call("usual", v.real(2, 3, 2, 2), v.integers(3, 2, 2, 2), None, **_MEAN)
    yield call(
        "weighted", v.real(2, 3, 2, 2), v.integers(3, 2, 2, 2), v.positive(3), reduction="none",
        ignore_index=1,
    )  # fmt: skip


@samples("nll_loss_backward")
def nll_loss_backward(v: Values) -> Samples:
    x, target, weight = v.real(4, 3), np.array([0, 2, 1, 0]), v.positive(3)
    total = weight[target].sum()
    yield call("usual", v.real(), x, target, weight, np.asarray(total), **_MEAN)
    yield call(
        "none", v.real(4), x, target, None, np.asarray(0.0), reduction="none", ignore_index=2
    )


# -- convolution


def _geometry(dims: int, **changes: Any) -> Geometry:
    ones, zeros = (1,) * dims, (0,) * dims
    plain = Geometry(ones, zeros, ones, False, zeros, 1)
    return plain._replace(**changes)


# name: geometry, shapes of input and weight
_CONVOLUTIONS = {
    "usual": (_geometry(2), (2, 3, 4, 5), (2, 3, 3, 2)),
    "strided": (_geometry(1, stride=(2,), padding=(1,), dilation=(2,)), (2, 2, 7), (3, 2, 2)),
    "groups": (_geometry(1, groups=2), (1, 4, 5), (2, 2, 3)),
    "volume": (_geometry(3), (1, 1, 3, 2, 3), (1, 1, 2, 2, 1)),
    "transposed": (
        _geometry(2, transposed=True, stride=(2, 1), padding=(1, 0), output_padding=(1, 0)),
        (1, 2, 3, 2),
        (2, 3, 3, 2),
    ),
    "empty": (_geometry(1), (0, 2, 5), (3, 2, 2)),
}


@samples("convolution")
def convolution(v: Values) -> Samples:
    for name, (g, x, w) in _CONVOLUTIONS.items():
        channels = w[1] * g.groups if g.transposed else w[0]
        yield call(name, v.real(*x), v.real(*w), v.real(channels), **g._asdict())
    g, x, w = _CONVOLUTIONS["usual"]
    yield call("no bias", v.real(*x), v.real(*w), None, **g._asdict())


def _output(v: Values, g: Geometry, x: tuple[int, ...], w: tuple[int, ...]) -> np.ndarray:
    forward = REGISTRY["convolution"].forward
    shape = forward(np.zeros(x), np.zeros(w), None, **g._asdict()).shape
    return v.real(*shape)


@samples("convolution_backward_input")
def convolution_backward_input(v: Values) -> Samples:
    for name, (g, x, w) in _CONVOLUTIONS.items():
        yield call(name, _output(v, g, x, w), v.real(*w), size=x, geometry=g)


@samples("convolution_backward_weight")
def convolution_backward_weight(v: Values) -> Samples:
    for name, (g, x, w) in _CONVOLUTIONS.items():
        yield call(name, _output(v, g, x, w), v.real(*x), size=w, geometry=g)


@samples("convolution_backward_bias")
def convolution_backward_bias(v: Values) -> Samples:
    yield call("usual", v.real(2, 3, 4, 2))
    yield call("empty", v.real(0, 3, 4))


# -- norms

_MOVING = "the statistics move with the input"
_TRAILING = {"normalized_shape": (4,), "eps": 1e-3}
_GROUPS = {"group": 2, "eps": 1e-3}


@samples("native_layer_norm")
def layer_norm(v: Values) -> Samples:
    yield call("usual", v.real(3, 4), v.real(4), v.real(4), **_TRAILING)
    yield call("plain", v.real(3, 4), None, None, **_TRAILING)
    yield call("two", v.real(2, 3, 4), v.real(3, 4), None, normalized_shape=(3, 4), eps=1e-3)
    yield call("empty", v.real(0, 4), v.real(4), v.real(4), **_TRAILING)


@samples("native_layer_norm_backward")
def layer_norm_backward(v: Values) -> Samples:
    x, weight = v.real(3, 4), v.real(4)
    statistics = REGISTRY["native_layer_norm"].forward(x, weight, weight, **_TRAILING)[1:]
    for name, w, need in (("usual", weight, (True,) * 3), ("plain", None, (True, False, False))):
        yield call(
            name, v.real(3, 4), x, w, *statistics, need=need, convention=_MOVING, **_TRAILING
        )


@samples("native_group_norm")
def group_norm(v: Values) -> Samples:
    yield call("usual", v.real(2, 4, 3), v.real(4), v.real(4), **_GROUPS)
    yield call("plain", v.real(2, 4, 3), None, None, **_GROUPS)
    yield call("empty", v.real(0, 4, 3), v.real(4), v.real(4), **_GROUPS)


@samples("native_group_norm_backward")
def group_norm_backward(v: Values) -> Samples:
    x, weight = v.real(2, 4, 3), v.real(4)
    statistics = REGISTRY["native_group_norm"].forward(x, weight, weight, **_GROUPS)[1:]
    for name, w, need in (("usual", weight, (True,) * 3), ("plain", None, (True, False, False))):
        yield call(
            name, v.real(2, 4, 3), x, w, *statistics, need=need, convention=_MOVING, **_GROUPS
        )


@samples("fused_rms_norm")
def rms_norm(v: Values) -> Samples:
    yield call("usual", v.real(3, 4), v.real(4), **_TRAILING)
    yield call("plain", v.real(3, 4), None, **_TRAILING)
    yield call("empty", v.real(0, 4), v.real(4), **_TRAILING)


@samples("fused_rms_norm_backward")
def rms_norm_backward(v: Values) -> Samples:
    x, weight = v.real(3, 4), v.real(4)
    (rstd,) = REGISTRY["fused_rms_norm"].forward(x, weight, **_TRAILING)[1:]
    for name, w, need in (("usual", weight, (True,) * 2), ("plain", None, (True, False))):
        yield call(name, v.real(3, 4), x, w, rstd, need=need, convention=_MOVING, **_TRAILING)


_TRAINING = {"training": True, "momentum": 0.1, "eps": 1e-3}
_EVALUATION = {"training": False, "momentum": 0.1, "eps": 1e-3}


@samples("native_batch_norm")
def batch_norm(v: Values) -> Samples:
    yield call("usual", v.real(3, 2, 4), v.real(2), v.real(2), None, None, **_TRAINING)
    yield call("plain", v.real(5, 2), None, None, None, None, **_TRAINING)
    running = (v.real(2), v.positive(2))
    yield call("evaluation", v.real(3, 2, 4), v.real(2), v.real(2), *running, **_EVALUATION)


@samples("native_batch_norm_backward")
def batch_norm_backward(v: Values) -> Samples:
    x, weight, running = v.real(3, 2, 4), v.real(2), (v.real(2), v.positive(2))
    of_batch = REGISTRY["native_batch_norm"].forward(x, weight, weight, None, None, **_TRAINING)[1:]
    attrs = {"need": (True,) * 3, "eps": 1e-3, "convention": _MOVING}
    grad = v.real(3, 2, 4)
    yield call("usual", grad, x, weight, None, None, *of_batch, training=True, **attrs)
    fixed = (running[0], 1 / np.sqrt(running[1] + 1e-3))
    yield call("evaluation", grad, x, weight, *running, *fixed, training=False, **attrs)


# -- attention


@samples("safe_softmax")
def safe_softmax(v: Values) -> Samples:
    x = v.real(2, 3)
    x[1] = -np.inf
    yield call("usual", v.real(2, 3), dim=-1)
    yield call("rows of -inf", x, dim=1)
    yield call("empty", v.real(0, 3), dim=1)


@samples("causal_mask")
def causal_mask(v: Values) -> Samples:
    yield call("usual", v.real(2, 3, 4))
    yield call("empty", v.real(0, 3))


_ATTENTION = "scaled_dot_product_flash_attention_for_cpu"


@samples(_ATTENTION)
def attention(v: Values) -> Samples:
    def inputs(heads: int) -> tuple[np.ndarray, ...]:
        return v.real(2, 2, 3, 4), v.real(2, heads, 5, 4), v.real(2, heads, 5, 4)

    plain = {"is_causal": False, "scale": 0.5}
    yield call("usual", *inputs(2), None, **plain)
    yield call("bool mask", *inputs(2), np.tri(3, 5, 1, dtype=bool), **plain)
    yield call("added mask", *inputs(2), v.real(2, 1, 3, 5), **plain)
    yield call("causal", *inputs(2), None, is_causal=True, scale=0.5)
    yield call("grouped", *inputs(1), None, **plain)


@samples(f"{_ATTENTION}_backward")
def attention_backward(v: Values) -> Samples:
    q, k, value = v.real(1, 2, 3, 4), v.real(1, 2, 5, 4), v.real(1, 2, 5, 4)
    attrs = {"is_causal": False, "scale": 0.5}
    results = REGISTRY[_ATTENTION].forward(q, k, value, None, **attrs)
    why = "the results move with the inputs"
    yield call(
        "usual", v.real(1, 2, 3, 4), q, k, value, None, *results, need=(True,) * 3,
        convention=why, **attrs,
    )  # fmt: skip
