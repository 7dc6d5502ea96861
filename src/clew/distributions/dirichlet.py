"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any

import clew
from clew.autograd.function import Function, once_differentiable
from clew.dispatch import apply
from clew.distributions import constraints
from clew.distributions.exp_family import ExponentialFamily
from clew.distributions.one_hot_categorical import one_hot
from clew.op import REGISTRY

__all__ = ["Dirichlet"]


class _Dirichlet(Function):
    """Samples with a gradient: that of each element by its own concentration, on the simplex."""

    @staticmethod
    def forward(ctx: Any, concentration: Any) -> Any:
        op = REGISTRY["sample_dirichlet"]
        x = apply(op, (concentration,), op.default_attrs)
        ctx.save_for_backward(x, concentration)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Any) -> Any:
        x, concentration = ctx.saved_tensors
        total = concentration.sum(-1, True).expand_as(concentration)
        own = apply(REGISTRY["dirichlet_grad"], (x, concentration, total))
        return own * (grad - (x * grad).sum(-1, True))


class Dirichlet(ExponentialFamily):
    """Vectors of probabilities, with concentrations along the last dimension.

    Raises:
        ValueError: `concentration` has no dimension.
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    _expandable = {"concentration": 1}

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return _Dirichlet.apply(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        self._checked(value)
        return (
            clew.xlogy(self.concentration - 1.0, value).sum(-1)
            + clew.lgamma(self.concentration.sum(-1))
            - clew.lgamma(self.concentration).sum(-1)
        )

    @property
    def mean(self) -> Any:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Any:
        above_one = (self.concentration - 1).clamp(min=0.0)
        mode = above_one / above_one.sum(-1, True)
        in_corner = (self.concentration < 1).all(-1)
        # There the density is largest in the corners; one of them stands for all.
        corner = one_hot(mode.argmax(-1), mode)
        return clew.where(in_corner.unsqueeze(-1), corner, mode)

    @property
    def variance(self) -> Any:
        total = self.concentration.sum(-1, True)
        spread = self.concentration * (total - self.concentration)
        return spread / (total.pow(2) * (total + 1))

    def entropy(self) -> Any:
        a = self.concentration
        total = a.sum(-1)
        return (
            clew.lgamma(a).sum(-1)
            - clew.lgamma(total)
            - (a.shape[-1] - total) * clew.digamma(total)
            - ((a - 1.0) * clew.digamma(a)).sum(-1)
        )

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Any) -> Any:
        return x.lgamma().sum(-1) - clew.lgamma(x.sum(-1))
