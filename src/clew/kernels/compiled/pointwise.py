"""Twins of elementwise formulas: one pass over memory.  Layer 1; imports numba.

Their NumPy references, which say what they compute, are the functions that `pointwise` decorates
with their names.  Arrays have the same number of elements (N,).  Constants are made of the arrays'
type, since with others everything would be computed in float64.
"""

from __future__ import annotations

import math

import numpy as np

from clew.kernels.compiled import scalar
from clew.kernels.compiled.kernel import EXACT, kernel

_unary = kernel("f[::1]", "f[::1]")
_binary = kernel("f[::1]", "f[::1], f[::1]")

# -- smooth activations


@_unary
def sigmoid(out, x):
    for i in range(out.shape[0]):
        out[i] = scalar.sigmoid(x[i])


@_unary
def log_sigmoid(out, x):
    zero = x.dtype.type(0)
    for i in range(out.shape[0]):
        low = zero if x[i] > zero else x[i]
        out[i] = low - scalar.log1p(scalar.exp(-abs(x[i])))


@_unary
def silu(out, x):
    one = x.dtype.type(1)
    for i in range(out.shape[0]):
        out[i] = x[i] / (one + scalar.exp(-x[i]))


@_unary
def mish(out, x):
    two, large = x.dtype.type(2), x.dtype.type(20)
    for i in range(out.shape[0]):
        e = scalar.exp(large if x[i] > large else x[i])
        grown = e * (e + two)
        out[i] = x[i] * (grown / (grown + two))


@kernel("f[::1]", "f[::1], f, f")
def softplus(out, x, beta, threshold):
    for i in range(out.shape[0]):
        scaled = x[i] * beta
        curved = scalar.log1p(scalar.exp(scaled)) / beta
        out[i] = x[i] if scaled > threshold else curved


@_unary
def gelu(out, x):
    half, one, root = x.dtype.type(0.5), x.dtype.type(1), x.dtype.type(math.sqrt(0.5))
    for i in range(out.shape[0]):
        out[i] = x[i] * (half * (one + scalar.erf(x[i] * root)))


@_unary
def gelu_tanh(out, x):
    half, one = x.dtype.type(0.5), x.dtype.type(1)
    root, cubic = x.dtype.type(math.sqrt(2 / math.pi)), x.dtype.type(0.044715)
    for i in range(out.shape[0]):
        t = scalar.tanh(root * x[i] * (one + cubic * x[i] * x[i]))
        out[i] = half * x[i] * (one + t)


@kernel("f[::1]", "f[::1], f, f, f")
def elu(out, x, alpha, scale, input_scale):
    zero, factor = x.dtype.type(0), alpha * scale
    for i in range(out.shape[0]):
        negative, positive = (x[i], zero) if x[i] < zero else (zero, x[i])
        out[i] = factor * scalar.expm1(negative * input_scale) + scale * positive


# -- and their gradients


@_binary
def sigmoid_backward(out, grad, y):
    one = y.dtype.type(1)
    for i in range(out.shape[0]):
        out[i] = (one - y[i]) * grad[i] * y[i]


@_binary
def tanh_backward(out, grad, y):
    one = y.dtype.type(1)
    for i in range(out.shape[0]):
        out[i] = grad[i] * (one - y[i] * y[i])


@_binary
def log_sigmoid_backward(out, grad, x):
    one = x.dtype.type(1)
    for i in range(out.shape[0]):
        out[i] = grad[i] / (one + scalar.exp(x[i]))


@_binary
def silu_backward(out, grad, x):
    one = x.dtype.type(1)
    for i in range(out.shape[0]):
        s = scalar.sigmoid(x[i])
        out[i] = grad[i] * (s * (one + x[i] * (one - s)))


@_binary
def mish_backward(out, grad, x):
    f = x.dtype.type
    zero, one, two, four, large = f(0), f(1), f(2), f(4), f(20)
    for i in range(out.shape[0]):
        low = large if x[i] > large else x[i]
        e = scalar.exp(low)
        grown = e * (e + two)
        below = one / (grown + two)
        bend = four * (grown + one) * below * below * scalar.sigmoid(x[i]) * low
        # Nothing is added but nan at infinity, as PyTorch has it.
        out[i] = grad[i] * (bend + grown * below + x[i] * zero)


@kernel("f[::1]", "f[::1], f[::1], f, f")
def softplus_backward(out, grad, x, beta, threshold):
    for i in range(out.shape[0]):
        scaled = x[i] * beta
        curved = grad[i] * scalar.sigmoid(scaled)
        out[i] = grad[i] if scaled > threshold else curved


@_binary
def gelu_backward(out, grad, x):
    half, one, root = x.dtype.type(0.5), x.dtype.type(1), x.dtype.type(math.sqrt(0.5))
    height = x.dtype.type(1 / math.sqrt(2 * math.pi))
    for i in range(out.shape[0]):
        cdf = half * (one + scalar.erf(x[i] * root))
        pdf = height * scalar.exp(-half * x[i] * x[i])
        out[i] = grad[i] * (cdf + x[i] * pdf)


@_binary
def gelu_tanh_backward(out, grad, x):
    f = x.dtype.type
    half, one, cubic = f(0.5), f(1), f(0.044715)
    root, slope = f(math.sqrt(2 / math.pi)), f(3 * 0.044715 * math.sqrt(2 / math.pi))
    for i in range(out.shape[0]):
        square = x[i] * x[i]
        t = scalar.tanh(root * x[i] * (one + cubic * square))
        bend = x[i] * (slope * square + root) * (one - t * t)
        out[i] = grad[i] * (half * (bend + t + one))


@kernel("f[::1]", "f[::1], f[::1], f, f, f, boolean")
def elu_backward(out, grad, x, alpha, scale, input_scale, is_result):
    zero, factor = x.dtype.type(0), alpha * scale
    if is_result:
        for i in range(out.shape[0]):
            slope = (x[i] + factor) * input_scale
            out[i] = grad[i] * (slope if x[i] <= zero else scale)
    else:
        for i in range(out.shape[0]):
            slope = scalar.exp(x[i] * input_scale) * (factor * input_scale)
            out[i] = grad[i] * (slope if x[i] <= zero else scale)


# -- activations made of straight pieces


@_unary
def relu(out, x):
    zero = x.dtype.type(0)
    for i in range(out.shape[0]):
        out[i] = zero if x[i] < zero else x[i]


@kernel("f[::1]")
def relu_in_place(x):
    zero = x.dtype.type(0)
    for i in range(x.shape[0]):
        x[i] = zero if x[i] < zero else x[i]


@kernel("f[::1]", "f[::1], f[::1], f")
def threshold_backward(out, grad, x, threshold):
    zero = x.dtype.type(0)
    for i in range(out.shape[0]):
        out[i] = zero if x[i] <= threshold else grad[i]


@kernel("f[::1]", "f[::1], f")
def leaky_relu(out, x, negative_slope):
    zero = x.dtype.type(0)
    for i in range(out.shape[0]):
        low = x[i] * negative_slope
        out[i] = x[i] if x[i] > zero else low


@kernel("f[::1]", "f[::1], f[::1], f")
def leaky_relu_backward(out, grad, x, negative_slope):
    zero, one = x.dtype.type(0), x.dtype.type(1)
    for i in range(out.shape[0]):
        out[i] = grad[i] * (one if x[i] > zero else negative_slope)


@kernel("f[::1]", "f[::1], boolean[::1]")
def keep_where(out, x, mask):
    zero = x.dtype.type(0)
    for i in range(out.shape[0]):
        out[i] = x[i] if mask[i] else zero


@kernel("f[::1]", "f[::1], boolean[::1], f")
def scale_elsewhere(out, x, mask, factor):
    one = x.dtype.type(1)
    for i in range(out.shape[0]):
        out[i] = x[i] * (one if mask[i] else factor)


@kernel("f[::1]", "f[::1], f, f")
def hardtanh(out, x, low, high):
    for i in range(out.shape[0]):
        c = low if x[i] < low else x[i]
        out[i] = high if c > high else c


@kernel("f[::1]", "f[::1], f[::1], f, f")
def hardtanh_backward(out, grad, x, min_val, max_val):
    zero = x.dtype.type(0)
    for i in range(out.shape[0]):
        kept = zero if x[i] <= min_val else grad[i]
        out[i] = zero if x[i] >= max_val else kept


@_unary
def hardsigmoid(out, x):
    zero, three, six = x.dtype.type(0), x.dtype.type(3), x.dtype.type(6)
    for i in range(out.shape[0]):
        c = x[i] + three
        c = zero if c < zero else c
        out[i] = (six if c > six else c) / six


@_binary
def hardsigmoid_backward(out, grad, x):
    zero, three, six = x.dtype.type(0), x.dtype.type(3), x.dtype.type(6)
    for i in range(out.shape[0]):
        out[i] = grad[i] / six if abs(x[i]) < three else zero


@_unary
def hardswish(out, x):
    zero, three, six = x.dtype.type(0), x.dtype.type(3), x.dtype.type(6)
    for i in range(out.shape[0]):
        c = x[i] + three
        c = zero if c < zero else c
        out[i] = x[i] * (six if c > six else c) / six


@_binary
def hardswish_backward(out, grad, x):
    f = x.dtype.type
    zero, half, one, three = f(0), f(0.5), f(1), f(3)
    for i in range(out.shape[0]):
        slope = x[i] / three + half
        slope = slope if x[i] < three else one
        out[i] = grad[i] * (zero if x[i] <= -three else slope)


@kernel("f[::1]", "f[::1], f")
def softshrink(out, x, lambd):
    for i in range(out.shape[0]):
        c = -lambd if x[i] < -lambd else x[i]
        out[i] = x[i] - (lambd if c > lambd else c)


@kernel("f[::1]", "f[::1], f[::1], f")
def shrink_backward(out, grad, x, lambd):
    zero = x.dtype.type(0)
    for i in range(out.shape[0]):
        out[i] = zero if abs(x[i]) <= lambd else grad[i]


# -- functions of one number and of several


@kernel("f[::1]", "f[::1]", EXACT - {"arcp"})
def rsqrt(out, x):
    one = x.dtype.type(1)  # with arcp LLVM takes an approximation, which is wrong for denormals
    for i in range(out.shape[0]):
        out[i] = one / math.sqrt(x[i])


@_unary
def sign(out, x):
    zero, one = x.dtype.type(0), x.dtype.type(1)
    for i in range(out.shape[0]):
        positive = one if x[i] > zero else zero
        out[i] = -one if x[i] < zero else positive


@_unary
def frac(out, x):
    for i in range(out.shape[0]):
        out[i] = x[i] - np.trunc(x[i])


@_unary
def erf(out, x):
    for i in range(out.shape[0]):
        out[i] = scalar.erf(x[i])


@kernel("f[::1]", "f[::1], f[::1], f")
def lerp_number(out, x, end, weight):
    half, one = x.dtype.type(0.5), x.dtype.type(1)
    if abs(weight) < half:
        for i in range(out.shape[0]):
            out[i] = x[i] + weight * (end[i] - x[i])
    else:
        for i in range(out.shape[0]):
            out[i] = end[i] - (end[i] - x[i]) * (one - weight)


@kernel("f[::1]", "f[::1], f[::1], f[::1]")
def lerp(out, x, end, weight):
    half, one = x.dtype.type(0.5), x.dtype.type(1)
    for i in range(out.shape[0]):
        difference = end[i] - x[i]
        forwards = x[i] + weight[i] * difference
        backwards = end[i] - difference * (one - weight[i])
        out[i] = forwards if abs(weight[i]) < half else backwards


@kernel("f[::1]", "f[::1], f[::1], f[::1], f")
def addcmul(out, x, first, second, value):
    for i in range(out.shape[0]):
        out[i] = x[i] + first[i] * value * second[i]


@kernel("f[::1]", "f[::1], f[::1], f[::1], f")
def addcdiv(out, x, first, second, value):
    for i in range(out.shape[0]):
        out[i] = x[i] + first[i] * value / second[i]


@kernel("f[::1]", "f[::1], f[::1], f")
def add_scaled(out, x, y, alpha):
    for i in range(out.shape[0]):
        out[i] = x[i] + y[i] * alpha


@kernel("f[::1]", "f[::1], f")
def add_scaled_in_place(x, y, alpha):
    for i in range(x.shape[0]):
        x[i] += y[i] * alpha


@_binary
def logaddexp(out, x, y):
    ln2 = x.dtype.type(math.log(2))
    for i in range(out.shape[0]):
        high, low = (x[i], y[i]) if x[i] > y[i] else (y[i], x[i])
        apart = high + scalar.log1p(scalar.exp(low - high))
        out[i] = high + ln2 if x[i] == y[i] else apart
