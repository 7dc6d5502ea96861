"""The inverse gamma distribution."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew.distributions import constraints
from clew.distributions.gamma import Gamma
from clew.distributions.transformed_distribution import TransformedDistribution
from clew.distributions.transforms import PowerTransform

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """Reciprocals of gamma numbers."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        reciprocal = PowerTransform(-base.rate.new_ones(()))
        super().__init__(base, reciprocal, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(InverseGamma, _instance)
        return super().expand(batch_shape, _instance=new)

    @property
    def concentration(self) -> Any:
        """The concentration of the gamma numbers."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Any:
        """The rate of the gamma numbers."""
        return self.base_dist.rate

    @property
    def mean(self) -> Any:
        mean = self.rate / (self.concentration - 1)
        return clew.where(self.concentration > 1, mean, math.inf)

    @property
    def mode(self) -> Any:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Any:
        a = self.concentration
        variance = self.rate.pow(2) / ((a - 1).pow(2) * (a - 2))
        return clew.where(a > 2, variance, math.inf)

    def entropy(self) -> Any:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
