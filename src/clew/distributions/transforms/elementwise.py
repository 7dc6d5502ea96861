"""Transforms of each element by itself."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew.distributions import constraints
from clew.distributions.transforms.base import PlainTransform, Transform
from clew.distributions.utils import NUMBER, broadcast_all, lazy_property, softplus


def clipped_sigmoid(x: Any) -> Any:
    """The sigmoid, kept inside the open interval (0, 1)."""
    info = clew.finfo(x.dtype)
    return clew.sigmoid(x).clamp(min=info.tiny, max=1.0 - info.eps)


class ExpTransform(PlainTransform):
    """``exp(x)``."""

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def _call(self, x: Any) -> Any:
        return x.exp()

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x


class SigmoidTransform(PlainTransform):
    """``1 / (1 + exp(-x))``."""

    domain = constraints.real
    codomain = constraints.unit_interval
    bijective = True
    sign = +1

    def _call(self, x: Any) -> Any:
        return clipped_sigmoid(x)

    def _inverse(self, y: Any) -> Any:
        info = clew.finfo(y.dtype)
        y = y.clamp(min=info.tiny, max=1.0 - info.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -softplus(-x) - softplus(x)


class SoftplusTransform(PlainTransform):
    """``log(1 + exp(x))``."""

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def _call(self, x: Any) -> Any:
        return softplus(x)

    def _inverse(self, y: Any) -> Any:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -softplus(-x)


class TanhTransform(PlainTransform):
    """``tanh(x)``."""

    domain = constraints.real
    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = +1

    def _call(self, x: Any) -> Any:
        return x.tanh()

    def _inverse(self, y: Any) -> Any:
        return clew.atanh(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        # log(1 - tanh(x) ** 2), without the cancellation for large x.
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class AbsTransform(PlainTransform):
    """``abs(x)``; its inverse gives the positive one of the two arguments."""

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return x.abs()

    def _inverse(self, y: Any) -> Any:
        return y


class PowerTransform(Transform):
    """``x ** exponent``, of positive numbers."""

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def _with_cache(self, cache_size: int) -> Any:
        return PowerTransform(self.exponent, cache_size=cache_size)

    @lazy_property
    def sign(self) -> Any:
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and _equal(self.exponent, other.exponent)

    __hash__ = None  # type: ignore[assignment]

    def _call(self, x: Any) -> Any:
        return x.pow(self.exponent)

    def _inverse(self, y: Any) -> Any:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return _broadcast(shape, self.exponent)

    inverse_shape = forward_shape


class AffineTransform(Transform):
    """``loc + scale * x``; `event_dim` dimensions make one value."""

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        if self.event_dim == 0:
            return constraints.real
        return constraints.independent(constraints.real, self.event_dim)

    codomain = domain

    def _with_cache(self, cache_size: int) -> Any:
        return AffineTransform(self.loc, self.scale, self.event_dim, cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, AffineTransform)
            and _equal(self.loc, other.loc)
            and _equal(self.scale, other.scale)
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, NUMBER):
            return (self.scale > 0) - (self.scale < 0)
        return self.scale.sign()

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        if isinstance(self.scale, NUMBER):
            result = clew.full_like(x, math.log(abs(self.scale)))
        else:
            result = self.scale.abs().log()
        shape = x.shape
        if self.event_dim:
            result = result.view((*result.shape[: -self.event_dim], -1)).sum(-1)
            shape = shape[: -self.event_dim]
        return result.expand(shape)

    def forward_shape(self, shape: Any) -> Any:
        return _broadcast(shape, self.loc, self.scale)

    inverse_shape = forward_shape


def _equal(a: Any, b: Any) -> bool:
    same = a == b
    return same if isinstance(same, bool) else bool(same.all())


def _broadcast(shape: Any, *parameters: Any) -> Any:
    return clew.broadcast_shapes(shape, *(getattr(p, "shape", ()) for p in parameters))


class CumulativeDistributionTransform(Transform):
    """The cumulative distribution function of a distribution."""

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:
        return self.distribution.support

    def _with_cache(self, cache_size: int) -> Any:
        return CumulativeDistributionTransform(self.distribution, cache_size=cache_size)

    def _call(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self.distribution.log_prob(x)
