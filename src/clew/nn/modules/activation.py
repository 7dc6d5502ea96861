"""Activation functions as modules; each calls the function of `clew.nn.functional` by its name.

May import the core of clew, `clew.nn.functional`, `clew.nn.init`, `clew.nn.parameter`, `module`,
and `attention`, whose class is found here too.
"""

from __future__ import annotations

import warnings
from typing import Any

import clew
from clew.nn import functional as F
from clew.nn import init as initialise
from clew.nn.modules.attention import MultiheadAttention
from clew.nn.modules.module import Module
from clew.nn.parameter import Parameter
from clew.tensor import Tensor

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "MultiheadAttention",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SELU",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


class _Inplace(Module):
    """An activation whose only option is to overwrite its input."""

    __constants__ = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


def _noted(text: str, inplace: bool) -> str:
    return f"{text}, inplace=True" if inplace else text


class ReLU(_Inplace):
    """``max(input, 0)``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, inplace=self.inplace)


class SiLU(_Inplace):
    """``input * sigmoid(input)``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, inplace=self.inplace)


class Mish(_Inplace):
    """``input * tanh(softplus(input))``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, inplace=self.inplace)


class SELU(_Inplace):
    """The exponential linear unit, scaled to keep mean 0 and variance 1."""

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class Hardsigmoid(_Inplace):
    """``clip(input / 6 + 1/2, 0, 1)``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Hardswish(_Inplace):
    """``input * hardsigmoid(input)``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Threshold(Module):
    """The input where it exceeds `threshold`, else `value`."""

    __constants__ = ("threshold", "value", "inplace")

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return _noted(f"threshold={self.threshold}, value={self.value}", self.inplace)


class RReLU(Module):
    """A leaky ReLU with slopes drawn from [lower, upper); in evaluation mode their mean."""

    __constants__ = ("lower", "upper", "inplace")

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return _noted(f"lower={self.lower}, upper={self.upper}", self.inplace)


class Hardtanh(Module):
    """The input clipped to [min_val, max_val].

    Raises:
        AssertionError: the bounds are out of order.
    """

    __constants__ = ("min_val", "max_val", "inplace")

    def __init__(
        self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False,
        min_value: float | None = None, max_value: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if min_value is not None:
            _warn_renamed("min_value", "min_val")
            min_val = min_value
        if max_value is not None:
            _warn_renamed("max_value", "max_val")
            max_val = max_value
        if max_val <= min_val:
            raise AssertionError(f"max_val ({max_val}) must be greater than min_val ({min_val})")
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return _noted(f"min_val={self.min_val}, max_val={self.max_val}", self.inplace)


def _warn_renamed(old: str, new: str) -> None:
    warnings.warn(
        f"keyword argument `{old}` is deprecated and renamed to `{new}`",
        FutureWarning,
        stacklevel=3,
    )


class ReLU6(Hardtanh):
    """The input clipped to [0, 6]."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class Sigmoid(Module):
    """``1 / (1 + exp(-input))``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.sigmoid(input)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        return F.tanh(input)


class _Alpha(Module):
    """An exponential linear unit with one number."""

    __constants__ = ("alpha", "inplace")

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def extra_repr(self) -> str:
        return _noted(f"alpha={self.alpha}", self.inplace)


class ELU(_Alpha):
    """The input where positive, else ``alpha * (exp(input) - 1)``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)


class CELU(_Alpha):
    """The input where positive, else ``alpha * (exp(input / alpha) - 1)``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class GLU(Module):
    """One half of the input, gated by the sigmoid of the other half, along `dim`."""

    __constants__ = ("dim",)

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class GELU(Module):
    """The input times the normal distribution function of it; or an `approximate` ("tanh")."""

    __constants__ = ("approximate",)

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class _Shrink(Module):
    """An activation with one number, below which the input counts as nothing."""

    __constants__ = ("lambd",)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def extra_repr(self) -> str:
        return str(self.lambd)


class Hardshrink(_Shrink):
    """Zero where the input is within [-lambd, lambd], else the input."""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)


class Softshrink(_Shrink):
    """Zero where the input is within [-lambd, lambd], else the input, `lambd` nearer to zero."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)


class LeakyReLU(Module):
    """The input where positive, else ``negative_slope * input``."""

    __constants__ = ("inplace", "negative_slope")

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return _noted(f"negative_slope={self.negative_slope}", self.inplace)


class LogSigmoid(Module):
    """The logarithm of the sigmoid."""

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Softplus(Module):
    """``log(1 + exp(beta * input)) / beta``; the input itself beyond `threshold`."""

    __constants__ = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class PReLU(Module):
    """A leaky ReLU with learned slopes.

    Args:
        num_parameters: one slope, or one for each channel (dimension 1).
        init: the slopes to begin with.
        device: the CPU.
        dtype: of the slopes.
    """

    __constants__ = ("num_parameters",)

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(clew.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set all slopes to `init`."""
        initialise.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Softsign(Module):
    """``input / (1 + |input|)``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    """``input - tanh(input)``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class _AlongDim(Module):
    """A function along one dimension."""

    __constants__ = ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmin(_AlongDim):
    """The softmax of the negated input."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim, _stacklevel=4)


class Softmax(_AlongDim):
    """``exp(input)``, divided by its sum along `dim`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim, _stacklevel=4)


class LogSoftmax(_AlongDim):
    """The logarithm of the softmax along `dim`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim, _stacklevel=4)


class Softmax2d(Module):
    """The softmax over the channels of an image, (N, C, H, W) or (C, H, W).

    Raises:
        ValueError: the input has another number of dimensions.
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return F.softmax(input, -3)
