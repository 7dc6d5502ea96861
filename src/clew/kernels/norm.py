"""Layer norm, group norm and RMS norm: normalisation within one sample.

All three see their input as rows that are normalised one by one. Imports NumPy and sibling
kernels. Half precision is computed in float32; statistics have the dtype of the weight, or else
of the input.
"""

from math import prod

import numpy as np
from numpy.typing import NDArray

from ..threads import split
from .compiled import Twins, twins
from .half import narrow, widen

Ints = tuple[int, ...]
Gradients = tuple[NDArray | None, NDArray | None, NDArray | None]

# Arrays of fewer elements have no twins, and threads take up no fewer at a time (some 20 us).
SMALL = 512
GRAIN = 1 << 16
# Gradients of weights are added up over at most so many rows at a time, and then over these sums.
ROWS = 512


def layer_norm(
    x: NDArray, normalized_shape: Ints, weight: NDArray | None, bias: NDArray | None, eps: float
) -> tuple[NDArray, NDArray, NDArray]:
    """Normalise over the trailing dimensions; return the output, the means and 1 / sqrt(var + eps).

    Weight and bias have shape `normalized_shape`; the statistics have the shape of `x` with ones
    for the normalised dimensions. Raises RuntimeError if the shapes do not fit.
    """
    _check_trailing(x, normalized_shape, weight, bias)
    rows = _rows(x, normalized_shape)
    if _twins(rows) is not None:
        out, mean, rstd = _normalise_compiled(rows, weight, bias, eps, centred=True)
    else:
        out, mean, rstd = _normalise(rows, eps)
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
    grad_x = grad_weight = grad_bias = None
    if _twins(rows) is not None and g.dtype == rows.dtype:
        grad_x, grad_weight, grad_bias = _backward_compiled(g, rows, mean, rstd, weight, need)
    else:
        rstd = widen(rstd).reshape(-1, 1)
        normalised = (rows - widen(mean).reshape(-1, 1)) * rstd
        if need[1]:
            grad_weight = np.einsum("md,md->d", g, normalised)
        if need[2]:
            grad_bias = g.sum(axis=0)
        if need[0]:
            scaled = g if weight is None else g * widen(weight).reshape(-1)
            grad_x = _normalise_backward(scaled, normalised, rstd)
    dtype = x.dtype if weight is None else weight.dtype
    return (
        None if grad_x is None else narrow(grad_x.reshape(x.shape), x.dtype),
        None if grad_weight is None else narrow(grad_weight.reshape(normalized_shape), dtype),
        None if grad_bias is None else narrow(grad_bias.reshape(normalized_shape), dtype),
    )


def group_norm(
    x: NDArray, groups: int, weight: NDArray | None, bias: NDArray | None, eps: float
) -> tuple[NDArray, NDArray, NDArray]:
    """Normalise groups of channels of `x` (N, C, *size); also return means and 1 / sqrt(var + eps).

    Weight and bias have shape (C,), the statistics (N, groups). Raises RuntimeError if the shapes
    do not fit.
    """
    _check_groups(x, groups, weight, bias)
    batch, channels = x.shape[:2]
    rows = _group_rows(x, groups)
    if _group_twins(rows, x) is not None:
        out, mean, rstd = _normalise_groups_compiled(rows, x.shape, groups, weight, bias, eps)
    else:
        out, mean, rstd = _normalise(rows, eps)
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
    g, rows = widen(grad).reshape(images), _group_rows(x, groups)
    grad_x = grad_weight = grad_bias = None
    if _group_twins(rows, x) is not None and g.dtype == rows.dtype:
        grad_x, grad_weight, grad_bias = _groups_backward_compiled(
            g, rows, groups, mean, rstd, weight, need
        )
    else:
        rstd = widen(rstd).reshape(-1, 1)
        normalised = (rows - widen(mean).reshape(-1, 1)) * rstd
        if need[1]:
            grad_weight = np.einsum("ncl,ncl->c", g, normalised.reshape(images))
        if need[2]:
            grad_bias = g.sum(axis=(0, 2))
        if need[0]:
            scaled = g if weight is None else g * _column(widen(weight))
            grad_x = _normalise_backward(scaled.reshape(normalised.shape), normalised, rstd)
    dtype = x.dtype if weight is None else weight.dtype
    return (
        None if grad_x is None else narrow(grad_x.reshape(x.shape), x.dtype),
        None if grad_weight is None else narrow(grad_weight, dtype),
        None if grad_bias is None else narrow(grad_bias, dtype),
    )


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
    if _twins(rows) is not None:
        out, _, rstd = _normalise_compiled(rows, weight, None, eps, centred=False)
    else:
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
    grad_x = grad_weight = None
    need_weight = need[1] and weight is not None
    if _twins(rows) is not None and g.dtype == rows.dtype:
        grad_x, grad_weight, _ = _backward_compiled(
            g, rows, None, rstd, weight, (need[0], need_weight, False)
        )
    else:
        rstd = widen(rstd).reshape(-1, 1)
        normalised = rows * rstd
        if need_weight:
            grad_weight = np.einsum("md,md->d", g, normalised)
        if need[0]:
            scaled = g if weight is None else g * widen(weight).reshape(-1)
            grad_x = (scaled - normalised * _mean_product(scaled, normalised)) * rstd
    if grad_weight is not None and weight is not None:
        grad_weight = narrow(grad_weight.reshape(normalized_shape), weight.dtype)
    return None if grad_x is None else narrow(grad_x.reshape(x.shape), x.dtype), grad_weight


# -- calls of twins


def _twins(rows: NDArray) -> Twins | None:
    return twins("norm", rows.dtype) if rows.size >= SMALL else None


def _group_twins(rows: NDArray, x: NDArray) -> Twins | None:
    """Twins for `x` (N, C, *size), where there are some numbers of a channel side by side."""
    return _twins(rows) if prod(x.shape[2:]) >= 4 else None


def _normalise_compiled(
    rows: NDArray, weight: NDArray | None, bias: NDArray | None, eps: float, centred: bool
) -> tuple[NDArray, NDArray, NDArray]:
    """The output, the means (0 without `centred`) and 1 / sqrt(var + eps), of each row."""
    count, length = rows.shape
    out, (mean, rstd) = np.empty_like(rows), np.empty((2, count), rows.dtype)
    affine = _vector(weight, 1, length, rows), _vector(bias, 0, length, rows)
    twin = twins("norm", rows.dtype).layer_norm  # type: ignore[union-attr]
    split(
        lambda a, b: twin(out[a:b], mean[a:b], rstd[a:b], rows[a:b], *affine, eps, centred),
        count, max(1, GRAIN // length),
    )  # fmt: skip
    return out, mean, rstd


def _backward_compiled(
    grad: NDArray, rows: NDArray, mean: NDArray | None, rstd: NDArray, weight: NDArray | None,
    need: tuple[bool, bool, bool],
) -> Gradients:  # fmt: skip
    """Gradients of rows, weight and bias; no `mean`: of RMS norm."""
    count, length = rows.shape
    fast: Twins = twins("norm", rows.dtype)  # type: ignore[assignment]
    centre, scale = _vector(mean, 0, count, rows), _vector(rstd, 1, count, rows)
    grad_x = grad_weight = grad_bias = None
    if need[1] or need[2]:
        each = max(1, min(ROWS, GRAIN // length))
        slopes, totals = np.empty((2, -(-count // each), length), rows.dtype)
        split(
            lambda a, b: fast.affine_backward(
                slopes, totals, grad, rows, centre, scale, each, a, b
            ), len(slopes), max(1, GRAIN // (each * length)),
        )  # fmt: skip
        grad_weight = slopes.sum(axis=0) if need[1] else None
        grad_bias = totals.sum(axis=0) if need[2] else None
    if need[0]:
        out, factor = np.empty_like(rows), _vector(weight, 1, length, rows)
        split(
            lambda a, b: fast.layer_norm_backward(
                out[a:b], grad[a:b], rows[a:b], centre[a:b], scale[a:b], factor, mean is not None
            ), count, max(1, GRAIN // length),
        )  # fmt: skip
        grad_x = out
    return grad_x, grad_weight, grad_bias


def _normalise_groups_compiled(
    rows: NDArray, shape: Ints, groups: int, weight: NDArray | None, bias: NDArray | None,
    eps: float,
) -> tuple[NDArray, NDArray, NDArray]:  # fmt: skip
    """`_normalise_compiled` of groups of channels, for `x` of the given shape."""
    batch, channels = shape[:2]
    x = rows.reshape(len(rows), channels // groups, -1)
    out, (mean, rstd) = np.empty_like(x), np.empty((2, len(rows)), rows.dtype)
    affine = _vector(weight, 1, channels, rows), _vector(bias, 0, channels, rows)
    twin = twins("norm", rows.dtype).group_norm  # type: ignore[union-attr]

    def some_images(start: int, stop: int) -> None:
        part = slice(start * groups, stop * groups)
        twin(out[part], mean[part], rstd[part], x[part], rows[part], *affine, eps)

    split(some_images, batch, max(1, GRAIN * batch // rows.size))
    return out, mean, rstd


def _groups_backward_compiled(
    grad: NDArray, rows: NDArray, groups: int, mean: NDArray, rstd: NDArray,
    weight: NDArray | None, need: tuple[bool, bool, bool],
) -> Gradients:  # fmt: skip
    """Gradients of groups of channels; `grad` is (N, C, L)."""
    batch, channels = grad.shape[:2]
    shape = (len(rows), channels // groups, grad.shape[2])
    x, g = rows.reshape(shape), np.ascontiguousarray(grad).reshape(shape)
    out, (totals, slopes) = np.empty_like(x), np.empty((2, *shape[:2]))
    centre, scale = _vector(mean, 0, len(rows), rows), _vector(rstd, 1, len(rows), rows)
    factor, twin = _vector(weight, 1, channels, rows), twins("norm", rows.dtype)

    def some_images(start: int, stop: int) -> None:
        part = slice(start * groups, stop * groups)
        twin.group_norm_backward(  # type: ignore[union-attr]
            out[part], totals[part], slopes[part], g[part], x[part], centre[part], scale[part],
            factor, need[0],
        )  # fmt: skip

    split(some_images, batch, max(1, GRAIN * batch // rows.size))
    return (
        out if need[0] else None,
        slopes.reshape(batch, channels).sum(axis=0) if need[1] else None,
        totals.reshape(batch, channels).sum(axis=0) if need[2] else None,
    )


def _vector(values: NDArray | None, default: float, length: int, rows: NDArray) -> NDArray:
    """A vector as twins take it; full of the default if there is none."""
    if values is None:
        return np.full(length, default, rows.dtype)
    return np.ascontiguousarray(values, rows.dtype).reshape(-1)


# -- arrays by rows


def _rows(x: NDArray, normalized_shape: Ints) -> NDArray:
    """One contiguous row for each thing to normalise, half precision widened."""
    shape = (prod(x.shape[: x.ndim - len(normalized_shape)]), prod(normalized_shape))
    return np.ascontiguousarray(widen(x).reshape(shape))


def _group_rows(x: NDArray, groups: int) -> NDArray:
    batch, channels = x.shape[:2]
    shape = (batch * groups, channels // groups * prod(x.shape[2:]))
    return np.ascontiguousarray(widen(x).reshape(shape))


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
