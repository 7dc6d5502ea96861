"""A layer of long short-term memories over a sequence, and its gradient.

Imports NumPy and compiled twins. Gates lie side by side in the last axis: input, forget, candidate,
output; "gates" are their values after sigmoid and tanh. T steps, B sequences, H features; gates
have 4 H.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .compiled import twins
from .product import product

SMALL = 2048
"""Gates of a step from which twins are faster, their import included after a few layers."""


def lstm(
    inputs: NDArray,
    weight: NDArray,
    bias: NDArray | None,
    hidden: NDArray,
    cell: NDArray,
    reverse: bool,
) -> tuple[NDArray, NDArray, NDArray]:
    """Run all steps; return hidden states (T, B, H), cells (T, B, H) and gates (T, B, 4 H).

    `inputs` (T, B, 4 H) is what the input contributes to the gates; `weight` (4 H, H) and `bias`
    (4 H,) make what the hidden state contributes. With `reverse` the last step comes first.
    """
    steps, batch, width = inputs.shape
    size = hidden.shape[1]
    gates = np.empty(inputs.shape, inputs.dtype)
    outputs = np.empty((steps, batch, size), inputs.dtype)
    cells = np.empty_like(outputs)
    bias = np.zeros(width, inputs.dtype) if bias is None else np.ascontiguousarray(bias)
    inputs, cell = np.ascontiguousarray(inputs), np.ascontiguousarray(cell)
    fast = twins("recurrent", inputs.dtype) if batch * width > SMALL else None
    step = _lstm_step if fast is None else fast.lstm_step
    across = np.ascontiguousarray(weight.T)  # a quarter faster, step by step
    for t in reversed(range(steps)) if reverse else range(steps):
        product(np.matmul, hidden, across, gates[t])
        step(gates[t], cells[t], outputs[t], inputs[t], bias, cell)
        hidden, cell = outputs[t], cells[t]
    return outputs, cells, gates


def _lstm_step(
    gates: NDArray,
    cell: NDArray,
    hidden: NDArray,
    inputs: NDArray,
    bias: NDArray,
    before: NDArray,
) -> None:
    """From W h in `gates`, and the cell `before`, the gates, the cell and the hidden state."""
    size = cell.shape[1]
    gates += inputs
    gates += bias
    into, keep, new, out = _split(gates, size)
    sigmoid(gates[:, : 2 * size])
    np.tanh(new, out=new)
    sigmoid(out)
    np.multiply(keep, before, out=cell)
    cell += np.multiply(into, new, out=hidden)
    np.tanh(cell, out=hidden)
    hidden *= out


def lstm_backward(
    grad_outputs: NDArray,
    weight: NDArray,
    cell: NDArray,
    cells: NDArray,
    gates: NDArray,
    grad_cells: NDArray | None,
    grad_gates: NDArray | None,
    reverse: bool,
) -> tuple[NDArray, NDArray]:
    """The gradients of what made the gates (T, B, 4 H), and of the cell before each step.

    `grad_outputs`, `grad_cells` and `grad_gates` are those of the results of `lstm`; `cell` is the
    one before the first step.
    """
    steps, batch, size = cells.shape
    of_gates, of_before = np.empty(gates.shape, gates.dtype), np.empty(cells.shape, cells.dtype)
    of_hidden, of_cell = (np.zeros((batch, size), cells.dtype) for _ in range(2))
    cell, cells, gates = (np.ascontiguousarray(x) for x in (cell, cells, gates))
    fast = twins("recurrent", gates.dtype) if batch * gates.shape[2] > SMALL else None
    step = _lstm_step_backward if fast is None else fast.lstm_step_backward
    order = range(steps)[::-1] if reverse else range(steps)
    for n in reversed(range(steps)):
        t = order[n]
        of_hidden += grad_outputs[t]
        if grad_cells is not None:
            of_cell = of_cell + grad_cells[t]
        before = cells[order[n - 1]] if n else cell
        step(of_gates[t], of_before[t], of_hidden, of_cell, gates[t], cells[t], before)
        if grad_gates is not None:
            of_gates[t] += grad_gates[t] * _slopes(gates[t], size)
        if n:
            product(np.matmul, of_gates[t], weight, of_hidden)
            of_cell = of_before[t]
    return of_gates, of_before


def _lstm_step_backward(
    of_gates: NDArray,
    of_before: NDArray,
    grad_hidden: NDArray,
    grad_cell: NDArray,
    gates: NDArray,
    cell: NDArray,
    before: NDArray,
) -> None:
    """The gradients of what made the gates, and of the cell `before` the step."""
    size = cell.shape[1]
    into, keep, new, out = _split(gates, size)
    to_into, to_keep, to_new, to_out = _split(of_gates, size)
    squashed = np.tanh(cell)
    through = np.multiply(squashed, squashed, out=of_before)
    np.subtract(1, through, out=through)
    through *= out
    through *= grad_hidden
    through += grad_cell
    np.multiply(through, new, out=to_into)
    np.multiply(through, before, out=to_keep)
    np.multiply(through, into, out=to_new)
    np.multiply(grad_hidden, squashed, out=to_out)
    of_gates *= _slopes(gates, size)
    through *= keep


def _slopes(gates: NDArray, size: int) -> NDArray:
    """The derivatives of sigmoid and tanh, from their values."""
    slopes = np.subtract(1, gates)
    slopes *= gates
    new = gates[:, 2 * size : 3 * size]
    np.subtract(1, new * new, out=slopes[:, 2 * size : 3 * size])
    return slopes


def _split(gates: NDArray, size: int) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Views of the four gates."""
    return (
        gates[:, :size],
        gates[:, size : 2 * size],
        gates[:, 2 * size : 3 * size],
        gates[:, 3 * size :],
    )


def sigmoid(x: NDArray) -> None:
    """``1 / (1 + exp(-x))``, in place."""
    x *= -1  # np.negative, in place, is wrong for a stride of 4 numbers in NumPy 2.4.6
    np.exp(x, out=x)
    x += 1
    np.reciprocal(x, out=x)
