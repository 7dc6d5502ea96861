"""A layer and the batch norm after it as one layer, for evaluation.

May import the core of clew and `clew.nn.modules`.
"""

from __future__ import annotations

import copy
from typing import Any

import clew
from clew.nn.parameter import Parameter

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]


def _check_modes(layer: Any, bn: Any) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A copy of a convolution that also does what the batch norm after it does.

    Raises:
        AssertionError: one of them is in training mode, or there are no running averages.
    """
    _check_modes(conv, bn)
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        conv.weight, conv.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias,
        transpose,
    )  # fmt: skip
    return fused


def fuse_conv_bn_weights(
    conv_w: Any, conv_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any,
    transpose: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """Weight and bias of the fused convolution; `transpose` for a transposed one."""
    bn_w = clew.ones_like(bn_rm) if bn_w is None else bn_w
    bn_b = clew.zeros_like(bn_rm) if bn_b is None else bn_b
    shape = [1] * conv_w.ndim
    shape[1 if transpose else 0] = -1
    return _fused(conv_w, conv_b, bn_rm, bn_w * clew.rsqrt(bn_rv + bn_eps), bn_b, shape)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A copy of a linear layer that also does what the batch norm after it does.

    Raises:
        AssertionError: one of them is in training mode, there are no running averages, or the
            numbers of features differ.
    """
    _check_modes(linear, bn)
    if bn.num_features not in (linear.out_features, 1):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
            f"linear.out_features={linear.out_features} and bn.num_features={bn.num_features}"
        )
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        linear.weight, linear.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any
) -> tuple[Any, Any]:
    """Weight and bias of the fused linear layer."""
    return _fused(linear_w, linear_b, bn_rm, bn_w * clew.rsqrt(bn_rv + bn_eps), bn_b, [-1, 1])


def _fused(
    weight: Any, bias: Any, mean: Any, scale: Any, shift: Any, shape: list[int]
) -> tuple[Any, Any]:
    bias = clew.zeros_like(mean) if bias is None else bias
    new_weight = (weight * scale.reshape(shape)).to(weight.dtype)
    new_bias = ((bias - mean) * scale + shift).to(bias.dtype)
    return (
        Parameter(new_weight, weight.requires_grad),
        Parameter(new_bias, bias.requires_grad),
    )
