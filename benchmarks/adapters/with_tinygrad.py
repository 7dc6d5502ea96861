"""tinygrad: a step is recorded by `TinyJit` and replayed."""

import os
from collections.abc import Callable
from typing import Any

from adapters.functional import Array, Functional

CANNOT = {
    "chain of 100,000 nodes": "it would compile 100,000 operations",
    "LSTM step": "it takes many minutes to compile 64 steps",
}


def load(threads: int) -> Functional:
    os.environ["NUM_CPU_THREADS"] = str(threads)
    import numpy
    from tinygrad import Tensor, TinyJit

    class Tinygrad(Functional):
        def __init__(self) -> None:
            self.cannot = CANNOT
            self.exp, self.log, self.tanh = Tensor.exp, Tensor.log, Tensor.tanh
            self.minimum, self.clip, self.swap = Tensor.minimum, Tensor.clip, Tensor.transpose

        relu, sigmoid = staticmethod(Tensor.relu), staticmethod(Tensor.sigmoid)
        softplus = staticmethod(Tensor.softplus)
        softmax, log_softmax = staticmethod(Tensor.softmax), staticmethod(Tensor.log_softmax)
        cross_entropy = staticmethod(Tensor.sparse_categorical_crossentropy)

        def array(self, values: Any) -> Array:
            values = numpy.asarray(values)
            whole = values.dtype.kind == "i"
            return Tensor(values.astype("int32" if whole else "float32")).realize()

        def number(self, value: float) -> Any:
            return self.array([value])  # of one axis: what has none is taken for a constant

        def compiled(self, step: Callable[..., Any]) -> Callable[..., Any]:
            @TinyJit
            def jitted(p: list[Array], state: Any, *data: Array) -> Array:
                *results, value = step(self, p, state, *data)
                pairs = zip(_flat([p, state]), _flat(results))
                changed = [(old, new) for old, new in pairs if old is not new]
                # First all values, then the writes: the loss may be computed from both.
                Tensor.realize(value, *[new for _, new in changed])
                Tensor.realize(*[old.assign(new) for old, new in changed])
                return value

            def run(p: list[Array], state: Any, *data: Array) -> Any:
                return p, state, jitted(p, state, *data).item()

            return run

        def value_and_grad(self, function: Any) -> Any:
            def both(p: list[Array]) -> Any:
                value = function(p)
                return value, value.gradient(*p)

            return both

        def vjp(self, function: Any, p: list[Array]) -> Any:
            value = function(p)
            return value.detach(), lambda grad: value.gradient(*p, gradient=grad)

        def zeros(self, shape: tuple[int, ...]) -> Array:
            return Tensor.zeros(*shape)

        def at_most_one(self, value: Array) -> Array:
            return value.minimum(1.0)

        def leaky_relu(self, x: Array) -> Array:
            return x.leaky_relu(0.2)

        def gelu(self, x: Array) -> Array:
            return 0.5 * x * (1 + (x / 2**0.5).erf())

        def pick(self, x: Array, index: Array) -> Array:
            return x.gather(1, index.unsqueeze(1)).squeeze(1)

        def conv(self, x: Array, weight: Array, bias: Array, stride: int, padding: int) -> Array:
            return x.conv2d(weight, bias, stride=stride, padding=padding)

        def conv_transpose(
            self, x: Array, weight: Array, bias: Array, stride: int, padding: int
        ) -> Array:
            return x.conv_transpose2d(weight, bias, stride=stride, padding=padding)

        def max_pool(self, x: Array) -> Array:
            return x.max_pool2d((2, 2))

        def batch_norm(self, x: Array, weight: Array, bias: Array) -> Array:
            mean = x.mean((0, 2, 3))
            invstd = (x.var((0, 2, 3), correction=0) + 1e-5).rsqrt()
            return x.batchnorm(weight, bias, mean, invstd)

        def layer_norm(self, x: Array, weight: Array, bias: Array) -> Array:
            return x.layernorm(eps=1e-5) * weight + bias

        def attention(self, q: Array, k: Array, v: Array) -> Array:
            return q.scaled_dot_product_attention(k, v, is_causal=True)

    return Tinygrad()


def _flat(nested: Any) -> list[Any]:
    if isinstance(nested, (list, tuple)):
        return [leaf for part in nested for leaf in _flat(part)]
    return [nested]
