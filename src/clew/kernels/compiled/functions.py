"""Twins of NumPy's functions of one number, (N,) to (N,); see `Shared`.  Layer 1; imports numba."""

from __future__ import annotations

from clew.kernels.compiled import scalar
from clew.kernels.compiled.kernel import kernel

_unary = kernel("f[::1]", "f[::1]")


@_unary
def exp(out, x):
    for i in range(out.shape[0]):
        out[i] = scalar.exp(x[i])


@_unary
def expm1(out, x):
    for i in range(out.shape[0]):
        out[i] = scalar.expm1(x[i])


@_unary
def tanh(out, x):
    for i in range(out.shape[0]):
        out[i] = scalar.tanh(x[i])


@_unary
def log(out, x):
    for i in range(out.shape[0]):
        out[i] = scalar.log(x[i])


@_unary
def log1p(out, x):
    for i in range(out.shape[0]):
        out[i] = scalar.log1p(x[i])


@_unary
def reciprocal(out, x):
    one = x.dtype.type(1)
    for i in range(out.shape[0]):
        out[i] = one / x[i]
