"""The exponential distribution."""

from __future__ import annotations

from typing import Any

import clew
from clew.distributions import constraints
from clew.distributions.exp_family import ExponentialFamily
from clew.distributions.utils import broadcast_all

__all__ = ["Exponential"]


class Exponential(ExponentialFamily):
    """Waiting times of mean ``1 / rate``."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _expandable = {"rate": 0}

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.rate.reciprocal()

    @property
    def mode(self) -> Any:
        return clew.zeros_like(self.rate)

    @property
    def stddev(self) -> Any:
        return self.rate.reciprocal()

    @property
    def variance(self) -> Any:
        return self.rate.pow(-2)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        return clew.empty(shape, dtype=self.rate.dtype).exponential_() / self.rate

    def log_prob(self, value: Any) -> Any:
        self._checked(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Any) -> Any:
        self._checked(value)
        return 1 - clew.exp(-self.rate * value)

    def icdf(self, value: Any) -> Any:
        return -clew.log1p(-value) / self.rate

    def entropy(self) -> Any:
        return 1.0 - clew.log(self.rate)

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (-self.rate,)

    def _log_normalizer(self, x: Any) -> Any:
        return -clew.log(-x)
