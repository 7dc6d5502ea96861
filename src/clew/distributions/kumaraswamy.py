"""The Kumaraswamy distribution."""

from __future__ import annotations

from typing import Any

import clew
from clew.distributions import constraints
from clew.distributions.transformed_distribution import TransformedDistribution
from clew.distributions.transforms import AffineTransform, PowerTransform
from clew.distributions.uniform import Uniform
from clew.distributions.utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """Numbers in (0, 1), much like those of `Beta`, with a closed cumulative distribution.

    Source: Kumaraswamy, "A generalized probability density function for double-bounded random
    processes", 1980.
    """

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        a, b = self.concentration1, self.concentration0 = broadcast_all(
            concentration1, concentration0
        )
        base = Uniform(clew.zeros_like(b), clew.ones_like(b), validate_args=validate_args)
        transforms = [
            PowerTransform(exponent=b.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=a.reciprocal()),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Kumaraswamy, _instance)
        new.concentration1 = self.concentration1.expand(batch_shape)
        new.concentration0 = self.concentration0.expand(batch_shape)
        return super().expand(batch_shape, _instance=new)

    def _moment(self, n: int) -> Any:
        """The mean of the n-th power."""
        first = 1 + n / self.concentration1
        b = self.concentration0
        return b * clew.exp(clew.lgamma(first) + clew.lgamma(b) - clew.lgamma(first + b))

    @property
    def mean(self) -> Any:
        return self._moment(1)

    @property
    def mode(self) -> Any:
        a, b = self.concentration1, self.concentration0
        log_mode = b.reciprocal() * (-b).log1p() - (-b * a).log1p()
        return log_mode.masked_fill((b < 1) | (a < 1), clew.nan).exp()

    @property
    def variance(self) -> Any:
        return self._moment(2) - self.mean.pow(2)

    def entropy(self) -> Any:
        a, b = self.concentration1, self.concentration0
        harmonic = clew.digamma(b + 1) + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - a.log() - b.log()
