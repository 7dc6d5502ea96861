"""The computation of recurrent layers: by one op, or composed of those of each step.

May import the core of clew and `clew.nn.functional`.

A state is a tuple of tensors (B, H): the hidden state, and for an LSTM the cell.  A step takes the
gates that come from the input, a state and the layer's weights, and gives the next state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import clew
from clew.autograd.transforms import innermost
from clew.dispatch import apply
from clew.nn import functional as F
from clew.op import REGISTRY

State = tuple[Any, ...]


class Weights(NamedTuple):
    """The parameters of one layer in one direction; None for those that it does not have."""

    input: Any
    hidden: Any
    input_bias: Any = None
    hidden_bias: Any = None
    projection: Any = None


Step = Callable[[Any, State, Weights], State]


# -- steps


def tanh_step(gates: Any, state: State, weights: Weights) -> State:
    """``tanh(W_ih x + b_ih + W_hh h + b_hh)``."""
    return ((F.linear(state[0], weights.hidden, weights.hidden_bias) + gates).tanh(),)


def relu_step(gates: Any, state: State, weights: Weights) -> State:
    """``relu(W_ih x + b_ih + W_hh h + b_hh)``."""
    return (F.relu(F.linear(state[0], weights.hidden, weights.hidden_bias) + gates),)


def gru_step(gates: Any, state: State, weights: Weights) -> State:
    """A gated recurrent unit.  Source: Cho et al. 2014; the reset gate acts after the product."""
    (hidden,) = state
    from_hidden = F.linear(hidden, weights.hidden, weights.hidden_bias)
    reset_x, update_x, new_x = gates.unsafe_chunk(3, 1)
    reset_h, update_h, new_h = from_hidden.unsafe_chunk(3, 1)
    reset = (reset_h + reset_x).sigmoid()
    update = (update_h + update_x).sigmoid()
    new = (new_x + new_h * reset).tanh()
    return ((hidden - new) * update + new,)


def lstm_step(gates: Any, state: State, weights: Weights) -> State:
    """A long short-term memory.  Sources: Hochreiter and Schmidhuber 1997, Gers et al. 2000."""
    hidden, cell = state
    total = F.linear(hidden, weights.hidden, weights.hidden_bias) + gates
    into, keep, new, out = total.unsafe_chunk(4, 1)
    cell = keep.sigmoid() * cell + into.sigmoid() * new.tanh()
    hidden = out.sigmoid() * cell.tanh()
    if weights.projection is not None:
        hidden = F.linear(hidden, weights.projection)
    return (hidden, cell)


STEPS: dict[str, Step] = {
    "RNN_TANH": tanh_step,
    "RNN_RELU": relu_step,
    "GRU": gru_step,
    "LSTM": lstm_step,
}


# -- sequences


def run_cell(mode: str, input: Any, state: State, weights: Weights) -> State:
    """One step from the input itself."""
    return STEPS[mode](F.linear(input, weights.input, weights.input_bias), state, weights)


def _run_padded(
    step: Step, input: Any, state: State, weights: Weights, reverse: bool
) -> tuple[Any, State]:
    """A layer over (T, B, I): all outputs (T, B, H) and the last state."""
    steps = F.linear(input, weights.input, weights.input_bias).unbind(0)
    outputs = []
    for gates in reversed(steps) if reverse else steps:
        state = step(gates, state, weights)
        outputs.append(state[0])
    return clew.stack(outputs[::-1] if reverse else outputs), state


_LAYERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "RNN_TANH": (REGISTRY["rnn_layer"], {"relu": False}),
    "RNN_RELU": (REGISTRY["rnn_layer"], {"relu": True}),
    "GRU": (REGISTRY["gru_layer"], {}),
    "LSTM": (REGISTRY["lstm_layer"], {}),
}
"""The op that runs all steps of a layer, and its attributes."""


def _run_op(
    mode: str, input: Any, batch_sizes: list[int] | None, state: State, weights: Weights,
    reverse: bool,
) -> tuple[Any, State]:  # fmt: skip
    """A layer over (T, B, I), or packed data, by one op: all outputs and the last state."""
    layer, attributes = _LAYERS[mode]
    sizes = None if batch_sizes is None else tuple(batch_sizes)
    results = apply(
        layer, (input, *weights[:4], *state), {**attributes, "sizes": sizes, "reverse": reverse}
    )
    return results[0], results[1 : 1 + len(state)]


def _has_one_op(input: Any, weights: Weights) -> bool:
    """Whether `_run_op` can run; transforms know what to do with the ops of a single step."""
    return (
        weights.projection is None
        and input.dtype in (clew.float32, clew.float64)
        and innermost() is None
    )


def _run_packed(
    step: Step, data: Any, batch_sizes: list[int], state: State, weights: Weights
) -> tuple[Any, State]:
    """A layer over packed sequences, forward: those that end leave the batch from its end."""
    steps = F.linear(data, weights.input, weights.input_bias).split(batch_sizes)
    outputs, ended = [], []
    for gates, size in zip(steps, batch_sizes):
        leaving = state[0].shape[0] - size
        if leaving:
            ended.append([part.narrow(0, size, leaving) for part in state])
            state = tuple(part.narrow(0, 0, size) for part in state)
        state = step(gates, state, weights)
        outputs.append(state[0])
    ended.append(list(state))
    return clew.cat(outputs), tuple(clew.cat(parts) for parts in zip(*reversed(ended)))


def _run_packed_reversed(
    step: Step, data: Any, batch_sizes: list[int], state: State, weights: Weights
) -> tuple[Any, State]:
    """A layer over packed sequences, backward: those that are shorter join the batch later."""
    steps = F.linear(data, weights.input, weights.input_bias).split(batch_sizes)
    initial, size = state, batch_sizes[-1]
    state = tuple(part.narrow(0, 0, size) for part in initial)
    outputs = []
    for gates, next_size in zip(reversed(steps), reversed(batch_sizes)):
        if next_size > size:
            joining = [part.narrow(0, size, next_size - size) for part in initial]
            state = tuple(clew.cat(pair) for pair in zip(state, joining))
            size = next_size
        state = step(gates, state, weights)
        outputs.append(state[0])
    return clew.cat(outputs[::-1]), state


def run_layers(
    mode: str,
    input: Any,
    initial: Sequence[Any],
    layers: Sequence[Sequence[Weights]],
    dropout: float,
    batch_sizes: list[int] | None = None,
) -> tuple[Any, State]:
    """All layers of a recurrent network.

    Args:
        mode: one of `STEPS`.
        input: (T, B, I), or packed data (N, I).
        initial: the parts of the initial state, each (layers * directions, B, H).
        layers: for each layer the weights of its one or two directions.
        dropout: the probability of a zero between layers.
        batch_sizes: of packed data.

    Returns:
        The last layer's outputs, and the parts of the last state, stacked as `initial`.

    Raises:
        RuntimeError: there is no step.
    """
    if input.shape[0] == 0:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    step = STEPS[mode]
    states = iter(list(zip(*(part.unbind(0) for part in initial))))
    finals = []
    for number, directions in enumerate(layers):
        outputs = []
        for reverse, weights in enumerate(directions):
            state = next(states)
            if _has_one_op(input, weights):
                output, final = _run_op(mode, input, batch_sizes, state, weights, bool(reverse))
            elif batch_sizes is None:
                output, final = _run_padded(step, input, state, weights, bool(reverse))
            else:
                run = _run_packed_reversed if reverse else _run_packed
                output, final = run(step, input, batch_sizes, state, weights)
            outputs.append(output)
            finals.append(final)
        input = clew.cat(outputs, -1) if len(outputs) > 1 else outputs[0]
        if dropout and number < len(layers) - 1:
            input = F.dropout(input, dropout)
    return input, tuple(clew.stack(parts) for parts in zip(*finals))
