"""Softmax, its logarithm, and log-sum-exp. Imports NumPy and sibling kernels.

The maximum is subtracted before anything is raised to the exponential, so large numbers do not
overflow. Half precision is computed in float32. Results are contiguous, as PyTorch's are.
"""

from collections.abc import Callable
from math import prod

import numpy as np
from numpy.typing import NDArray

from ..threads import split
from .compiled import Twins, twins
from .half import narrow, widen

# Arrays of fewer elements have no twins, and threads take up no fewer at a time (20 to 40 us).
SMALL = 128
GRAIN = 1 << 16
# Twins do not take fewer columns than this, but a copy in which they are rows.
FEW = 16


def softmax(x: NDArray, dim: int) -> NDArray:
    """exp(x) / sum(exp(x)) along `dim`; a slice that holds +inf or only -inf gives NaN."""
    if x.size == 0:
        return x.copy()
    lines = _as_lines(x)
    out = _by_twin("softmax", dim, lines)
    if out is None:
        out = _below_maximum(lines, dim)
        np.exp(out, out=out)
        out /= _sum(out, dim)
    return narrow(out.reshape(x.shape), x.dtype)


def softmax_backward(grad: NDArray, result: NDArray, dim: int) -> NDArray:
    """Gradient of `softmax` from its result: result * (grad - sum(grad * result))."""
    g, y = _as_lines(grad), _as_lines(result)
    out = _by_twin("softmax_backward", dim, g, y)
    if out is None:
        out = g * y
        np.subtract(g, _sum(out, dim), out=out)
        out *= y
    return narrow(out.reshape(grad.shape), grad.dtype)


def log_softmax(x: NDArray, dim: int) -> NDArray:
    """x - log(sum(exp(x))) along `dim`."""
    if x.size == 0:
        return x.copy()
    lines = _as_lines(x)
    out = _by_twin("log_softmax", dim, lines)
    if out is None:
        out = _below_maximum(lines, dim)
        out -= np.log(_sum(np.exp(out), dim))
    return narrow(out.reshape(x.shape), x.dtype)


def log_softmax_backward(grad: NDArray, result: NDArray, dim: int) -> NDArray:
    """Gradient of `log_softmax` from its result: grad - exp(result) * sum(grad)."""
    g, y = _as_lines(grad), _as_lines(result)
    out = _by_twin("log_softmax_backward", dim, g, y)
    if out is None:
        out = np.exp(y)
        out *= _sum(g, dim)
        np.subtract(g, out, out=out)
    return narrow(out.reshape(grad.shape), grad.dtype)


def logsumexp(x: NDArray, dims: tuple[int, ...], keepdim: bool) -> NDArray:
    """log(sum(exp(x))) over `dims`: -inf where all is -inf or nothing there, +inf at any +inf."""
    wide = _as_lines(x)
    kept = wide.ndim - len(dims)
    fast = _twins(wide)
    if fast is not None and sorted(d % wide.ndim for d in dims) == list(range(kept, wide.ndim)):
        rows = wide.reshape(prod(wide.shape[:kept]), -1)
        out = np.empty(len(rows), wide.dtype)
        _split(fast.logsumexp, out, rows)
        out = out.reshape(wide.shape[:kept] + (1,) * len(dims))
    else:
        maximum = wide.max(axis=dims, keepdims=True, initial=-np.inf)
        # An infinite maximum would turn into inf - inf.
        maximum = np.where(np.isinf(maximum), 0, maximum)
        out = np.log(np.exp(wide - maximum).sum(axis=dims, keepdims=True)) + maximum
    return narrow(out if keepdim and x.ndim else out.squeeze(dims), x.dtype)


def _as_lines(x: NDArray) -> NDArray:
    """`x` contiguous, with at least one dimension, half precision widened."""
    return np.ascontiguousarray(widen(x))


def _twins(x: NDArray) -> Twins | None:
    return twins("softmax", x.dtype) if x.size >= SMALL else None


def _by_twin(name: str, dim: int, *arrays: NDArray) -> NDArray | None:
    """What the twin of this name makes of the lines of an array or two; None: NumPy is to do it."""
    first, last = arrays[0], arrays[-1]
    fast = _twins(first)
    if fast is None or last.dtype != first.dtype or last.shape != first.shape:
        return None
    dim %= first.ndim
    if dim == 1 and first.ndim == 2:
        rows = np.empty_like(first)
        _split(getattr(fast, name), rows, *arrays)
        return rows
    length, columns = first.shape[dim], prod(first.shape[dim + 1 :])
    if 1 < columns < FEW:
        turned = [np.ascontiguousarray(np.moveaxis(a, dim, -1)) for a in arrays]
        out = _by_twin(name, -1, *turned)
        return None if out is None else np.ascontiguousarray(np.moveaxis(out, -1, dim))
    out = np.empty_like(first)
    shape = (-1, length) if columns == 1 else (-1, length, columns)
    twin = getattr(fast, name if columns == 1 else name + "_columns")
    _split(twin, *(a.reshape(shape) for a in (out, *arrays)))
    return out


def _split(twin: Callable[..., None], *arrays: NDArray) -> None:
    """Call a twin for parts of arrays along their first dimension, which it treats one by one."""
    last = arrays[-1]
    if last.size < 2 * GRAIN:
        twin(*arrays)
        return
    grain = max(1, GRAIN * len(last) // last.size)
    split(lambda start, stop: twin(*(a[start:stop] for a in arrays)), len(last), grain)


def _below_maximum(x: NDArray, dim: int) -> NDArray:
    return x - np.maximum.reduce(x, axis=dim, keepdims=True)


def _sum(x: NDArray, dim: int) -> NDArray:
    return np.add.reduce(x, axis=dim, keepdims=True)
