"""The gamma distribution."""

from __future__ import annotations

from typing import Any

import clew
from clew.autograd.modes import no_grad
from clew.dispatch import apply
from clew.distributions import constraints
from clew.distributions.exp_family import ExponentialFamily
from clew.distributions.utils import broadcast_all
from clew.functions.create import as_tensor
from clew.op import REGISTRY

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """Positive numbers: for a whole `concentration`, waiting times for as many events."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _expandable = {"concentration": 0, "rate": 0}

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.concentration / self.rate

    @property
    def mode(self) -> Any:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Any:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        op = REGISTRY["standard_gamma"]
        standard = apply(op, (self.concentration.expand(shape),), op.default_attrs)
        value = standard / self.rate.expand(shape)
        with no_grad():  # numbers too small for the type are no part of the function
            value.detach().clamp_(min=clew.finfo(value.dtype).tiny)
        return value

    def log_prob(self, value: Any) -> Any:
        value = as_tensor(value, dtype=self.rate.dtype)
        self._checked(value)
        return (
            clew.xlogy(self.concentration, self.rate)
            + clew.xlogy(self.concentration - 1, value)
            - self.rate * value
            - clew.lgamma(self.concentration)
        )

    def cdf(self, value: Any) -> Any:
        self._checked(value)
        return clew.special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Any:
        a = self.concentration
        return a - clew.log(self.rate) + clew.lgamma(a) + (1.0 - a) * clew.digamma(a)

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        return clew.lgamma(x + 1) + (x + 1) * clew.log(-y.reciprocal())
