"""Divergences of normal distributions of vectors where a covariance is of low rank.

``KL(p || q)`` of normal distributions is half of: the log determinant of q's covariance less that
of p's, the trace of the one's inverse times the other, the squared distance of the means, and
minus the dimension.  Here the first and the last two come from the small matrices of
`LowRankMultivariateNormal`.
"""

from __future__ import annotations

from typing import Any

import clew
from clew.distributions.kl import register_kl
from clew.distributions.low_rank_multivariate_normal import (
    LowRankMultivariateNormal,
    low_rank_distance,
    low_rank_log_det,
)
from clew.distributions.multivariate_normal import (
    MultivariateNormal,
    half_log_det,
    squared_distance,
)


def _check(p: Any, q: Any, kinds: str) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"KL-divergence between two {kinds} Multivariate Normals with different event shapes "
            "cannot be computed"
        )


def _log_det(d: LowRankMultivariateNormal) -> Any:
    return low_rank_log_det(d._unbroadcasted_cov_diag, d._capacitance_tril)


def _distance(q: LowRankMultivariateNormal, p: Any) -> Any:
    """The squared distance of the means, measured by q's covariance."""
    factor, diagonal = q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag
    return low_rank_distance(factor, diagonal, q.loc - p.loc, q._capacitance_tril)


def _squares(matrix: Any) -> Any:
    return matrix.pow(2).sum((-2, -1))


def _solve(factor: Any, matrix: Any) -> Any:
    """``L^-1 M`` of batches that broadcast."""
    batch = clew.broadcast_shapes(factor.shape[:-2], matrix.shape[:-2])
    factor = factor.expand(batch + factor.shape[-2:])
    return clew.linalg.solve_triangular(
        factor, matrix.expand(batch + matrix.shape[-2:]), upper=False
    )


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_rank(p: Any, q: Any) -> Any:
    _check(p, q, "Low Rank")
    diagonal = q._unbroadcasted_cov_diag
    scaled = q._unbroadcasted_cov_factor.mT / diagonal.unsqueeze(-2)
    inner = clew.linalg.solve_triangular(q._capacitance_tril, scaled, upper=False)
    of_diagonals = (p._unbroadcasted_cov_diag / diagonal).sum(-1)
    of_factor = _squares(p._unbroadcasted_cov_factor * diagonal.rsqrt().unsqueeze(-1))
    along_diagonal = _squares(inner * p._unbroadcasted_cov_diag.sqrt().unsqueeze(-2))
    along_factor = _squares(inner.matmul(p._unbroadcasted_cov_factor))
    trace = of_diagonals + of_factor - along_diagonal - along_factor
    log_dets = _log_det(q) - _log_det(p)
    return 0.5 * (log_dets + trace + _distance(q, p) - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _full_to_low_rank(p: Any, q: Any) -> Any:
    _check(p, q, "(Low Rank)")
    diagonal, own = q._unbroadcasted_cov_diag, p._unbroadcasted_scale_tril
    scaled = q._unbroadcasted_cov_factor.mT / diagonal.unsqueeze(-2)
    inner = clew.linalg.solve_triangular(q._capacitance_tril, scaled, upper=False)
    trace = _squares(own * diagonal.rsqrt().unsqueeze(-1)) - _squares(inner.matmul(own))
    log_dets = _log_det(q) - 2 * half_log_det(own)
    return 0.5 * (log_dets + trace + _distance(q, p) - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank_to_full(p: Any, q: Any) -> Any:
    _check(p, q, "(Low Rank)")
    other = q._unbroadcasted_scale_tril
    factor = _solve(other, p._unbroadcasted_cov_factor)
    root = _solve(other, clew.diag_embed(p._unbroadcasted_cov_diag.sqrt()))
    trace = _squares(factor) + _squares(root)
    log_dets = 2 * half_log_det(other) - _log_det(p)
    distance = squared_distance(other, q.loc - p.loc)
    return 0.5 * (log_dets + trace + distance - p.event_shape[0])
