"""The von Mises distribution: a normal distribution of angles."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew.distributions import constraints
from clew.distributions.distribution import Distribution
from clew.distributions.utils import broadcast_all, lazy_property

__all__ = ["VonMises"]

# Abramowitz and Stegun, Handbook of Mathematical Functions, 9.8.1 to 9.8.4: modified Bessel
# functions of order 0 and 1 up to 3.75, and scaled by sqrt(x) exp(-x) beyond.
_SMALL = (
    (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.360768e-1, 0.45813e-2),
    (0.5, 0.87890594, 0.51498869, 0.15084934, 0.2658733e-1, 0.301532e-2, 0.32411e-3),
)
_LARGE = (
    (0.39894228, 0.1328592e-1, 0.225319e-2, -0.157565e-2, 0.916281e-2, -0.2057706e-1,
     0.2635537e-1, -0.1647633e-1, 0.392377e-2),
    (0.39894228, -0.3988024e-1, -0.362018e-2, 0.163801e-2, -0.1031555e-1, 0.2282967e-1,
     -0.2895312e-1, 0.1787654e-1, -0.420059e-2),
)  # fmt: skip


def _polynomial(x: Any, coefficients: tuple[float, ...]) -> Any:
    result = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        result = coefficient + x * result
    return result


def log_modified_bessel(x: Any, order: int) -> Any:
    """The logarithm of the modified Bessel function of order 0 or 1, to seven places, of x > 0."""
    ratio = x / 3.75
    small = _polynomial(ratio * ratio, _SMALL[order])
    if order == 1:
        small = x.abs() * small
    large = x - 0.5 * x.log() + _polynomial(3.75 / x, _LARGE[order]).log()
    return clew.where(x < 3.75, small.log(), large)


def _rejection_sample(loc: Any, concentration: Any, r: Any, shape: Any) -> Any:
    """Angles by rejection from a wrapped Cauchy distribution (Best and Fisher, 1979)."""
    x = clew.zeros(shape, dtype=loc.dtype)
    done = clew.zeros(shape, dtype=clew.bool)
    while not done.all():
        u1, u2, u3 = clew.rand((3, *shape), dtype=loc.dtype).unbind()
        z = clew.cos(math.pi * u1)
        f = (1 + r * z) / (r + z)
        c = concentration * (r - f)
        accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
        x = clew.where(accept, (u3 - 0.5).sign() * f.acos(), x)
        done = done | accept
    return (x + math.pi + loc) % (2 * math.pi) - math.pi


class VonMises(Distribution):
    """Angles around `loc`, in radians between -pi and pi.

    Args:
        loc: the mean angle.
        concentration: how near to `loc` they are; about 1 / variance where it is large.
        validate_args: see `Distribution`.
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, clew.Size(), validate_args)

    def log_prob(self, value: Any) -> Any:
        self._checked(value)
        log_prob = self.concentration * clew.cos(value - self.loc)
        return log_prob - math.log(2 * math.pi) - log_modified_bessel(self.concentration, 0)

    @lazy_property
    def _proposal_r(self) -> Any:
        """The parameter of the proposals, in double precision."""
        kappa = self.concentration.double()
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        r = (1 + rho**2) / (2 * rho)
        return clew.where(kappa < 1e-5, 1 / kappa + kappa, r)  # the first terms of its series

    @clew.no_grad()
    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        loc, kappa = self.loc.double(), self.concentration.double()
        return _rejection_sample(loc, kappa, self._proposal_r, shape).to(self.loc.dtype)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        try:
            return super().expand(batch_shape)
        except NotImplementedError:
            validate_args = self.__dict__.get("_validate_args")
            loc, kappa = self.loc.expand(batch_shape), self.concentration.expand(batch_shape)
            return type(self)(loc, kappa, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @lazy_property
    def variance(self) -> Any:
        """The circular variance: one less the length of the mean vector."""
        kappa = self.concentration
        return 1 - (log_modified_bessel(kappa, 1) - log_modified_bessel(kappa, 0)).exp()
