"""Recurrent networks over sequences: `RNN`, `LSTM`, `GRU`.

May import the core of clew, `clew.nn.init`, `clew.nn.parameter`, `clew.nn.recurrent`,
`clew.nn.utils.rnn`, `module`, and `rnn_cell`, whose classes are found here too.
"""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

import clew
from clew.nn import init
from clew.nn.modules.module import Module
from clew.nn.modules.rnn_cell import GRUCell, LSTMCell, RNNCell, RNNCellBase
from clew.nn.parameter import Parameter
from clew.nn.recurrent import Weights, run_layers
from clew.nn.utils.rnn import PackedSequence

__all__ = [
    "GRU",
    "GRUCell",
    "LSTM",
    "LSTMCell",
    "RNN",
    "RNNBase",
    "RNNCell",
    "RNNCellBase",
]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """Parameters and options of a recurrent network, and its call.

    Args:
        mode: "RNN_TANH", "RNN_RELU", "LSTM" or "GRU".
        input_size: features of the input.
        hidden_size: features of the hidden state.
        num_layers: how many layers, each over the outputs of the one before.
        bias: whether to add biases.
        batch_first: the input is (B, T, I) and not (T, B, I); the output likewise.
        dropout: the probability of a zero between layers, while training.
        bidirectional: add, in each layer, one that runs backward; the outputs are joined.
        proj_size: project the hidden state to this size (LSTM only).
        device: the CPU.
        dtype: of the parameters.

    The parameters of layer k are weight_ih_lk (gates * hidden_size, features), weight_hh_lk,
    bias_ih_lk, bias_hh_lk and weight_hr_lk; of the backward direction the same with "_reverse".

    Raises:
        ValueError, TypeError: an option is not possible.
    """

    __constants__ = (
        "mode", "input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout",
        "bidirectional", "proj_size",
    )  # fmt: skip

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1,
        bias: bool = True, batch_first: bool = False, dropout: float = 0.0,
        bidirectional: bool = False, proj_size: int = 0, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        _check_dropout(dropout, num_layers)
        _check_types(bias=bias, batch_first=batch_first)
        _check_sizes(input_size, hidden_size, num_layers, proj_size)
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[: self._directions]:
                self._add_layer(layer, suffix, {"device": device, "dtype": dtype})
        self.reset_parameters()

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    @property
    def _output_size(self) -> int:
        """Features of the hidden state that a layer puts out."""
        return self.proj_size or self.hidden_size

    def _add_layer(self, layer: int, suffix: str, options: dict[str, Any]) -> None:
        """Make the parameters of one layer in one direction."""
        gates = _GATES[self.mode] * self.hidden_size
        features = self.input_size if layer == 0 else self._output_size * self._directions
        shapes: dict[str, tuple[int, ...]] = {
            "weight_ih": (gates, features),
            "weight_hh": (gates, self._output_size),
        }
        if self.bias:
            shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        names = []
        for kind, shape in shapes.items():
            name = f"{kind}_l{layer}{suffix}"
            setattr(self, name, Parameter(clew.empty(shape, **options)))
            names.append(name)
        self._all_weights.append(names)

    @property
    def all_weights(self) -> list[list[Any]]:
        """For each layer and direction, its parameters."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Any]:
        return [getattr(self, name) for name in self._flat_weights_names]

    def _layers(self) -> list[list[Weights]]:
        """The parameters as `run_layers` takes them."""
        made = []
        for names in self._all_weights:
            found = {name.partition("_l")[0]: getattr(self, name) for name in names}
            kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
            made.append(Weights(*[found.get(kind) for kind in kinds]))
        step = self._directions
        return [made[i : i + step] for i in range(0, len(made), step)]

    def flatten_parameters(self) -> None:
        """Does nothing: it joins the parameters' memory for GPUs."""

    def reset_parameters(self) -> None:
        """Draw all parameters from (-1 / sqrt(hidden_size), 1 / sqrt(hidden_size))."""
        bound = 1.0 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        if self.proj_size != 0:
            parts.append(f"proj_size={self.proj_size}")
        if self.num_layers != 1:
            parts.append(f"num_layers={self.num_layers}")
        if self.bias is not True:
            parts.append(f"bias={self.bias}")
        if self.batch_first is not False:
            parts.append(f"batch_first={self.batch_first}")
        if self.dropout != 0:
            parts.append(f"dropout={self.dropout}")
        if self.bidirectional is not False:
            parts.append(f"bidirectional={self.bidirectional}")
        return ", ".join(parts)

    # -- the call

    _state_names: tuple[str, ...] = ("hx",)
    _dimension_note = ""

    def _state_sizes(self) -> tuple[int, ...]:
        """The features of each part of the state."""
        return (self._output_size,)

    def _run(self, input: Any, state: Any) -> tuple[Any, Any]:
        """The output and the last state (a tuple of its parts), from an input of any form.

        Raises:
            ValueError, RuntimeError: the input or the state has another shape or type.
        """
        if isinstance(input, PackedSequence):
            return self._run_packed(input, state)
        if input.dim() not in (2, 3):
            raise ValueError(
                f"{self._get_name()}: Expected input to be 2D or 3D, got {input.dim()}D"
                f"{self._dimension_note} instead"
            )
        batched = input.dim() == 3
        if state is not None:
            self._check_state_dims(state, batched)
        if not batched:
            input = input.unsqueeze(0 if self.batch_first else 1)
            state = None if state is None else tuple(part.unsqueeze(1) for part in state)
        state = self._checked(input, state, None)
        if self.batch_first:
            input = input.transpose(0, 1)
        output, state = run_layers(self.mode, input, state, self._layers(), self._dropout_now())
        if self.batch_first:
            output = output.transpose(0, 1)
        if not batched:
            output = output.squeeze(0 if self.batch_first else 1)
            state = tuple(part.squeeze(1) for part in state)
        return output, state

    def _run_packed(self, packed: PackedSequence, state: Any) -> tuple[PackedSequence, Any]:
        data, batch_sizes, order, original = packed
        if state is not None and order is not None:
            state = tuple(part.index_select(1, order) for part in state)
        sizes = batch_sizes.tolist()
        state = self._checked(data, state, sizes)
        output, state = run_layers(
            self.mode, data, state, self._layers(), self._dropout_now(), sizes
        )
        if original is not None:
            state = tuple(part.index_select(1, original) for part in state)
        return PackedSequence(output, batch_sizes, order, original), state

    def _dropout_now(self) -> float:
        return self.dropout if self.training else 0.0

    def _check_state_dims(self, state: Any, batched: bool) -> None:
        want = 3 if batched else 2
        dims = [part.dim() for part in state]
        if all(dim == want for dim in dims):
            return
        kind = "batched 3-D" if batched else "unbatched 2-D"
        names = " and ".join(self._state_names)
        found = f"{dims[0]}-D tensor"
        if len(dims) > 1:
            found = f"({', '.join(f'{dim}-D' for dim in dims)}) tensors"
        raise RuntimeError(f"For {kind} input, {names} should also be {want}-D but got {found}")

    def _checked(self, input: Any, state: Any, batch_sizes: list[int] | None) -> Any:
        """The state, zeros if there is none; input and state fit the network.

        Raises:
            ValueError, RuntimeError: they do not.
        """
        dtype = self._flat_weights[0].dtype
        if input.dtype != dtype:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({dtype}). Convert "
                f"input: input.to({dtype}), or convert model: model.to({input.dtype})"
            )
        expected = 3 if batch_sizes is None else 2
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. Expected "
                f"{self.input_size}, got {input.size(-1)}"
            )
        batch = input.size(0 if self.batch_first else 1) if batch_sizes is None else batch_sizes[0]
        rows = self.num_layers * self._directions
        sizes = [(rows, batch, features) for features in self._state_sizes()]
        if state is None:
            return tuple(clew.zeros(size, dtype=dtype) for size in sizes)
        for i, (part, size) in enumerate(zip(state, sizes)):
            if tuple(part.shape) != size:
                which = f"hidden[{i}]" if len(sizes) > 1 else "hidden"
                raise RuntimeError(f"Expected {which} size {size}, got {list(part.shape)}")
        return state


def _check_dropout(dropout: Any, num_layers: int) -> None:
    is_number = isinstance(dropout, numbers.Real) and not isinstance(dropout, bool)
    if not is_number or not 0 <= dropout <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an "
            "element being zeroed"
        )
    if dropout > 0 and num_layers == 1:
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout "
            f"expects num_layers greater than 1, but got dropout={dropout} and "
            f"num_layers={num_layers}",
            stacklevel=4,
        )


def _check_types(**flags: Any) -> None:
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise TypeError(f"{name} should be of type bool, got: {type(value).__name__}")


def _check_sizes(input_size: Any, hidden_size: Any, num_layers: int, proj_size: int) -> None:
    for name, value in (("input_size", input_size), ("hidden_size", hidden_size)):
        if not isinstance(value, int):
            raise TypeError(f"{name} should be of type int, got: {type(value).__name__}")
        if value <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if num_layers <= 0:
        raise ValueError("num_layers must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")


def _refuse_projection(options: dict[str, Any]) -> None:
    if "proj_size" in options:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class RNN(RNNBase):
    """A network of ``h' = tanh(W_ih x + b_ih + W_hh h + b_hh)`` (Elman 1990).

    Args:
        args, kwargs: as in `RNNBase` without `mode` and `proj_size`, but the fourth is
            nonlinearity: "tanh" (the default) or "relu".

    Raises:
        ValueError: the nonlinearity is another.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projection(kwargs)
        if len(args) > 3:
            nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)
        self.nonlinearity = nonlinearity

    _dimension_note = " tensor"

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Outputs and last hidden state.

        Args:
            input: (T, B, I), (B, T, I) with `batch_first`, (T, I), or a `PackedSequence`.
            hx: the initial state (layers * directions, B, H), by default zeros.
        """
        output, (hidden,) = self._run(input, None if hx is None else (hx,))
        return output, hidden


class GRU(RNNBase):
    """A network of gated recurrent units (Cho et al. 2014).

    Args:
        args, kwargs: as in `RNNBase` without `mode` and `proj_size`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projection(kwargs)
        super().__init__("GRU", *args, **kwargs)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Outputs and last hidden state; see `RNN.forward`."""
        output, (hidden,) = self._run(input, None if hx is None else (hx,))
        return output, hidden


class LSTM(RNNBase):
    """A network of long short-term memories (Hochreiter and Schmidhuber 1997).

    Args:
        args, kwargs: as in `RNNBase` without `mode`.
    """

    _state_names = ("hx", "cx")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def _state_sizes(self) -> tuple[int, ...]:
        return (self._output_size, self.hidden_size)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, tuple[Any, Any]]:
        """Outputs, and the last hidden state and cell.

        Args:
            input: (T, B, I), (B, T, I) with `batch_first`, (T, I), or a `PackedSequence`.
            hx: the initial hidden state and cell, by default zeros.
        """
        return self._run(input, hx)
