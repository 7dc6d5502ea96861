"""Twins of the steps of recurrent layers.  Layer 1; imports numba.

Each runs the steps from `begin` to before `end`, of the sequences from `start` to before `stop`;
see Note [Steps].  With a `gemm` (Note [Products in twins]) it multiplies too; with 0 there is one
step, and its caller does.  Arrays are as in `clew.kernels.recurrent` and `clew.kernels.gru`.

A row is passed several times, with few arrays at once: of many, LLVM does not find out that they
are apart, and makes no vector instructions.
"""

from __future__ import annotations

from clew.kernels.compiled.gemm import multiply
from clew.kernels.compiled.kernel import EXACT, inline, kernel
from clew.kernels.compiled.scalar import sigmoid, tanh

_WHICH = "int64[:, ::1], int64, int64, int64, int64, int64"


@inline
def _lstm_row(row, product, bias, now, shown):
    """The gates, and the state of a sequence, which is replaced."""
    size = now.shape[0]
    for j in range(row.shape[0]):
        row[j] += product[j] + bias[j]
    both, new, out = row[: 2 * size], row[2 * size : 3 * size], row[3 * size :]
    for j in range(both.shape[0]):
        both[j] = sigmoid(both[j])
    for j in range(new.shape[0]):
        new[j] = tanh(new[j])
    for j in range(out.shape[0]):
        out[j] = sigmoid(out[j])
    into, keep = row[:size], row[size : 2 * size]
    for j in range(now.shape[0]):
        now[j] = keep[j] * now[j] + into[j] * new[j]
    for j in range(shown.shape[0]):
        shown[j] = out[j] * tanh(now[j])


@inline
def _copy(to, row):
    for j in range(to.shape[0]):
        to[j] = row[j]


@kernel(
    "f[:, ::1], f[:, ::1], f[:, ::1], f[:, ::1], f[:, ::1], f[:, ::1]",
    "f[:, ::1], f[::1], " + _WHICH,
    EXACT,
)
def lstm_steps(
    gates, cells, outputs, hidden, cell, products, weight, bias,
    table, begin, end, start, stop, gemm,
):  # fmt: skip
    for n in range(begin, end):
        first, last = table[n, 0], min(stop, table[n, 1])
        if gemm != 0 and start < last:
            multiply(gemm, hidden[start:last], weight, products[start:last], 0)
        for i in range(start, last):
            _lstm_row(gates[first + i], products[i], bias, cell[i], hidden[i])
            _copy(cells[first + i], cell[i])
            _copy(outputs[first + i], hidden[i])


@inline
def _lstm_row_backward(to, of_hidden, of_cell, row, now, then):
    """The gradients of what made the gates, and of the state before."""
    size = now.shape[0]
    into, keep = row[:size], row[size : 2 * size]
    new, out = row[2 * size : 3 * size], row[3 * size :]
    to_into, to_keep = to[:size], to[size : 2 * size]
    to_new, to_out = to[2 * size : 3 * size], to[3 * size :]
    for j in range(now.shape[0]):
        to_out[j] = tanh(now[j])
    for j in range(of_cell.shape[0]):
        of_cell[j] += of_hidden[j] * out[j] * (1 - to_out[j] * to_out[j])
    for j in range(to_out.shape[0]):
        to_out[j] = of_hidden[j] * to_out[j] * out[j] * (1 - out[j])
    for j in range(to_into.shape[0]):
        to_into[j] = of_cell[j] * new[j] * into[j] * (1 - into[j])
    for j in range(to_keep.shape[0]):
        to_keep[j] = of_cell[j] * then[j] * keep[j] * (1 - keep[j])
    for j in range(to_new.shape[0]):
        to_new[j] = of_cell[j] * into[j] * (1 - new[j] * new[j])
    for j in range(of_cell.shape[0]):
        of_cell[j] *= keep[j]
        of_hidden[j] = 0


@inline
def _add(to, row):
    for j in range(to.shape[0]):
        to[j] += row[j]


@kernel(
    "f[:, ::1], f[:, ::1], f[:, ::1]",
    "f[:, ::1], f[:, ::1], f[:, ::1], f[:, ::1], f[:, ::1], " + _WHICH,
    EXACT,
)
def lstm_steps_backward(
    of_gates, of_hidden, of_cell, weight, of_outputs, gates, cells, cell,
    table, begin, end, start, stop, gemm,
):  # fmt: skip
    for n in range(end - 1, begin - 1, -1):
        first, last = table[n, 0], min(stop, table[n, 1])
        before, held = (table[n - 1, 0], table[n - 1, 1]) if n > 0 else (0, 0)
        for i in range(start, last):
            then = cells[before + i] if i < held else cell[i]
            now = first + i
            _add(of_hidden[i], of_outputs[now])
            _lstm_row_backward(
                of_gates[now], of_hidden[i], of_cell[i], gates[now], cells[now], then
            )
        if gemm != 0 and start < last:
            to = of_gates[first + start : first + last]
            multiply(gemm, to, weight, of_hidden[start:last], 1)


@inline
def _gru_row(row, product, bias, bias_hidden, state):
    """The gates, and the state of a sequence, which is replaced."""
    size = state.shape[0]
    both, new, last = row[: 2 * size], row[2 * size : 3 * size], row[3 * size :]
    for j in range(both.shape[0]):
        both[j] = sigmoid(both[j] + bias[j] + (product[j] + bias_hidden[j]))
    product_new, bias_last, bias_new = (
        product[2 * size :],
        bias_hidden[2 * size :],
        bias[2 * size :],
    )
    for j in range(last.shape[0]):
        last[j] = product_new[j] + bias_last[j]
    reset, update = row[:size], row[size : 2 * size]
    for j in range(new.shape[0]):
        new[j] = tanh(new[j] + bias_new[j] + reset[j] * last[j])
    for j in range(state.shape[0]):
        state[j] = (state[j] - new[j]) * update[j] + new[j]


@kernel(
    "f[:, ::1], f[:, ::1], f[:, ::1], f[:, ::1]",
    "f[:, ::1], f[::1], f[::1], " + _WHICH,
    EXACT,
)
def gru_steps(
    gates, outputs, hidden, products, weight, bias, bias_hidden,
    table, begin, end, start, stop, gemm,
):  # fmt: skip
    for n in range(begin, end):
        first, last = table[n, 0], min(stop, table[n, 1])
        if gemm != 0 and start < last:
            multiply(gemm, hidden[start:last], weight, products[start:last], 0)
        for i in range(start, last):
            _gru_row(gates[first + i], products[i], bias, bias_hidden, hidden[i])
            _copy(outputs[first + i], hidden[i])


@inline
def _gru_row_backward(to, other, of_hidden, row, then):
    """The gradients of what the input and the state contribute, and what goes on to the state."""
    size = then.shape[0]
    reset, update = row[:size], row[size : 2 * size]
    new, product = row[2 * size : 3 * size], row[3 * size :]
    to_reset, to_update, to_new = to[:size], to[size : 2 * size], to[2 * size :]
    for j in range(to_new.shape[0]):
        to_new[j] = of_hidden[j] * (1 - update[j]) * (1 - new[j] * new[j])
    for j in range(to_reset.shape[0]):
        to_reset[j] = to_new[j] * product[j] * reset[j] * (1 - reset[j])
    for j in range(to_update.shape[0]):
        to_update[j] = of_hidden[j] * (then[j] - new[j]) * update[j] * (1 - update[j])
    for j in range(2 * size):
        other[j] = to[j]
    other_new = other[2 * size :]
    for j in range(other_new.shape[0]):
        other_new[j] = to_new[j] * reset[j]
    for j in range(of_hidden.shape[0]):
        of_hidden[j] *= update[j]


@kernel(
    "f[:, ::1], f[:, ::1], f[:, ::1]",
    "f[:, ::1], f[:, ::1], f[:, ::1], f[:, ::1], f[:, ::1], " + _WHICH,
    EXACT,
)
def gru_steps_backward(
    of_inputs, of_products, of_hidden, weight, of_outputs, gates, outputs, hidden,
    table, begin, end, start, stop, gemm,
):  # fmt: skip
    for n in range(end - 1, begin - 1, -1):
        first, last = table[n, 0], min(stop, table[n, 1])
        before, held = (table[n - 1, 0], table[n - 1, 1]) if n > 0 else (0, 0)
        for i in range(start, last):
            then = outputs[before + i] if i < held else hidden[i]
            now = first + i
            _add(of_hidden[i], of_outputs[now])
            _gru_row_backward(of_inputs[now], of_products[now], of_hidden[i], gates[now], then)
        if gemm != 0 and start < last:
            to = of_products[first + start : first + last]
            multiply(gemm, to, weight, of_hidden[start:last], 1)


@kernel("f[:, ::1], f[:, ::1], f[:, ::1]", "f[:, ::1], f[::1], int64, " + _WHICH, EXACT)
def rnn_steps(
    outputs, hidden, products, weight, bias, relu, table, begin, end, start, stop, gemm
):  # fmt: skip
    zero = bias.dtype.type(0)
    for n in range(begin, end):
        first, last = table[n, 0], min(stop, table[n, 1])
        if gemm != 0 and start < last:
            multiply(gemm, hidden[start:last], weight, products[start:last], 0)
        for i in range(start, last):
            row, state, product = outputs[first + i], hidden[i], products[i]
            for j in range(row.shape[0]):
                row[j] += product[j] + bias[j]
            if relu:
                for j in range(row.shape[0]):
                    row[j] = zero if row[j] <= zero else row[j]
            else:
                for j in range(row.shape[0]):
                    row[j] = tanh(row[j])
            _copy(state, row)


@kernel(
    "f[:, ::1], f[:, ::1]",
    "f[:, ::1], f[:, ::1], f[:, ::1], f[:, ::1], int64, " + _WHICH,
    EXACT,
)
def rnn_steps_backward(
    of_inputs, of_hidden, weight, of_outputs, outputs, hidden, relu,
    table, begin, end, start, stop, gemm,
):  # fmt: skip
    zero = of_inputs.dtype.type(0)
    for n in range(end - 1, begin - 1, -1):
        first, last = table[n, 0], min(stop, table[n, 1])
        for i in range(start, last):
            to, row, of_state = of_inputs[first + i], outputs[first + i], of_hidden[i]
            _add(of_state, of_outputs[first + i])
            if relu:
                for j in range(to.shape[0]):
                    to[j] = zero if row[j] <= zero else of_state[j]
            else:
                for j in range(to.shape[0]):
                    to[j] = of_state[j] * (1 - row[j] * row[j])
            for j in range(of_state.shape[0]):
                of_state[j] = 0
        if gemm != 0 and start < last:
            to = of_inputs[first + start : first + last]
            multiply(gemm, to, weight, of_hidden[start:last], 1)
