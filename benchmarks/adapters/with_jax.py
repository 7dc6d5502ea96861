"""JAX: a step, with the optimizer, is one compiled function."""

import os
from collections.abc import Callable
from typing import Any

from adapters.functional import Array, Functional

CANNOT = {"chain of 100,000 nodes": "it would compile 100,000 operations"}


def load(threads: int) -> Functional:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])  # XLA counts these
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax

    class Jax(Functional):
        def __init__(self) -> None:
            super().__init__(jax.numpy, CANNOT)

        relu, sigmoid = staticmethod(jax.nn.relu), staticmethod(jax.nn.sigmoid)
        softplus = staticmethod(jax.nn.softplus)
        softmax, log_softmax = staticmethod(jax.nn.softmax), staticmethod(jax.nn.log_softmax)

        array = number = staticmethod(jax.numpy.asarray)

        def compiled(self, step: Callable[..., Any]) -> Callable[..., Any]:
            return jax.jit(lambda *arguments: step(self, *arguments), donate_argnums=(0, 1))

        value_and_grad = staticmethod(jax.value_and_grad)

        def vjp(self, function: Any, p: list[Array]) -> Any:
            value, back = jax.vjp(function, p)
            return value, lambda grad: back(grad)[0]

        def at_most_one(self, value: Array) -> Array:
            return jax.numpy.minimum(value, 1.0)

        def leaky_relu(self, x: Array) -> Array:
            return jax.nn.leaky_relu(x, 0.2)

        def gelu(self, x: Array) -> Array:
            return jax.nn.gelu(x, approximate=False)

        def conv(self, x: Array, weight: Array, bias: Array, stride: int, padding: int) -> Array:
            pads = [(padding, padding)] * 2
            y = jax.lax.conv_general_dilated(x, weight, (stride, stride), pads)
            return y + bias.reshape(-1, 1, 1)

        def conv_transpose(
            self, x: Array, weight: Array, bias: Array, stride: int, padding: int
        ) -> Array:
            pads = [(weight.shape[2] - 1 - padding,) * 2] * 2
            flipped = weight.transpose(1, 0, 2, 3)[:, :, ::-1, ::-1]
            y = jax.lax.conv_general_dilated(
                x, flipped, (1, 1), pads, lhs_dilation=(stride, stride)
            )
            return y + bias.reshape(-1, 1, 1)

        def max_pool(self, x: Array) -> Array:
            window = (1, 1, 2, 2)
            return jax.lax.reduce_window(x, -jax.numpy.inf, jax.lax.max, window, window, "VALID")

        def last(self, cell: Any, carry: Any, steps: Array) -> Any:
            return jax.lax.scan(lambda carry, x: (cell(carry, x), None), carry, steps)[0]

    return Jax()
