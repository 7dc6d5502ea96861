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

Note [Two ways backward]
    A rule is the same for arrays and for tensors, but for these layers: of arrays a kernel runs all
    steps backward, of tensors (``create_graph``) they are made of ops, which know their own
    derivatives.  Both are tested against the same finite differences.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clew import kernels
from clew.op import op
from clew.ops.recurrent import at, of_weight


@op("gru_layer(inputs, weight, hidden, bias=None; reverse=False) -> output, gates",
    publish=(), tensors_only=True)  # fmt: skip
def gru_layer(inputs: Any, weight: Any, hidden: Any, bias: Any, *, reverse: bool) -> Any:
    """Hidden states of all steps, and gates; see Note [Layer of a GRU]."""
    return kernels.gru.gru(inputs, weight, bias, hidden, reverse)


@gru_layer.grad("inputs", "weight", "hidden", "bias")
def _(
    F: Any, grads: Any, weight: Any, hidden: Any, output: Any, gates: Any, *,
    reverse: bool, need: Any,
) -> Any:  # fmt: skip
    of_output, of_gates = grads
    if of_output is None:
        of_output = F.zeros_like(output)
    backward = kernels.gru.gru_backward if isinstance(output, np.ndarray) else _of_tensors(F)
    to_inputs, to_products, to_hidden = backward(
        of_output, of_gates, weight, hidden, output, gates, reverse
    )
    return [
        to_inputs,
        of_weight(F, to_products, hidden, output, reverse) if need[1] else None,
        to_hidden,
        F.sum(to_products, dim=(0, 1)) if need[3] else None,
    ]


def _of_tensors(F: Any) -> Any:
    """`gru_backward` made of ops."""

    def backward(
        of_output: Any, of_gates: Any, weight: Any, hidden: Any, output: Any, gates: Any,
        reverse: bool,
    ) -> Any:  # fmt: skip
        steps, _, size = output.shape
        to_inputs, to_products = [None] * steps, [None] * steps
        order = range(steps)[::-1] if reverse else range(steps)
        to_hidden = None
        for n in reversed(range(steps)):
            t = order[n]
            before = at(F, output, order[n - 1]) if n else hidden
            dh = at(F, of_output, t)
            dh = dh if to_hidden is None else dh + to_hidden
            reset, update, new, product = F.split(at(F, gates, t), split_size=size, dim=1)
            of_new, of_update = dh * (1 - update), dh * (before - new)
            if of_gates is not None:
                dr, du, dn, dm = F.split(at(F, of_gates, t), split_size=size, dim=1)
                of_new, of_update = of_new + dn, of_update + du
            a = of_new * (1 - new * new)
            b, of_reset = a * reset, a * product
            if of_gates is not None:
                b, of_reset = b + dm, of_reset + dr
            c = of_reset * reset * (1 - reset)
            e = of_update * update * (1 - update)
            to_inputs[t] = F.cat((c, e, a), dim=1)
            to_products[t] = F.cat((c, e, b), dim=1)
            to_hidden = dh * update + F.mm(to_products[t], weight)
        return F.stack(to_inputs, dim=0), F.stack(to_products, dim=0), to_hidden

    return backward


@op("rnn_layer(inputs, weight, hidden, bias=None; relu=False, reverse=False)",
    publish=(), tensors_only=True)  # fmt: skip
def rnn_layer(
    inputs: Any, weight: Any, hidden: Any, bias: Any, *, relu: bool, reverse: bool
) -> Any:
    """Hidden states of all steps: ``f(x + W h' + bias)``, where f is tanh or relu."""
    return kernels.gru.rnn(inputs, weight, bias, hidden, relu, reverse)


@rnn_layer.grad("inputs", "weight", "hidden", "bias")
def _(
    F: Any, grad: Any, weight: Any, hidden: Any, result: Any, *, relu: bool, reverse: bool,
    need: Any,
) -> Any:  # fmt: skip
    backward = kernels.gru.rnn_backward if isinstance(result, np.ndarray) else _rnn_of_tensors(F)
    to_inputs, to_hidden = backward(grad, weight, result, relu, reverse)
    return [
        to_inputs,
        of_weight(F, to_inputs, hidden, result, reverse) if need[1] else None,
        to_hidden,
        F.sum(to_inputs, dim=(0, 1)) if need[3] else None,
    ]


def _rnn_of_tensors(F: Any) -> Any:
    """`rnn_backward` made of ops."""

    def backward(grad: Any, weight: Any, result: Any, relu: bool, reverse: bool) -> Any:
        steps = result.shape[0]
        to_inputs = [None] * steps
        to_hidden = None
        for t in range(steps) if reverse else reversed(range(steps)):
            dh, h = at(F, grad, t), at(F, result, t)
            dh = dh if to_hidden is None else dh + to_hidden
            to_inputs[t] = F.threshold_backward(dh, h, threshold=0) if relu else dh * (1 - h * h)
            to_hidden = F.mm(to_inputs[t], weight)
        return F.stack(to_inputs, dim=0), to_hidden

    return backward
