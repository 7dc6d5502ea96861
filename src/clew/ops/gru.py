"""A layer of gated recurrent units, and one of plain recurrent units, each as one op.

Note [Layer of a GRU]
    With x what the input and m what the hidden state h' before contribute (each in three parts,
    for gates r, u and n), a step computes

        r = sigmoid(x_r + m_r)   u = sigmoid(x_u + m_u)   n = tanh(x_n + r * m_n)
        h = (h' - n) * u + n

    The gates and m_n are an output too, and have gradients d: so the rule, which is made of them,
    can itself be differentiated.  One step backward, from dh and these:

        a = (dh * (1 - u) + dn) * (1 - n^2)              of x_n
        b = a * r + dm                                   of m_n
        c = (a * m_n + dr) * r * (1 - r)                 of x_r and m_r
        e = (dh * (h' - n) + du) * u * (1 - u)           of x_u and m_u
        dh * u + (c, e, b) W                             of h'

Rows are as in Note [Rows of a layer], and rules as in Note [Two ways backward].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from clew import kernels
from clew.op import op
from clew.ops.recurrent import (
    backwards,
    flat,
    in_memory,
    joined,
    of_projection,
    of_weight,
    parted,
    plus,
    rows_of,
    steps_in,
)

if TYPE_CHECKING:
    from clew.kernels.steps import Steps

_INPUTS = "input, weight_ih, weight_hh, bias_ih=None, bias_hh=None, hidden=None"


@op(f"gru_layer({_INPUTS}; sizes=None, reverse=False) -> output, last_hidden, gates",
    publish=(), tensors_only=True)  # fmt: skip
def gru_layer(
    x: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any, bias_hh: Any, hidden: Any, *,
    sizes: Any, reverse: bool,
) -> Any:  # fmt: skip
    """Hidden states of all steps, the last ones, and gates; see Note [Layer of a GRU]."""
    weights, biases = (weight_ih, weight_hh), (bias_ih, bias_hh)
    steps = steps_in(x, sizes, reverse)
    output, *others = kernels.gru.gru(flat(np, x), weights, biases, hidden, steps)
    return output.reshape(*x.shape[:-1], hidden.shape[1]), *others


@gru_layer.grad("input", "weight_ih", "weight_hh", "bias_ih", "bias_hh", "hidden")
def _(
    F: Any, grads: Any, input: Any, weight_ih: Any, weight_hh: Any, hidden: Any, output: Any,
    gates: Any, *, sizes: Any, reverse: bool, need: Any,
) -> Any:  # fmt: skip
    steps = steps_in(output, sizes, reverse)
    backward = kernels.gru.gru_backward if isinstance(gates, np.ndarray) else _of_tensors(F)
    to_inputs, to_products, to_hidden = backward(
        grads, weight_hh, hidden, flat(F, output), gates, steps
    )
    return [
        *of_projection(F, to_inputs, input, weight_ih, need),
        of_weight(F, to_products, hidden, output, steps) if need[2] else None,
        F.sum(to_inputs, dim=(0,)) if need[3] else None,
        F.sum(to_products, dim=(0,)) if need[4] else None,
        to_hidden,
    ]


def _of_tensors(F: Any) -> Any:
    """`gru_backward` made of ops."""

    def backward(
        grads: Any, weight: Any, hidden: Any, output: Any, gates: Any, steps: Steps
    ) -> Any:
        of_output, dh, of_gates = grads
        size = hidden.shape[1]
        of_output = None if of_output is None else flat(F, of_output)
        to_inputs, to_products = ([None] * len(steps.spans) for _ in range(2))
        for n, now, before in backwards(F, steps, output, hidden):
            dh, later = parted(F, dh, now)
            dh = plus(dh, rows_of(F, of_output, now))
            dh = F.zeros_like(before) if dh is None else dh
            reset, update, new, product = F.split(rows_of(F, gates, now), split_size=size, dim=1)
            of_new, of_update = dh * (1 - update), dh * (before - new)
            dr = dm = None
            if of_gates is not None:
                dr, du, dn, dm = F.split(rows_of(F, of_gates, now), split_size=size, dim=1)
                of_new, of_update = of_new + dn, of_update + du
            a = of_new * (1 - new * new)
            b, of_reset = plus(a * reset, dm), plus(a * product, dr)
            c = of_reset * reset * (1 - reset)
            e = of_update * update * (1 - update)
            to_inputs[n], to_products[n] = F.cat((c, e, a), dim=1), F.cat((c, e, b), dim=1)
            dh = joined(F, dh * update + F.mm(to_products[n], weight), later, hidden)
        return in_memory(F, to_inputs, steps), in_memory(F, to_products, steps), dh

    return backward


@op(f"rnn_layer({_INPUTS}; relu=False, sizes=None, reverse=False) -> output, last_hidden",
    publish=(), tensors_only=True)  # fmt: skip
def rnn_layer(
    x: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any, bias_hh: Any, hidden: Any, *,
    relu: bool, sizes: Any, reverse: bool,
) -> Any:  # fmt: skip
    """Hidden states of all steps, and the last: ``f(x W + h' W + biases)``, f tanh or relu."""
    weights, biases = (weight_ih, weight_hh), (bias_ih, bias_hh)
    steps = steps_in(x, sizes, reverse)
    output, last = kernels.gru.rnn(flat(np, x), weights, biases, hidden, relu, steps)
    return output.reshape(*x.shape[:-1], hidden.shape[1]), last


@rnn_layer.grad("input", "weight_ih", "weight_hh", "bias_ih", "bias_hh", "hidden")
def _(
    F: Any, grads: Any, input: Any, weight_ih: Any, weight_hh: Any, hidden: Any, output: Any, *,
    relu: bool, sizes: Any, reverse: bool, need: Any,
) -> Any:  # fmt: skip
    steps = steps_in(output, sizes, reverse)
    backward = kernels.gru.rnn_backward if isinstance(output, np.ndarray) else _rnn_of_tensors(F)
    to_inputs, to_hidden = backward(grads, weight_hh, hidden, flat(F, output), relu, steps)
    of_bias = F.sum(to_inputs, dim=(0,)) if need[3] or need[4] else None
    return [
        *of_projection(F, to_inputs, input, weight_ih, need),
        of_weight(F, to_inputs, hidden, output, steps) if need[2] else None,
        of_bias, of_bias, to_hidden,
    ]  # fmt: skip


def _rnn_of_tensors(F: Any) -> Any:
    """`rnn_backward` made of ops."""

    def backward(
        grads: Any, weight: Any, hidden: Any, output: Any, relu: bool, steps: Steps
    ) -> Any:
        of_output, dh = grads
        of_output = None if of_output is None else flat(F, of_output)
        to_inputs: list[Any] = [None] * len(steps.spans)
        for n, now in reversed(list(enumerate(steps.spans))):
            dh, later = parted(F, dh, now)
            dh, h = plus(dh, rows_of(F, of_output, now)), rows_of(F, output, now)
            dh = F.zeros_like(h) if dh is None else dh
            to_inputs[n] = F.threshold_backward(dh, h, threshold=0) if relu else dh * (1 - h * h)
            dh = joined(F, F.mm(to_inputs[n], weight), later, hidden)
        return in_memory(F, to_inputs, steps), dh

    return backward
