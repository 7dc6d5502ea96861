"""The normal distribution of vectors whose covariance is of low rank plus a diagonal."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew.distributions import constraints
from clew.distributions.distribution import Distribution
from clew.distributions.multivariate_normal import (
    half_log_det,
    matrix_vector,
    squared_distance,
)
from clew.distributions.utils import lazy_property

__all__ = ["LowRankMultivariateNormal"]


def capacitance_factor(factor: Any, diagonal: Any) -> Any:
    """The Cholesky factor of ``I + W^T D^-1 W``, a matrix as small as the rank.

    By the lemmas on determinants and inverses of such sums (Woodbury 1950), it is all that the
    density needs of the large matrix ``W W^T + D``.
    """
    rank = factor.shape[-1]
    scaled = factor.mT / diagonal.unsqueeze(-2)
    capacitance = clew.matmul(scaled, factor).contiguous()
    capacitance.view(-1, rank * rank)[:, :: rank + 1] += 1
    return clew.linalg.cholesky(capacitance)


def low_rank_log_det(diagonal: Any, capacitance_tril: Any) -> Any:
    """The log determinant of ``W W^T + D``."""
    return 2 * half_log_det(capacitance_tril) + diagonal.log().sum(-1)


def low_rank_distance(factor: Any, diagonal: Any, difference: Any, capacitance_tril: Any) -> Any:
    """The squared Mahalanobis distance ``x^T (W W^T + D)^-1 x``."""
    scaled = factor.mT / diagonal.unsqueeze(-2)
    along = squared_distance(capacitance_tril, matrix_vector(scaled, difference))
    return (difference.pow(2) / diagonal).sum(-1) - along


class LowRankMultivariateNormal(Distribution):
    """Normal vectors of mean `loc` and covariance ``cov_factor cov_factor^T + diag(cov_diag)``.

    Args:
        loc: the mean, of n elements.
        cov_factor: n rows, as many columns as the rank.
        cov_diag: n positive numbers.
        validate_args: see `Distribution`.

    Raises:
        ValueError: an argument has too few dimensions, or does not fit the others.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError(
                "cov_factor must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(
                f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m"
            )
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        vector, diagonal = loc.unsqueeze(-1), cov_diag.unsqueeze(-1)
        try:
            vector, self.cov_factor, diagonal = clew.broadcast_tensors(vector, cov_factor, diagonal)
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, "
                f"cov_diag {cov_diag.shape}"
            ) from error
        self.loc = vector[..., 0]
        self.cov_diag = diagonal[..., 0]
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = capacitance_factor(cov_factor, cov_diag)
        super().__init__(self.loc.shape[:-1], event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(LowRankMultivariateNormal, _instance)
        batch_shape = clew.Size(batch_shape)
        vectors = batch_shape + self.event_shape
        new.loc = self.loc.expand(vectors)
        new.cov_diag = self.cov_diag.expand(vectors)
        new.cov_factor = self.cov_factor.expand(vectors + self.cov_factor.shape[-1:])
        for name in ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril"):
            setattr(new, name, getattr(self, name))
        super(LowRankMultivariateNormal, new).__init__(
            batch_shape, self.event_shape, validate_args=False
        )
        new._validate_args = self._validate_args
        return new

    @property
    def _matrix_shape(self) -> Any:
        return self._batch_shape + self._event_shape + self._event_shape

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @lazy_property
    def variance(self) -> Any:
        squares = self._unbroadcasted_cov_factor.pow(2).sum(-1)
        variance = squares + self._unbroadcasted_cov_diag
        return variance.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Any:
        """The Cholesky factor of the covariance, computed in a way that loses few digits."""
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        inner = clew.matmul(scaled, scaled.mT).contiguous()
        n = self._event_shape[0]
        inner.view(-1, n * n)[:, :: n + 1] += 1
        return (root * clew.linalg.cholesky(inner)).expand(self._matrix_shape)

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance, as a full matrix."""
        factor = self._unbroadcasted_cov_factor
        full = clew.matmul(factor, factor.mT) + clew.diag_embed(self._unbroadcasted_cov_diag)
        return full.expand(self._matrix_shape)

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance, by Woodbury's identity."""
        diagonal = self._unbroadcasted_cov_diag
        scaled = self._unbroadcasted_cov_factor.mT / diagonal.unsqueeze(-2)
        solved = clew.linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        precision = clew.diag_embed(diagonal.reciprocal()) - clew.matmul(solved.mT, solved)
        return precision.expand(self._matrix_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        kind = {"dtype": self.loc.dtype}
        along = clew.randn(shape[:-1] + self.cov_factor.shape[-1:], **kind)
        apart = clew.randn(shape, **kind)
        return (
            self.loc
            + matrix_vector(self._unbroadcasted_cov_factor, along)
            + self._unbroadcasted_cov_diag.sqrt() * apart
        )

    def log_prob(self, value: Any) -> Any:
        self._checked(value)
        factor, diagonal = self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag
        difference = value - self.loc
        distance = low_rank_distance(factor, diagonal, difference, self._capacitance_tril)
        log_det = low_rank_log_det(diagonal, self._capacitance_tril)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + log_det + distance)

    def entropy(self) -> Any:
        log_det = low_rank_log_det(self._unbroadcasted_cov_diag, self._capacitance_tril)
        entropy = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + log_det)
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy
