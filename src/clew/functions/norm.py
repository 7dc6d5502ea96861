"""Normalisation under PyTorch's names; ``nn.functional`` has them with other signatures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from clew.dispatch import apply, apply_inplace
from clew.functions.calls import refuse_gradients
from clew.functions.linalg import refuse_non_tensors
from clew.op import REGISTRY
from clew.publish import composite
from clew.tensor import Tensor


@composite(method=False)
def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Any:
    """Normalise each channel of ``(N, C, *size)`` over batch and space, then scale and shift.

    In training the statistics are the batch's, and the running ones, where given, move towards
    them in place by the part `momentum`; otherwise the running ones are used.

    Raises:
        RuntimeError: shapes or types do not fit, or statistics are missing.
    """
    _refuse_non_tensor("batch_norm", input)
    if input._array.size == 0:
        return _of_nothing(input, weight, bias)
    if input._array.ndim < 2:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    if training and (running_mean is None) is not (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    if running_mean is not None or running_var is not None:
        refuse_gradients("native_batch_norm", running_mean=running_mean, running_var=running_var)
    attrs = {"training": training, "momentum": momentum, "eps": eps}
    inputs = (input, weight, bias, running_mean, running_var)
    return apply(REGISTRY["native_batch_norm"], inputs, attrs)[0]


def _of_nothing(input: Any, weight: Any, bias: Any) -> Any:
    """An empty result that has the parameters in its history."""
    out = input.clone()
    if weight is not None:
        out = out * weight[0]
    return out if bias is None else out + bias[0]


@composite(method=False)
def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Any:
    """Normalise each channel of each sample over space: the batch norm of ``N * C`` channels.

    Raises:
        RuntimeError: shapes or types do not fit, or statistics are missing.
    """
    _refuse_non_tensor("instance_norm", input)
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError(
            "Expected running_mean and running_var to be defined when use_input_stats is false"
        )
    batch, channels, *size = input._array.shape
    parameters: list[Any] = [
        None if p is None else p.repeat(batch) for p in (weight, bias, running_mean, running_var)
    ]
    images = input.contiguous().view(1, batch * channels, *size)
    out = batch_norm(images, *parameters, use_input_stats, momentum, eps)
    if use_input_stats:
        for running, moved in zip((running_mean, running_var), parameters[2:]):
            if running is not None:
                mean = moved.view(batch, channels).mean(0)
                apply_inplace(REGISTRY["copy"], running.detach(), (mean,))
    return out.view(batch, channels, *size)


@composite(method=False)
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Any:
    """Normalise over the trailing dimensions `normalized_shape`, then scale and shift.

    Weight and bias have the shape `normalized_shape`.

    Raises:
        RuntimeError: shapes or types do not fit.
    """
    return native_layer_norm(input, normalized_shape, weight, bias, eps)[0]


@composite(method=False)
def native_layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> Any:
    """`layer_norm`, with the means and 1 / sqrt(variance + eps) that it used."""
    _refuse_non_tensor("layer_norm", input)
    attrs = {"normalized_shape": _shape("layer_norm", normalized_shape), "eps": eps}
    return apply(REGISTRY["native_layer_norm"], (input, weight, bias), attrs)


@composite(method=False)
def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Any:
    """Divide by the root mean square over the trailing dimensions, then scale.

    Without `eps` it is the machine epsilon of the type that is computed in.

    Raises:
        RuntimeError: shapes do not fit.
    """
    _refuse_non_tensor("rms_norm", input)
    if eps is None:
        eps = float(np.finfo(np.float64 if input._array.dtype == np.float64 else np.float32).eps)
    attrs = {"normalized_shape": _shape("rms_norm", normalized_shape), "eps": eps}
    return apply(REGISTRY["fused_rms_norm"], (input, weight), attrs)[0]


@composite(method=False)
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Any:
    """Normalise groups of channels of ``(N, C, *size)``, then scale and shift each channel.

    Raises:
        RuntimeError: shapes or types do not fit.
    """
    _refuse_non_tensor("group_norm", input)
    attrs = {"group": num_groups, "eps": eps}
    return apply(REGISTRY["native_group_norm"], (input, weight, bias), attrs)[0]


def _refuse_non_tensor(function: str, input: Any) -> None:
    if not isinstance(input, Tensor):
        refuse_non_tensors(function, input=input)


def _shape(function: str, value: Any) -> tuple[int, ...]:
    if value.__class__ is tuple and all(n.__class__ is int for n in value):
        return value
    if not isinstance(value, Sequence):
        raise TypeError(
            f"{function}(): argument 'normalized_shape' (position 2) must be tuple of ints, not "
            f"{type(value).__name__}"
        )
    return tuple(n.__index__() for n in value)
