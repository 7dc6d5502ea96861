"""The workloads once more, as functions of lists of arrays.

For engines without PyTorch's names.  `n` is an engine (see ``adapters/functional.py``); a model
takes its weights from an iterator, in the order of PyTorch's ``parameters()``.  The first step
starts from the values that the workload of the same name in `workloads` was given.  Batch norms
keep no running statistics, on which no loss here depends.

A workload is ``(weights, start, step)``: which of the given arrays are weights to be learned (the
others are data), the first state, and ``step(n, p, state, *data)``, which returns the new weights,
the new state and the loss.  The state is the optimizer's; where nothing is learned it is the
gradient, so that no compiler finds that nobody asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy

Array = Any
Weights = Iterator[Array]


class Functional(NamedTuple):
    """See the head of the module."""

    weights: slice
    start: Callable[[Any, list[Array]], Any]
    step: Callable[..., tuple[list[Array], Any, Array]]


# -- optimizers


def zeros(n: Any, p: list[Array]) -> Any:
    """A zero for each weight."""
    return [n.array(numpy.zeros(a.shape, numpy.float32)) for a in p]


def adam_start(n: Any, p: list[Array]) -> Any:
    """Steps taken, first and second moments."""
    return n.number(0.0), zeros(n, p), zeros(n, p)


def adam(
    p: list[Array], grads: list[Array], state: Any, lr: float = 1e-3, decay: float = 0.0
) -> tuple[list[Array], Any]:
    """Adam; AdamW with a decay."""
    count, first, second = state
    count = count + 1
    first = [0.9 * m + 0.1 * g for m, g in zip(first, grads)]
    second = [0.999 * v + 0.001 * (g * g) for v, g in zip(second, grads)]
    size, spread = lr / (1 - 0.9**count), (1 - 0.999**count) ** 0.5
    kept = [a * (1 - lr * decay) for a in p] if decay else p
    new = [a - size * m / (v**0.5 / spread + 1e-8) for a, m, v in zip(kept, first, second)]
    return new, (count, first, second)


def momentum(p: list[Array], grads: list[Array], state: Any) -> tuple[list[Array], Any]:
    """SGD with momentum 0.9."""
    state = [0.9 * v + g for v, g in zip(state, grads)]
    return [a - 0.01 * v for a, v in zip(p, state)], state


# -- layers


def linear(n: Any, p: Weights, x: Array) -> Array:
    weight, bias = next(p), next(p)
    return x @ weight.T + bias


def dense(n: Any, p: Weights, x: Array, layers: int, activation: Any) -> Array:
    """Linear layers with an activation between them."""
    for _ in range(layers - 1):
        x = activation(linear(n, p, x))
    return linear(n, p, x)


def norm(n: Any, p: Weights, x: Array) -> Array:
    return n.batch_norm(x, next(p), next(p))


def flat(x: Array) -> Array:
    return x.reshape(x.shape[0], -1)


# -- models


def convolutional(n: Any, p: Weights, x: Array, blocks: int) -> Array:
    for _ in range(blocks):
        x = n.conv(x, next(p), next(p), stride=1, padding=1)
        x = n.max_pool(n.relu(norm(n, p, x)))
    return linear(n, p, flat(x))


def transformer(n: Any, p: Weights, text: Array) -> Array:
    letters, places = next(p), next(p)
    x = letters[text] + places
    batch, length, width = x.shape

    def heads(part: Array) -> Array:
        return n.swap(part.reshape(batch, length, 4, width // 4), 1, 2)

    for _ in range(4):
        norm1, norm2 = (next(p), next(p)), (next(p), next(p))
        z = linear(n, p, n.layer_norm(x, *norm1))
        y = n.attention(*[heads(z[..., i * width : (i + 1) * width]) for i in range(3)])
        x = x + linear(n, p, n.swap(y, 1, 2).reshape(batch, length, width))
        x = x + dense(n, p, n.layer_norm(x, *norm2), 2, n.gelu)
    x = n.layer_norm(x, next(p), next(p))
    return linear(n, p, x).reshape(batch * length, -1)


def lstm(n: Any, p: Weights, x: Array) -> Array:
    w_input, w_hidden, b_input, b_hidden = next(p), next(p), next(p), next(p)
    size = w_hidden.shape[1]

    def cell(carry: tuple[Array, Array], z: Array) -> tuple[Array, Array]:
        h, c = carry
        z = z + h @ w_hidden.T
        i, f, g, o = (z[:, k * size : (k + 1) * size] for k in range(4))
        c = n.sigmoid(f) * c + n.sigmoid(i) * n.tanh(g)
        return n.sigmoid(o) * n.tanh(c), c

    zero = n.zeros((x.shape[0], size))
    steps = n.swap(x @ w_input.T + (b_input + b_hidden), 0, 1)
    return linear(n, p, n.last(cell, (zero, zero), steps)[0])


# -- steps


def _gradient(forward: Any) -> Functional:
    def step(n: Any, p: list[Array], state: Any) -> Any:
        value, grads = n.value_and_grad(lambda p: forward(n, p[0]))(p)
        return p, grads, value

    return Functional(slice(1), zeros, step)


def _classifier(weights: int, model: Any, frozen: int = 0, **options: Any) -> Functional:
    """Adam on a cross-entropy; the first weights, which are `frozen`, are data."""

    def step(n: Any, p: list[Array], state: Any, *data: Array) -> Any:
        fixed, (x, y) = data[:frozen], data[frozen:]
        loss = n.value_and_grad(lambda p: n.cross_entropy(model(n, iter([*fixed, *p]), x), y))
        value, grads = loss(p)
        return *adam(p, grads, state, **options), value

    return Functional(slice(frozen, frozen + weights), adam_start, step)


def _cnn(blocks: int) -> Functional:
    def step(n: Any, p: list[Array], state: Any, x: Array, y: Array) -> Any:
        loss = n.value_and_grad(lambda p: n.cross_entropy(convolutional(n, iter(p), x, blocks), y))
        value, grads = loss(p)
        return *momentum(p, grads, state), value

    return Functional(slice(4 * blocks + 2), zeros, step)


def _adversarial(of_g: int, of_d: int, generator: Any, critic: Any) -> Functional:
    """A step of the critic, then one of the generator, whose forward is run once."""

    def start(n: Any, p: list[Array]) -> Any:
        return [adam_start(n, p[:of_g]), adam_start(n, p[of_g:])]

    def step(n: Any, p: list[Array], state: Any, real: Array, noise: Array) -> Any:
        pg, pd = p[:of_g], p[of_g:]
        fake, back = n.vjp(lambda pg: generator(n, iter(pg), noise), pg)

        def d_loss(pd: list[Array]) -> Array:
            on_real, on_fake = critic(n, iter(pd), real), critic(n, iter(pd), fake)
            return n.softplus(-on_real).mean() + n.softplus(on_fake).mean()

        value_d, grads = n.value_and_grad(d_loss)(pd)
        pd, state_d = adam(pd, grads, state[1])
        value_g, (grad,) = n.value_and_grad(
            lambda fakes: n.softplus(-critic(n, iter(pd), fakes[0])).mean()
        )([fake])
        pg, state_g = adam(pg, back(grad), state[0])
        return [*pg, *pd], [state_g, state_d], value_d + value_g

    return Functional(slice(of_g + of_d), start, step)


def dcgan_generator(n: Any, p: Weights, z: Array) -> Array:
    x = linear(n, p, z).reshape(z.shape[0], 64, 7, 7)
    x = n.relu(norm(n, p, x))
    x = n.relu(norm(n, p, n.conv_transpose(x, next(p), next(p), stride=2, padding=1)))
    return n.tanh(n.conv_transpose(x, next(p), next(p), stride=2, padding=1))


def dcgan_critic(n: Any, p: Weights, x: Array) -> Array:
    x = n.leaky_relu(n.conv(x, next(p), next(p), stride=2, padding=1))
    x = n.conv(x, next(p), next(p), stride=2, padding=1)
    return linear(n, p, flat(n.leaky_relu(norm(n, p, x))))


def ppo_step(n: Any, p: list[Array], state: Any, *data: Array) -> Any:
    """4 epochs of 4 minibatches, gradients clipped to norm 0.5."""
    for _ in range(4):
        for start in range(0, 256, 64):
            part = [values[start : start + 64] for values in data]
            value, grads = n.value_and_grad(lambda p, part=part: _ppo_loss(n, p, *part))(p)
            size = sum((g * g).sum() for g in grads) ** 0.5
            factor = n.at_most_one(0.5 / (size + 1e-6))
            p, state = adam(p, [g * factor for g in grads], state, lr=3e-4)
    return p, state, value


def _ppo_loss(
    n: Any, p: list[Array], states: Array, actions: Array, advantages: Array, returns: Array,
    old: Array,
) -> Array:  # fmt: skip
    logits = n.log_softmax(dense(n, iter(p[:6]), states, 3, n.tanh))
    ratio = n.exp(n.pick(logits, actions) - old)
    gain = n.minimum(ratio * advantages, n.clip(ratio, 0.8, 1.2) * advantages).mean()
    entropy = -(n.exp(logits) * logits).sum(1).mean()
    values = dense(n, iter(p[6:]), states, 3, n.tanh).reshape(-1)
    return -gain + 0.5 * ((values - returns) ** 2).mean() - 0.01 * entropy


def accumulate_step(n: Any, p: list[Array], state: Any, x: Array, y: Array) -> Any:
    """Gradients of 8 micro-batches, then SGD."""
    total, sums = 0.0, None
    for i in range(8):
        value, grads = n.value_and_grad(
            lambda p, i=i: n.cross_entropy(dense(n, iter(p), x[i], 2, n.relu), y[i]) / 8
        )(p)
        total = total + value
        sums = grads if sums is None else [s + g for s, g in zip(sums, grads)]
    return [a - 0.01 * g for a, g in zip(p, sums or [])], state, total


def hessian_vector_step(
    n: Any, p: list[Array], state: Any, x: Array, y: Array, *vector: Array
) -> Any:
    """The gradient of the gradient's product with a vector."""
    loss = n.value_and_grad(lambda p: ((dense(n, iter(p), x, 2, n.tanh) - y) ** 2).mean())
    along = n.value_and_grad(lambda p: sum((g * v).sum() for g, v in zip(loss(p)[1], vector)))
    product = along(p)[1]
    return p, product, product[0].sum()


def chain(n: Any, x: Array) -> Array:
    for _ in range(100):
        x = x * 0.99 + 0.01
    return x.sum()


def deep(n: Any, x: Array) -> Array:
    for _ in range(100_000):
        x = x + 1
    return x.sum()


def elementwise(n: Any, x: Array) -> Array:
    y = n.exp(n.tanh(x * 1.5 + 0.5) * x)
    return (n.log(y + 1) * 0.5 - x).mean()


FUNCTIONAL: dict[str, Functional] = {
    "three ops and backward": _gradient(lambda n, x: ((x * 3) ** 2).sum()),
    "chain of 200 ops": _gradient(chain),
    "chain of 100,000 nodes": _gradient(deep),
    "MLP step": _classifier(4, lambda n, p, x: dense(n, p, x, 2, n.relu)),
    "large MLP step": _classifier(6, lambda n, p, x: dense(n, p, x, 3, n.relu)),
    "GAN step": _adversarial(
        4, 4,
        lambda n, p, z: n.tanh(dense(n, p, z, 2, n.relu)),
        lambda n, p, x: dense(n, p, x, 2, n.leaky_relu),
    ),
    "DCGAN step": _adversarial(10, 8, dcgan_generator, dcgan_critic),
    "CNN step": _cnn(3),
    "small CNN step": _cnn(2),
    "PPO update": Functional(slice(12), adam_start, ppo_step),
    "classifier on a frozen backbone": _classifier(
        2, lambda n, p, x: linear(n, p, n.relu(dense(n, p, x, 3, n.relu))), frozen=6
    ),
    "transformer step": _classifier(54, transformer, decay=1e-2),
    "LSTM step": _classifier(6, lstm),
    "elementwise chain on 4 M floats": _gradient(elementwise),
    "accumulation over 8 micro-batches": Functional(slice(4), zeros, accumulate_step),
    "Hessian-vector product": Functional(slice(4), zeros, hessian_vector_step),
}  # fmt: skip
