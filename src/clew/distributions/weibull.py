"""The Weibull distribution."""

from __future__ import annotations

from typing import Any

import clew
from clew.distributions import constraints
from clew.distributions.exponential import Exponential
from clew.distributions.transformed_distribution import TransformedDistribution
from clew.distributions.transforms import AffineTransform, PowerTransform
from clew.distributions.utils import as_size, broadcast_all, euler_constant

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """``scale * exponential ** (1 / concentration)``."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(clew.ones_like(self.scale), validate_args=validate_args)
        super().__init__(base, self._power_and_scale(), validate_args=validate_args)

    def _power_and_scale(self) -> list[Any]:
        return [
            PowerTransform(exponent=self.concentration_reciprocal),
            AffineTransform(loc=0, scale=self.scale),
        ]

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Weibull, _instance)
        new.scale = self.scale.expand(batch_shape)
        new.concentration = self.concentration.expand(batch_shape)
        new.concentration_reciprocal = new.concentration.reciprocal()
        new.base_dist = self.base_dist.expand(batch_shape)
        new.transforms = new._power_and_scale()
        return self._finish(new, as_size(batch_shape))

    @property
    def mean(self) -> Any:
        return self.scale * clew.exp(clew.lgamma(1 + self.concentration_reciprocal))

    @property
    def mode(self) -> Any:
        k = self.concentration
        return self.scale * ((k - 1) / k) ** k.reciprocal()

    @property
    def variance(self) -> Any:
        second = clew.exp(clew.lgamma(1 + 2 * self.concentration_reciprocal))
        first = clew.exp(2 * clew.lgamma(1 + self.concentration_reciprocal))
        return self.scale.pow(2) * (second - first)

    def entropy(self) -> Any:
        return (
            euler_constant * (1 - self.concentration_reciprocal)
            + clew.log(self.scale * self.concentration_reciprocal)
            + 1
        )
