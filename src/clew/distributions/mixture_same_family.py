"""Mixtures of distributions of one family."""

from __future__ import annotations

from typing import Any

import clew
from clew.autograd.modes import no_grad
from clew.distributions import constraints
from clew.distributions.categorical import Categorical
from clew.distributions.constraints import MixtureSameFamilyConstraint
from clew.distributions.distribution import Distribution
from clew.distributions.utils import as_size

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """Draws a component, then from it.

    Args:
        mixture_distribution: a `Categorical` of the components' probabilities.
        component_distribution: a distribution whose last batch dimension counts the components.
        validate_args: see `Distribution`.

    Raises:
        ValueError: the arguments are no such distributions, or their shapes do not fit.
    """

    arg_constraints: Any = {}
    has_rsample = False

    def __init__(
        self,
        mixture_distribution: Any,
        component_distribution: Any,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                " The Mixture distribution needs to be an  instance of "
                "torch.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution needs to be an instance of "
                "torch.distributions.Distribution"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        batch = component_distribution.batch_shape[:-1]
        self._check_shapes(batch)
        self._num_component = component_distribution.batch_shape[-1]
        event = component_distribution.event_shape
        self._event_ndims = len(event)
        super().__init__(batch, event, validate_args=validate_args)

    def _check_shapes(self, batch: Any) -> None:
        mixture = self._mixture_distribution.batch_shape
        pairs = zip(reversed(mixture), reversed(batch))
        if any(a != b and 1 not in (a, b) for a, b in pairs):
            raise ValueError(
                f"`mixture_distribution.batch_shape` ({mixture}) is not compatible with "
                f"`component_distribution.batch_shape`({batch})"
            )
        weights = self._mixture_distribution.logits.shape[-1]
        components = self._component_distribution.batch_shape[-1]
        if weights != components:
            raise ValueError(
                f"`mixture_distribution component` ({weights}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({components})"
            )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        batch_shape = as_size(batch_shape)
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._component_distribution = self._component_distribution.expand(
            (*batch_shape, self._num_component)
        )
        new._num_component = self._num_component
        new._event_ndims = self._event_ndims
        return self._finish(new, batch_shape)

    @constraints.dependent_property
    def support(self) -> Any:
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Any:
        """The distribution of the components' indices."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Any:
        """The components, along the last batch dimension."""
        return self._component_distribution

    def _weighted(self, values: Any) -> Any:
        """The mean over the components of something that each of them has."""
        weights = self._mixture_distribution.probs
        own = len(self._mixture_distribution.batch_shape)
        missing = 0 if own == 1 else len(self._batch_shape) - own
        shape = (*weights.shape[:-1], *[1] * missing, weights.shape[-1], *[1] * self._event_ndims)
        return (weights.reshape(shape) * values).sum(dim=-1 - self._event_ndims)

    @property
    def mean(self) -> Any:
        return self._weighted(self._component_distribution.mean)

    @property
    def variance(self) -> Any:
        components = self._component_distribution
        within = self._weighted(components.variance)
        return within + self._weighted((components.mean - self._pad(self.mean)).pow(2.0))

    def cdf(self, value: Any) -> Any:
        cdf = self._component_distribution.cdf(self._pad(value))
        return (cdf * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Any) -> Any:
        self._checked(value)
        of_components = self._component_distribution.log_prob(self._pad(value))
        log_weights = clew.log_softmax(self._mixture_distribution.logits, -1)
        return clew.logsumexp(of_components + log_weights, dim=-1)

    def sample(self, sample_shape: Any = ()) -> Any:
        dim = len(sample_shape) + len(self.batch_shape)
        event = self.event_shape
        with no_grad():
            chosen = self._mixture_distribution.sample(sample_shape)
            values = self._component_distribution.sample(sample_shape)
            index = chosen.reshape(chosen.shape + (1,) * (1 + len(event)))
            index = index.expand((*chosen.shape, 1, *event))
            return clew.gather(values, dim, index).squeeze(dim)

    def _pad(self, x: Any) -> Any:
        """`x` with a dimension for the components."""
        return x.unsqueeze(-1 - self._event_ndims)

    def __repr__(self) -> str:
        inside = f"\n  {self.mixture_distribution},\n  {self.component_distribution}"
        return f"MixtureSameFamily({inside})"
