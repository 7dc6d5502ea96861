"""Random correlation matrices, as Cholesky factors."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew.distributions import constraints
from clew.distributions.beta import Beta
from clew.distributions.distribution import Distribution
from clew.distributions.utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices C, with a density like a power of ``det(C)``.

    The power is `concentration` less 1: with 1 all correlation matrices are equally likely; a
    larger concentration prefers the identity.  Samples grow row by row, the "onion method" of
    Lewandowski, Kurowicka and Joe, "Generating random correlation matrices based on vines and
    extended onion method", 2009.

    Args:
        dim: the number of rows of a matrix, at least 2.
        concentration: a positive number or tensor.
        validate_args: see `Distribution`.

    Raises:
        ValueError: `dim` is less than 2.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # The squared radius of row i beyond its diagonal is a beta number; row 0 has none.
        kind = {"dtype": self.concentration.dtype}
        row = clew.cat([clew.zeros((1,), **kind), clew.arange(dim - 1, **kind)])
        marginal = self.concentration + 0.5 * (dim - 2)
        self._beta = Beta(row + 0.5, marginal.unsqueeze(-1) - 0.5 * row)
        super().__init__(self.concentration.size(), clew.Size((dim, dim)), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(LKJCholesky, _instance)
        batch_shape = clew.Size(batch_shape)
        new.dim = self.dim
        new.concentration = self.concentration.expand(batch_shape)
        new._beta = self._beta.expand((*batch_shape, self.dim))
        super(LKJCholesky, new).__init__(batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def sample(self, sample_shape: Any = ()) -> Any:
        squared_radius = self._beta.sample(sample_shape).unsqueeze(-1)
        normal = clew.randn(self._extended_shape(sample_shape), dtype=squared_radius.dtype).tril(-1)
        direction = normal / normal.norm(dim=-1, keepdim=True)
        direction[..., 0, :].fill_(0.0)
        rows = clew.sqrt(squared_radius) * direction
        tiny = clew.finfo(rows.dtype).tiny
        diagonal = clew.clamp(1 - (rows**2).sum(-1), min=tiny).sqrt()
        return rows + clew.diag_embed(diagonal)

    def log_prob(self, value: Any) -> Any:
        self._checked(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        row = clew.arange(2, self.dim + 1)
        power = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - row
        unnormalized = (power * diagonal.log()).sum(-1)
        return unnormalized - self._log_normalizer()

    def _log_normalizer(self) -> Any:
        """The logarithm of the integral over all factors: p. 1999 of the article."""
        rows = self.dim - 1
        alpha = self.concentration + 0.5 * rows
        numerator = clew.mvlgamma(alpha - 0.5, rows)
        return 0.5 * rows * math.log(math.pi) + numerator - clew.lgamma(alpha) * rows
