"""Gamma, Dirichlet and binomial numbers, and how gamma numbers depend on their parameter."""

from __future__ import annotations

from typing import Any, NoReturn

from clew import kernels, rng
from clew.dtypes import scalar_name
from clew.op import op

_NO_DERIVATIVE = "torch::autograd::NotImplemented"


@op("standard_gamma(self; generator=None)", publish=(), node="StandardGammaBackward0")
def standard_gamma(shape: Any, *, generator: Any) -> Any:
    """Gamma numbers of scale 1, each of the shape that stands in its place in `self`."""
    return rng.standard_gamma(shape, generator)


@standard_gamma.grad("self")
def _(F: Any, grad: Any, self: Any, result: Any) -> Any:
    return grad * F.standard_gamma_grad(self, result)


@op("standard_gamma_grad(self, output)", publish=(), node="StandardGammaGradBackward0")
def standard_gamma_grad(shape: Any, x: Any) -> Any:
    """The derivative of gamma numbers `output` with respect to their shapes `self`."""
    return kernels.pathwise.gamma_gradient(shape, x)


@standard_gamma_grad.grad("self", "output")
def _(F: Any, grad: Any, *, need: Any) -> NoReturn:
    raise NotImplementedError("the derivative for '_standard_gamma_grad' is not implemented.")


@op("sample_dirichlet(self; generator=None)", publish=(), node=_NO_DERIVATIVE)
def sample_dirichlet(concentration: Any, *, generator: Any) -> Any:
    """Vectors on the simplex, of the concentrations along the last dimension."""
    return rng.dirichlet(concentration, generator)


@sample_dirichlet.grad("self")
def _(F: Any, grad: Any) -> NoReturn:
    raise RuntimeError("derivative for aten::_sample_dirichlet is not implemented")


@op("dirichlet_grad(x, alpha, total)", publish=(), node=_NO_DERIVATIVE)
def dirichlet_grad(x: Any, alpha: Any, total: Any) -> Any:
    """The derivative of elements of Dirichlet vectors by their own concentration, over 1 - x."""
    return kernels.pathwise.beta_gradient(x, alpha, total)


@dirichlet_grad.grad("x", "alpha", "total")
def _(F: Any, grad: Any, *, need: Any) -> NoReturn:
    raise RuntimeError("derivative for aten::_dirichlet_grad is not implemented")


@op("binomial(count, prob; generator=None)", publish=("function",), tensors_only=True,
    node=_NO_DERIVATIVE)  # fmt: skip
def binomial(count: Any, prob: Any, *, generator: Any) -> Any:
    """How many of `count` trials succeed, each with the probability `prob`; the two broadcast."""
    if count.dtype.kind not in "fV":
        raise ValueError(
            "binomial only supports floating-point dtypes for count, got: "
            f"{scalar_name(count.dtype)}"
        )
    if prob.dtype != count.dtype:
        raise RuntimeError(
            f"Found dtype {scalar_name(prob.dtype)} but expected {scalar_name(count.dtype)}"
        )
    return rng.binomial(count, prob, generator)


@binomial.grad("count", "prob")
def _(F: Any, grad: Any, *, need: Any) -> NoReturn:
    raise RuntimeError("derivative for aten::binomial is not implemented")
