"""A layer of long short-term memories as one op.

Note [Layer of an LSTM]
    With gates i, f, g, o (after sigmoid and tanh) a step computes the cell c = f * c' + i * g from
    the one before, c', and the hidden state h = o * tanh(c).  Cells and gates are outputs too, and
    have gradients: so the rule, which is made of them, can itself be differentiated.

    One step backward, from gradients dh, dc, dG of hidden state, cell and gates, where D are the
    slopes of sigmoid and tanh at the gates, r = dc + dh * o * (1 - tanh(c)^2), and
    E = (r * g, r * c', r * i, dh * tanh(c)):

        gradient of what made the gates: D * (E + dG)        gradient of c': r * f
"""

from __future__ import annotations

from typing import Any

from clew.kernels import recurrent as kernels
from clew.op import op


@op("lstm_layer(inputs, weight, hidden, cell, bias=None; reverse=False) -> output, cells, gates",
    publish=(), node="MkldnnRnnLayerBackward0", tensors_only=True)  # fmt: skip
def lstm_layer(
    inputs: Any, weight: Any, hidden: Any, cell: Any, bias: Any, *, reverse: bool
) -> Any:
    """Hidden states, cells and gates of all steps; see Note [Layer of an LSTM]."""
    return kernels.lstm(inputs, weight, bias, hidden, cell, reverse)


@lstm_layer.grad("inputs", "weight", "hidden", "cell", "bias")
def _(
    F: Any, grads: Any, weight: Any, hidden: Any, cell: Any, output: Any, cells: Any, gates: Any,
    *, reverse: bool, need: Any,
) -> Any:  # fmt: skip
    steps, batch, size = output.shape
    order = range(steps)[::-1] if reverse else range(steps)
    parts: list[Any] = [None] * steps
    to_hidden = to_cell = None
    for n in reversed(range(steps)):
        t = order[n]
        of_output, of_cell, of_gates = (_at(F, grad, t) for grad in grads)
        of_output = _plus(of_output, to_hidden)
        if of_output is None:
            of_output = F.zeros_like(hidden)
        before = _at(F, cells, order[n - 1]) if n else cell
        parts[t], to_cell = F.lstm_step_backward(
            of_output, _at(F, gates, t), _at(F, cells, t), before, _plus(of_cell, to_cell),
            of_gates,
        )  # fmt: skip
        if n or need[2]:
            to_hidden = F.mm(parts[t], weight)
    to_inputs = F.stack(parts, dim=0)
    to_weight = to_bias = None
    if need[1]:
        states = [_at(F, output, t) for t in order[:-1]]
        befores = F.stack([hidden, *states][:: -1 if reverse else 1], dim=0)
        flat = F.reshape(to_inputs, (steps * batch, 4 * size))
        to_weight = F.mm(F.t(flat), F.reshape(befores, (steps * batch, size)))
    if need[4]:
        to_bias = F.sum(to_inputs, dim=(0, 1))
    return [to_inputs, to_weight, to_hidden if need[2] else None, to_cell, to_bias]


def _at(F: Any, x: Any, step: int) -> Any:
    return None if x is None else F.select(x, dim=0, index=step)


def _plus(x: Any, y: Any) -> Any:
    if x is None or y is None:
        return y if x is None else x
    return x + y


@op("lstm_step_backward(grad_hidden, gates, cell, before, grad_cell=None, grad_gates=None) -> "
    "of_gates, of_before", publish=(), tensors_only=True)  # fmt: skip
def lstm_step_backward(
    grad_hidden: Any, gates: Any, cell: Any, before: Any, grad_cell: Any, grad_gates: Any
) -> Any:
    """One step backward; see Note [Layer of an LSTM]."""
    return kernels.lstm_step_backward(grad_hidden, gates, cell, before, grad_cell, grad_gates)


@lstm_step_backward.grad("grad_hidden", "gates", "cell", "before", "grad_cell", "grad_gates")
def _(
    F: Any, grads: Any, grad_hidden: Any, gates: Any, cell: Any, before: Any, grad_cell: Any,
    grad_gates: Any, *, need: Any,
) -> Any:  # fmt: skip
    u, v = (F.zeros_like(x) if g is None else g for g, x in zip(grads, (gates, cell)))
    size = cell.shape[1]
    into, keep, new, out = F.split(gates, split_size=size, dim=1)
    u_into, u_keep, u_new, u_out = F.split(u, split_size=size, dim=1)
    squashed = F.tanh(cell)
    slope = 1 - squashed * squashed
    r = _plus(grad_hidden * out * slope, grad_cell)
    e = F.cat((r * new, r * before, r * into, grad_hidden * squashed), dim=1)
    e_into, e_keep, e_new, e_out = F.split(_plus(e, grad_gates), split_size=size, dim=1)
    # Cotangents of E and of r.
    s_into, s_keep = u_into * into * (1 - into), u_keep * keep * (1 - keep)
    s_new, s_out = u_new * (1 - new * new), u_out * out * (1 - out)
    to_r = s_into * new + s_keep * before + s_new * into + v * keep
    to_gates = (
        u_into * e_into * (1 - 2 * into) + s_new * r,
        u_keep * e_keep * (1 - 2 * keep) + v * r,
        u_new * e_new * (-2 * new) + s_into * r,
        u_out * e_out * (1 - 2 * out) + to_r * grad_hidden * slope,
    )
    to_squashed = (s_out - 2 * to_r * out * squashed) * grad_hidden
    return [
        to_r * out * slope + s_out * squashed,
        F.cat(to_gates, dim=1),
        to_squashed * slope,
        s_keep * r,
        to_r,
        F.cat((s_into, s_keep, s_new, s_out), dim=1),
    ]
