"""The generalized Pareto distribution."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew.distributions import constraints
from clew.distributions.distribution import Distribution
from clew.distributions.utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """Excesses over a threshold `loc`.

    They fall off exponentially for a `concentration` of 0, more slowly for a positive one, and end
    somewhere for a negative one.
    """

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True
    _expandable = {"loc": 0, "scale": 0, "concentration": 0}

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, clew.where(self.concentration < 0, end, math.inf))

    def _is_exponential(self) -> Any:
        return clew.isclose(self.concentration, clew.zeros_like(self.concentration))

    def _safe_concentration(self) -> Any:
        """The concentration, with 1 for 0, by which the general formulas divide."""
        return clew.where(self._is_exponential(), 1.0, self.concentration)

    def rsample(self, sample_shape: Any = ()) -> Any:
        uniform = clew.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype)
        return self.icdf(uniform)

    def log_prob(self, value: Any) -> Any:
        self._checked(value)
        z = (value - self.loc) / self.scale
        safe = self._safe_concentration()
        power = 1 / safe + clew.ones_like(z)
        general = clew.where(power == 0, power, power * clew.log1p(safe * z))
        return -self.scale.log() - clew.where(self._is_exponential(), z, general)

    def log_survival_function(self, value: Any) -> Any:
        """The log of the probability of more than `value`."""
        self._checked(value)
        z = (value - self.loc) / self.scale
        safe = self._safe_concentration()
        return clew.where(self._is_exponential(), -z, -clew.log1p(safe * z) / safe)

    def log_cdf(self, value: Any) -> Any:
        """The log of `cdf`."""
        return clew.log1p(-clew.exp(self.log_survival_function(value)))

    def cdf(self, value: Any) -> Any:
        return clew.exp(self.log_cdf(value))

    def icdf(self, value: Any) -> Any:
        log_survival = clew.log1p(-value)
        safe = self._safe_concentration()
        general = self.loc + self.scale / safe * clew.expm1(-safe * log_survival)
        return clew.where(self._is_exponential(), self.loc - self.scale * log_survival, general)

    @property
    def mean(self) -> Any:
        has_mean = self.concentration < 1
        safe = clew.where(has_mean, self.concentration, 0.5)
        return clew.where(has_mean, self.loc + self.scale / (1 - safe), math.nan)

    @property
    def variance(self) -> Any:
        has_variance = self.concentration < 0.5
        safe = clew.where(has_variance, self.concentration, 0.25)
        variance = self.scale**2 / ((1 - safe) ** 2 * (1 - 2 * safe))
        return clew.where(has_variance, variance, math.nan)

    def entropy(self) -> Any:
        return clew.broadcast_to(self.scale.log() + self.concentration + 1, self._batch_shape)

    @property
    def mode(self) -> Any:
        return self.loc
