"""The normal distribution of vectors."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew.distributions import constraints
from clew.distributions.distribution import Distribution
from clew.distributions.utils import lazy_property

__all__ = ["MultivariateNormal"]


def matrix_vector(matrix: Any, vector: Any) -> Any:
    """Products of matrices and vectors, both in batches."""
    return clew.matmul(matrix, vector.unsqueeze(-1)).squeeze(-1)


def half_log_det(factor: Any) -> Any:
    """Half the log determinant of the matrix with this Cholesky factor."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def squared_distance(factor: Any, difference: Any) -> Any:
    """The Mahalanobis distance, squared: ``|L^-1 x|^2`` for the Cholesky factor L.

    The batch of `difference` may have more dimensions than that of `factor`, and larger ones where
    the factor's are 1.  Vectors with the same factor are solved for together.
    """
    n = difference.shape[-1]
    batch = difference.shape[:-1]
    factor_batch = factor.shape[:-2]
    outer = len(batch) - len(factor_batch)
    # Split each batch dimension into (vectors that share a factor, factors).
    split = [*batch[:outer]]
    for factors, size in zip(factor_batch, batch[outer:]):
        split += [size // factors, factors]
    sharing = [*range(outer), *range(outer, len(split), 2)]
    apart = [*range(outer + 1, len(split), 2)]
    ordered = difference.reshape((*split, n)).permute((*sharing, *apart, len(split)))
    columns = ordered.reshape(-1, math.prod(factor_batch), n).permute(1, 2, 0)
    solved = clew.linalg.solve_triangular(factor.reshape(-1, n, n), columns, upper=False)
    distances = solved.pow(2).sum(-2).t().reshape(ordered.shape[:-1])
    places = {dim: place for place, dim in enumerate([*sharing, *apart])}
    return distances.permute([places[dim] for dim in range(len(split))]).reshape(batch)


def factor_of_precision(precision: Any) -> Any:
    """The Cholesky factor of the inverse of a matrix, without inverting it.

    The flipped factor of the flipped matrix is the transposed inverse of the factor sought.
    """
    flipped = clew.linalg.cholesky(clew.flip(precision, (-2, -1)))
    inverse = clew.flip(flipped, (-2, -1)).transpose(-2, -1)
    identity = clew.eye(precision.shape[-1], dtype=precision.dtype)
    return clew.linalg.solve_triangular(inverse, identity, upper=False)


def only_given(error: type[Exception], **matrices: Any) -> tuple[str, Any]:
    """The name and value of the one argument that is a matrix; the others are None.

    Raises:
        Exception: of the type `error`: none or several are given.
    """
    given = [(name, matrix) for name, matrix in matrices.items() if matrix is not None]
    if len(given) != 1:
        raise error(
            "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
        )
    return given[0]


def cholesky_factor(name: str, matrix: Any) -> Any:
    """The Cholesky factor of the covariance, from the matrix of that name."""
    if name == "scale_tril":
        return matrix
    if name == "covariance_matrix":
        return clew.linalg.cholesky(matrix)
    return factor_of_precision(matrix)


class MultivariateNormal(Distribution):
    """Normal vectors of mean `loc` and a covariance.

    Args:
        loc: the mean.
        covariance_matrix: the covariance; or
        precision_matrix: its inverse; or
        scale_tril: its Cholesky factor, which is the cheapest to give.
        validate_args: see `Distribution`.

    Raises:
        ValueError: not exactly one matrix is given, or one of too few dimensions.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    _expandable = {"loc": 1, "covariance_matrix": 2, "precision_matrix": 2, "scale_tril": 2}

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = only_given(
            ValueError, covariance_matrix=covariance_matrix, precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )  # fmt: skip
        if matrix.ndim < 2:
            what = "scale_tril matrix" if name == "scale_tril" else name
            raise ValueError(
                f"{what} must be at least two-dimensional, with optional leading batch dimensions"
            )
        batch_shape = clew.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        self.loc = loc.expand((*batch_shape, -1))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = cholesky_factor(name, matrix)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        return new

    @property
    def _matrix_shape(self) -> Any:
        return self._batch_shape + self._event_shape + self._event_shape

    @lazy_property
    def scale_tril(self) -> Any:
        """The Cholesky factor of the covariance."""
        return self._unbroadcasted_scale_tril.expand(self._matrix_shape)

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        factor = self._unbroadcasted_scale_tril
        return clew.matmul(factor, factor.mT).expand(self._matrix_shape)

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        return clew.cholesky_inverse(self._unbroadcasted_scale_tril).expand(self._matrix_shape)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        variance = self._unbroadcasted_scale_tril.pow(2).sum(-1)
        return variance.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        noise = clew.randn(self._extended_shape(sample_shape), dtype=self.loc.dtype)
        return self.loc + matrix_vector(self._unbroadcasted_scale_tril, noise)

    def log_prob(self, value: Any) -> Any:
        self._checked(value)
        factor = self._unbroadcasted_scale_tril
        distance = squared_distance(factor, value - self.loc)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + distance) - half_log_det(factor)

    def entropy(self) -> Any:
        constant = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        entropy = constant + half_log_det(self._unbroadcasted_scale_tril)
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy
