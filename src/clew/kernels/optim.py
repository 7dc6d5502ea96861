"""Updates of optimizers, on arrays, in place, in PyTorch's order of operations.  Layer 1.

The formulas are those of the optimizers' papers as PyTorch's documentation writes them down; the
order of the steps decides the last digits, so it is the same too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from clew.dtypes import bfloat16
from clew.kernels.compiled import Twins, twins
from clew.threads import split

SMALL = 1024
"""Parameters of fewer elements have no twins of their own account; see `compiled`."""


GRAIN = 1 << 17
"""A thread updates at least so many elements at a time: half as many take 15 us without momentum,
less than it takes to hand them over (measured)."""


def compiled(params: list[np.ndarray]) -> Twins | None:
    """The twins for the updates of a group of parameters, or None.

    A twin costs less than NumPy for any size, but the first one in a program costs its import: so
    a group has twins if one of its parameters is not small.
    """
    for param in params:
        if param.size >= SMALL:
            return twins("optim", param.dtype)
    return None


def _vectors(*arrays: np.ndarray) -> list[np.ndarray] | None:
    """The arrays as twins take them; None if one is not contiguous, or not like the first.

    Only the last is not written to, and is copied if need be.
    """
    dtype, shape = arrays[0].dtype, arrays[0].shape
    vectors = []
    for array in arrays:
        if array.dtype != dtype or array.shape != shape:
            return None
        if not array.flags.carray:
            if array is not arrays[-1]:
                return None
            array = np.array(array, order="C")
        vectors.append(array.ravel())
    return vectors


def _run(twin: Callable[..., None], vectors: list[np.ndarray], *scalars: float) -> None:
    """Call a twin; large vectors are shared among threads."""
    if vectors[0].size < 2 * GRAIN:
        twin(*vectors, *scalars)
        return
    split(
        lambda start, stop: twin(*[v[start:stop] for v in vectors], *scalars),
        vectors[0].size, GRAIN,
    )  # fmt: skip


def total_norm(grads: list[np.ndarray]) -> np.ndarray:
    """The 2-norm of all elements of contiguous arrays of one type, as a vector of one element.

    It is the norm of their norms, as in PyTorch: numbers whose squares overflow make it infinite.
    """
    norms, fast = np.empty(len(grads), grads[0].dtype), compiled(grads)
    for i, grad in enumerate(grads):
        if fast is not None:
            fast.norm(norms[i : i + 1], grad.ravel())
        else:
            norms[i] = _norm(grad)
    return _norm(norms).reshape(1)


def _norm(x: np.ndarray) -> np.ndarray:
    return np.sqrt(np.add.reduce(np.square(x), axis=None))


def sgd(
    param: np.ndarray, grad: np.ndarray, velocity: np.ndarray | None, *, lr: float,
    momentum: float, dampening: float, nesterov: bool, first: bool, decay: float,
    fast: Twins | None = None,
) -> None:  # fmt: skip
    """Gradient descent; with momentum (Sutskever et al. 2013) if there is a `velocity`.

    Args:
        first: it is the first step: the velocity becomes the gradient.
        decay: weight decay, which is added to the gradient.
    """
    if fast is not None and not first:
        written = (param,) if velocity is None else (param, velocity)
        vectors = _vectors(*written, grad)
        if vectors is not None and velocity is None:
            return _run(fast.sgd, vectors, decay, lr)
        if vectors is not None:
            return _run(fast.sgd_momentum, vectors, decay, lr, momentum, 1 - dampening, nesterov)
    if decay:
        grad = grad + decay * param
    if velocity is not None:
        if first:
            velocity[...] = grad
        else:
            velocity *= momentum
            velocity += grad if dampening == 0 else grad * (1 - dampening)
        grad = grad + momentum * velocity if nesterov else velocity
    param -= lr * grad


def adam(
    param: np.ndarray, grad: np.ndarray, mean: np.ndarray, square: np.ndarray,
    largest: np.ndarray | None, *, step: float, lr: float, beta1: float, beta2: float, eps: float,
    decay: float = 0, shrink: float = 1, fast: Twins | None = None,
) -> None:  # fmt: skip
    """Adam (Kingma and Ba 2015); AMSGrad (Reddi et al. 2018) if `largest` is given.

    Args:
        decay: weight decay, which is added to the gradient.
        shrink: what the parameter is multiplied by first: decoupled weight decay.
    """
    root, size = (1 - beta2**step) ** 0.5, lr / (1 - beta1**step)
    if fast is not None:
        scalars = (decay, shrink, 1 - beta1, beta2, 1 - beta2, root, eps, size)
        if largest is None:
            vectors = _vectors(param, mean, square, grad)
        else:
            vectors = _vectors(param, mean, square, largest, grad)
        if vectors is not None:
            return _run(fast.adam if largest is None else fast.amsgrad, vectors, *scalars)
    if shrink != 1:
        param *= shrink
    if decay:
        grad = grad + decay * param
    # mean.lerp_(grad, 1 - beta1), which starts from the nearer end
    weight = 1 - beta1
    scratch = grad - mean
    if weight < 0.5:
        scratch *= weight
        mean += scratch
    else:
        scratch *= 1 - weight
        np.subtract(grad, scratch, out=mean)
    square *= beta2
    np.multiply(grad, 1 - beta2, out=scratch)
    scratch *= grad
    square += scratch
    if largest is not None:
        np.maximum(largest, square, out=largest)
        square = largest
    np.sqrt(square, out=scratch)
    scratch /= root
    scratch += eps
    np.divide(mean, scratch, out=scratch)
    scratch *= size
    param -= scratch


def rmsprop(
    param: np.ndarray, grad: np.ndarray, square: np.ndarray, mean: np.ndarray | None,
    velocity: np.ndarray | None, *, lr: float, alpha: float, eps: float, momentum: float,
    decay: float = 0, fast: Twins | None = None,
) -> None:  # fmt: skip
    """RMSprop (Hinton 2012); centred (Graves 2013) if there is a `mean`."""
    if fast is not None and mean is None:
        scalars = (decay, lr, alpha, 1 - alpha, eps)
        written = (param, square) if velocity is None else (param, square, velocity)
        vectors = _vectors(*written, grad)
        if vectors is not None and velocity is None:
            return _run(fast.rmsprop, vectors, *scalars)
        if vectors is not None:
            return _run(fast.rmsprop_momentum, vectors, *scalars, momentum)
    if decay:
        grad = grad + decay * param
    square *= alpha
    square += (1 - alpha) * grad * grad
    if mean is not None:
        mean += (1 - alpha) * (grad - mean)
        average: Any = square - mean * mean
        np.sqrt(average, out=average)
    else:
        average = np.sqrt(square)
    average += eps
    if velocity is not None:
        velocity *= momentum
        velocity += grad / average
        param -= lr * velocity
    else:
        param -= lr * grad / average


def _lerp(start: np.ndarray, end: np.ndarray, weight: float) -> None:
    """Move `start` towards `end` in place, computed from the nearer of the two."""
    difference = end - start
    if weight < 0.5:
        start += weight * difference
    else:
        np.subtract(end, (1 - weight) * difference, out=start)


def adagrad(
    param: np.ndarray, grad: np.ndarray, total: np.ndarray, *, step: float, lr: float,
    lr_decay: float, eps: float, decay: float = 0, fast: Twins | None = None,
) -> None:  # fmt: skip
    """Adagrad (Duchi, Hazan and Singer 2011); `total` is the sum of squared gradients."""
    rate = lr / (1 + (step - 1) * lr_decay)
    if fast is not None:
        vectors = _vectors(param, total, grad)
        if vectors is not None:
            return _run(fast.adagrad, vectors, decay, rate, eps)
    if decay:
        grad = grad + decay * param
    total += grad * grad
    deviation = np.sqrt(total)
    deviation += eps
    param -= rate * grad / deviation


def adadelta(
    param: np.ndarray, grad: np.ndarray, square: np.ndarray, change: np.ndarray, *, lr: float,
    rho: float, eps: float,
) -> None:  # fmt: skip
    """Adadelta (Zeiler 2012); `change` is the average of squared updates."""
    square *= rho
    square += (1 - rho) * grad * grad
    update = np.sqrt(change + eps)
    update /= np.sqrt(square + eps)
    update *= grad
    change *= rho
    change += (1 - rho) * update * update
    param -= lr * update


def adamax(
    param: np.ndarray, grad: np.ndarray, mean: np.ndarray, largest: np.ndarray, *, step: float,
    lr: float, beta1: float, beta2: float, eps: float,
) -> None:  # fmt: skip
    """Adamax (Kingma and Ba 2015): Adam by the largest gradient in place of the mean square."""
    _lerp(mean, grad, 1 - beta1)
    largest *= beta2
    np.maximum(largest, np.abs(grad) + eps, out=largest)
    param -= lr / (1 - beta1**step) * mean / largest


def nadam(
    param: np.ndarray, grad: np.ndarray, mean: np.ndarray, square: np.ndarray,
    product: np.ndarray, *, step: float, lr: float, beta1: float, beta2: float, eps: float,
    momentum_decay: float,
) -> None:  # fmt: skip
    """NAdam (Dozat 2016): Adam with Nesterov momentum.

    Args:
        product: the product of the momenta of all steps, which is brought up to date.
    """
    mu = beta1 * (1.0 - 0.5 * 0.96 ** (step * momentum_decay))
    following = beta1 * (1.0 - 0.5 * 0.96 ** ((step + 1) * momentum_decay))
    product *= mu
    so_far = float(product)
    _lerp(mean, grad, 1 - beta1)
    square *= beta2
    square += (1 - beta2) * grad * grad
    deviation = np.sqrt(square / (1 - beta2**step))
    deviation += eps
    param -= lr * (1.0 - mu) / (1.0 - so_far) * grad / deviation
    param -= lr * following / (1.0 - so_far * following) * mean / deviation


def radam(
    param: np.ndarray, grad: np.ndarray, mean: np.ndarray, square: np.ndarray, *, step: float,
    lr: float, beta1: float, beta2: float, eps: float,
) -> None:  # fmt: skip
    """RAdam (Liu et al. 2020): Adam that scales by squares only once there are enough of them."""
    _lerp(mean, grad, 1 - beta1)
    square *= beta2
    square += (1 - beta2) * grad * grad
    correction = 1 - beta2**step
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * step * beta2**step / correction
    update = mean / (1 - beta1**step) * lr
    if length > 5.0:
        variance = (length - 4) * (length - 2) * longest
        variance /= (longest - 4) * (longest - 2) * length
        deviation = np.sqrt(square)
        deviation += eps
        update = update * (correction**0.5 / deviation) * variance**0.5
    param -= update


def asgd(
    param: np.ndarray, grad: np.ndarray, average: np.ndarray, *, eta: float, mu: float,
    lambd: float,
) -> None:  # fmt: skip
    """Averaged gradient descent (Polyak and Juditsky 1992); `mu` weighs the newest parameters."""
    param *= 1 - lambd * eta
    param -= eta * grad
    if mu == 1:
        average[...] = param
    else:
        average += (param - average) * mu


def rprop(
    param: np.ndarray, grad: np.ndarray, before: np.ndarray, size: np.ndarray, *, shrink: float,
    grow: float, smallest: float, largest: float,
) -> None:  # fmt: skip
    """Rprop (Riedmiller and Braun 1993): only the signs of the gradients count.

    Args:
        before: the gradient of the last step, which is brought up to date.
        size: how far each parameter moves.
    """
    agreement = grad * before
    turned = agreement < 0
    size *= np.where(turned, shrink, np.where(agreement > 0, grow, 1.0)).astype(size.dtype)
    np.clip(size, smallest, largest, out=size)
    before[...] = np.where(turned, 0, grad)
    param -= np.sign(before) * size


def adafactor(
    param: np.ndarray, grad: np.ndarray, rows: np.ndarray | None, columns: np.ndarray | None,
    square: np.ndarray | None, *, step: float, lr: float, beta2_decay: float, eps1: float,
    eps2: float, d: float, weight_decay: float,
) -> None:  # fmt: skip
    """Adafactor (Shazeer and Stern 2018).

    Args:
        rows, columns: the mean squares of the rows and columns of matrices, whose product stands
            in for that of each element.
        square: the mean squares of the elements, for vectors.
    """
    weight = step**beta2_decay
    size = max(eps2, _rms(param))
    if weight_decay:
        param *= 1 - lr * weight_decay
    if rows is not None and columns is not None:
        _lerp(rows, np.mean(grad * grad, axis=-1, keepdims=True), weight)
        _lerp(columns, np.mean(grad * grad, axis=-2, keepdims=True), weight)
        estimate = rows * columns
        estimate /= np.maximum(rows.mean(axis=-2, keepdims=True), eps1)
    else:
        assert square is not None
        _lerp(square, grad * grad, weight)
        estimate = square
    update = grad / np.sqrt(np.maximum(estimate, eps1 * eps1))
    alpha = size * min(lr, 1 / step**0.5)
    param -= alpha / max(1.0, _rms(update) / d) * update


def _rms(x: np.ndarray) -> float:
    return float(np.sqrt(np.sum(x * x))) / x.size**0.5


def orthogonalized(
    matrix: np.ndarray, coefficients: tuple[float, float, float], steps: int, eps: float
) -> np.ndarray:
    """A matrix with the same directions and all singular values near 1, in bfloat16 precision.

    A quintic Newton-Schulz iteration (Jordan et al., "Muon", 2024).

    Args:
        matrix: (m, n), in any floating type; the result is float32.
        coefficients: a, b, c of ``aX + b(XX')X + c(XX')^2 X``.
    """
    a, b, c = coefficients
    tall = matrix.shape[0] > matrix.shape[1]
    x = _to_bfloat16(matrix.T if tall else matrix)
    x = _to_bfloat16(x / max(float(_to_bfloat16(np.sqrt(np.sum(x * x)))), eps))
    for _ in range(steps):
        gram = _to_bfloat16(x @ x.T)
        polynomial = _to_bfloat16(b * gram + c * (gram @ gram))
        x = _to_bfloat16(a * x + polynomial @ x)
    return x.T if tall else x


def _to_bfloat16(x: Any) -> np.ndarray:
    """`x` rounded to bfloat16, as float32."""
    return np.asarray(x).astype(bfloat16.numpy).astype(np.float32)
