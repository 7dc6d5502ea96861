"""Activations that PyTorch has as functions of its own, which ``nn.functional`` offers too."""

from __future__ import annotations

import numpy as np

from clew import dtypes, rng
from clew.dispatch import apply, apply_inplace
from clew.functions.calls import Tensor, call, require_tensors, unary
from clew.op import REGISTRY
from clew.publish import composite

_SELU = {"alpha": 1.6732632423543772, "scale": 1.0507009873554805, "input_scale": 1.0}
"""The constants with which selu keeps mean 0 and variance 1 (Klambauer et al., 2017)."""


@composite(method=False)
def relu_(input: Tensor) -> Tensor:
    """`relu`, in place."""
    return unary("relu", input, inplace=True)


@composite(method=False)
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """A scaled `elu` whose constants keep mean 0 and variance 1."""
    return unary("elu_inplace" if inplace else "elu", input, inplace, **_SELU)


@composite(method=False)
def selu_(input: Tensor) -> Tensor:
    """`selu`, in place."""
    return selu(input, inplace=True)


@composite(method=False)
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """`input` where positive, else ``alpha * (exp(input / alpha) - 1)``."""
    return unary("celu_inplace" if inplace else "celu", input, inplace, alpha=alpha)


@composite(method=False)
def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`celu`, in place."""
    return celu(input, alpha, inplace=True)


@composite(method=False)
def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """The function `threshold`, in place."""
    op = "threshold_inplace"
    return unary(op, input, inplace=True, threshold=threshold, value=value)


@composite(method=True)
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """`input` where positive, else ``weight * input``.

    Shapes: input ``(N, C, ...)``; weight ``(C,)``, or one element for all channels.

    Raises:
        RuntimeError: shapes or types do not fit.
    """
    require_tensors("prelu", input=input, weight=weight)
    shape, count = input.shape, weight.numel()
    if weight.dtype != input.dtype:
        raise RuntimeError(
            "prelu: Type promoting not supported. Got "
            f"{dtypes.SCALAR_NAMES[input.dtype.name]} and {dtypes.SCALAR_NAMES[weight.dtype.name]}"
        )
    if weight.ndim > 1:
        raise RuntimeError(
            f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}"
        )
    if count == 1:
        aligned = weight.view((1,) * input.ndim) if weight.ndim != input.ndim else weight
        return call("prelu_kernel", input, aligned)
    if not shape:
        raise RuntimeError("Not allow zero-dim input tensor.")
    channels = shape[1] if len(shape) > 1 else 1
    if channels != count:
        raise RuntimeError(
            "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
            f"{count} and channel size = {channels}."
        )
    return call("prelu_kernel", input, weight.view((1, -1) + (1,) * (len(shape) - 2)))


@composite(method=False)
def sigmoid_(input: Tensor) -> Tensor:
    """`sigmoid`, in place."""
    return unary("sigmoid", input, inplace=True)


@composite(method=False)
def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """`input` where positive, else a random slope between `lower` and `upper` times `input`.

    Outside training the slope is the mean of the two.

    Raises:
        RuntimeError: the limits are not finite or not in order.
    """
    require_tensors("rrelu", input=input)
    for name, limit in (("lower", lower), ("upper", upper)):
        if not np.isfinite(limit):
            raise RuntimeError(f"rrelu: {name} bound must be finite, got {limit:g}")
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    noise = _slopes(input, lower, upper) if training else None
    attrs = {"lower": lower, "upper": upper, "training": training}
    if inplace:
        return apply_inplace(REGISTRY["rrelu_with_noise_inplace"], input, (noise,), attrs)
    return apply(REGISTRY["rrelu_with_noise"], (input, noise), attrs)


def _slopes(input: Tensor, lower: float, upper: float) -> Tensor:
    """1 for what is positive, a draw for each other element, in their order."""
    if not isinstance(input._array, np.ndarray):  # a batch of examples
        raise RuntimeError("vmap: we do not yet support aten::rrelu. Please file an issue")
    array = input._array
    noise = np.ones(array.shape, array.dtype)
    rest = array <= 0
    noise[rest] = rng.uniform_(np.empty(np.count_nonzero(rest)), lower, upper)
    return Tensor._from_array(noise)


@composite(method=False)
def rrelu_(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False
) -> Tensor:
    """`rrelu`, in place."""
    return rrelu(input, lower, upper, training, inplace=True)
