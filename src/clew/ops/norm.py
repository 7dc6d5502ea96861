"""Batch, layer, group and RMS norm: normalised input, then an affine map.

Each has an op for its gradients (of input, weight and bias together).  The rule of that op, for
the second order, is the same for all of them, see Note [Second order]; they differ in which
elements are normalised together and in how weights lie.

Note [Second order]
    Let x' = (x - mean) * r with r = 1 / sqrt(variance + eps), all means taken over what is
    normalised together.  A cotangent u of x' gives

        P(u) = r * (u - mean(u) - x' * mean(u * x'))

    for x.  With the forward's output w * x' + b and its cotangent g, the gradients are
    gx = P(g * w), gw = sum(g * x'), gb = sum(g).  P is symmetric, so cotangents v, vw, vb of these
    give  w * P(v) + vw * x' + vb  for g  and  sum(g * P(v))  for w.  For x, differentiating x' in P
    gives P of c = -r * (v * mean(g * w * x') + g * w * mean(v * x')), differentiating the factor r
    gives -x' * r * mean(v * gx), and gw gives P(g * vw).  RMS norm lacks the terms mean(...) that
    come from subtracting the mean.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from clew import kernels
from clew.dtypes import scalar_name
from clew.op import op
from clew.ops.checks import floating_only
from clew.ops.layout import contiguous


def _check_types(x: Any, kernel: str, *parameters: Any) -> None:
    """Parameters have the input's type, or single precision with input of half.

    Raises:
        NotImplementedError: the input is not of floating type.
        RuntimeError: a parameter has another type.
    """
    floating_only(x, kernel)
    for p in parameters:
        if p is not None and p.dtype != x.dtype:
            if x.dtype.itemsize == 2 and scalar_name(p.dtype) == "Float":
                continue
            raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")


# -- second order, once for all


class _Normalised(NamedTuple):
    """x' and r of Note [Second order], the dimensions normalised together, and if centred."""

    x: Any
    r: Any
    dims: tuple[int, ...]
    centred: bool


def _normalise(F: Any, x: Any, dims: tuple[int, ...], eps: float, centred: bool) -> _Normalised:
    if centred:
        x = x - F.mean(x, dims, keepdim=True)
    r = F.rsqrt(F.mean(x * x, dims, keepdim=True) + eps)
    return _Normalised(x * r, r, dims, centred)


def _project(F: Any, u: Any, n: _Normalised) -> Any:
    """P of Note [Second order]."""
    inner = u - n.x * F.mean(u * n.x, n.dims, keepdim=True)
    if n.centred:
        inner = inner - F.mean(u, n.dims, keepdim=True)
    return inner * n.r


def _second_order(F: Any, n: _Normalised, g: Any, w: Any, v: Any, vw: Any, vb: Any) -> list[Any]:
    """Gradients of g, x and w from cotangents of gx, gw, gb; those of weights broadcast to x."""
    gw = g if w is None else g * w
    to_g = to_x = to_w = None
    if v is not None:
        projected = _project(F, v, n)
        to_g = projected if w is None else projected * w
        to_w = None if w is None else g * projected
        c = v * F.mean(gw * n.x, n.dims, keepdim=True) + gw * F.mean(v * n.x, n.dims, keepdim=True)
        by_r = n.x * F.mean(v * _project(F, gw, n), n.dims, keepdim=True)
        to_x = _project(F, -n.r * c, n) - by_r * n.r
    if vw is not None:
        to_g = _plus(to_g, vw * n.x)
        to_x = _plus(to_x, _project(F, g * vw, n))
    if vb is not None:
        to_g = _plus(to_g, vb * F.ones_like(g))
    return [to_g, to_x, to_w]


def _plus(x: Any, y: Any) -> Any:
    return y if x is None else x + y


# -- layer norm


@op("native_layer_norm(input, weight=None, bias=None; normalized_shape, eps) -> "
    "output, result1, result2", publish=(), no_grad_outputs=(1, 2))  # fmt: skip
@contiguous
def native_layer_norm(x: Any, weight: Any, bias: Any, *, normalized_shape: Any, eps: float) -> Any:
    """Normalise over the trailing dimensions; also the means and 1 / sqrt(variance + eps)."""
    _check_types(x, "LayerNormKernelImpl", weight, bias)
    return kernels.norm.layer_norm(x, normalized_shape, weight, bias, eps)


@native_layer_norm.grad("input", "weight", "bias")
def _(
    F: Any, grad: Any, input: Any, weight: Any, bias: Any, result1: Any, result2: Any, *,
    normalized_shape: Any, eps: float, need: Any,
) -> Any:  # fmt: skip
    return F.native_layer_norm_backward(
        grad, input, weight, result1, result2,
        normalized_shape=normalized_shape, eps=eps, need=tuple(need),
    )  # fmt: skip


@op("native_layer_norm_backward(grad_output, input, weight=None, mean=None, rstd=None; "
    "normalized_shape, eps, need) -> of_input, of_weight, of_bias", publish=())  # fmt: skip
def native_layer_norm_backward(
    grad: Any, x: Any, weight: Any, mean: Any, rstd: Any, *,
    normalized_shape: Any, eps: float, need: Any,
) -> Any:  # fmt: skip
    """Gradients of `native_layer_norm`."""
    return kernels.norm.layer_norm_backward(grad, x, normalized_shape, mean, rstd, weight, need)


@native_layer_norm_backward.grad("grad_output", "input", "weight")
def _(
    F: Any, grads: Any, grad_output: Any, input: Any, weight: Any, *,
    normalized_shape: Any, eps: float, need: Any,
) -> Any:  # fmt: skip
    dims = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    n = _normalise(F, input, dims, eps, centred=True)
    return _second_order(F, n, grad_output, weight, *grads)


# -- group norm


@op("native_group_norm(input, weight=None, bias=None; group, eps) -> output, result1, result2",
    publish=(), no_grad_outputs=(1, 2))  # fmt: skip
def native_group_norm(x: Any, weight: Any, bias: Any, *, group: int, eps: float) -> Any:
    """Normalise groups of channels; also the means and 1 / sqrt(variance + eps)."""
    _check_types(x, "GroupNormKernelImpl", weight, bias)
    return kernels.norm.group_norm(x, group, weight, bias, eps)


@native_group_norm.grad("input", "weight", "bias")
def _(
    F: Any, grad: Any, input: Any, weight: Any, result1: Any, result2: Any, *,
    group: int, eps: float, need: Any,
) -> Any:  # fmt: skip
    return F.native_group_norm_backward(
        grad, input, weight, result1, result2, group=group, eps=eps, need=tuple(need)
    )


@op("native_group_norm_backward(grad_output, input, weight=None, mean=None, rstd=None; group, "
    "eps, need) -> of_input, of_weight, of_bias", publish=())  # fmt: skip
def native_group_norm_backward(
    grad: Any, x: Any, weight: Any, mean: Any, rstd: Any, *, group: int, eps: float, need: Any
) -> Any:
    """Gradients of `native_group_norm`."""
    return kernels.norm.group_norm_backward(grad, x, group, mean, rstd, weight, need)


@native_group_norm_backward.grad("grad_output", "input", "weight")
def _(
    F: Any, grads: Any, grad_output: Any, input: Any, weight: Any, *,
    group: int, eps: float, need: Any,
) -> Any:  # fmt: skip
    # As (N, group, C / group, size), in which weights are (group, C / group, 1).
    shape = tuple(input.shape)
    batch, channels = shape[:2]
    split = (batch, group, channels // group, prod(shape[2:]))
    rows, per_channel = (lambda t: F.reshape(t, split)), (group, channels // group, 1)
    n = _normalise(F, rows(input), (2, 3), eps, centred=True)
    v, vw, vb = grads
    to_g, to_x, to_w = _second_order(
        F, n, rows(grad_output), None if weight is None else F.reshape(weight, per_channel),
        None if v is None else rows(v),
        None if vw is None else F.reshape(vw, per_channel),
        None if vb is None else F.reshape(vb, per_channel),
    )  # fmt: skip
    return [
        None if to_g is None else F.reshape(to_g, shape),
        None if to_x is None else F.reshape(to_x, shape),
        None if to_w is None else F.reshape(F.sum(to_w, (0, 3)), (channels,)),
    ]


# -- RMS norm


@op("fused_rms_norm(input, weight=None; normalized_shape, eps) -> output, rstd", publish=(),
    node="FusedRmsNormBackward0", no_grad_outputs=(1,))  # fmt: skip
def fused_rms_norm(x: Any, weight: Any, *, normalized_shape: Any, eps: float) -> Any:
    """Divide by the root mean square over the trailing dimensions; also its reciprocal."""
    floating_only(x, "rms_norm")
    return kernels.norm.rms_norm(x, normalized_shape, weight, eps)


@fused_rms_norm.grad("input", "weight")
def _(
    F: Any, grad: Any, input: Any, weight: Any, rstd: Any, *,
    normalized_shape: Any, eps: float, need: Any,
) -> Any:  # fmt: skip
    return F.fused_rms_norm_backward(
        grad, input, weight, rstd, normalized_shape=normalized_shape, eps=eps, need=tuple(need)
    )


@op("fused_rms_norm_backward(grad_output, input, weight=None, rstd=None; normalized_shape, eps, "
    "need) -> of_input, of_weight", publish=())  # fmt: skip
def fused_rms_norm_backward(
    grad: Any, x: Any, weight: Any, rstd: Any, *, normalized_shape: Any, eps: float, need: Any
) -> Any:
    """Gradients of `fused_rms_norm`."""
    return kernels.norm.rms_norm_backward(grad, x, normalized_shape, rstd, weight, need)


@fused_rms_norm_backward.grad("grad_output", "input", "weight")
def _(
    F: Any, grads: Any, grad_output: Any, input: Any, weight: Any, *,
    normalized_shape: Any, eps: float, need: Any,
) -> Any:  # fmt: skip
    dims = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    n = _normalise(F, input, dims, eps, centred=False)
    v, vw = grads
    return _second_order(F, n, grad_output, weight, v, vw, None)


# -- batch norm


@op("native_batch_norm(input, weight=None, bias=None, running_mean=None, running_var=None; "
    "training, momentum, eps) -> output, result1, result2", publish=("function",),
    no_grad_outputs=(1, 2))  # fmt: skip
def native_batch_norm(
    x: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, *,
    training: bool, momentum: float, eps: float,
) -> Any:  # fmt: skip
    """Normalise each channel; also the batch's means and 1 / sqrt(variance + eps).

    In training it moves the running statistics, where given, towards the batch's, in place: the
    one op that writes to its inputs, and like PyTorch's it leaves their version as it is.
    """
    _check_types(x, "batch_norm", weight, bias, running_mean, running_var)
    return kernels.batch_norm.batch_norm(
        x, weight, bias, running_mean, running_var, training, momentum, eps
    )


@native_batch_norm.grad("input", "weight", "bias")
def _(
    F: Any, grad: Any, input: Any, weight: Any, running_mean: Any, running_var: Any,
    result1: Any, result2: Any, *, training: bool, eps: float, need: Any,
) -> Any:  # fmt: skip
    return F.native_batch_norm_backward(
        grad, input, weight, running_mean, running_var, result1, result2,
        training=training, eps=eps, need=tuple(need),
    )  # fmt: skip


@op("native_batch_norm_backward(grad_output, input, weight=None, running_mean=None, "
    "running_var=None, mean=None, invstd=None; training, eps, need) -> of_input, of_weight, "
    "of_bias", publish=())  # fmt: skip
def native_batch_norm_backward(
    grad: Any, x: Any, weight: Any, running_mean: Any, running_var: Any, mean: Any, invstd: Any,
    *, training: bool, eps: float, need: Any,
) -> Any:  # fmt: skip
    """Gradients of `native_batch_norm`."""
    return kernels.batch_norm.batch_norm_backward(
        grad, x, weight, running_mean, running_var, mean, invstd, training, eps, need
    )


@native_batch_norm_backward.grad("grad_output", "input", "weight")
def _(
    F: Any, grads: Any, grad_output: Any, input: Any, weight: Any, running_mean: Any,
    running_var: Any, *, training: bool, eps: float, need: Any,
) -> Any:  # fmt: skip
    column = (-1,) + (1,) * (input.ndim - 2)
    dims = (0, *range(2, input.ndim))
    v, vw, vb = grads[0], *(None if t is None else F.reshape(t, column) for t in grads[1:])
    w = None if weight is None else F.reshape(weight, column)
    if training:
        n = _normalise(F, input, dims, eps, centred=True)
        to_g, to_x, to_w = _second_order(F, n, grad_output, w, v, vw, vb)
    else:
        r = F.reshape(F.rsqrt(running_var + eps), column)
        mean = F.reshape(running_mean, column)
        to_g, to_x, to_w = _with_fixed_statistics(F, input - mean, r, grad_output, w, v, vw, vb)
    return [to_g, to_x, None if to_w is None else F.sum(to_w, dims)]


def _with_fixed_statistics(
    F: Any, centred: Any, r: Any, g: Any, w: Any, v: Any, vw: Any, vb: Any
) -> list[Any]:
    """As `_second_order`, where mean and variance are constants."""
    to_g = to_x = to_w = None
    if v is not None:
        to_g = v * r if w is None else v * r * w
        to_w = None if w is None else g * v * r
    if vw is not None:
        to_g = _plus(to_g, vw * r * centred)
        to_x = g * vw * r
    if vb is not None:
        to_g = _plus(to_g, vb * F.ones_like(g))
    return [to_g, to_x, to_w]
