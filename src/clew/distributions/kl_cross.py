"""Divergences of distributions of different families.

Each is ``-entropy(p)`` minus the mean of ``log q(x)`` over p, worked out.
"""

from __future__ import annotations

import math
from typing import Any

import clew
from clew.distributions.bernoulli import Bernoulli
from clew.distributions.beta import Beta
from clew.distributions.binomial import Binomial
from clew.distributions.continuous_bernoulli import ContinuousBernoulli
from clew.distributions.exponential import Exponential
from clew.distributions.gamma import Gamma
from clew.distributions.gumbel import Gumbel
from clew.distributions.kl import register_kl
from clew.distributions.laplace import Laplace
from clew.distributions.normal import Normal
from clew.distributions.pareto import Pareto
from clew.distributions.poisson import Poisson
from clew.distributions.uniform import Uniform
from clew.distributions.utils import euler_constant

# Where p has values that q cannot have, the divergence is infinite.
_INFINITE: dict[tuple[type, str], tuple[type, ...]] = {
    (Beta, "concentration1"): (Pareto,),
    (ContinuousBernoulli, "probs"): (Pareto,),
    (Exponential, "rate"): (Beta, ContinuousBernoulli, Pareto, Uniform),
    (Gamma, "concentration"): (Beta, ContinuousBernoulli, Pareto, Uniform),
    (Gumbel, "loc"): (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    (Laplace, "loc"): (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    (Normal, "loc"): (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    (Pareto, "scale"): (Beta, ContinuousBernoulli, Uniform),
    (Poisson, "rate"): (Bernoulli, Binomial),
}


def _register_infinite(type_p: type, parameter: str, type_q: type) -> None:
    @register_kl(type_p, type_q)
    def _infinite(p: Any, q: Any) -> Any:
        return clew.full_like(getattr(p, parameter), math.inf)


for (_p, _parameter), _types in _INFINITE.items():
    for _q in _types:
        _register_infinite(_p, _parameter, _q)


def _log_norm_of_normal(q: Any) -> Any:
    """``-log q(loc)``."""
    return 0.5 * math.log(2 * math.pi) + q.scale.log()


def _against_normal(p: Any, q: Any) -> Any:
    """The divergence from a normal distribution, which only moments of p decide."""
    return _from_normal(p.entropy(), p.mean, p.variance, q)


def _from_normal(entropy: Any, mean: Any, variance: Any, q: Any) -> Any:
    mean_square = variance + (mean - q.loc).pow(2)
    return -entropy + _log_norm_of_normal(q) + 0.5 * mean_square / q.scale.pow(2)


for _p in (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Uniform):
    register_kl(_p, Normal)(_against_normal)


@register_kl(Pareto, Normal)
def _pareto_normal(p: Any, q: Any) -> Any:
    a = p.alpha
    variance = p.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))
    result = _from_normal(p.entropy(), _mean_of_pareto(p), variance, q)
    return result.masked_fill(a <= 2, math.inf)


def _mean_of_pareto(p: Any) -> Any:
    """The mean, where there is one; elsewhere a number with a finite gradient."""
    return p.alpha * p.scale / (p.alpha - 1)


def _against_exponential(p: Any, q: Any) -> Any:
    """The divergence from an exponential distribution, which only the mean of p decides."""
    return -p.entropy() - q.rate.log() + q.rate * p.mean


for _p in (Beta, ContinuousBernoulli, Gamma):
    register_kl(_p, Exponential)(_against_exponential)


@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Any, q: Any) -> Any:
    result = -p.entropy() - q.rate.log() + q.rate * _mean_of_pareto(p)
    return result.masked_fill(p.alpha <= 1, math.inf)


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Any, q: Any) -> Any:
    return _against_exponential(p, q).masked_fill(p.low < 0, math.inf)


def _against_gamma(p: Any, mean: Any, mean_log: Any, q: Any) -> Any:
    """The divergence from a gamma distribution, which the means of x and log(x) decide."""
    log_norm = q.concentration.lgamma() - q.concentration * q.rate.log()
    return -p.entropy() + log_norm - (q.concentration - 1) * mean_log + q.rate * mean


@register_kl(Beta, Gamma)
def _beta_gamma(p: Any, q: Any) -> Any:
    total = p.concentration1 + p.concentration0
    return _against_gamma(p, p.mean, p.concentration1.digamma() - total.digamma(), q)


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Any, q: Any) -> Any:
    return _against_gamma(p, p.mean, -p.rate.log() - euler_constant, q)


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Any, q: Any) -> Any:
    result = _against_gamma(p, _mean_of_pareto(p), p.scale.log() + p.alpha.reciprocal(), q)
    return result.masked_fill(p.alpha <= 1, math.inf)


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Any, q: Any) -> Any:
    result = _against_gamma(p, p.mean, _mean_log(p.low, p.high), q)
    return result.masked_fill(p.low < 0, math.inf)


def _mean_log(low: Any, high: Any) -> Any:
    """The mean of ``log(x)`` over ``[low, high]``."""
    return (clew.xlogy(high, high) - clew.xlogy(low, low)) / (high - low) - 1


def _against_gumbel(p: Any, mean: Any, mean_exp: Any, q: Any) -> Any:
    """The divergence from a Gumbel distribution; the means are of ``x / scale`` and exp(-it)."""
    loc = q.loc / q.scale
    return -p.entropy() + q.scale.log() + mean - loc + clew.exp(loc) * mean_exp


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Any, q: Any) -> Any:
    rate = p.rate * q.scale
    return _against_gumbel(p, rate.reciprocal(), rate / (rate + 1), q)


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Any, q: Any) -> Any:
    rate = p.rate * q.scale
    mean_exp = (1 + rate.reciprocal()).pow(-p.concentration)
    return _against_gumbel(p, p.concentration / rate, mean_exp, q)


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Any, q: Any) -> Any:
    mean, variance = p.loc / q.scale, (p.scale / q.scale).pow(2)
    return _against_gumbel(p, mean, clew.exp(-mean + 0.5 * variance), q)


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Any, q: Any) -> Any:
    low, high = p.low / q.scale, p.high / q.scale
    mean_exp = (clew.exp(-low) - clew.exp(-high)) / (high - low)
    return _against_gumbel(p, 0.5 * (low + high), mean_exp, q)


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Any:
    z = (p.loc - q.loc) / p.scale
    # The mean of |x - q.loc|.
    distance = math.sqrt(2 / math.pi) * p.scale * clew.exp(-0.5 * z.pow(2))
    distance = distance + (p.loc - q.loc) * clew.erf(math.sqrt(0.5) * z)
    return -p.entropy() + clew.log(2 * q.scale) + distance / q.scale


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Any:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


def _against_continuous_bernoulli(p: Any, q: Any) -> Any:
    log_norm = clew.log1p(-q.probs) + q._cont_bern_log_norm()
    return -p.entropy() - p.mean * q.logits - log_norm


register_kl(Beta, ContinuousBernoulli)(_against_continuous_bernoulli)


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Any, q: Any) -> Any:
    outside = (p.high >= 1) | (p.low <= 0)
    return _against_continuous_bernoulli(p, q).masked_fill(outside, math.inf)


@register_kl(Beta, Uniform)
def _beta_uniform(p: Any, q: Any) -> Any:
    result = -p.entropy() + (q.high - q.low).log()
    return result.masked_fill((q.low > 0) | (q.high < 1), math.inf)


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_uniform(p: Any, q: Any) -> Any:
    result = -p.entropy() + (q.high - q.low).log()
    return result.masked_fill((q.low >= 0) | (q.high <= 1), math.inf)


@register_kl(Uniform, Beta)
def _uniform_beta(p: Any, q: Any) -> Any:
    a, b = q.concentration1, q.concentration0
    log_norm = a.lgamma() + b.lgamma() - (a + b).lgamma()
    towards_one = (a - 1) * _mean_log(p.low, p.high)
    towards_zero = (b - 1) * _mean_log(1 - p.high, 1 - p.low)
    result = log_norm - towards_one - towards_zero - p.entropy()
    return result.masked_fill((p.high > 1) | (p.low < 0), math.inf)


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Any, q: Any) -> Any:
    log_norm = q.alpha.log() + q.alpha * q.scale.log()
    result = -p.entropy() - log_norm + (q.alpha + 1) * _mean_log(p.low, p.high)
    return result.masked_fill(p.low < q.scale, math.inf)
