"""What the distributions of absolute values share."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew.distributions import constraints
from clew.distributions.transformed_distribution import TransformedDistribution
from clew.distributions.transforms import AbsTransform


class Half(TransformedDistribution):
    """Absolute values of a distribution that is symmetric around zero, of the given `scale`."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _whole: Any

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = self._whole(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Half, _instance)
        return super().expand(batch_shape, _instance=new)

    @property
    def scale(self) -> Any:
        """The scale of the symmetric distribution."""
        return self.base_dist.scale

    @property
    def mode(self) -> Any:
        return clew.zeros_like(self.scale)

    def log_prob(self, value: Any) -> Any:
        self._checked(value)
        twice = self.base_dist.log_prob(value) + math.log(2)
        return clew.where(value >= 0, twice, -math.inf)

    def cdf(self, value: Any) -> Any:
        self._checked(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Any) -> Any:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Any:
        return self.base_dist.entropy() - math.log(2)
