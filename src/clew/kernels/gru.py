"""Layers of gated and of plain recurrent units over sequences, and their gradients.

Imports NumPy, sibling kernels and compiled twins. B sequences, N rows as in Note [Steps], I
features of the input, H of the state. Of a GRU, what the input and the hidden state contribute has
3 H: reset, update, new. Its gates have 4 H: the values of these three after sigmoid and tanh, and
what the hidden state contributes to the third.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .recurrent import Biases, given, sigmoid, start
from .steps import Steps, backward, forward, project, total

Arrays3 = tuple[NDArray, NDArray, NDArray]


def gru(
    x: NDArray, weights: tuple[NDArray, NDArray], biases: Biases, hidden: NDArray, steps: Steps
) -> Arrays3:
    """Run all steps; return hidden states (N, H), the last of them (B, H) and gates (N, 4 H).

    `weights` are (3 H, I) for the input and (3 H, H) for the hidden state; each bias is (3 H,) or
    None; `hidden` (B, H) comes before the first step.
    """
    of_input, of_hidden = weights
    width, size = of_hidden.shape
    gates = project(x, of_input, 4 * size)
    both = tuple(total(bias, None, gates, width) for bias in biases)
    outputs, hidden = np.empty((len(gates), size), gates.dtype), hidden.copy()
    forward(steps, of_hidden, (gates, outputs), (hidden,), both, "gru_steps", _gru_step)
    return outputs, hidden, gates


def _gru_step(
    gates: NDArray, outputs: NDArray, hidden: NDArray, products: NDArray, bias: NDArray,
    bias_hidden: NDArray,
) -> None:  # fmt: skip
    """From x W in `gates` and h W in `products` the gates and the state."""
    size = hidden.shape[1]
    both, new, last = gates[:, : 2 * size], gates[:, 2 * size : 3 * size], gates[:, 3 * size :]
    gates[:, : 3 * size] += bias
    products += bias_hidden
    both += products[:, : 2 * size]
    sigmoid(both)
    last[...] = products[:, 2 * size :]
    new += gates[:, :size] * last
    np.tanh(new, out=new)
    hidden -= new
    hidden *= gates[:, size : 2 * size]
    hidden += new
    outputs[...] = hidden


def gru_backward(
    grads: tuple[NDArray | None, ...], weight: NDArray, hidden: NDArray, outputs: NDArray,
    gates: NDArray, steps: Steps,
) -> Arrays3:  # fmt: skip
    """Gradients of what the input (N, 3 H) and the states contribute, and of the first state.

    `grads` are those of the results of `gru`, of which `outputs` and `gates` are given; `weight`
    is that of the hidden state.
    """
    of_outputs, of_last, of_made = grads
    to_inputs = np.empty((len(gates), 3 * hidden.shape[1]), gates.dtype)
    to_products = np.empty_like(to_inputs)
    of_hidden = start(of_last, hidden)
    reads, twin = [given(of_outputs, outputs)], "gru_steps_backward"
    if of_made is not None:  # of a second derivative
        reads.append(given(of_made, gates))
        twin = ""
    reads += [np.ascontiguousarray(gates), np.ascontiguousarray(outputs)]
    backward(
        steps, weight, (to_inputs, to_products), (of_hidden,), reads,
        np.ascontiguousarray(hidden), (),
        twin, _gru_step_backward,
    )  # fmt: skip
    return to_inputs, to_products, of_hidden


def _gru_step_backward(
    to_inputs: NDArray, to_products: NDArray, of_hidden: NDArray, of_outputs: NDArray,
    *reads: NDArray,
) -> None:  # fmt: skip
    """See `gru_backward`; `reads` end with the gates, the state and the one before."""
    *of_made, gates, _, before = reads
    size = before.shape[1]
    reset, update, new, last = np.split(gates, 4, axis=1)
    to_reset, to_update, to_new = np.split(to_inputs, 3, axis=1)
    of_reset, of_update, of_new, of_last = (
        np.split(of_made[0], 4, axis=1) if of_made else np.zeros((4, *before.shape), gates.dtype)
    )
    of_hidden += of_outputs
    np.multiply((1 - update) * of_hidden + of_new, 1 - new * new, out=to_new)
    np.multiply(to_new * last + of_reset, reset * (1 - reset), out=to_reset)
    np.multiply((before - new) * of_hidden + of_update, update * (1 - update), out=to_update)
    to_products[:, : 2 * size] = to_inputs[:, : 2 * size]
    to_products[:, 2 * size :] = to_new * reset + of_last
    of_hidden *= update


def rnn(
    x: NDArray, weights: tuple[NDArray, NDArray], biases: Biases, hidden: NDArray, relu: bool,
    steps: Steps,
) -> tuple[NDArray, NDArray]:  # fmt: skip
    """Hidden states (N, H), and the last ones (B, H): tanh, or relu, of x W + h' W + biases."""
    of_input, of_hidden = weights
    size = len(of_hidden)
    outputs, hidden = project(x, of_input, size), hidden.copy()
    bias = total(*biases, outputs, size)
    forward(
        steps, of_hidden, (outputs,), (hidden,), (bias, int(relu)),
        "rnn_steps", _rnn_step,
    )  # fmt: skip
    return outputs, hidden


def _rnn_step(
    outputs: NDArray, hidden: NDArray, products: NDArray, bias: NDArray, relu: int
) -> None:
    outputs += products
    outputs += bias
    np.maximum(outputs, 0, out=outputs) if relu else np.tanh(outputs, out=outputs)
    hidden[...] = outputs


def rnn_backward(
    grads: tuple[NDArray | None, ...], weight: NDArray, hidden: NDArray, outputs: NDArray,
    relu: bool, steps: Steps,
) -> tuple[NDArray, NDArray]:  # fmt: skip
    """Gradients of what is under tanh or relu (N, H), and of the first state."""
    of_outputs, of_last = grads
    outputs = np.ascontiguousarray(outputs)
    to_inputs, of_hidden = np.empty_like(outputs), start(of_last, hidden)
    backward(
        steps, weight, (to_inputs,), (of_hidden,), (given(of_outputs, outputs), outputs),
        np.ascontiguousarray(hidden), (int(relu),),
        "rnn_steps_backward", _rnn_step_backward,
    )  # fmt: skip
    return to_inputs, of_hidden


def _rnn_step_backward(
    to_inputs: NDArray, of_hidden: NDArray, of_outputs: NDArray, outputs: NDArray,
    before: NDArray, relu: int,
) -> None:  # fmt: skip
    of_hidden += of_outputs
    if relu:
        to_inputs[...] = np.where(outputs <= 0, 0, of_hidden)
    else:
        np.multiply(of_hidden, 1 - outputs * outputs, out=to_inputs)
    of_hidden[...] = 0
