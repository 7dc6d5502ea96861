"""A layer of long short-term memories over sequences, and its gradient.

Imports NumPy, sibling kernels and compiled twins. Gates lie side by side in the last axis: input,
forget, candidate, output; "gates" are their values after sigmoid and tanh. B sequences, N rows as
in Note [Steps], I features of the input, H of the state; gates have 4 H.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .steps import Steps, backward, forward, project, total

Biases = tuple[NDArray | None, NDArray | None]


def lstm(
    x: NDArray, weights: tuple[NDArray, NDArray], biases: Biases, hidden: NDArray, cell: NDArray,
    steps: Steps,
) -> tuple[NDArray, NDArray, NDArray, NDArray, NDArray]:  # fmt: skip
    """Run all steps.

    Args:
        x: the input (N, I).
        weights: (4 H, I) for the input, (4 H, H) for the hidden state.
        biases: of the two, each (4 H,) or None.
        hidden: the hidden states (B, H) before the first step.
        cell: the cells (B, H).
        steps: which rows of x are a step.

    Returns:
        Hidden states (N, H), the last hidden states and cells (B, H), cells (N, H), gates (N, 4 H).
    """
    of_input, of_hidden = weights
    width, size = of_hidden.shape
    gates = project(x, of_input, width)
    bias = total(*biases, gates, width)
    outputs, cells = (np.empty((len(gates), size), gates.dtype) for _ in range(2))
    hidden, cell = hidden.copy(), cell.copy()
    forward(
        steps, of_hidden, (gates, cells, outputs), (hidden, cell), (bias,),
        "lstm_steps", _lstm_step,
    )  # fmt: skip
    return outputs, hidden, cell, cells, gates


def _lstm_step(
    gates: NDArray, cells: NDArray, outputs: NDArray, hidden: NDArray, cell: NDArray,
    products: NDArray, bias: NDArray,
) -> None:  # fmt: skip
    """From x W in `gates` and h W in `products` the gates and the states."""
    size = cell.shape[1]
    gates += products
    gates += bias
    into, keep, new, out = _split(gates, size)
    sigmoid(gates[:, : 2 * size])
    np.tanh(new, out=new)
    sigmoid(out)
    cell *= keep
    cell += np.multiply(into, new, out=hidden)
    np.tanh(cell, out=hidden)
    hidden *= out
    cells[...], outputs[...] = cell, hidden


def lstm_backward(
    grads: tuple[NDArray | None, ...], weight: NDArray, cell: NDArray, cells: NDArray,
    gates: NDArray, steps: Steps,
) -> tuple[NDArray, NDArray, NDArray]:  # fmt: skip
    """The gradients of what made the gates (N, 4 H), and of the states before the first step.

    `grads` are those of the results of `lstm`, of which `cells` and `gates` are given; `weight` is
    that of the hidden state.
    """
    of_outputs, *of_last, of_cells, of_made = grads
    to_gates = np.empty(gates.shape, gates.dtype)
    of_hidden, of_cell = (start(grad, cell) for grad in of_last)
    reads, twin = [given(of_outputs, cells)], "lstm_steps_backward"
    if of_cells is not None or of_made is not None:  # of a second derivative
        reads += [given(of_cells, cells), given(of_made, gates)]
        twin = ""
    reads += [np.ascontiguousarray(gates), np.ascontiguousarray(cells)]
    backward(
        steps, weight, (to_gates,), (of_hidden, of_cell), reads, np.ascontiguousarray(cell), (),
        twin, _lstm_step_backward,
    )  # fmt: skip
    return to_gates, of_hidden, of_cell


def _lstm_step_backward(
    to_gates: NDArray, of_hidden: NDArray, of_cell: NDArray, of_outputs: NDArray, *reads: NDArray
) -> None:
    """See `lstm_backward`; `reads` end with the gates, the cell and the one before."""
    *of_more, gates, cell, before = reads
    size = cell.shape[1]
    into, keep, new, out = _split(gates, size)
    to_into, to_keep, to_new, to_out = _split(to_gates, size)
    of_hidden += of_outputs
    squashed = np.tanh(cell)
    of_cell += of_hidden * out * (1 - squashed * squashed)
    if of_more:
        of_cell += of_more[0]
    np.multiply(of_cell, new, out=to_into)
    np.multiply(of_cell, before, out=to_keep)
    np.multiply(of_cell, into, out=to_new)
    np.multiply(of_hidden, squashed, out=to_out)
    if of_more:
        to_gates += of_more[1]
    to_gates *= _slopes(gates, size)
    of_cell *= keep
    of_hidden[...] = 0


def start(grad: NDArray | None, like: NDArray) -> NDArray:
    """The gradient of a last state, to go on from."""
    return np.zeros(like.shape, like.dtype) if grad is None else grad.copy()


def given(grad: NDArray | None, like: NDArray) -> NDArray:
    """A gradient as a contiguous array of the shape of `like`, zeros where there is none."""
    if grad is None:
        return np.zeros(like.shape, like.dtype)
    return np.ascontiguousarray(grad).reshape(like.shape)


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
