"""Normalisation over features of each example: layer, group, RMS, local response.

May import the core of clew, `clew.nn.functional`, `clew.nn.init`, `clew.nn.parameter`, `module`.
"""

from __future__ import annotations

import numbers
from typing import Any

import clew
from clew.nn import functional as F
from clew.nn import init
from clew.nn.modules.module import Module
from clew.nn.parameter import Parameter
from clew.tensor import Tensor

__all__ = ["GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class _Affine(Module):
    """A norm followed by a learned scale and shift, each of them perhaps absent."""

    weight: Any
    bias: Any

    def _make_affine(self, shape: Any, weight: bool, bias: bool, device: Any, dtype: Any) -> None:
        for name, wanted in (("weight", weight), ("bias", bias)):
            made = Parameter(clew.empty(shape, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Scale by one and shift by zero."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class LayerNorm(_Affine):
    """Mean 0 and variance 1 over the last dimensions, then scale and shift.

    Args:
        normalized_shape: the sizes of those dimensions.
        eps: added to the variance.
        elementwise_affine: whether to scale and shift.
        bias: whether to shift.
        device: the CPU.
        dtype: of the parameters.
    """

    __constants__ = ("normalized_shape", "eps", "elementwise_affine")

    def __init__(
        self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True,
        bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._make_affine(
            self.normalized_shape, elementwise_affine, elementwise_affine and bias, device, dtype
        )

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


def _shape(given: Any) -> tuple[int, ...]:
    return (given,) if isinstance(given, numbers.Integral) else tuple(given)  # type: ignore[return-value]


class GroupNorm(_Affine):
    """Mean 0 and variance 1 over each group of channels, then scale and shift each channel.

    Args:
        num_groups: how many groups.
        num_channels: the size of dimension 1; a multiple of the groups.
        eps: added to the variance.
        affine: whether to scale and shift.
        device: the CPU.
        dtype: of the parameters.
        bias: whether to shift.

    Raises:
        ValueError: the channels cannot be divided into such groups.
    """

    __constants__ = ("num_groups", "num_channels", "eps", "affine")

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True,
        device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(
                f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._make_affine(num_channels, affine, affine and bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Division by the root of the mean square over the last dimensions, then scale.

    Args:
        normalized_shape: the sizes of those dimensions.
        eps: added to the mean square; by default the type's machine epsilon.
        elementwise_affine: whether to scale.
        device: the CPU.
        dtype: of the parameter.
    """

    __constants__ = ("normalized_shape", "eps", "elementwise_affine")

    def __init__(
        self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        made = clew.empty(self.normalized_shape, device=device, dtype=dtype)
        self.register_parameter("weight", Parameter(made) if elementwise_affine else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Scale by one."""
        if self.elementwise_affine:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class LocalResponseNorm(Module):
    """Division by ``(k + alpha * mean of squares over `size` channels)^beta``."""

    __constants__ = ("size", "alpha", "beta", "k")

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
