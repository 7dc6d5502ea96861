"""The multinomial distribution."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew.distributions import constraints
from clew.distributions.binomial import Binomial
from clew.distributions.categorical import Categorical
from clew.distributions.distribution import Distribution
from clew.distributions.utils import as_size, broadcast_all

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """How often each category comes in `total_count` draws.

    Raises:
        NotImplementedError: `total_count` is no int.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(
        self,
        total_count: int = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        batch_shape = self._categorical.batch_shape
        event_shape = self._categorical.param_shape[-1:]
        super().__init__(batch_shape, event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Multinomial, _instance)
        batch_shape = as_size(batch_shape)
        new.total_count = self.total_count
        new._categorical = self._categorical.expand(batch_shape)
        new._binomial = self._binomial.expand(batch_shape + self.event_shape)
        return self._finish(new, batch_shape)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def logits(self) -> Any:
        """Log probabilities."""
        return self._categorical.logits

    @property
    def probs(self) -> Any:
        """Probabilities."""
        return self._categorical.probs

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter that was given."""
        return self._categorical.param_shape

    @property
    def mean(self) -> Any:
        return self.probs * self.total_count

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        sample_shape = as_size(sample_shape)
        draws = self._categorical.sample(as_size((self.total_count, *sample_shape)))
        draws = draws.permute((*range(1, draws.ndim), 0))  # the draws last
        counts = draws.new_zeros(self._extended_shape(sample_shape))
        counts.scatter_add_(-1, draws, clew.ones_like(draws))
        return counts.type_as(self.probs)

    def entropy(self) -> Any:
        n = self.total_count
        outcomes = self._binomial.enumerate_support(expand=False)[1:]
        weights = clew.exp(self._binomial.log_prob(outcomes))
        expected = (weights * clew.lgamma(outcomes + 1)).sum([0, -1])
        return n * self._categorical.entropy() - math.lgamma(n + 1) + expected

    def log_prob(self, value: Any) -> Any:
        self._checked(value)
        logits, value = broadcast_all(self.logits, value)
        orders = clew.lgamma(value.sum(-1) + 1) - clew.lgamma(value + 1).sum(-1)
        # An impossible category that did not come counts nothing, and not 0 * -inf.
        logits = logits.masked_fill((value == 0) & (logits == -clew.inf), 0)
        return orders + (logits * value).sum(-1)
