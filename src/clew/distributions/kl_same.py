"""Divergences of distributions of the same family.

The formulas follow from the densities; most stand in Gil, Alajaji and Linder, "Renyi divergence
measures for commonly used univariate continuous distributions", 2013.
"""

from __future__ import annotations

import math
from typing import Any

import clew
from clew.autograd import grad
from clew.distributions.bernoulli import Bernoulli
from clew.distributions.beta import Beta
from clew.distributions.binomial import Binomial
from clew.distributions.categorical import Categorical
from clew.distributions.cauchy import Cauchy
from clew.distributions.continuous_bernoulli import ContinuousBernoulli
from clew.distributions.dirichlet import Dirichlet
from clew.distributions.exp_family import ExponentialFamily
from clew.distributions.exponential import Exponential
from clew.distributions.gamma import Gamma
from clew.distributions.geometric import Geometric
from clew.distributions.gumbel import Gumbel
from clew.distributions.half_normal import HalfNormal
from clew.distributions.independent import Independent
from clew.distributions.kl import kl_divergence, register_kl
from clew.distributions.laplace import Laplace
from clew.distributions.multivariate_normal import (
    MultivariateNormal,
    half_log_det,
    squared_distance,
)
from clew.distributions.normal import Normal
from clew.distributions.one_hot_categorical import OneHotCategorical
from clew.distributions.pareto import Pareto
from clew.distributions.poisson import Poisson
from clew.distributions.transformed_distribution import TransformedDistribution
from clew.distributions.uniform import Uniform
from clew.distributions.utils import euler_constant, softplus, sum_rightmost


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Any:
    ones = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    ones = ones.masked_fill(q.probs == 0, math.inf).masked_fill(p.probs == 0, 0)
    zeros = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    zeros = zeros.masked_fill(q.probs == 1, math.inf).masked_fill(p.probs == 1, 0)
    return ones + zeros


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Any:
    a, b, c, d = p.concentration1, p.concentration0, q.concentration1, q.concentration0
    log_norms = c.lgamma() + d.lgamma() + (a + b).lgamma()
    log_norms = log_norms - (a.lgamma() + b.lgamma() + (c + d).lgamma())
    return (
        log_norms
        + (a - c) * clew.digamma(a)
        + (b - d) * clew.digamma(b)
        + (c + d - a - b) * clew.digamma(a + b)
    )


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Any:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    per_trial = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return (p.total_count * per_trial).masked_fill(p.total_count > q.total_count, math.inf)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Any:
    terms = p.probs * (p.logits - q.logits)
    terms = terms.masked_fill((q.probs == 0).expand_as(terms), math.inf)
    return terms.masked_fill((p.probs == 0).expand_as(terms), 0).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot_categorical(p: Any, q: Any) -> Any:
    return _categorical(p._categorical, q._categorical)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Any:
    """Chyzak and Nielsen, "A closed-form formula for the Kullback-Leibler divergence between
    Cauchy distributions", 2019."""
    distance = (p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)
    return distance.log() - (4 * p.scale * q.scale).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Any:
    log_norms = p._cont_bern_log_norm() + clew.log1p(-p.probs)
    log_norms = log_norms - q._cont_bern_log_norm() - clew.log1p(-q.probs)
    return p.mean * (p.logits - q.logits) + log_norms


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    log_norms = a.sum(-1).lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    mean_logs = a.digamma() - a.sum(-1).digamma().unsqueeze(-1)
    return log_norms + ((a - b) * mean_logs).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: Any, q: Any) -> Any:
    """The Bregman divergence of the log normaliser (Nielsen and Nock, 2010)."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed "
            "using Bregman divergences"
        )
    params = [x.detach().requires_grad_() for x in p._natural_params]
    log_norm = p._log_normalizer(*params)
    means = grad(log_norm.sum(), params, create_graph=True)
    result = q._log_normalizer(*q._natural_params) - log_norm
    for own, other, mean in zip(params, q._natural_params, means):
        result = result - sum_rightmost((other - own) * mean, len(q.event_shape))
    return result


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    return (
        b * (p.rate / q.rate).log()
        + clew.lgamma(b)
        - clew.lgamma(a)
        + (a - b) * clew.digamma(a)
        + (q.rate - p.rate) * (a / p.rate)
    )


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - clew.log1p(-q.probs) / p.probs - q.logits


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Any:
    ratio, own, other = p.scale / q.scale, p.loc / q.scale, q.loc / q.scale
    shift = -ratio.log() - other + own
    tail = clew.exp(other + (1 + ratio).lgamma() - own)
    return shift + ratio * euler_constant + tail - (1 + euler_constant)


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Any:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    distance = (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * clew.exp(-distance / p.scale) - 1


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: Any, q: Any) -> Any:
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two Multivariate Normals with different event shapes cannot be "
            "computed"
        )
    own, other = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    batch = clew.broadcast_shapes(own.shape[:-2], other.shape[:-2])
    n = p.event_shape[0]
    relative = clew.linalg.solve_triangular(
        other.expand((*batch, n, n)), own.expand((*batch, n, n)), upper=False
    )
    trace = relative.pow(2).sum(-1).sum(-1)
    distance = squared_distance(other, q.loc - p.loc)
    return half_log_det(other) - half_log_det(own) + 0.5 * (trace + distance - n)


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale).pow(2)
    distance = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (ratio + distance - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Any:
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return result.masked_fill(p.scale < q.scale, math.inf)


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Any:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Any:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Any:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return result.masked_fill((q.low > p.low) | (q.high < p.high), math.inf)
