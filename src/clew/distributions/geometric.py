"""The geometric distribution."""

from __future__ import annotations

from typing import Any

import clew
from clew.autograd.modes import no_grad
from clew.distributions import constraints
from clew.distributions.odds import Odds
from clew.distributions.utils import broadcast_all, cross_entropy_of_logits

__all__ = ["Geometric"]


class Geometric(Odds):
    """The number of failures before the first success, whose probability is `probs`.

    Raises:
        ValueError: not exactly one parameter is given, or a probability of zero.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer
    _expandable = {"probs": 0, "logits": 0}

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._take(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)
        if self._validate_args and probs is not None and not (self.probs > 0).all():
            value = self.probs
            raise ValueError(
                f"Expected parameter probs ({type(value).__name__} of shape "
                f"{tuple(value.shape)}) of distribution {self!r} to be positive but found "
                f"invalid values:\n{value.data[~(value > 0)]}"
            )

    @property
    def mean(self) -> Any:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Any:
        return clew.zeros_like(self.probs)

    @property
    def variance(self) -> Any:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = ()) -> Any:
        dtype = self.probs.dtype
        with no_grad():
            u = clew.empty(self._extended_shape(sample_shape), dtype=dtype)
            u.uniform_(clew.finfo(dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Any) -> Any:
        self._checked(value)
        value, probs = broadcast_all(value, self.probs)
        # No failure before a certain success: 0 * log(0), which is 0 here.
        probs = probs.masked_fill((probs == 1) & (value == 0), 0)
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Any:
        return cross_entropy_of_logits(self.logits, self.probs) / self.probs
