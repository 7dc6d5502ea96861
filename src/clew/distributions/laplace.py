"""The Laplace distribution."""

from __future__ import annotations

from typing import Any

import clew
from clew.distributions import constraints
from clew.distributions.distribution import Distribution
from clew.distributions.utils import broadcast_all

__all__ = ["Laplace"]


class Laplace(Distribution):
    """Numbers that fall off exponentially on both sides of `loc`, at the rate ``1 / scale``."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _expandable = {"loc": 0, "scale": 0}

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def stddev(self) -> Any:
        return 2**0.5 * self.scale

    @property
    def variance(self) -> Any:
        return 2 * self.scale.pow(2)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        u = clew.empty(shape, dtype=self.loc.dtype)
        u.uniform_(clew.finfo(self.loc.dtype).eps - 1, 1)
        return self.loc - self.scale * u.sign() * clew.log1p(-u.abs())

    def log_prob(self, value: Any) -> Any:
        self._checked(value)
        return -clew.log(2 * self.scale) - clew.abs(value - self.loc) / self.scale

    def cdf(self, value: Any) -> Any:
        self._checked(value)
        distance = value - self.loc
        return 0.5 - 0.5 * distance.sign() * clew.expm1(-distance.abs() / self.scale)

    def icdf(self, value: Any) -> Any:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * clew.log1p(-2 * term.abs())

    def entropy(self) -> Any:
        return 1 + clew.log(2 * self.scale)
