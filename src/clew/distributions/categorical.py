"""The categorical distribution."""

from __future__ import annotations

from typing import Any

import clew
from clew.distributions import constraints
from clew.distributions.odds import Odds, require_one
from clew.distributions.utils import as_size

__all__ = ["Categorical"]


class Categorical(Odds):
    """Category indices, with probabilities along the last dimension of the parameter.

    Args:
        probs: weights, which are brought to a sum of 1.
        logits: log weights, which are brought to log probabilities.
        validate_args: see `Distribution`.

    Raises:
        ValueError: not exactly one parameter is given, or one without a dimension.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _is_binary = False
    _expandable = {"probs": 1, "logits": 1}

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        require_one(probs, logits)
        name, given = ("probs", probs) if probs is not None else ("logits", logits)
        if given.ndim < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if probs is not None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        super().__init__(self._param.shape[:-1], validate_args=validate_args)

    @property
    def _num_events(self) -> int:
        return self._param.shape[-1]

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Any:
        return self._full(clew.nan, self.probs)

    @property
    def mode(self) -> Any:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Any:
        return self._full(clew.nan, self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        sample_shape = as_size(sample_shape)
        rows = self.probs.reshape(-1, self._num_events)
        samples = clew.multinomial(rows, sample_shape.numel(), True).T
        return samples.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Any) -> Any:
        self._checked(value)
        logits, value = self.logits, value.long().unsqueeze(-1)
        if value.shape[:-1] != logits.shape[:-1]:
            value, logits = clew.broadcast_tensors(value, logits)
            value = value[..., :1]
        return logits.gather(-1, value).squeeze(-1)

    def entropy(self) -> Any:
        # Log probabilities of minus infinity would make the product with zero NaN.
        logits = self.logits.clamp(min=clew.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Any:
        return self._enumerate(clew.arange(self._num_events), expand)
