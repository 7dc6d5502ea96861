"""The uniform distribution."""

from __future__ import annotations

from typing import Any

import clew
from clew.distributions import constraints
from clew.distributions.distribution import Distribution
from clew.distributions.utils import broadcast_all

__all__ = ["Uniform"]


class Uniform(Distribution):
    """Uniform numbers in ``[low, high)``."""

    has_rsample = True
    _expandable = {"low": 0, "high": 0}

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)

    @property
    def arg_constraints(self) -> Any:
        return {
            "low": constraints.less_than(self.high),
            "high": constraints.greater_than(self.low),
        }

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Any:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Any:
        return clew.nan * self.high

    @property
    def stddev(self) -> Any:
        return (self.high - self.low) / 12**0.5

    @property
    def variance(self) -> Any:
        return (self.high - self.low).pow(2) / 12

    def rsample(self, sample_shape: Any = ()) -> Any:
        fraction = clew.rand(self._extended_shape(sample_shape), dtype=self.low.dtype)
        return self.low + fraction * (self.high - self.low)

    def log_prob(self, value: Any) -> Any:
        self._checked(value)
        above = self.low.le(value).type_as(self.low)
        below = self.high.gt(value).type_as(self.low)
        return clew.log(above.mul(below)) - clew.log(self.high - self.low)

    def cdf(self, value: Any) -> Any:
        self._checked(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Any) -> Any:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Any:
        return clew.log(self.high - self.low)
