"""One step of a recurrent network: `RNNCell`, `LSTMCell`, `GRUCell`.

May import the core of clew, `clew.nn.init`, `clew.nn.parameter`, `clew.nn.recurrent`, `module`.
"""

from __future__ import annotations

import math
from typing import Any

import clew
from clew.nn import init
from clew.nn.modules.module import Module
from clew.nn.parameter import Parameter
from clew.nn.recurrent import Weights, run_cell

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"]


class RNNCellBase(Module):
    """The parameters of a step, and its call.

    Args:
        input_size: features of the input.
        hidden_size: features of the hidden state.
        bias: whether to add biases.
        num_chunks: the number of gates.
        device: the CPU.
        dtype: of the parameters.
    """

    __constants__: tuple[str, ...] = ("input_size", "hidden_size", "bias")

    bias_ih: Any
    bias_hh: Any

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        gates = num_chunks * hidden_size
        options = {"device": device, "dtype": dtype}
        self.weight_ih = Parameter(clew.empty((gates, input_size), **options))
        self.weight_hh = Parameter(clew.empty((gates, hidden_size), **options))
        for name in ("bias_ih", "bias_hh"):
            made = Parameter(clew.empty(gates, **options)) if bias else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters from (-1 / sqrt(hidden_size), 1 / sqrt(hidden_size))."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        if self.bias is not True:
            parts.append(f"bias={self.bias}")
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        if nonlinearity != "tanh":
            parts.append(f"nonlinearity={nonlinearity}")
        return ", ".join(parts)

    def _run(self, mode: str, input: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
        """The next state, batched or not as the input; a state of None is zeros."""
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
            state = tuple(None if part is None else part.unsqueeze(0) for part in state)
        if state[0] is None:
            zeros = clew.zeros(input.shape[0], self.hidden_size, dtype=input.dtype)
            state = (zeros,) * len(state)
        weights = Weights(self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        self._check_fit(input, state)
        state = run_cell(mode, input, state, weights)
        return state if batched else tuple(part.squeeze(0) for part in state)

    def _check_fit(self, input: Any, state: tuple[Any, ...]) -> None:
        if input.shape[1] != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {input.shape[1]} expected "
                f"{self.input_size}"
            )
        for i, part in enumerate(state):
            if part.shape[0] != input.shape[0]:
                raise RuntimeError(
                    f"Input batch size {input.shape[0]} doesn't match hidden{i} batch size "
                    f"{part.shape[0]}"
                )
            if part.shape[1] != self.hidden_size:
                raise RuntimeError(
                    f"hidden{i} has inconsistent hidden_size: got {part.shape[1]}, expected "
                    f"{self.hidden_size}"
                )

    def _check_dims(self, what: str, tensor: Any) -> None:
        """Refuse what is neither a vector nor a matrix.

        Raises:
            ValueError: it is neither.
        """
        if tensor.dim() not in (1, 2):
            raise ValueError(
                f"{self._get_name()}: Expected {what} to be 1D or 2D, got {tensor.dim()}D instead"
            )


class RNNCell(RNNCellBase):
    """``h' = tanh(W_ih x + b_ih + W_hh h + b_hh)``, or with "relu" as `nonlinearity`."""

    __constants__ = ("input_size", "hidden_size", "bias", "nonlinearity")

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh",
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The next hidden state, from an input (B, I) or (I,) and a state, by default zeros."""
        self._check_dims("input", input)
        if hx is not None:
            self._check_dims("hidden", hx)
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._run(f"RNN_{self.nonlinearity.upper()}", input, (hx,))[0]


class GRUCell(RNNCellBase):
    """One step of a `GRU`."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The next hidden state, from an input (B, I) or (I,) and a state, by default zeros."""
        self._check_dims("input", input)
        if hx is not None:
            self._check_dims("hidden", hx)
        return self._run("GRU", input, (hx,))[0]


class LSTMCell(RNNCellBase):
    """One step of an `LSTM`."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """The next hidden state and cell, from an input and both, by default zeros."""
        self._check_dims("input", input)
        for i, part in enumerate(hx or ()):
            self._check_dims(f"hx[{i}]", part)
        hidden, cell = self._run("LSTM", input, (None, None) if hx is None else tuple(hx))
        return hidden, cell
