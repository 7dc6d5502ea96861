"""Twins of layer, RMS and group norm, and of their gradients.  Layer 1; imports numba.

A row is what is normalised as one.  It stays in the cache for all of its passes.  Sums of the
numbers of a row are kept in float64, of at most `PART` at a time in the type of the input.
"""

from __future__ import annotations

import math

import numpy as np

from clew.kernels.compiled.batch_norm import PART, products_of, squares_of, total_of
from clew.kernels.compiled.kernel import inline, inline_reordered, kernel


@kernel("f[:, ::1], f[::1], f[::1]", "f[:, ::1], f[::1], f[::1], f8, boolean")
def layer_norm(out, mean, rstd, x, weight, bias, eps, centred):
    """Normalise rows; without `centred` by the root mean square alone, and `mean` becomes 0."""
    for i in range(x.shape[0]):
        row, to = x[i], out[i]
        mean[i] = total_of(row) / row.shape[0] if centred else 0.0
        centre = mean[i]
        scale = x.dtype.type(1 / math.sqrt(squares_of(row, centre) / row.shape[0] + eps))
        rstd[i] = scale
        for j in range(row.shape[0]):
            to[j] = (row[j] - centre) * scale * weight[j] + bias[j]


@inline_reordered
def _weighted_products(grad, weight, row, centre):
    total, products = row.dtype.type(0), row.dtype.type(0)
    for j in range(row.shape[0]):
        scaled = grad[j] * weight[j]
        total += scaled
        products += scaled * (row[j] - centre)
    return np.float64(total), np.float64(products)


@inline
def _weighted_products_of(grad, weight, row, centre):
    """The sums of ``grad * weight`` and of that times ``row - centre``, in float64."""
    if row.shape[0] <= PART:
        return _weighted_products(grad, weight, row, centre)
    total, products = 0.0, 0.0
    for start in range(0, row.shape[0], PART):
        some, some_products = _weighted_products(
            grad[start : start + PART], weight[start : start + PART], row[start : start + PART],
            centre,
        )  # fmt: skip
        total += some
        products += some_products
    return total, products


@kernel("f[:, ::1]", "f[:, ::1], f[:, ::1], f[::1], f[::1], f[::1], boolean")
def layer_norm_backward(out, grad, x, mean, rstd, weight, centred):
    """The gradient of the rows.

    It is rstd * (g - mean(g) - x' * mean(g * x')), with g the gradient times the weight and x'
    normalised; without `centred`, without mean(g).
    """
    for i in range(x.shape[0]):
        g, row, to, centre, scale = grad[i], x[i], out[i], mean[i], rstd[i]
        total, products = _weighted_products_of(g, weight, row, centre)
        share = x.dtype.type(total / row.shape[0] if centred else 0.0)
        tilt = x.dtype.type(products / row.shape[0] * scale * scale)
        for j in range(row.shape[0]):
            to[j] = (g[j] * weight[j] - share - (row[j] - centre) * tilt) * scale


@kernel("f[:, ::1], f[:, ::1]", "f[:, ::1], f[:, ::1], f[::1], f[::1], int64, int64, int64")
def affine_backward(weight, bias, grad, x, mean, rstd, rows, start, stop):
    """Sums of ``grad * x'``, x' normalised, and of `grad`, over `rows` rows each.

    Those from number `start` to below `stop` are written.
    """
    for p in range(start, stop):
        slopes, totals = weight[p], bias[p]
        slopes[:] = 0
        totals[:] = 0
        for i in range(p * rows, min((p + 1) * rows, x.shape[0])):
            g, row, centre, scale = grad[i], x[i], mean[i], rstd[i]
            for j in range(g.shape[0]):
                slopes[j] += g[j] * ((row[j] - centre) * scale)
                totals[j] += g[j]


@kernel("f[:, :, ::1], f[::1], f[::1]", "f[:, :, ::1], f[:, ::1], f[::1], f[::1], f8")
def group_norm(out, mean, rstd, x, rows, weight, bias, eps):
    """Normalise groups of channels: `rows` (M, D), which are `x` (M, D / L, L) too."""
    for i in range(x.shape[0]):
        mean[i] = total_of(rows[i]) / rows.shape[1]
        centre = mean[i]
        inverse = 1 / math.sqrt(squares_of(rows[i], centre) / rows.shape[1] + eps)
        rstd[i] = inverse
        first = i * x.shape[1] % weight.shape[0]
        for c in range(x.shape[1]):
            row, to, shift = x[i, c], out[i, c], bias[first + c]
            scale = x.dtype.type(inverse * weight[first + c])
            for k in range(row.shape[0]):
                to[k] = (row[k] - centre) * scale + shift


@kernel(
    "f[:, :, ::1], f8[:, ::1], f8[:, ::1]",
    "f[:, :, ::1], f[:, :, ::1], f[::1], f[::1], f[::1], boolean",
)
def group_norm_backward(out, total, slope, grad, x, mean, rstd, weight, need_x):
    """The gradient of groups of channels (M, C, L); sums of `grad` and of ``grad * x'``, (M, C)."""
    for i in range(x.shape[0]):
        centre, scale = mean[i], rstd[i]
        first = i * x.shape[1] % weight.shape[0]
        sums, products = 0.0, 0.0
        for c in range(x.shape[1]):
            some, some_products = products_of(grad[i, c], x[i, c], centre)
            total[i, c], slope[i, c] = some, some_products * scale
            sums += some * weight[first + c]
            products += some_products * weight[first + c]
        if need_x:
            count = x.shape[1] * x.shape[2]
            share = x.dtype.type(sums / count)
            tilt = x.dtype.type(products / count * scale * scale)
            for c in range(x.shape[1]):
                g, row, to = grad[i, c], x[i, c], out[i, c]
                factor = weight[first + c]
                for k in range(g.shape[0]):
                    to[k] = (g[k] * factor - share - (row[k] - centre) * tilt) * scale
