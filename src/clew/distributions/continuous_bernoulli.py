"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew.distributions import constraints
from clew.distributions.exp_family import ExponentialFamily
from clew.distributions.odds import Odds, require_one
from clew.distributions.utils import (
    broadcast_all,
    clamp_probs,
    cross_entropy_of_logits,
    lazy_property,
    logits_to_probs,
)

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(Odds, ExponentialFamily):
    """Numbers in [0, 1] with a density proportional to ``p ** x * (1 - p) ** (1 - x)``.

    Near ``p = 1/2`` (within `lims`) the formulas divide zero by zero; Taylor series stand in.
    Source: Loaiza-Ganem and Cunningham, "The continuous Bernoulli", 2019.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    _mean_carrier_measure = 0
    has_rsample = True
    _expandable = {"probs": 0, "logits": 0}

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        require_one(probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
            # Before they are clamped, which makes them valid.
            if validate_args is not None and not (
                self.arg_constraints["probs"].check(self.probs).all()
            ):
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(self.probs)
        else:
            (self.logits,) = broadcast_all(logits)
        self._lims = lims
        super().__init__(self._param.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._lims = self._lims
        return new

    @lazy_property
    def probs(self) -> Any:
        """Probabilities, inside the open interval (0, 1)."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _is_stable(self) -> Any:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _stable_probs(self) -> Any:
        """The probabilities, those near 1/2 replaced by one where the formulas work."""
        return clew.where(self._is_stable(), self.probs, self._lims[0])

    def _cont_bern_log_norm(self) -> Any:
        """The log of the constant that makes the density's integral 1."""
        p = self._stable_probs()
        # 1 - 2p, from the side where it does not cancel; the other side's gradient must be finite.
        low = clew.where(p <= 0.5, p, 0.0)
        high = clew.where(p >= 0.5, p, 1.0)
        width = clew.where(p <= 0.5, clew.log1p(-2.0 * low), clew.log(2.0 * high - 1.0))
        exact = clew.log(clew.abs(clew.log1p(-p) - clew.log(p))) - width
        x = (self.probs - 0.5).pow(2)
        taylor = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x
        return clew.where(self._is_stable(), exact, taylor)

    @property
    def mean(self) -> Any:
        p = self._stable_probs()
        exact = p / (2.0 * p - 1.0) + 1.0 / (clew.log1p(-p) - clew.log(p))
        x = self.probs - 0.5
        taylor = 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x
        return clew.where(self._is_stable(), exact, taylor)

    @property
    def stddev(self) -> Any:
        return self.variance.sqrt()

    @property
    def variance(self) -> Any:
        p = self._stable_probs()
        exact = p * (p - 1.0) / (1.0 - 2.0 * p).pow(2)
        exact = exact + 1.0 / (clew.log1p(-p) - clew.log(p)).pow(2)
        x = (self.probs - 0.5).pow(2)
        taylor = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x
        return clew.where(self._is_stable(), exact, taylor)

    def rsample(self, sample_shape: Any = ()) -> Any:
        uniform = clew.rand(self._extended_shape(sample_shape), dtype=self.probs.dtype)
        return self.icdf(uniform)

    def log_prob(self, value: Any) -> Any:
        self._checked(value)
        logits, value = broadcast_all(self.logits, value)
        return -cross_entropy_of_logits(logits, value) + self._cont_bern_log_norm()

    def cdf(self, value: Any) -> Any:
        self._checked(value)
        p = self._stable_probs()
        inside = p.pow(value) * (1.0 - p).pow(1.0 - value) + p - 1.0
        inside = clew.where(self._is_stable(), inside / (2.0 * p - 1.0), value)
        above = clew.where(value >= 1.0, clew.ones_like(value), inside)
        return clew.where(value <= 0.0, clew.zeros_like(value), above)

    def icdf(self, value: Any) -> Any:
        p = self._stable_probs()
        exact = clew.log1p(-p + value * (2.0 * p - 1.0)) - clew.log1p(-p)
        exact = exact / (clew.log(p) - clew.log1p(-p))
        return clew.where(self._is_stable(), exact, value)

    def entropy(self) -> Any:
        zero, one = clew.log1p(-self.probs), clew.log(self.probs)
        return self.mean * (zero - one) - self._cont_bern_log_norm() - zero

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Any) -> Any:
        low, high = self._lims[0] - 0.5, self._lims[1] - 0.5
        stable = (x <= low) | (x > high)
        safe = clew.where(stable, x, low)
        exact = clew.log(clew.abs(clew.expm1(safe))) - clew.log(clew.abs(safe))
        taylor = 0.5 * x + x.pow(2) / 24.0 - x.pow(4) / 2880.0
        return clew.where(stable, exact, taylor)
