"""Twins of batch norm and its gradients.  Layer 1; imports numba.

Arrays (N, C, L) hold L numbers of a channel side by side.  Those of shape (N, C) have functions of
their own, ``.._flat``, whose loops run over channels.

Memory is read in its order: sums of each channel of each image first, (N, C) in float64; then what
all images together make of them; then each number again, for the result.  So images can be shared
among threads, and no sum depends on how many there are.  (The flat functions share channels, and
their sums have shape (1, C).)
"""

from __future__ import annotations

import math

import numpy as np

from clew.kernels.compiled.kernel import inline, inline_reordered, kernel

PART = 4096
"""So many numbers are added up in the type of the input, all else in float64."""


@inline_reordered
def _total(row):
    total = row.dtype.type(0)
    for k in range(row.shape[0]):
        total += row[k]
    return np.float64(total)


@inline_reordered
def _squares(row, centre):
    total = row.dtype.type(0)
    for k in range(row.shape[0]):
        distance = row[k] - centre
        total += distance * distance
    return np.float64(total)


@inline_reordered
def _products(row, other, centre):
    total, products = row.dtype.type(0), row.dtype.type(0)
    for k in range(row.shape[0]):
        total += row[k]
        products += row[k] * (other[k] - centre)
    return np.float64(total), np.float64(products)


# To take parts of a short row would take as long as to add it up.


@inline
def total_of(row):
    """The sum of a row, in float64."""
    if row.shape[0] <= PART:
        return _total(row)
    total = 0.0
    for start in range(0, row.shape[0], PART):
        total += _total(row[start : start + PART])
    return total


@inline
def squares_of(row, centre):
    """The sum of ``(row - centre)**2``, in float64."""
    if row.shape[0] <= PART:
        return _squares(row, centre)
    total = 0.0
    for start in range(0, row.shape[0], PART):
        total += _squares(row[start : start + PART], centre)
    return total


@inline
def products_of(row, other, centre):
    """The sums of `row` and of ``row * (other - centre)``, in float64."""
    if row.shape[0] <= PART:
        return _products(row, other, centre)
    total, products = 0.0, 0.0
    for start in range(0, row.shape[0], PART):
        some, some_products = _products(
            row[start : start + PART], other[start : start + PART], centre
        )
        total += some
        products += some_products
    return total, products


# -- forward


@kernel("f8[:, ::1], f8[:, ::1]", "f[:, :, ::1]")
def moments(mean, squares, x):
    """The mean of each channel of each image, and the sum of squared distances from it."""
    for n in range(x.shape[0]):
        for c in range(x.shape[1]):
            row = x[n, c]
            mean[n, c] = total_of(row) / row.shape[0]
            squares[n, c] = squares_of(row, row.dtype.type(mean[n, c]))


@kernel("f8[:, ::1], f8[:, ::1]", "f[:, ::1], int64, int64")
def moments_flat(mean, squares, x, start, stop):
    """`moments` of (N, C), for the channels from `start` to below `stop`."""
    average, spread = mean[0][start:stop], squares[0][start:stop]
    centre = np.empty(stop - start, x.dtype)
    average[:] = 0
    spread[:] = 0
    for n in range(x.shape[0]):
        row = x[n][start:stop]
        for k in range(row.shape[0]):
            average[k] += row[k]
    for k in range(average.shape[0]):
        average[k] /= x.shape[0]
        centre[k] = average[k]
    for n in range(x.shape[0]):
        row = x[n][start:stop]
        for k in range(row.shape[0]):
            distance = row[k] - centre[k]
            spread[k] += distance * distance


@kernel(
    "f[::1], f[::1], f[::1], f[::1], f[::1]",
    "f8[:, ::1], f8[:, ::1], f[::1], int64, f8, f8",
)
def statistics(
    mean, invstd, scale, running_mean, running_var, means, squares, weight, length, eps, momentum
):
    """Mean, 1 / sqrt(var + eps) and that times `weight`, of each channel, from `moments`.

    Each of these is of `length` numbers.  Running statistics, where not empty, move towards those
    of the batch, the variance with Bessel's correction.
    """
    count = length * means.shape[0]
    for c in range(means.shape[1]):
        centre, spread = 0.0, 0.0
        for n in range(means.shape[0]):
            centre += means[n, c]
        centre /= means.shape[0]
        for n in range(means.shape[0]):
            distance = means[n, c] - centre
            spread += squares[n, c] + length * (distance * distance)
        variance = invstd.dtype.type(spread / count)  # infinite where it is so without twins
        inverse = 1 / math.sqrt(variance + eps)
        mean[c], invstd[c], scale[c] = centre, inverse, inverse * weight[c]
        if running_mean.shape[0]:
            running_mean[c] = (1 - momentum) * running_mean[c] + momentum * centre
        if running_var.shape[0]:
            running_var[c] = (1 - momentum) * running_var[c] + momentum * (spread / (count - 1))


@kernel("f[:, :, ::1]", "f[:, :, ::1], f[::1], f[::1], f[::1]")
def normalise(out, x, mean, scale, bias):
    """(x - mean) * scale + bias, by channel."""
    for n in range(x.shape[0]):
        for c in range(x.shape[1]):
            row, to = x[n, c], out[n, c]
            centre, factor, shift = mean[c], scale[c], bias[c]
            for k in range(row.shape[0]):
                to[k] = (row[k] - centre) * factor + shift


@kernel("f[:, ::1]", "f[:, ::1], f[::1], f[::1], f[::1]")
def normalise_flat(out, x, mean, scale, bias):
    """`normalise` of (N, C)."""
    for n in range(x.shape[0]):
        row, to = x[n], out[n]
        for k in range(row.shape[0]):
            to[k] = (row[k] - mean[k]) * scale[k] + bias[k]


# -- backward


@kernel("f8[:, ::1], f8[:, ::1]", "f[:, :, ::1], f[:, :, ::1], f[::1]")
def products(total, slope, grad, x, mean):
    """The sums of `grad` and of ``grad * (x - mean)`` of each channel of each image."""
    for n in range(x.shape[0]):
        for c in range(x.shape[1]):
            total[n, c], slope[n, c] = products_of(grad[n, c], x[n, c], mean[c])


@kernel("f8[:, ::1], f8[:, ::1]", "f[:, ::1], f[:, ::1], f[::1], int64, int64")
def products_flat(total, slope, grad, x, mean, start, stop):
    """`products` of (N, C), for the channels from `start` to below `stop`."""
    sums, slopes, centre = total[0][start:stop], slope[0][start:stop], mean[start:stop]
    sums[:] = 0
    slopes[:] = 0
    for n in range(x.shape[0]):
        g, row = grad[n][start:stop], x[n][start:stop]
        for k in range(g.shape[0]):
            sums[k] += g[k]
            slopes[k] += g[k] * (row[k] - centre[k])


@kernel("f8[::1], f8[::1], f[::1], f[::1]", "f8[:, ::1], f8[:, ::1], f[::1], int64")
def slopes(total, slope, share, tilt, totals, products, invstd, count):
    """From `products`: the sums of the gradient and of it times x', x' normalised, by channel.

    And what `backward` subtracts for each of `count` numbers: their means, the second by x.
    """
    for c in range(totals.shape[1]):
        some, some_products = 0.0, 0.0
        for n in range(totals.shape[0]):
            some += totals[n, c]
            some_products += products[n, c]
        inverse = invstd[c]
        total[c], slope[c] = some, some_products * inverse
        share[c], tilt[c] = some / count, slope[c] * inverse / count


@kernel("f[:, :, ::1]", "f[:, :, ::1], f[:, :, ::1], f[::1], f[::1], f[::1], f[::1]")
def backward(out, grad, x, mean, share, tilt, scale):
    """scale * (grad - share - (x - mean) * tilt), by channel."""
    for n in range(x.shape[0]):
        for c in range(x.shape[1]):
            g, row, to = grad[n, c], x[n, c], out[n, c]
            centre, less, slope, factor = mean[c], share[c], tilt[c], scale[c]
            for k in range(g.shape[0]):
                to[k] = (g[k] - less - (row[k] - centre) * slope) * factor


@kernel("f[:, ::1]", "f[:, ::1], f[:, ::1], f[::1], f[::1], f[::1], f[::1]")
def backward_flat(out, grad, x, mean, share, tilt, scale):
    """`backward` of (N, C)."""
    for n in range(x.shape[0]):
        g, row, to = grad[n], x[n], out[n]
        for k in range(g.shape[0]):
            to[k] = (g[k] - share[k] - (row[k] - mean[k]) * tilt[k]) * scale[k]
