"""Softmax and its logarithm, and their derivatives as ops of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.kernels import softmax as kernels
from clew.op import op
from clew.ops.checks import floating_only
from clew.ops.rules import wrap_dim


def _check(x: Any, dim: int, name: str) -> int:
    d = wrap_dim(dim, x.ndim)
    if x.dtype.kind not in "fV":
        floating_only(x, f"{name}{'_lastdim' if d >= x.ndim - 1 else ''}_kernel_impl")
    return d


@op("softmax(self; dim)", publish=(), jvp="elementwise")
def softmax(x: Any, *, dim: int) -> Any:
    """``exp(self) / sum(exp(self))`` along `dim`.

    Raises:
        IndexError: there is no such dimension.
        NotImplementedError: the tensor is not of real floating type.
    """
    return kernels.softmax(x, _check(x, dim, "softmax"))


@softmax.grad("self")
def _(F: Any, grad: Any, result: Any, *, dim: int) -> Any:
    return F.softmax_backward(grad, result, dim=dim)


@op("safe_softmax(self; dim)", publish=(), jvp="elementwise")
def safe_softmax(x: Any, *, dim: int) -> Any:
    """`softmax`, but 0 along lines that hold only -inf."""
    d = _check(x, dim, "softmax")
    out = kernels.softmax(x, d)
    if out.size:
        nothing = np.isneginf(x.max(axis=d, keepdims=True)) if x.ndim else np.isneginf(x)
        out[np.broadcast_to(nothing, out.shape)] = 0
    return out


@safe_softmax.grad("self")
def _(F: Any, grad: Any, result: Any, *, dim: int) -> Any:
    return F.softmax_backward(grad, result, dim=dim)


@op("softmax_backward(grad_output, output; dim)", publish=(), node="SoftmaxBackwardDataBackward0")
def softmax_backward(grad: Any, y: Any, *, dim: int) -> Any:
    """``output * (grad_output - sum(grad_output * output))``."""
    return kernels.softmax_backward(grad, y, wrap_dim(dim, y.ndim))


@softmax_backward.grad("grad_output")
def _(F: Any, grad: Any, output: Any, *, dim: int) -> Any:
    return F.softmax_backward(grad, output, dim=dim)


@softmax_backward.grad("output")
def _(F: Any, grad: Any, grad_output: Any, output: Any, *, dim: int) -> Any:
    inner = F.sum(grad_output * output, dim, keepdim=True)
    return grad * (grad_output - inner) - grad_output * F.sum(grad * output, dim, keepdim=True)


@op("log_softmax(self; dim)", publish=())
def log_softmax(x: Any, *, dim: int) -> Any:
    """``self - log(sum(exp(self)))`` along `dim`.

    Raises:
        IndexError: there is no such dimension.
        NotImplementedError: the tensor is not of real floating type.
    """
    return kernels.log_softmax(x, _check(x, dim, "log_softmax"))


@log_softmax.grad("self")
def _(F: Any, grad: Any, result: Any, *, dim: int) -> Any:
    return F.log_softmax_backward(grad, result, dim=dim)


@op("log_softmax_backward(grad_output, output; dim)", publish=(),
    node="LogSoftmaxBackwardDataBackward0")  # fmt: skip
def log_softmax_backward(grad: Any, y: Any, *, dim: int) -> Any:
    """``grad_output - exp(output) * sum(grad_output)``."""
    return kernels.log_softmax_backward(grad, y, wrap_dim(dim, y.ndim))


@log_softmax_backward.grad("grad_output")
def _(F: Any, grad: Any, output: Any, *, dim: int) -> Any:
    return grad - F.sum(grad * F.exp(output), dim, keepdim=True)


@log_softmax_backward.grad("output")
def _(F: Any, grad: Any, grad_output: Any, output: Any, *, dim: int) -> Any:
    return -grad * F.exp(output) * F.sum(grad_output, dim, keepdim=True)
