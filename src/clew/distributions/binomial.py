"""The binomial distribution."""

from __future__ import annotations

from typing import Any

import clew
from clew.autograd.modes import no_grad
from clew.distributions import constraints
from clew.distributions.odds import Odds

__all__ = ["Binomial"]


def _positive_part(x: Any) -> Any:
    """``max(x, 0)``, with the gradient 1/2 at zero."""
    return (x.clamp(min=0) + x - x.clamp(max=0)) / 2


class Binomial(Odds):
    """How many of `total_count` trials succeed, each with the probability `probs`.

    Raises:
        ValueError: not exactly one of `probs` and `logits` is given.
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    _expandable = {"total_count": 0, "probs": 0, "logits": 0}

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        (total_count,) = self._take(probs, logits, total_count)
        self.total_count = total_count.type_as(self._param)
        super().__init__(self._param.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Any:
        return self.total_count * self.probs

    @property
    def mode(self) -> Any:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return clew.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Any) -> Any:
        self._checked(value)
        n, logits = self.total_count, self.logits
        # n * log(1 + exp(logits)), without the overflow.
        log_norm = n * _positive_part(logits) + n * clew.log1p(clew.exp(-clew.abs(logits)))
        ways = clew.lgamma(n + 1) - clew.lgamma(value + 1) - clew.lgamma(n - value + 1)
        return value * logits + ways - log_norm

    def entropy(self) -> Any:
        self._one_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(clew.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Any:
        count = self._one_count("enumerate_support")
        return self._enumerate(clew.arange(1 + count, dtype=self._param.dtype), expand)

    def _one_count(self, method: str) -> int:
        count = int(self.total_count.max())
        if not self.total_count.min() == count:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{method}`.")
        return count
