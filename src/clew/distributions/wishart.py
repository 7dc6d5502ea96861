"""The Wishart distribution of positive definite matrices."""

from __future__ import annotations

import math
import warnings
from numbers import Number
from typing import Any

import clew
from clew.distributions import constraints
from clew.distributions.chi2 import Chi2
from clew.distributions.exp_family import ExponentialFamily
from clew.distributions.multivariate_normal import (
    cholesky_factor,
    half_log_det,
    only_given,
)
from clew.distributions.utils import lazy_property

__all__ = ["Wishart"]

_LOG_2 = math.log(2)


def _mvdigamma(x: Any, p: int) -> Any:
    """The derivative of the logarithm of the multivariate gamma function."""
    return clew.digamma(x.unsqueeze(-1) - clew.arange(p, dtype=x.dtype).div(2)).sum(-1)


class Wishart(ExponentialFamily):
    """Sums of `df` outer products of normal vectors with mean zero and the given covariance.

    Args:
        df: the degrees of freedom, a number or tensor greater than the rows of a matrix less one.
        covariance_matrix: the covariance; or
        precision_matrix: its inverse; or
        scale_tril: its Cholesky factor.
        validate_args: see `Distribution`.

    Raises:
        AssertionError: not exactly one matrix is given.
        ValueError: the matrix has too few dimensions, or `df` is too small.
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self) -> Any:
        """What the arguments must fulfil; how large `df` must be depends on the matrix."""
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def __init__(
        self,
        df: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = only_given(
            AssertionError, covariance_matrix=covariance_matrix, precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )  # fmt: skip
        if matrix.dim() < 2:
            raise ValueError(
                "scale_tril must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        if isinstance(df, Number):
            df = clew.tensor(df, dtype=matrix.dtype)
        batch_shape = clew.broadcast_shapes(matrix.shape[:-2], df.shape)
        event_shape = matrix.shape[-2:]
        self.df = df.expand(batch_shape)
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        if self.df.le(event_shape[-1] - 1).any():
            raise ValueError(
                f"Value of df={df} expected to be greater than ndim - 1 = {event_shape[-1] - 1}."
            )
        self._unbroadcasted_scale_tril = cholesky_factor(name, matrix)
        self._chi2 = self._chi_squares(batch_shape, event_shape[-1])
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        if self.df.lt(event_shape[-1]).any():
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for "
                "ndim - 1 < df < ndim.",
                stacklevel=2,
            )

    def _chi_squares(self, batch_shape: Any, n: int) -> Chi2:
        """The squares on the diagonal of Bartlett's factor: ever fewer degrees of freedom."""
        fewer = clew.arange(n, dtype=self._unbroadcasted_scale_tril.dtype)
        return Chi2(self.df.unsqueeze(-1) - fewer.expand((*batch_shape, -1)))

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Wishart, _instance)
        batch_shape = clew.Size(batch_shape)
        matrices = batch_shape + self.event_shape
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril.expand(matrices)
        new.df = self.df.expand(batch_shape)
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if name in self.__dict__:
                setattr(new, name, getattr(self, name).expand(matrices))
        new._chi2 = new._chi_squares(batch_shape, self.event_shape[-1])
        super(Wishart, new).__init__(batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def _matrix_shape(self) -> Any:
        return self._batch_shape + self._event_shape

    @lazy_property
    def scale_tril(self) -> Any:
        """The Cholesky factor of the covariance."""
        return self._unbroadcasted_scale_tril.expand(self._matrix_shape)

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        factor = self._unbroadcasted_scale_tril
        return (factor @ factor.mT).expand(self._matrix_shape)

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        return clew.cholesky_inverse(self._unbroadcasted_scale_tril).expand(self._matrix_shape)

    @property
    def _df_of_matrix(self) -> Any:
        return self.df.view((*self._batch_shape, 1, 1))

    @property
    def mean(self) -> Any:
        return self._df_of_matrix * self.covariance_matrix

    @property
    def mode(self) -> Any:
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor = factor.masked_fill(factor <= 0, math.nan)
        return factor.view((*self._batch_shape, 1, 1)) * self.covariance_matrix

    @property
    def variance(self) -> Any:
        covariance = self.covariance_matrix
        diagonal = covariance.diagonal(dim1=-2, dim2=-1)
        products = clew.einsum("...i,...j->...ij", diagonal, diagonal)
        return self._df_of_matrix * (covariance.pow(2) + products)

    def _bartlett(self, sample_shape: Any) -> Any:
        """Matrices by Bartlett's decomposition: a factor of chi and normal numbers (1933)."""
        n = self._event_shape[-1]
        noise = self._chi2.rsample(sample_shape).sqrt().diag_embed(dim1=-2, dim2=-1)
        i, j = clew.tril_indices(n, n, offset=-1)
        below = (*sample_shape, *self._batch_shape, n * (n - 1) // 2)
        noise[..., i, j] = clew.randn(below, dtype=noise.dtype)
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def rsample(self, sample_shape: Any = (), max_try_correction: int | None = None) -> Any:
        """Samples, drawn again where PyTorch draws them again, so that the numbers are the same.

        PyTorch means to draw singular samples anew, at most `max_try_correction` times (by
        default 3 for single numbers, else 10), but its first look takes the regular ones for
        singular.  So each regular sample is drawn twice, with a warning.
        """
        if max_try_correction is None:
            max_try_correction = 3 if self._event_shape[-1] == 1 else 10
        sample = self._bartlett(clew.Size(sample_shape))
        again = self._over_batch(self.support.check(sample))
        if again.any():
            warnings.warn("Singular sample detected.", stacklevel=2)
            for _ in range(max_try_correction):
                fresh = self._bartlett(again[again].shape)
                sample[again] = fresh
                again[again.clone()] = self._over_batch(~self.support.check(fresh))
                if not again.any():
                    break
        return sample

    def _over_batch(self, found: Any) -> Any:
        """Whether it was found for any distribution of the batch."""
        batch = tuple(range(-len(self._batch_shape), 0))
        return found.amax(batch) if batch else found

    def log_prob(self, value: Any) -> Any:
        self._checked(value)
        nu, n = self.df, self._event_shape[-1]
        factor = self._unbroadcasted_scale_tril
        traces = clew.cholesky_solve(value, factor).diagonal(dim1=-2, dim2=-1).sum(-1)
        return (
            -nu * (n * _LOG_2 / 2 + half_log_det(factor))
            - clew.mvlgamma(nu / 2, p=n)
            + (nu - n - 1) / 2 * clew.linalg.slogdet(value).logabsdet
            - traces / 2
        )

    def entropy(self) -> Any:
        nu, n = self.df, self._event_shape[-1]
        return (
            (n + 1) * (n * _LOG_2 / 2 + half_log_det(self._unbroadcasted_scale_tril))
            + clew.mvlgamma(nu / 2, p=n)
            - (nu - n - 1) / 2 * _mvdigamma(nu / 2, n)
            + nu * n / 2
        )

    @property
    def _natural_params(self) -> tuple[Any, Any]:
        nu, n = self.df, self._event_shape[-1]
        return -self.precision_matrix / 2, (nu - n - 1) / 2

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        n = self._event_shape[-1]
        power = y + (n + 1) / 2
        return power * (-clew.linalg.slogdet(-2 * x).logabsdet + n * _LOG_2) + clew.mvlgamma(
            power, n
        )
