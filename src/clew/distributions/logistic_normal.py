"""The logistic-normal distribution."""

from __future__ import annotations

from typing import Any

from clew.distributions import constraints
from clew.distributions.normal import Normal
from clew.distributions.transformed_distribution import TransformedDistribution
from clew.distributions.transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Normal vectors sent to the simplex with one more element."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(LogisticNormal, _instance)
        return super().expand(batch_shape, _instance=new)

    @property
    def loc(self) -> Any:
        """The mean of the normal vectors."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Any:
        """The standard deviation of the normal vectors."""
        return self.base_dist.base_dist.scale
