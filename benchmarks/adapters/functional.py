"""What engines without PyTorch's names share: a step made of a function, and layers from NumPy's.

The methods of `Functional` are what `workloads.functional` calls.  An engine replaces those for
which it has a function of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy
from workloads.functional import FUNCTIONAL
from workloads.step import Step

Array = Any


class Functional:
    """An engine whose functions take and return arrays.

    Args:
        np: its functions with NumPy's names.
        cannot: for workloads that it cannot do, the reason.
    """

    def __init__(self, np: Any, cannot: dict[str, str]) -> None:
        self.np, self.cannot = np, cannot
        self.exp, self.log, self.tanh = np.exp, np.log, np.tanh
        self.minimum, self.clip = np.minimum, np.clip
        self.swap = np.swapaxes

    def make(self, workload: str, given: Sequence[numpy.ndarray]) -> Step:
        """The step of a workload that starts from `given`."""
        weights, start, step = FUNCTIONAL[workload]
        arrays = [self.array(a) for a in given]
        p = arrays[weights]
        data = arrays[: weights.start or 0] + arrays[weights.stop :]
        state = start(self, p)
        step = self.compiled(step)

        def run() -> float:
            nonlocal p, state
            p, state, value = step(p, state, *data)
            return float(value)

        return Step(run, given)

    # -- how it computes

    def array(self, values: Any) -> Array:
        """An array of the engine."""
        return values

    def number(self, value: float) -> Any:
        """A number that changes from step to step."""
        return value

    def compiled(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """``step`` with the engine as its first argument, compiled if the engine can."""
        return lambda *arguments: step(self, *arguments)

    def value_and_grad(
        self, function: Callable[[list[Array]], Array]
    ) -> Callable[[list[Array]], tuple[Array, list[Array]]]:
        """A function that returns the value and the gradients of a list of arrays."""
        raise NotImplementedError

    def vjp(
        self, function: Callable[[list[Array]], Array], p: list[Array]
    ) -> tuple[Array, Callable[[Array], list[Array]]]:
        """The value, and what makes gradients of `p` from that of the value."""
        raise NotImplementedError

    # -- functions and layers

    def zeros(self, shape: tuple[int, ...]) -> Array:
        """Zeros, float32."""
        return self.np.zeros(shape, dtype=numpy.float32)

    def at_most_one(self, value: Array) -> Array:
        """The smaller of a number and one, outside of what is differentiated."""
        return min(value, 1.0)

    def relu(self, x: Array) -> Array:
        return self.np.maximum(x, 0)

    def leaky_relu(self, x: Array) -> Array:
        return self.np.maximum(x, 0.2 * x)

    def sigmoid(self, x: Array) -> Array:
        return 1 / (1 + self.exp(-x))

    def softplus(self, x: Array) -> Array:
        return self.np.logaddexp(x, 0)

    def gelu(self, x: Array) -> Array:
        """With the error function, as PyTorch's."""
        raise NotImplementedError("no error function")

    def log_softmax(self, x: Array) -> Array:
        """Along the last axis."""
        x = x - x.max(axis=-1, keepdims=True)
        return x - self.log(self.exp(x).sum(axis=-1, keepdims=True))

    def softmax(self, x: Array) -> Array:
        """Along the last axis."""
        x = self.exp(x - x.max(axis=-1, keepdims=True))
        return x / x.sum(axis=-1, keepdims=True)

    def pick(self, x: Array, index: Array) -> Array:
        """In each row the value at its index."""
        return x[numpy.arange(len(index)), index]

    def cross_entropy(self, logits: Array, targets: Array) -> Array:
        return -self.pick(self.log_softmax(logits), targets).mean()

    def conv(self, x: Array, weight: Array, bias: Array, stride: int, padding: int) -> Array:
        """A two-dimensional convolution, channels first."""
        raise NotImplementedError("no convolution")

    def conv_transpose(
        self, x: Array, weight: Array, bias: Array, stride: int, padding: int
    ) -> Array:
        """The transpose of `conv`; the weight is (channels in, channels out, height, width)."""
        raise NotImplementedError("no transposed convolution")

    def max_pool(self, x: Array) -> Array:
        """Of windows of 2 by 2."""
        raise NotImplementedError("no pooling")

    def batch_norm(self, x: Array, weight: Array, bias: Array) -> Array:
        """In training, channels second."""
        mean = x.mean(axis=(0, 2, 3), keepdims=True)
        variance = ((x - mean) ** 2).mean(axis=(0, 2, 3), keepdims=True)
        shape = (1, -1, 1, 1)
        scaled = (x - mean) / (variance + 1e-5) ** 0.5
        return scaled * weight.reshape(shape) + bias.reshape(shape)

    def layer_norm(self, x: Array, weight: Array, bias: Array) -> Array:
        """Along the last axis."""
        x = x - x.mean(axis=-1, keepdims=True)
        variance = (x * x).mean(axis=-1, keepdims=True)
        return x / (variance + 1e-5) ** 0.5 * weight + bias

    def attention(self, q: Array, k: Array, v: Array) -> Array:
        """Causal attention of heads, which stand second."""
        length, size = q.shape[-2:]
        hidden = numpy.triu(numpy.full((length, length), -1e9, dtype=numpy.float32), 1)
        return self.softmax(q @ self.swap(k, -1, -2) / size**0.5 + hidden) @ v

    def last(self, cell: Callable[[Any, Array], Any], carry: Any, steps: Array) -> Any:
        """What a recurrent cell carries after the last step."""
        for i in range(steps.shape[0]):
            carry = cell(carry, steps[i])
        return carry
