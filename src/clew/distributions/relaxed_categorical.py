"""Continuous relaxations of the categorical distribution."""

from __future__ import annotations

from typing import Any

import clew
from clew.distributions import constraints
from clew.distributions.categorical import Categorical
from clew.distributions.distribution import Distribution
from clew.distributions.transformed_distribution import TransformedDistribution
from clew.distributions.transforms import ExpTransform
from clew.distributions.utils import as_size, broadcast_all, clamp_probs

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(Distribution):
    """Logarithms of `RelaxedOneHotCategorical` samples.

    Source: Maddison, Mnih and Teh, "The concrete distribution", 2017; Jang, Gu and Poole,
    "Categorical reparameterization with Gumbel-softmax", 2017.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector  # in fact only a surface in it
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        batch_shape = self._categorical.batch_shape
        event_shape = self._categorical.param_shape[-1:]
        super().__init__(batch_shape, event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(ExpRelaxedCategorical, _instance)
        batch_shape = as_size(batch_shape)
        new.temperature = self.temperature
        new._categorical = self._categorical.expand(batch_shape)
        return self._finish(new, batch_shape)

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter that was given."""
        return self._categorical.param_shape

    @property
    def logits(self) -> Any:
        """Log probabilities."""
        return self._categorical.logits

    @property
    def probs(self) -> Any:
        """Probabilities."""
        return self._categorical.probs

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        uniform = clamp_probs(clew.rand(shape, dtype=self.logits.dtype))
        gumbel = -((-(uniform.log())).log())
        scores = (self.logits + gumbel) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Any) -> Any:
        self._checked(value)
        n = self._categorical._num_events
        logits, value = broadcast_all(self.logits, value)
        factorial = clew.full_like(self.temperature, float(n)).lgamma()
        score = logits - value.mul(self.temperature)
        score = (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1)
        return score + factorial + self.temperature.log().mul(n - 1)


class RelaxedOneHotCategorical(TransformedDistribution):
    """Vectors on the simplex that tend to one-hot vectors as the `temperature` falls."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(RelaxedOneHotCategorical, _instance)
        return super().expand(batch_shape, _instance=new)

    @property
    def temperature(self) -> Any:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Any:
        """Log probabilities."""
        return self.base_dist.logits

    @property
    def probs(self) -> Any:
        """Probabilities."""
        return self.base_dist.probs
