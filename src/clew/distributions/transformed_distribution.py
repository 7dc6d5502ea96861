"""A distribution of values that are transformed after they are drawn."""

from __future__ import annotations

from typing import Any

from clew.autograd.modes import no_grad
from clew.distributions import constraints
from clew.distributions.distribution import Distribution
from clew.distributions.independent import Independent
from clew.distributions.transforms import ComposeTransform, Transform
from clew.distributions.utils import as_size, sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """`base_distribution` followed by transforms.

    Args:
        base_distribution: where values are drawn.
        transforms: a transform, or a list of them, applied one after another.
        validate_args: see `Distribution`.

    Raises:
        ValueError: `transforms` is something else, or takes values of more dimensions.
    """

    arg_constraints: Any = {}
    base_dist: Any

    def __init__(
        self, base_distribution: Any, transforms: Any, validate_args: bool | None = None
    ) -> None:
        self.transforms = _as_list(transforms)
        transform = ComposeTransform(self.transforms)
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        base_event_dim = len(base_distribution.event_shape)
        domain_dim, codomain_dim = transform.domain.event_dim, transform.codomain.event_dim
        if len(base_shape) < domain_dim:
            raise ValueError(
                "base_distribution needs to have shape with size at least "
                f"{domain_dim}, but got {base_shape}."
            )
        # A transform with parameters may broadcast the base.
        shape = transform.forward_shape(base_shape)
        broadcast: Any = transform.inverse_shape(shape)
        if base_shape != broadcast:
            base_distribution = base_distribution.expand(
                broadcast[: len(broadcast) - base_event_dim]
            )
        if domain_dim > base_event_dim:
            base_distribution = Independent(base_distribution, domain_dim - base_event_dim)
        self.base_dist = base_distribution
        event_dim = max(codomain_dim, base_event_dim + codomain_dim - domain_dim)
        cut = len(shape) - event_dim
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(TransformedDistribution, _instance)
        batch_shape = as_size(batch_shape)
        shape = batch_shape + self.event_shape
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms
        return self._finish(new, batch_shape)

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        missing = len(self.event_shape) - support.event_dim
        return constraints.independent(support, missing) if missing > 0 else support

    @property
    def has_rsample(self) -> bool:
        return self.base_dist.has_rsample

    def _transformed(self, x: Any) -> Any:
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self._transformed(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        self._checked(value)
        event_dim = len(self.event_shape)
        log_prob: Any = 0.0
        y = value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            log_prob = log_prob - sum_rightmost(
                transform.log_abs_det_jacobian(x, y), event_dim - transform.domain.event_dim
            )
            y = x
        rest = event_dim - len(self.base_dist.event_shape)
        return log_prob + sum_rightmost(self.base_dist.log_prob(y), rest)

    def _in_order(self, probability: Any) -> Any:
        """A probability below, of the base, as one of the result: 1 - p for falling transforms."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        if isinstance(sign, int) and sign == 1:
            return probability
        return sign * (probability - 0.5) + 0.5

    def cdf(self, value: Any) -> Any:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._in_order(self.base_dist.cdf(value))

    def icdf(self, value: Any) -> Any:
        return self._transformed(self.base_dist.icdf(self._in_order(value)))


def _as_list(transforms: Any) -> list[Any]:
    if isinstance(transforms, Transform):
        return [transforms]
    if not isinstance(transforms, list):
        raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
    if not all(isinstance(t, Transform) for t in transforms):
        raise ValueError("transforms must be a Transform or a list of Transforms")
    return transforms
