"""A layer of long short-term memories over a sequence, and one step of its gradient.

Imports NumPy. Gates lie side by side in the last axis: input, forget, candidate, output; "gates"
are their values after sigmoid and tanh. T steps, B sequences, H features; gates have 4 H.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


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
    steps, batch, _ = inputs.shape
    size = hidden.shape[1]
    gates = np.empty(inputs.shape, inputs.dtype)
    outputs = np.empty((steps, batch, size), inputs.dtype)
    cells = np.empty_like(outputs)
    product = np.empty((batch, size), inputs.dtype)
    across = np.ascontiguousarray(weight.T)  # a quarter faster, step by step
    for t in reversed(range(steps)) if reverse else range(steps):
        now = gates[t]
        np.matmul(hidden, across, out=now)
        now += inputs[t]
        if bias is not None:
            now += bias
        into, keep, new, out = _split(now, size)
        _sigmoid(now[:, : 2 * size])
        np.tanh(new, out=new)
        _sigmoid(out)
        np.multiply(keep, cell, out=cells[t])
        np.multiply(into, new, out=product)
        hidden, cell = outputs[t], cells[t]
        cell += product
        np.tanh(cell, out=hidden)
        hidden *= out
    return outputs, cells, gates


def lstm_step_backward(
    grad_hidden: NDArray,
    gates: NDArray,
    cell: NDArray,
    before: NDArray,
    grad_cell: NDArray | None,
    grad_gates: NDArray | None,
) -> tuple[NDArray, NDArray]:
    """The gradients of what made the gates, and of the cell `before` the step.

    `grad_hidden`, `grad_cell` and `grad_gates` are the gradients of the step's hidden state, cell
    and gates.
    """
    size = cell.shape[1]
    into, keep, new, out = _split(gates, size)
    squashed = np.tanh(cell)
    through = np.multiply(squashed, squashed)
    np.subtract(1, through, out=through)
    through *= out
    through *= grad_hidden
    if grad_cell is not None:
        through += grad_cell
    result = np.empty(gates.shape, gates.dtype)
    to_into, to_keep, to_new, to_out = _split(result, size)
    np.multiply(through, new, out=to_into)
    np.multiply(through, before, out=to_keep)
    np.multiply(through, into, out=to_new)
    np.multiply(grad_hidden, squashed, out=to_out)
    if grad_gates is not None:
        result += grad_gates
    result *= _slopes(gates, size)
    through *= keep
    return result, through


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


def _sigmoid(x: NDArray) -> None:
    """``1 / (1 + exp(-x))``, in place."""
    np.negative(x, out=x)
    np.exp(x, out=x)
    x += 1
    np.reciprocal(x, out=x)
