"""A layer of long short-term memories as one op, and what layers of other units have in common.

Note [Layer of an LSTM]
    With gates i, f, g, o (after sigmoid and tanh) a step computes the cell c = f * c' + i * g from
    the one before, c', and the hidden state h = o * tanh(c).  Cells and gates are outputs too, and
    have gradients: so the rule, which is made of them, can itself be differentiated.

    One step backward, from gradients dh, dc, dG of hidden state, cell and gates, where D are the
    slopes of sigmoid and tanh at the gates, r = dc + dh * o * (1 - tanh(c)^2), and
    E = (r * g, r * c', r * i, dh * tanh(c)):

        gradient of what made the gates: P = D * (E + dG)        gradient of c': r * f

    dh and dc of a step are the gradients of its outputs, plus P W and r * f of the step after it.

Note [Two ways backward]
    A rule is the same for arrays and for tensors, but for these layers: of arrays a kernel runs all
    steps backward, of tensors (``create_graph``) they are made of ops, which know their own
    derivatives.  Both are tested against the same finite differences.

Note [Rows of a layer]
    Input and output are (T, B, ...), or with `sizes`, how many sequences have each step, the data
    of a packed sequence (N, ...); other outputs are (N, ...), and the last states (B, H).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from clew import kernels
from clew.op import op

if TYPE_CHECKING:
    from clew.kernels.steps import Steps


@op("lstm_layer(input, weight_ih, weight_hh, bias_ih=None, bias_hh=None, hidden=None, cell=None; "
    "sizes=None, reverse=False) -> output, last_hidden, last_cell, cells, gates",
    publish=(), node="MkldnnRnnLayerBackward0", tensors_only=True)  # fmt: skip
def lstm_layer(
    x: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any, bias_hh: Any, hidden: Any, cell: Any, *,
    sizes: Any, reverse: bool,
) -> Any:  # fmt: skip
    """Hidden states of all steps, last states, cells and gates; see Note [Layer of an LSTM]."""
    weights, biases = (weight_ih, weight_hh), (bias_ih, bias_hh)
    steps = steps_in(x, sizes, reverse)
    output, *others = kernels.recurrent.lstm(flat(np, x), weights, biases, hidden, cell, steps)
    return output.reshape(*x.shape[:-1], hidden.shape[1]), *others


@lstm_layer.grad("input", "weight_ih", "weight_hh", "bias_ih", "bias_hh", "hidden", "cell")
def _(
    F: Any, grads: Any, input: Any, weight_ih: Any, weight_hh: Any, hidden: Any, cell: Any,
    output: Any, cells: Any, gates: Any, *, sizes: Any, reverse: bool, need: Any,
) -> Any:  # fmt: skip
    steps = steps_in(output, sizes, reverse)
    backward = kernels.recurrent.lstm_backward if isinstance(gates, np.ndarray) else _of_tensors(F)
    to_gates, to_hidden, to_cell = backward(grads, weight_hh, cell, cells, gates, steps)
    of_input = of_projection(F, to_gates, input, weight_ih, need)
    of_hidden = of_weight(F, to_gates, hidden, output, steps) if need[2] else None
    of_bias = F.sum(to_gates, dim=(0,)) if need[3] or need[4] else None
    return [*of_input, of_hidden, of_bias, of_bias, to_hidden, to_cell]


def _of_tensors(F: Any) -> Any:
    """`lstm_backward` made of ops."""

    def backward(grads: Any, weight: Any, cell: Any, cells: Any, gates: Any, steps: Steps) -> Any:
        of_output, dh, dc, of_cells, of_gates = grads
        size = cell.shape[1]
        of_output = None if of_output is None else flat(F, of_output)
        to_gates = [None] * len(steps.spans)
        for n, now, before in backwards(F, steps, cells, cell):
            dh, later_h = parted(F, dh, now)
            dc, later_c = parted(F, dc, now)
            dh = plus(dh, rows_of(F, of_output, now))
            into, keep, new, out = F.split(rows_of(F, gates, now), split_size=size, dim=1)
            squashed = F.tanh(rows_of(F, cells, now))
            dh = F.zeros_like(squashed) if dh is None else dh
            r = plus(dh * out * (1 - squashed * squashed), dc)
            r = plus(r, rows_of(F, of_cells, now))
            e = F.cat((r * new, r * before, r * into, dh * squashed), dim=1)
            slopes = (into * (1 - into), keep * (1 - keep), 1 - new * new, out * (1 - out))
            to_gates[n] = F.cat(slopes, dim=1) * plus(e, rows_of(F, of_gates, now))
            dh = joined(F, F.mm(to_gates[n], weight), later_h, cell)
            dc = joined(F, r * keep, later_c, cell)
        return in_memory(F, to_gates, steps), dh, dc

    return backward


# -- for layers of all units


def steps_in(x: Any, sizes: Any, reverse: bool) -> Steps:
    """The steps of an input or output; see Note [Rows of a layer]."""
    if sizes is None:
        sizes = (x.shape[1],) * x.shape[0]
    return kernels.steps.steps_of(sizes, reverse)


def flat(F: Any, x: Any) -> Any:
    """All rows, (N, ...)."""
    return x if len(x.shape) == 2 else F.reshape(x, (x.shape[0] * x.shape[1], x.shape[2]))


def of_projection(F: Any, to_products: Any, x: Any, weight: Any, need: Any) -> tuple[Any, Any]:
    """The gradients of the input and its weight from that of their product."""
    of_x = F.reshape(F.mm(to_products, weight), tuple(x.shape)) if need[0] else None
    return of_x, F.mm(F.t(to_products), flat(F, x)) if need[1] else None


def of_weight(F: Any, to_products: Any, hidden: Any, output: Any, steps: Steps) -> Any:
    """The gradient of W from that of W h' at all steps; `hidden` comes before the first output."""
    output = flat(F, output)
    if not steps.even:
        parts = [part for _, _, part in backwards(F, steps, output, hidden)]
        return F.mm(F.t(to_products), in_memory(F, parts[::-1], steps))
    first, batch = steps.spans[0]
    count = to_products.shape[0]
    front, back = (0, count - batch), (batch, count - batch)
    later, earlier = (front, back) if steps.reverse else (back, front)
    others = F.mm(F.t(rows_of(F, to_products, later)), rows_of(F, output, earlier))
    return others + F.mm(F.t(rows_of(F, to_products, (first, batch))), hidden)


def backwards(F: Any, steps: Steps, states: Any, initial: Any) -> Any:
    """For each step, from the last to run: its number, its rows, and the states before it."""
    for n in reversed(range(len(steps.spans))):
        count = steps.spans[n][1]
        first, held = steps.spans[n - 1] if n else (0, 0)
        parts = []
        if held:
            parts.append(rows_of(F, states, (first, min(held, count))))
        if held < count or not parts:
            parts.append(rows_of(F, initial, (held, count - held)))
        yield n, steps.spans[n], parts[0] if len(parts) == 1 else F.cat(parts, dim=0)


def rows_of(F: Any, x: Any, span: tuple[int, int]) -> Any:
    """The rows of a step, None of None."""
    return None if x is None else F.slice(x, dim=0, start=span[0], end=sum(span), step=1)


def parted(F: Any, grad: Any, span: tuple[int, int]) -> tuple[Any, Any]:
    """The gradient of a state of the sequences that have a step, and of those that have not."""
    count = span[1]
    if grad is None or grad.shape[0] == count:
        return grad, None
    return rows_of(F, grad, (0, count)), rows_of(F, grad, (count, grad.shape[0] - count))


def joined(F: Any, grad: Any, rest: Any, like: Any) -> Any:
    """The opposite of `parted`; zeros where there is no rest."""
    count, batch = grad.shape[0], like.shape[0]
    if count == batch:
        return grad
    if rest is None:
        rest = F.zeros_like(rows_of(F, like, (count, batch - count)))
    return F.cat((grad, rest), dim=0)


def in_memory(F: Any, parts: Any, steps: Steps) -> Any:
    """What belongs to the steps as they run, as it lies in memory."""
    return F.cat(tuple(parts[::-1] if steps.reverse else parts), dim=0)


def plus(x: Any, y: Any) -> Any:
    """The sum of those that are not None."""
    if x is None or y is None:
        return y if x is None else x
    return x + y
