"""The Bernoulli distribution."""

from __future__ import annotations

from typing import Any

import clew
from clew.autograd.modes import no_grad
from clew.distributions import constraints
from clew.distributions.exp_family import ExponentialFamily
from clew.distributions.odds import Odds
from clew.distributions.utils import broadcast_all, cross_entropy_of_logits

__all__ = ["Bernoulli"]


class Bernoulli(Odds, ExponentialFamily):
    """1 with probability `probs`, else 0; `logits` are log odds.

    Raises:
        ValueError: not exactly one parameter is given.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0
    _expandable = {"probs": 0, "logits": 0}

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._take(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        mode = (self.probs >= 0.5).to(self.probs)
        return mode.masked_fill(self.probs == 0.5, clew.nan)

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            return clew.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        self._checked(value)
        logits, value = broadcast_all(self.logits, value)
        return -cross_entropy_of_logits(logits, value)

    def entropy(self) -> Any:
        return cross_entropy_of_logits(self.logits, self.probs)

    def enumerate_support(self, expand: bool = True) -> Any:
        return self._enumerate(clew.arange(2, dtype=self._param.dtype), expand)

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (clew.logit(self.probs),)

    def _log_normalizer(self, x: Any) -> Any:
        return clew.log1p(clew.exp(x))
