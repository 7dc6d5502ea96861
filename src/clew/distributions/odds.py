"""What distributions given by `probs` or `logits` share."""

from __future__ import annotations

from typing import Any

from clew.distributions.distribution import Distribution
from clew.distributions.utils import (
    broadcast_all,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)
from clew.tensor import Size


def require_one(probs: Any, logits: Any) -> None:
    """Refuse both parameters, and none.

    Raises:
        ValueError: not exactly one is given.
    """
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


class Odds(Distribution):
    """A distribution given by `probs` or `logits`; the other one is computed when it is read."""

    _is_binary = True

    def _take(self, probs: Any, logits: Any, *others: Any) -> list[Any]:
        """Keep the parameter that is given, in one shape with `others`, which are returned so.

        Raises:
            ValueError: not exactly one is given.
        """
        require_one(probs, logits)
        if probs is not None:
            *rest, self.probs = broadcast_all(*others, probs)
        else:
            *rest, self.logits = broadcast_all(*others, logits)
        return rest

    @lazy_property
    def logits(self) -> Any:
        """Log odds (or, of several categories, log probabilities)."""
        return probs_to_logits(self.probs, is_binary=self._is_binary)

    @lazy_property
    def probs(self) -> Any:
        """Probabilities."""
        return logits_to_probs(self.logits, is_binary=self._is_binary)

    @property
    def _param(self) -> Any:
        """The parameter that was given."""
        return self.__dict__["probs" if "probs" in self.__dict__ else "logits"]

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter that was given."""
        return self._param.shape
