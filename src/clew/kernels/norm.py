"""Layer norm, group norm and RMS norm: normalisation within one sample.

All three see their input as rows that are normalised one by one. Imports NumPy and sibling
kernels. Half precision is computed in float32; statistics have the dtype of the weight, or else
of the input.
"""

from math import prod

import numpy as np
from numpy.typing import NDArray

from .half import narrow, widen

Ints = tuple[int, ...]
Gradients = tuple[NDArray | None, NDArray | None, NDArray | None]


def layer_norm(
    x: NDArray, normalized_shape: Ints, weight: NDArray | None, bias: NDArray | None, eps: float
) -> tuple[NDArray, NDArray, NDArray]:
    """Normalise over the trailing dimensions; return the output, the means and 1 / sqrt(var + eps).

    Weight and bias have shape `normalized_shape`; the statistics have the shape of `x` with ones
    for the normalised dimensions. Raises RuntimeError if the shapes do not fit.
    """
    _check_trailing(x, normalized_shape, weight, bias)
    out, mean, rstd = _normalise(_rows(x, normalized_shape), eps)
    _affine(out, _flat(weight), _flat(bias))
    shape = (*x.shape[: x.ndim - len(normalized_shape)], *(1,) * len(normalized_shape))
    dtype = x.dtype if weight is None else weight.dtype
    return (
        narrow(out.reshape(x.shape), x.dtype),
        narrow(mean.reshape(shape), dtype),
        narrow(rstd.reshape(shape), dtype),
    )


def layer_norm_backward(
    grad: NDArray,
    x: NDArray,
    normalized_shape: Ints,
    mean: NDArray,
    rstd: NDArray,
    weight: NDArray | None,
    need: tuple[bool, bool, bool] = (True, True, True),
) -> Gradients:
    """Gradients of input, weight and bias; None for those that `need` does not ask for."""
    g, rows = _rows(grad, normalized_shape), _rows(x, normalized_shape)
    rstd = widen(rstd).reshape(-1, 1)
    normalised = (rows - widen(mean).reshape(-1, 1)) * rstd
    dtype = x.dtype if weight is None else weight.dtype
    grad_x = grad_weight = grad_bias = None
    if need[1]:
        total = np.einsum("md,md->d", g, normalised)
        grad_weight = narrow(total.reshape(normalized_shape), dtype)
    if need[2]:
        grad_bias = narrow(g.sum(axis=0).reshape(normalized_shape), dtype)
    if need[0]:
        scaled = g if weight is None else g * widen(weight).reshape(-1)
        grad_x = _normalise_backward(scaled, normalised, rstd)
        grad_x = narrow(grad_x.reshape(x.shape), x.dtype)
    return grad_x, grad_weight, grad_bias


def group_norm(
    x: NDArray, groups: int, weight: NDArray | None, bias: NDArray | None, eps: float
) -> tuple[NDArray, NDArray, NDArray]:
    """Normalise groups of channels of `x` (N, C, *size); also return means and 1 / sqrt(var + eps).

    Weight and bias have shape (C,), the statistics (N, groups). Raises RuntimeError if the shapes
    do not fit.
    """
    _check_groups(x, groups, weight, bias)
    batch, channels = x.shape[:2]
    out, mean, rstd = _normalise(_group_rows(x, groups), eps)
    out = out.reshape(batch, channels, prod(x.shape[2:]))
    _affine(out, _column(weight), _column(bias))
    dtype = x.dtype if weight is None else weight.dtype
    return (
        narrow(out.reshape(x.shape), x.dtype),
        narrow(mean.reshape(batch, groups), dtype),
        narrow(rstd.reshape(batch, groups), dtype),
    )


def group_norm_backward(
    grad: NDArray,
    x: NDArray,
    groups: int,
    mean: NDArray,
    rstd: NDArray,
    weight: NDArray | None,
    need: tuple[bool, bool, bool] = (True, True, True),
) -> Gradients:
    """Gradients of input, weight and bias; None for those that `need` does not ask for."""
    images = (*x.shape[:2], prod(x.shape[2:]))
    g = widen(grad).reshape(images)
    rstd = widen(rstd).reshape(-1, 1)
    normalised = (_group_rows(x, groups) - widen(mean).reshape(-1, 1)) * rstd
    dtype = x.dtype if weight is None else weight.dtype
    grad_x = grad_weight = grad_bias = None
    if need[1]:
        grad_weight = narrow(np.einsum("ncl,ncl->c", g, normalised.reshape(images)), dtype)
    if need[2]:
        grad_bias = narrow(g.sum(axis=(0, 2)), dtype)
    if need[0]:
        scaled = g if weight is None else g * _column(widen(weight))
        grad_x = _normalise_backward(scaled.reshape(normalised.shape), normalised, rstd)
        grad_x = narrow(grad_x.reshape(x.shape), x.dtype)
    return grad_x, grad_weight, grad_bias


def rms_norm(
    x: NDArray, normalized_shape: Ints, weight: NDArray | None, eps: float | None
) -> tuple[NDArray, NDArray]:
    """Divide by the root mean square over the trailing dimensions; also return its reciprocal.

    Without `eps` it is the machine epsilon of the dtype that is computed in.
    """
    _check_trailing(x, normalized_shape, weight, None, lead="")
    rows = _rows(x, normalized_shape)
    if eps is None:
        eps = float(np.finfo(rows.dtype).eps)
    rstd = 1 / np.sqrt(_mean_product(rows, rows) + rows.dtype.type(eps))
    out = rows * rstd
    _affine(out, _flat(weight), None)
    shape = (*x.shape[: x.ndim - len(normalized_shape)], *(1,) * len(normalized_shape))
    return narrow(out.reshape(x.shape), x.dtype), rstd.reshape(shape)


def rms_norm_backward(
    grad: NDArray,
    x: NDArray,
    normalized_shape: Ints,
    rstd: NDArray,
    weight: NDArray | None,
    need: tuple[bool, bool] = (True, True),
) -> tuple[NDArray | None, NDArray | None]:
    """Gradients of input and weight; None for those that `need` does not ask for."""
    g, rows = _rows(grad, normalized_shape), _rows(x, normalized_shape)
    rstd = widen(rstd).reshape(-1, 1)
    normalised = rows * rstd
    grad_x = grad_weight = None
    if need[1] and weight is not None:
        total = np.einsum("md,md->d", g, normalised)
        grad_weight = narrow(total.reshape(normalized_shape), weight.dtype)
    if need[0]:
        scaled = g if weight is None else g * widen(weight).reshape(-1)
        grad_x = (scaled - normalised * _mean_product(scaled, normalised)) * rstd
        grad_x = narrow(grad_x.reshape(x.shape), x.dtype)
    return grad_x, grad_weight


def _rows(x: NDArray, normalized_shape: Ints) -> NDArray:
    """One row for each thing to normalise, half precision widened."""
    return widen(x).reshape(prod(x.shape[: x.ndim - len(normalized_shape)]), prod(normalized_shape))


def _group_rows(x: NDArray, groups: int) -> NDArray:
    batch, channels = x.shape[:2]
    return widen(x).reshape(batch * groups, channels // groups * prod(x.shape[2:]))


def _flat(values: NDArray | None) -> NDArray | None:
    return None if values is None else values.reshape(-1)


def _column(values: NDArray | None) -> NDArray | None:
    return None if values is None else values[:, None]


def _mean(rows: NDArray) -> NDArray:
    return np.add.reduce(rows, axis=1, keepdims=True) / max(1, rows.shape[1])


def _mean_product(a: NDArray, b: NDArray) -> NDArray:
    return np.einsum("md,md->m", a, b)[:, None] / a.shape[1]


def _normalise(rows: NDArray, eps: float) -> tuple[NDArray, NDArray, NDArray]:
    """Each row with mean 0 and variance 1 (a new array), its mean and its 1 / sqrt(var + eps)."""
    mean = _mean(rows)
    out = rows - mean
    rstd = 1 / np.sqrt(_mean_product(out, out) + rows.dtype.type(eps))
    out *= rstd
    return out, mean, rstd


def _normalise_backward(grad: NDArray, normalised: NDArray, rstd: NDArray) -> NDArray:
    """Gradient of `_normalise`'s rows; overwrites `normalised`.

    It is rstd * (grad - mean(grad) - x' * mean(grad * x')) with x' normalised.
    """
    normalised *= -_mean_product(grad, normalised)
    normalised += grad
    normalised -= _mean(grad)
    normalised *= rstd
    return normalised


def _affine(out: NDArray, weight: NDArray | None, bias: NDArray | None) -> None:
    """Multiply and add in place."""
    if weight is not None:
        out *= widen(weight)
    if bias is not None:
        out += widen(bias)


def _check_trailing(
    x: NDArray,
    normalized_shape: Ints,
    weight: NDArray | None,
    bias: NDArray | None,
    lead: str = ", ",
) -> None:
    shape = list(normalized_shape)
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least "
            "one element, but got normalized_shape = []"
        )
    for name, values in (("weight", weight), ("bias", bias)):
        if values is not None and values.shape != normalized_shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of "
                f"shape {list(values.shape)} and normalized_shape = {shape}"
            )
    if x.ndim < len(shape) or x.shape[x.ndim - len(shape) :] != normalized_shape:
        raise RuntimeError(
            f"Given normalized_shape={shape}, expected input with shape "
            f"[*{lead}{', '.join(map(str, shape))}], "
            f"but got input of size{list(x.shape)}"
        )


def _check_groups(x: NDArray, groups: int, weight: NDArray | None, bias: NDArray | None) -> None:
    if x.shape[1] % groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input "
            f"of shape {list(x.shape)} and num_groups={groups}"
        )
    for name, values in (("weight", weight), ("bias", bias)):
        if values is not None and values.shape != (x.shape[1],):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in "
                f"input, but got {name} of shape {list(values.shape)} and input of shape "
                f"{list(x.shape)}"
            )
