"""Normalisation of activations."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from clew.functions import norm as published
from clew.functions.calls import Tensor, require_tensors
from clew.functions.pad import pad
from clew.nn.functional.pool import avg_pool2d, avg_pool3d


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel over batch and space, then scale and shift.

    Shapes: input ``(N, C, *size)``; everything else ``(C,)``.  In training the statistics are the
    batch's, and the running ones, where given, move towards them in place.

    Raises:
        ValueError: there is only one value per channel in training, or `eps` is not positive
            (not negative, outside training).
        RuntimeError: shapes or types do not fit, or statistics are missing.
    """
    if training:
        _check_count(input.size())
    if eps < 0 or (training and eps == 0):
        need = "positive during training" if training else "non-negative"
        raise ValueError(f"batch_norm eps must be {need}, but got {eps}")
    return published.batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )


def _check_count(size: Sequence[int]) -> None:
    """Refuse to normalise one value by itself."""
    if prod((size[0], *size[2:])) == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {size}"
        )


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel of each sample over space, then scale and shift.

    Raises:
        ValueError: there is only one element in space.
        RuntimeError: shapes or types do not fit, or statistics are missing.
    """
    if use_input_stats:
        size = input.size()
        if prod(size[2:]) == 1:
            raise ValueError(
                f"Expected more than 1 spatial element when training, got input size {size}"
            )
    return published.instance_norm(
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps
    )


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise over the trailing dimensions, whose shape weight and bias have.

    Raises:
        RuntimeError: shapes or types do not fit.
    """
    return published.layer_norm(input, normalized_shape, weight, bias, eps)


def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Divide by the root mean square over the trailing dimensions, then scale.

    Raises:
        RuntimeError: shapes do not fit.
    """
    return published.rms_norm(input, normalized_shape, weight, eps)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise groups of channels of each sample, then scale and shift each channel.

    Raises:
        RuntimeError: shapes or types do not fit.
        ValueError: there is only one value per group.
    """
    require_tensors("group_norm", input=input)
    if input.ndim < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {input.ndim}"
        )
    _check_count([input.size(0) * input.size(1) // num_groups, num_groups, *input.size()[2:]])
    return published.group_norm(input, num_groups, weight, bias, eps)


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """``input / (k + alpha * mean(input**2))**beta``, the mean over `size` channels around each.

    Source: Krizhevsky et al. 2012.

    Raises:
        ValueError: the input has fewer than three dimensions.
    """
    if input.dim() < 3:
        raise ValueError(
            "Expected 3D or higher dimensionality                          input (got "
            f"{input.dim()} dimensions)"
        )
    if input.numel() == 0:
        return input
    squares = input.mul(input)
    margin = (size // 2, (size - 1) // 2)
    if input.dim() == 3:
        padded = pad(squares.unsqueeze(1), (0, 0, *margin))
        means = avg_pool2d(padded, (size, 1), stride=1).squeeze(1)
    else:
        shape = input.size()
        rows = squares.view(shape[0], 1, shape[1], shape[2], -1)
        padded = pad(rows, (0, 0, 0, 0, *margin))
        means = avg_pool3d(padded, (size, 1, 1), stride=1).squeeze(1).view(shape)
    return input / means.mul(alpha).add(k).pow(beta)
