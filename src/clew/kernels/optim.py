"""Updates of optimizers, on arrays, in place, in PyTorch's order of operations.  Layer 1.

The formulas are those of the optimizers' papers as PyTorch's documentation writes them down; the
order of the steps decides the last digits, so it is the same too.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def sgd(
    param: np.ndarray, grad: np.ndarray, velocity: np.ndarray | None, *, lr: float,
    momentum: float, dampening: float, nesterov: bool, first: bool,
) -> None:  # fmt: skip
    """Gradient descent; with momentum (Sutskever et al. 2013) if there is a `velocity`.

    Args:
        first: it is the first step: the velocity holds the gradient already.
    """
    if velocity is not None:
        if not first:
            velocity *= momentum
            velocity += grad if dampening == 0 else grad * (1 - dampening)
        grad = grad + momentum * velocity if nesterov else velocity
    param -= lr * grad


def adam(
    param: np.ndarray, grad: np.ndarray, mean: np.ndarray, square: np.ndarray,
    largest: np.ndarray | None, *, step: float, lr: float, beta1: float, beta2: float, eps: float,
) -> None:  # fmt: skip
    """Adam (Kingma and Ba 2015); AMSGrad (Reddi et al. 2018) if `largest` is given."""
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
    np.multiply(grad, grad, out=scratch)
    scratch *= 1 - beta2
    square += scratch
    if largest is not None:
        np.maximum(largest, square, out=largest)
        square = largest
    np.sqrt(square, out=scratch)
    scratch /= (1 - beta2**step) ** 0.5
    scratch += eps
    np.divide(mean, scratch, out=scratch)
    scratch *= lr / (1 - beta1**step)
    param -= scratch


def rmsprop(
    param: np.ndarray, grad: np.ndarray, square: np.ndarray, mean: np.ndarray | None,
    velocity: np.ndarray | None, *, lr: float, alpha: float, eps: float, momentum: float,
) -> None:  # fmt: skip
    """RMSprop (Hinton 2012); centred (Graves 2013) if there is a `mean`."""
    square *= alpha
    square += (1 - alpha) * (grad * grad)
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
        param -= lr * (grad / average)
