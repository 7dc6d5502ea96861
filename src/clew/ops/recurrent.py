"""A layer of long short-term memories as one op.

Note [Layer of an LSTM]
    With gates i, f, g, o (after sigmoid and tanh) a step computes the cell c = f * c' + i * g from
    the one before, c', and the hidden state h = o * tanh(c).  Cells and gates are outputs too, and
    have gradients: so the rule, which is made of them, can itself be differentiated.

    One step backward, from gradients dh, dc, dG of hidden state, cell and gates, where D are the
    slopes of sigmoid and tanh at the gates, r = dc + dh * o * (1 - tanh(c)^2), and
    E = (r * g, r * c', r * i, dh * tanh(c)):

        gradient of what made the gates: P = D * (E + dG)        gradient of c': R = r * f

    dh and dc of a step are the gradients of its outputs, plus P W and R of the step after it.  So
    the derivative of the whole goes through the steps in their own order: what comes of dh and dc
    at one step adds to P (through W transposed) and to R at the next.
"""

from __future__ import annotations

from typing import Any

from clew import kernels
from clew.op import op


@op("lstm_layer(inputs, weight, hidden, cell, bias=None; reverse=False) -> output, cells, gates",
    publish=(), node="MkldnnRnnLayerBackward0", tensors_only=True)  # fmt: skip
def lstm_layer(
    inputs: Any, weight: Any, hidden: Any, cell: Any, bias: Any, *, reverse: bool
) -> Any:
    """Hidden states, cells and gates of all steps; see Note [Layer of an LSTM]."""
    return kernels.recurrent.lstm(inputs, weight, bias, hidden, cell, reverse)


@lstm_layer.grad("inputs", "weight", "hidden", "cell", "bias")
def _(
    F: Any, grads: Any, weight: Any, hidden: Any, cell: Any, output: Any, cells: Any, gates: Any,
    *, reverse: bool, need: Any,
) -> Any:  # fmt: skip
    steps = output.shape[0]
    of_output, of_cells, of_gates = grads
    if of_output is None:
        of_output = F.zeros_like(output)
    to_inputs, to_cells = F.lstm_layer_backward(
        of_output, weight, cell, cells, gates, of_cells, of_gates, reverse=reverse
    )
    first = at(F, to_inputs, steps - 1 if reverse else 0)
    return [
        to_inputs,
        of_weight(F, to_inputs, hidden, output, reverse) if need[1] else None,
        F.mm(first, weight) if need[2] else None,
        at(F, to_cells, steps - 1 if reverse else 0),
        F.sum(to_inputs, dim=(0, 1)) if need[4] else None,
    ]


def of_weight(F: Any, to_products: Any, hidden: Any, output: Any, reverse: bool) -> Any:
    """The gradient of W from that of W h' at all steps; `hidden` comes before the first output."""
    steps, batch, width = to_products.shape
    front, back = {"start": 0, "end": steps - 1, "step": 1}, {"start": 1, "end": steps, "step": 1}
    later, earlier = (front, back) if reverse else (back, front)
    rows = (steps - 1) * batch
    of_later = F.reshape(F.slice(to_products, dim=0, **later), (rows, width))
    before = F.reshape(F.slice(output, dim=0, **earlier), (rows, output.shape[2]))
    first = at(F, to_products, steps - 1 if reverse else 0)
    return F.mm(F.t(of_later), before) + F.mm(F.t(first), hidden)


def at(F: Any, x: Any, step: int) -> Any:
    """`x` at a step, None if it is None."""
    return None if x is None else F.select(x, dim=0, index=step)


def _plus(x: Any, y: Any) -> Any:
    if x is None or y is None:
        return y if x is None else x
    return x + y


@op("lstm_layer_backward(of_output, weight, cell, cells, gates, of_cells=None, of_gates=None; "
    "reverse=False) -> to_inputs, to_cells", publish=(), tensors_only=True)  # fmt: skip
def lstm_layer_backward(
    of_output: Any, weight: Any, cell: Any, cells: Any, gates: Any, of_cells: Any, of_gates: Any,
    *, reverse: bool,
) -> Any:  # fmt: skip
    """P and R of all steps; see Note [Layer of an LSTM]."""
    return kernels.recurrent.lstm_backward(
        of_output, weight, cell, cells, gates, of_cells, of_gates, reverse
    )


@lstm_layer_backward.grad("of_output", "weight", "cell", "cells", "gates", "of_cells", "of_gates")
def _(
    F: Any, grads: Any, of_output: Any, weight: Any, cell: Any, cells: Any, gates: Any,
    of_cells: Any, of_gates: Any, to_inputs: Any, to_cells: Any, *, reverse: bool, need: Any,
) -> Any:  # fmt: skip
    steps = cells.shape[0]
    order = range(steps)[::-1] if reverse else range(steps)
    u_all, v_all = (F.zeros_like(x) if g is None else g for g, x in zip(grads, (gates, cells)))
    columns: list[list[Any]] = [[None] * steps for _ in range(6)]
    to_dh = to_dc = to_weight = None
    for n, t in enumerate(order):
        dh, dc = at(F, of_output, t), at(F, of_cells, t)
        if n + 1 < steps:
            after = order[n + 1]
            dh = dh + F.mm(at(F, to_inputs, after), weight)
            dc = _plus(at(F, to_cells, after), dc)
        u, v = at(F, u_all, t), _plus(at(F, v_all, t), to_dc)
        if n:
            u = u + F.mm(to_dh, F.t(weight))
            to_weight = _plus(F.mm(F.t(at(F, to_inputs, t)), to_dh), to_weight)
        before = at(F, cells, order[n - 1]) if n else cell
        parts = _step_backward_gradients(
            F, u, v, dh, at(F, gates, t), at(F, cells, t), before, dc, at(F, of_gates, t)
        )
        for column, part in zip(columns, parts):
            column[t] = part
        to_dh, to_dc = parts[0], parts[4]
    of_dh, of_gate, of_cell, of_before, of_dc, of_g = columns
    to_cell = of_before[order[0]]
    for n in range(1, steps):
        of_cell[order[n - 1]] = of_cell[order[n - 1]] + of_before[order[n]]
    return [
        F.stack(of_dh, dim=0),
        F.zeros_like(weight) if to_weight is None else to_weight,
        to_cell,
        F.stack(of_cell, dim=0),
        F.stack(of_gate, dim=0),
        None if of_cells is None else F.stack(of_dc, dim=0),
        None if of_gates is None else F.stack(of_g, dim=0),
    ]


def _step_backward_gradients(
    F: Any, u: Any, v: Any, grad_hidden: Any, gates: Any, cell: Any, before: Any, grad_cell: Any,
    grad_gates: Any,
) -> Any:  # fmt: skip
    """The gradients of what P and R of one step are made of, from u and v, those of P and R."""
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
    return (
        to_r * out * slope + s_out * squashed,
        F.cat(to_gates, dim=1),
        to_squashed * slope,
        s_keep * r,
        to_r,
        F.cat((s_into, s_keep, s_new, s_out), dim=1),
    )
