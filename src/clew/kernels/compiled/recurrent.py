"""Twins of what a recurrent network does between matrix products.  Layer 1; imports numba.

Each takes one step of B sequences, a row for each; see `clew.kernels.recurrent`.  A row is passed
several times, with few arrays at once: of many, LLVM does not find out that they are apart, and
makes no vector instructions.
"""

from __future__ import annotations

from clew.kernels.compiled.kernel import EXACT, kernel
from clew.kernels.compiled.scalar import sigmoid, tanh


@kernel("f[:, ::1], f[:, ::1], f[:, ::1]", "f[:, ::1], f[::1], f[:, ::1]", EXACT)
def lstm_step(gates, cell, hidden, inputs, bias, before):
    """From ``W h`` in `gates` the gates, the cell and the hidden state."""
    size = cell.shape[1]
    for i in range(cell.shape[0]):
        row, added = gates[i], inputs[i]
        for j in range(row.shape[0]):
            row[j] += added[j] + bias[j]
        both, new, out = row[: 2 * size], row[2 * size : 3 * size], row[3 * size :]
        for j in range(both.shape[0]):
            both[j] = sigmoid(both[j])
        for j in range(new.shape[0]):
            new[j] = tanh(new[j])
        for j in range(out.shape[0]):
            out[j] = sigmoid(out[j])
        into, keep = row[:size], row[size : 2 * size]
        now, then, shown = cell[i], before[i], hidden[i]
        for j in range(now.shape[0]):
            now[j] = keep[j] * then[j] + into[j] * new[j]
        for j in range(shown.shape[0]):
            shown[j] = out[j] * tanh(now[j])


@kernel(
    "f[:, ::1], f[:, ::1]",
    "f[:, ::1], f[:, ::1], f[:, ::1], f[:, ::1], f[:, ::1]",
    EXACT,
)
def lstm_step_backward(of_gates, of_before, grad_hidden, grad_cell, gates, cell, before):
    """The gradients of what made the gates, and of the cell before."""
    size = cell.shape[1]
    for i in range(cell.shape[0]):
        row, to = gates[i], of_gates[i]
        into, keep = row[:size], row[size : 2 * size]
        new, out = row[2 * size : 3 * size], row[3 * size :]
        to_into, to_keep = to[:size], to[size : 2 * size]
        to_new, to_out = to[2 * size : 3 * size], to[3 * size :]
        through, of_hidden, of_cell = of_before[i], grad_hidden[i], grad_cell[i]
        now, then = cell[i], before[i]
        for j in range(now.shape[0]):
            to_out[j] = tanh(now[j])
        for j in range(through.shape[0]):
            through[j] = of_hidden[j] * out[j] * (1 - to_out[j] * to_out[j]) + of_cell[j]
        for j in range(to_out.shape[0]):
            to_out[j] = of_hidden[j] * to_out[j] * out[j] * (1 - out[j])
        for j in range(to_into.shape[0]):
            to_into[j] = through[j] * new[j] * into[j] * (1 - into[j])
        for j in range(to_keep.shape[0]):
            to_keep[j] = through[j] * then[j] * keep[j] * (1 - keep[j])
        for j in range(to_new.shape[0]):
            to_new[j] = through[j] * into[j] * (1 - new[j] * new[j])
        for j in range(through.shape[0]):
            through[j] *= keep[j]


@kernel("f[:, ::1], f[:, ::1]", "f[:, ::1], f[:, ::1], f[::1], f[:, ::1]", EXACT)
def gru_step(gates, hidden, products, inputs, bias, before):
    """From ``W h'`` in `products` the gates, and the hidden state."""
    size = hidden.shape[1]
    for i in range(hidden.shape[0]):
        row, product, added = gates[i], products[i], inputs[i]
        both, new, last = row[: 2 * size], row[2 * size : 3 * size], row[3 * size :]
        for j in range(both.shape[0]):
            both[j] = sigmoid(product[j] + bias[j] + added[j])
        product_new, bias_new = product[2 * size :], bias[2 * size :]
        for j in range(last.shape[0]):
            last[j] = product_new[j] + bias_new[j]
        reset, update, added_new = row[:size], row[size : 2 * size], added[2 * size :]
        for j in range(new.shape[0]):
            new[j] = tanh(added_new[j] + reset[j] * last[j])
        now, then = hidden[i], before[i]
        for j in range(now.shape[0]):
            now[j] = (then[j] - new[j]) * update[j] + new[j]


@kernel("f[:, ::1], f[:, ::1], f[:, ::1]", "f[:, ::1], f[:, ::1], f[:, ::1]", EXACT)
def gru_step_backward(of_inputs, of_products, of_before, grad_hidden, gates, before):
    """The gradients of what the input and the state contribute, and what goes on to the state."""
    size = before.shape[1]
    for i in range(before.shape[0]):
        row, of_hidden, then, on = gates[i], grad_hidden[i], before[i], of_before[i]
        reset, update = row[:size], row[size : 2 * size]
        new, product = row[2 * size : 3 * size], row[3 * size :]
        to, other = of_inputs[i], of_products[i]
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
        for j in range(on.shape[0]):
            on[j] = of_hidden[j] * update[j]


@kernel("f[:, ::1]", "f[:, ::1], f[::1]", EXACT)
def tanh_step(hidden, inputs, bias):
    """From ``W h'`` in `hidden` the hidden state."""
    for i in range(hidden.shape[0]):
        row, added = hidden[i], inputs[i]
        for j in range(row.shape[0]):
            row[j] = tanh(row[j] + bias[j] + added[j])
