"""The categorical distribution of one-hot vectors."""

from __future__ import annotations

from typing import Any

import clew
from clew.dispatch import apply
from clew.distributions import constraints
from clew.distributions.categorical import Categorical
from clew.distributions.distribution import Distribution
from clew.distributions.utils import as_size
from clew.op import REGISTRY

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


def one_hot(indices: Any, like: Any) -> Any:
    """Vectors with a one at each index, as long as those of `like` and of their type."""
    vectors = apply(REGISTRY["one_hot"], (indices,), {"num_classes": like.shape[-1]})
    return vectors.to(like)


class OneHotCategorical(Distribution):
    """As `Categorical`, whose categories are vectors of zeros and a single one."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits)
        batch_shape = self._categorical.batch_shape
        event_shape = self._categorical.param_shape[-1:]
        super().__init__(batch_shape, event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(OneHotCategorical, _instance)
        batch_shape = as_size(batch_shape)
        new._categorical = self._categorical.expand(batch_shape)
        return self._finish(new, batch_shape)

    @property
    def _param(self) -> Any:
        return self._categorical._param

    @property
    def probs(self) -> Any:
        """Probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Any:
        """Log probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter that was given."""
        return self._categorical.param_shape

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        return one_hot(self.probs.argmax(dim=-1), self.probs)

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        return one_hot(self._categorical.sample(as_size(sample_shape)), self.probs)

    def log_prob(self, value: Any) -> Any:
        self._checked(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Any:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Any:
        n = self.event_shape[0]
        values = clew.eye(n, dtype=self._param.dtype)
        values = values.view((n,) + (1,) * len(self.batch_shape) + (n,))
        return values.expand((n, *self.batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """Samples whose gradient is that of the probabilities.

    Source: Bengio, Leonard and Courville, "Estimating or propagating gradients through stochastic
    neurons for conditional computation", 2013.
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
