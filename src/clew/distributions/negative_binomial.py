"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any

import clew
from clew.autograd.modes import no_grad
from clew.distributions import constraints
from clew.distributions.gamma import Gamma
from clew.distributions.odds import Odds
from clew.distributions.utils import lazy_property, softplus

__all__ = ["NegativeBinomial"]


class NegativeBinomial(Odds):
    """The number of successes, of probability `probs`, before `total_count` failures.

    Raises:
        ValueError: not exactly one of `probs` and `logits` is given.
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    _expandable = {"total_count": 0, "probs": 0, "logits": 0}

    def __init__(
        self,
        total_count: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        (total_count,) = self._take(probs, logits, total_count)
        self.total_count = total_count.type_as(self._param)
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.total_count * clew.exp(self.logits)

    @property
    def mode(self) -> Any:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Any:
        return self.mean / clew.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self) -> Any:
        return Gamma(self.total_count, clew.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            return clew.poisson(self._gamma.sample(sample_shape=sample_shape))

    def log_prob(self, value: Any) -> Any:
        self._checked(value)
        n = self.total_count
        log_power = -n * softplus(self.logits) - value * softplus(-self.logits)
        log_norm = -clew.lgamma(n + value) + clew.lgamma(1.0 + value) + clew.lgamma(n)
        return log_power - log_norm.masked_fill(n + value == 0.0, 0.0)
