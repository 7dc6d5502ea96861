"""Twins of the updates of optimizers: one pass over memory each.  Layer 1; imports numba.

All arrays are vectors of one length, and the options are those of `kernels.optim`.  ``decay`` is
added to the gradient times the parameter; it is asked for at each element because 0 times an
infinite parameter is no number.
"""

from __future__ import annotations

import math

from clew.kernels.compiled.kernel import REORDERED, inline, kernel


@inline
def _decayed(grad, param, decay):
    """The gradient with weight decay."""
    return grad + decay * param if decay != 0 else grad


@inline
def _lerp(start, end, weight):
    """`start` moved towards `end`, computed from the nearer of the two."""
    difference = end - start
    near, far = start + weight * difference, end - difference * (1 - weight)
    return near if weight < 0.5 else far


@kernel("f[::1], f[::1], f[::1]", "f[::1], f, f, f, f, f, f, f, f")
def adam(param, mean, square, grad, decay, shrink, weight, beta2, rest, root, eps, step):
    """Adam; `root` is the square root of the second bias correction, `rest` 1 - beta2."""
    for i in range(param.shape[0]):
        p = param[i] * shrink
        g = _decayed(grad[i], p, decay)
        m = _lerp(mean[i], g, weight)
        v = square[i] * beta2 + rest * g * g
        mean[i] = m
        square[i] = v
        param[i] = p - step * m / (math.sqrt(v) / root + eps)


@kernel("f[::1], f[::1], f[::1], f[::1]", "f[::1], f, f, f, f, f, f, f, f")
def amsgrad(
    param, mean, square, largest, grad, decay, shrink, weight, beta2, rest, root, eps, step
):
    """Adam by the largest `square` so far."""
    for i in range(param.shape[0]):
        p = param[i] * shrink
        g = _decayed(grad[i], p, decay)
        m = _lerp(mean[i], g, weight)
        v = square[i] * beta2 + rest * g * g
        mean[i] = m
        square[i] = v
        top = largest[i]
        top = v if v > top or v != v else top
        largest[i] = top
        param[i] = p - step * m / (math.sqrt(top) / root + eps)


@kernel("f[::1]", "f[::1], f, f")
def sgd(param, grad, decay, lr):
    """Gradient descent."""
    for i in range(param.shape[0]):
        p = param[i]
        param[i] = p - lr * _decayed(grad[i], p, decay)


@kernel("f[::1], f[::1]", "f[::1], f, f, f, f, boolean")
def sgd_momentum(param, velocity, grad, decay, lr, momentum, share, nesterov):
    """Gradient descent with momentum; `share` is 1 - dampening."""
    for i in range(param.shape[0]):
        p = param[i]
        g = _decayed(grad[i], p, decay)
        v = velocity[i] * momentum + share * g
        velocity[i] = v
        ahead = g + momentum * v
        param[i] = p - lr * (ahead if nesterov else v)


@kernel("f[::1], f[::1]", "f[::1], f, f, f, f, f")
def rmsprop(param, square, grad, decay, lr, alpha, rest, eps):
    """RMSprop; `rest` is 1 - alpha."""
    for i in range(param.shape[0]):
        p = param[i]
        g = _decayed(grad[i], p, decay)
        v = square[i] * alpha + rest * g * g
        square[i] = v
        param[i] = p - lr * g / (math.sqrt(v) + eps)


@kernel("f[::1], f[::1], f[::1]", "f[::1], f, f, f, f, f, f")
def rmsprop_momentum(param, square, velocity, grad, decay, lr, alpha, rest, eps, momentum):
    """RMSprop with momentum."""
    for i in range(param.shape[0]):
        p = param[i]
        g = _decayed(grad[i], p, decay)
        v = square[i] * alpha + rest * g * g
        square[i] = v
        u = velocity[i] * momentum + g / (math.sqrt(v) + eps)
        velocity[i] = u
        param[i] = p - lr * u


@kernel("f[::1], f[::1]", "f[::1], f, f, f")
def adagrad(param, total, grad, decay, step, eps):
    """Adagrad; `step` is the learning rate of this step."""
    for i in range(param.shape[0]):
        p = param[i]
        g = _decayed(grad[i], p, decay)
        t = total[i] + g * g
        total[i] = t
        param[i] = p - step * g / (math.sqrt(t) + eps)


@kernel("f[::1]", "f[::1]", REORDERED)
def norm(out, x):
    """The 2-norm of a vector, into a vector of one element; sums of parts do not lose digits."""
    total = 0.0
    for start in range(0, x.shape[0], 4096):
        part = x[start : start + 4096]
        squares = x.dtype.type(0)
        for i in range(part.shape[0]):
            squares += part[i] * part[i]
        total += squares
    out[0] = math.sqrt(total)
