"""Softmax, its logarithm, and log-sum-exp. Imports NumPy and sibling kernels.

The maximum is subtracted before anything is raised to the exponential, so large numbers do not
overflow. Half precision is computed in float32. Results are contiguous, as PyTorch's are.
"""

import numpy as np
from numpy.typing import NDArray

from .half import narrow, widen


def softmax(x: NDArray, dim: int) -> NDArray:
    """exp(x) / sum(exp(x)) along `dim`; a slice that holds +inf or only -inf gives NaN."""
    if x.size == 0:
        return x.copy()
    out = _below_maximum(x, dim)
    np.exp(out, out=out)
    out /= _sum(out, dim)
    return narrow(out.reshape(x.shape), x.dtype)


def softmax_backward(grad: NDArray, result: NDArray, dim: int) -> NDArray:
    """Gradient of `softmax` from its result: result * (grad - sum(grad * result))."""
    g, y = _as_lines(grad), _as_lines(result)
    out = g * y
    np.subtract(g, _sum(out, dim), out=out)
    out *= y
    return narrow(out.reshape(grad.shape), grad.dtype)


def log_softmax(x: NDArray, dim: int) -> NDArray:
    """x - log(sum(exp(x))) along `dim`."""
    if x.size == 0:
        return x.copy()
    out = _below_maximum(x, dim)
    out -= np.log(_sum(np.exp(out), dim))
    return narrow(out.reshape(x.shape), x.dtype)


def log_softmax_backward(grad: NDArray, result: NDArray, dim: int) -> NDArray:
    """Gradient of `log_softmax` from its result: grad - exp(result) * sum(grad)."""
    g = _as_lines(grad)
    out = np.exp(_as_lines(result))
    out *= _sum(g, dim)
    np.subtract(g, out, out=out)
    return narrow(out.reshape(grad.shape), grad.dtype)


def logsumexp(x: NDArray, dims: tuple[int, ...], keepdim: bool) -> NDArray:
    """log(sum(exp(x))) over `dims`: -inf where all is -inf or nothing there, +inf at any +inf."""
    wide = _as_lines(x)
    maximum = wide.max(axis=dims, keepdims=True, initial=-np.inf)
    # An infinite maximum would turn into inf - inf.
    maximum = np.where(np.isinf(maximum), 0, maximum)
    out = np.log(np.exp(wide - maximum).sum(axis=dims, keepdims=True)) + maximum
    return narrow(out if keepdim and x.ndim else out.squeeze(dims), x.dtype)


def _as_lines(x: NDArray) -> NDArray:
    """`x` contiguous, with at least one dimension, half precision widened."""
    return np.ascontiguousarray(widen(x))


def _below_maximum(x: NDArray, dim: int) -> NDArray:
    x = _as_lines(x)
    return x - np.maximum.reduce(x, axis=dim, keepdims=True)


def _sum(x: NDArray, dim: int) -> NDArray:
    return np.add.reduce(x, axis=dim, keepdims=True)
