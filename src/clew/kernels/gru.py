"""A layer of gated recurrent units over a sequence, one of plain recurrent units; their gradients.

Imports NumPy, sibling kernels and compiled twins. T steps, B sequences, H features. Of the GRU,
what the input and the hidden state contribute has 3 H: reset, update, new. Its gates have 4 H: the
values of these three after sigmoid and tanh, and what the hidden state contributes to the third.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .compiled import twins
from .product import product
from .recurrent import SMALL, sigmoid

Arrays3 = tuple[NDArray, NDArray, NDArray]


def gru(
    inputs: NDArray, weight: NDArray, bias: NDArray | None, hidden: NDArray, reverse: bool
) -> tuple[NDArray, NDArray]:
    """Run all steps; return hidden states (T, B, H) and gates (T, B, 4 H).

    `inputs` (T, B, 3 H) is what the input contributes; `weight` (3 H, H) and `bias` (3 H,) make
    what the hidden state contributes. With `reverse` the last step comes first.
    """
    steps, batch, width = inputs.shape
    size = hidden.shape[1]
    outputs = np.empty((steps, batch, size), inputs.dtype)
    gates = np.empty((steps, batch, 4 * size), inputs.dtype)
    products = np.empty((batch, width), inputs.dtype)
    bias = np.zeros(width, inputs.dtype) if bias is None else np.ascontiguousarray(bias)
    inputs, hidden = np.ascontiguousarray(inputs), np.ascontiguousarray(hidden)
    fast = twins("recurrent", inputs.dtype) if batch * width > SMALL else None
    step = _gru_step if fast is None else fast.gru_step
    across = np.ascontiguousarray(weight.T)
    for t in reversed(range(steps)) if reverse else range(steps):
        product(np.matmul, hidden, across, products)
        step(gates[t], outputs[t], products, inputs[t], bias, hidden)
        hidden = outputs[t]
    return outputs, gates


def _gru_step(
    gates: NDArray, hidden: NDArray, products: NDArray, inputs: NDArray, bias: NDArray,
    before: NDArray,
) -> None:  # fmt: skip
    """See `compiled.recurrent.gru_step`."""
    size = hidden.shape[1]
    both, new, last = gates[:, : 2 * size], gates[:, 2 * size : 3 * size], gates[:, 3 * size :]
    np.add(products[:, : 2 * size], bias[: 2 * size], out=both)
    both += inputs[:, : 2 * size]
    sigmoid(both)
    np.add(products[:, 2 * size :], bias[2 * size :], out=last)
    np.multiply(gates[:, :size], last, out=new)
    new += inputs[:, 2 * size :]
    np.tanh(new, out=new)
    np.subtract(before, new, out=hidden)
    hidden *= gates[:, size : 2 * size]
    hidden += new


def gru_backward(
    grad_outputs: NDArray,
    grad_gates: NDArray | None,
    weight: NDArray,
    hidden: NDArray,
    outputs: NDArray,
    gates: NDArray,
    reverse: bool,
) -> Arrays3:
    """Gradients of what the input (T, B, 3 H) and the states contribute, and of the first state."""
    steps, batch, size = outputs.shape
    of_inputs = np.empty((steps, batch, 3 * size), gates.dtype)
    of_products = np.empty_like(of_inputs)
    of_hidden, through = np.zeros_like(outputs[0]), np.empty_like(outputs[0])
    hidden, outputs, gates = (np.ascontiguousarray(x) for x in (hidden, outputs, gates))
    fast = None
    if grad_gates is None and batch * gates.shape[2] > SMALL:
        fast = twins("recurrent", gates.dtype)
    order = range(steps)[::-1] if reverse else range(steps)
    for n in reversed(range(steps)):
        t = order[n]
        of_hidden += grad_outputs[t]
        before = outputs[order[n - 1]] if n else hidden
        given = of_inputs[t], of_products[t], through, of_hidden, gates[t], before
        if fast is None:
            _gru_step_backward(*given, None if grad_gates is None else grad_gates[t])
        else:
            fast.gru_step_backward(*given)
        product(np.matmul, of_products[t], weight, of_hidden)
        of_hidden += through
    return of_inputs, of_products, of_hidden


def _gru_step_backward(
    of_inputs: NDArray, of_products: NDArray, of_before: NDArray, grad_hidden: NDArray,
    gates: NDArray, before: NDArray, grad_gates: NDArray | None,
) -> None:  # fmt: skip
    """See `compiled.recurrent.gru_step_backward`; the gates may have gradients too."""
    size = before.shape[1]
    reset, update, new, last = np.split(gates, 4, axis=1)
    to_reset, to_update, to_new = np.split(of_inputs, 3, axis=1)
    of_reset, of_update, of_new, of_last = np.split(
        np.zeros_like(gates) if grad_gates is None else grad_gates, 4, axis=1
    )
    np.multiply((1 - update) * grad_hidden + of_new, 1 - new * new, out=to_new)
    np.multiply(to_new * last + of_reset, reset * (1 - reset), out=to_reset)
    np.multiply((before - new) * grad_hidden + of_update, update * (1 - update), out=to_update)
    of_products[:, : 2 * size] = of_inputs[:, : 2 * size]
    of_products[:, 2 * size :] = to_new * reset + of_last
    np.multiply(grad_hidden, update, out=of_before)


def rnn(
    inputs: NDArray,
    weight: NDArray,
    bias: NDArray | None,
    hidden: NDArray,
    relu: bool,
    reverse: bool,
) -> NDArray:
    """Hidden states (T, B, H) of all steps: tanh, or relu, of x + W h' + bias."""
    steps, batch, size = inputs.shape
    outputs = np.empty((steps, batch, size), inputs.dtype)
    bias = np.zeros(size, inputs.dtype) if bias is None else np.ascontiguousarray(bias)
    inputs = np.ascontiguousarray(inputs)
    fast = None if relu or batch * size <= SMALL else twins("recurrent", inputs.dtype)
    across = np.ascontiguousarray(weight.T)
    for t in reversed(range(steps)) if reverse else range(steps):
        product(np.matmul, hidden, across, outputs[t])
        hidden = outputs[t]
        if fast is not None:
            fast.tanh_step(hidden, inputs[t], bias)
            continue
        hidden += bias
        hidden += inputs[t]
        np.maximum(hidden, 0, out=hidden) if relu else np.tanh(hidden, out=hidden)
    return outputs


def rnn_backward(
    grad_outputs: NDArray, weight: NDArray, outputs: NDArray, relu: bool, reverse: bool
) -> tuple[NDArray, NDArray]:
    """Gradients of what is under tanh or relu (T, B, H), and of the first state."""
    outputs = np.ascontiguousarray(outputs)
    of_inputs, of_hidden = np.empty_like(outputs), np.zeros_like(outputs[0])
    for t in range(len(outputs)) if reverse else reversed(range(len(outputs))):
        of_hidden += grad_outputs[t]
        now, to = outputs[t], of_inputs[t]
        if relu:
            to[...] = np.where(now <= 0, 0, of_hidden)
        else:
            np.multiply(now, now, out=to)
            np.subtract(1, to, out=to)
            to *= of_hidden
        product(np.matmul, to, weight, of_hidden)
    return of_inputs, of_hidden
