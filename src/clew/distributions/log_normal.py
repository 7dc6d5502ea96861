"""The log-normal distribution."""

from __future__ import annotations

from typing import Any

from clew.distributions import constraints
from clew.distributions.normal import Normal
from clew.distributions.transformed_distribution import TransformedDistribution
from clew.distributions.transforms import ExpTransform

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """Exponentials of normal numbers of mean `loc` and standard deviation `scale`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(LogNormal, _instance)
        return super().expand(batch_shape, _instance=new)

    @property
    def loc(self) -> Any:
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Any:
        """The standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self) -> Any:
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def mode(self) -> Any:
        return (self.loc - self.scale.pow(2)).exp()

    @property
    def variance(self) -> Any:
        variance = self.scale.pow(2)
        return variance.expm1() * (2 * self.loc + variance).exp()

    def entropy(self) -> Any:
        return self.base_dist.entropy() + self.loc
