"""Student's t distribution."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew.distributions import constraints
from clew.distributions.chi2 import Chi2
from clew.distributions.distribution import Distribution
from clew.distributions.utils import broadcast_all

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Normal numbers over the root of a chi-squared one of `df` degrees, shifted and scaled."""

    arg_constraints = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True
    _expandable = {"df": 0, "loc": 0, "scale": 0}

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._chi2 = self._chi2.expand(batch_shape)
        return new

    @property
    def mean(self) -> Any:
        return self.loc.masked_fill(self.df <= 1, math.nan)

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        finite = self.df > 2
        df = clew.where(finite, self.df, 3.0)
        variance = clew.where(finite, self.scale.pow(2) * df / (df - 2), math.inf)
        return variance.masked_fill(self.df <= 1, math.nan)

    def rsample(self, sample_shape: Any = ()) -> Any:
        normal = clew.randn(self._extended_shape(sample_shape), dtype=self.df.dtype)
        chi2 = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (normal * clew.rsqrt(chi2 / self.df))

    def log_prob(self, value: Any) -> Any:
        self._checked(value)
        y = (value - self.loc) / self.scale
        log_norm = (
            self.scale.log()
            + 0.5 * self.df.log()
            + 0.5 * math.log(math.pi)
            + clew.lgamma(0.5 * self.df)
            - clew.lgamma(0.5 * (self.df + 1.0))
        )
        return -0.5 * (self.df + 1.0) * clew.log1p(y**2.0 / self.df) - log_norm

    def entropy(self) -> Any:
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = clew.lgamma(half) + math.lgamma(0.5) - clew.lgamma(more)
        return (
            self.scale.log()
            + more * (clew.digamma(more) - clew.digamma(half))
            + 0.5 * self.df.log()
            + log_beta
        )
