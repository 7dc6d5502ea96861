"""Activation functions.  ``inplace=True`` overwrites the input where PyTorch has that."""

from __future__ import annotations

from clew.functions.calls import Tensor, unary


def sigmoid(input: Tensor) -> Tensor:
    """``1 / (1 + exp(-input))``."""
    return unary("sigmoid", input)


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return unary("tanh", input)


# -- straight pieces


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """``max(input, 0)``."""
    return unary("relu", input, inplace)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """`input` where positive, else ``negative_slope * input``."""
    op = "leaky_relu_inplace" if inplace else "leaky_relu"
    return unary(op, input, inplace, negative_slope=negative_slope)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """`leaky_relu`, in place."""
    return leaky_relu(input, negative_slope, inplace=True)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """`input` where above `threshold`, else `value`."""
    op = "threshold_inplace" if inplace else "threshold"
    return unary(op, input, inplace, threshold=threshold, value=value)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """Limit to ``[min_val, max_val]``.

    Raises:
        ValueError: `min_val` is above `max_val`.
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return unary("hardtanh", input, inplace, min_val=min_val, max_val=max_val)


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """`hardtanh`, in place."""
    return hardtanh(input, min_val, max_val, inplace=True)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Limit to ``[0, 6]``."""
    return unary("hardtanh", input, inplace, min_val=0, max_val=6)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """``input / 6 + 1/2`` limited to ``[0, 1]``."""
    return unary("hardsigmoid", input, inplace)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """``input * hardsigmoid(input)``."""
    return unary("hardswish", input, inplace)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """`input` outside ``[-lambd, lambd]``, 0 inside."""
    return unary("hardshrink", input, lambd=lambd)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """`input` moved by `lambd` towards 0, and 0 in ``[-lambd, lambd]``."""
    return unary("softshrink", input, lambd=lambd)


# -- smooth


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """`input` where positive, else ``alpha * (exp(input) - 1)``."""
    op = "elu_inplace" if inplace else "elu"
    return unary(op, input, inplace, alpha=alpha, scale=1.0, input_scale=1.0)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`elu`, in place."""
    return elu(input, alpha, inplace=True)


def gelu(input: Tensor, *, approximate: str = "none") -> Tensor:
    """`input` times the standard normal distribution function of `input`.

    ``approximate="tanh"`` uses a formula with tanh instead of erf (Hendrycks and Gimpel, 2016).
    """
    return unary("gelu", input, approximate=approximate)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """``input * sigmoid(input)``, also called swish."""
    return unary("silu", input, inplace)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """``input * tanh(softplus(input))``."""
    return unary("mish", input, inplace)


def softplus(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """``log(1 + exp(beta * input)) / beta``; `input` where ``beta * input > threshold``."""
    return unary("softplus", input, beta=beta, threshold=threshold)


def logsigmoid(input: Tensor) -> Tensor:
    """``log(sigmoid(input))``."""
    return unary("log_sigmoid", input)


def softsign(input: Tensor) -> Tensor:
    """``input / (1 + abs(input))``."""
    return input / (input.abs() + 1)


def tanhshrink(input: Tensor) -> Tensor:
    """``input - tanh(input)``."""
    return input - input.tanh()


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along `dim` times the sigmoid of the second half.

    Raises:
        RuntimeError: the size along `dim` is odd.
    """
    return unary("glu", input, dim=dim)
