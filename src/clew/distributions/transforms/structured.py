"""Transforms to vectors and matrices with a structure: simplices, Cholesky factors."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew.distributions import constraints
from clew.distributions.transforms.base import PlainTransform, Transform
from clew.distributions.transforms.compose import require_dims
from clew.distributions.transforms.elementwise import clipped_sigmoid
from clew.distributions.utils import softplus, tril_matrix_to_vec, vec_to_tril_matrix


def _ones(x: Any) -> Any:
    """A one for each vector of `x`."""
    return x.new_ones((*x.shape[:-1], 1))


def _one_before(x: Any) -> Any:
    """`x` with a one before its first element, along the last dimension."""
    return clew.cat([_ones(x), x], -1)


class _OfVectors(PlainTransform):
    """Takes at least one dimension."""

    _longer = 0  # how many more elements a result has than an argument

    def forward_shape(self, shape: Any) -> Any:
        require_dims(shape, 1)
        return (*shape[:-1], shape[-1] + self._longer)

    def inverse_shape(self, shape: Any) -> Any:
        require_dims(shape, 1)
        return (*shape[:-1], shape[-1] - self._longer)


class SoftmaxTransform(_OfVectors):
    """The softmax; many arguments have the same result, its inverse gives one of them."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Any) -> Any:
        weights = (x - x.max(-1, True)[0]).exp()
        return weights / weights.sum(-1, True)

    def _inverse(self, y: Any) -> Any:
        return y.log()


class StickBreakingTransform(_OfVectors):
    """To the simplex with one more element: each takes a part of what the ones before left.

    The offsets send the zero vector to the uniform distribution (Stan's reference manual).
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True
    _longer = 1

    def _call(self, x: Any) -> Any:
        parts = clipped_sigmoid(x - _places_left(x).log())
        left = _one_before((1 - parts).cumprod(-1))
        return clew.cat([parts, _ones(parts)], -1) * left

    def _inverse(self, y: Any) -> Any:
        taken = y[..., :-1]
        left = (1 - taken.cumsum(-1)).clamp(min=clew.finfo(y.dtype).tiny)
        return taken.log() - left.log() + _places_left(taken).log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        x = x - _places_left(x).log()
        return (-x - softplus(-x) + y[..., :-1].log()).sum(-1)


def _places_left(x: Any) -> Any:
    """n, n - 1, ..., 1 for vectors of n elements."""
    return x.shape[-1] + 1 - x.new_ones(x.shape[-1]).cumsum(-1)


class CorrCholeskyTransform(Transform):
    """From vectors to Cholesky factors of correlation matrices.

    Row by row, the partial correlations ``tanh(x)`` become a unit vector (Lewandowski, Kurowicka
    and Joe, "Generating random correlation matrices based on vines and extended onion method",
    2009).
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Any) -> Any:
        eps = clew.finfo(x.dtype).eps
        partial = vec_to_tril_matrix(x.tanh().clamp(min=-1 + eps, max=1 - eps), diag=-1)
        lengths = (1 - partial**2).sqrt().cumprod(-1)
        partial = partial + clew.eye(partial.shape[-1], dtype=partial.dtype)
        return partial * _one_before(lengths[..., :-1])

    def _inverse(self, y: Any) -> Any:
        rest = _one_before((1 - (y * y).cumsum(-1))[..., :-1])
        partial = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(rest, diag=-1).sqrt()
        return (partial.log1p() - partial.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        rest = tril_matrix_to_vec(1 - (y * y).cumsum(-1), diag=-2)
        of_rows = 0.5 * rest.log().sum(-1)
        of_tanh = -2 * (x + softplus(-2 * x) - math.log(2.0)).sum(-1)
        return of_rows + of_tanh

    def forward_shape(self, shape: Any) -> Any:
        require_dims(shape, 1)
        count = shape[-1]
        n = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != count:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return (*shape[:-1], n, n)

    def inverse_shape(self, shape: Any) -> Any:
        require_dims(shape, 2)
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        n = shape[-1]
        return (*shape[:-2], n * (n - 1) // 2)


class LowerCholeskyTransform(PlainTransform):
    """From matrices to lower triangular ones with a positive diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Any) -> Any:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Any) -> Any:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(PlainTransform):
    """From matrices to positive definite ones."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Any) -> Any:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Any) -> Any:
        return LowerCholeskyTransform().inv(clew.linalg.cholesky(y))
